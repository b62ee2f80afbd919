// One page of a static site: navigation, model and prompt on top, and below them the instrument.

import { ApiError, sentenceOf } from "../api_error.js";
import { isComposing, node, partsOf, put, untranslated } from "../dom.js";
import { fitToText } from "../field_height.js";
import { drawForPaper } from "../printing.js";
import { replaceAddress, viewState } from "../view_state.js";
import { Models, fetched } from "./models.js";
import { keepOffline } from "./offline.js";
import { DEFAULT_MODEL, redraw, showView } from "./view_host.js";
/** @import { Views } from "./view_host.js" */

/** @typedef {{ page: string, first: string, models: { name: string, title: string, group: string, examples: string[] }[] }} About first: the model of an address that says nothing */

const models = new Models(fetched);

/** @param {Views} views that the page needs */
export async function startPage(views) {
  const parts = partsOf(document);
  /** @type {About} */
  const { page, first, models: listed } = JSON.parse(parts.about.textContent);
  const fitPrompt = fitToText(parts.prompt);
  const available = (name) => (listed.some((model) => model.name === name) ? name : listed[0].name);
  if (!location.search) replaceAddress(`model=${first}`);

  /** What the address says; its model, if it names none, is that of all links. */
  function parameters() {
    const all = new URLSearchParams(location.search);
    if (!all.has("model")) all.set("model", available(DEFAULT_MODEL));
    return all;
  }

  for (const { name, title, group } of listed) {
    const section = [...parts.model.querySelectorAll("optgroup")].find(({ label }) => label === group) ?? Object.assign(node("optgroup", "", parts.model), { label: group });
    Object.assign(node("option", "", section), { value: name, textContent: title });
  }

  async function show() {
    const wanted = parameters().get("model");
    const known = listed.find(({ name }) => name === wanted);
    parts.model.value = known?.name ?? "";
    parts.prompt.value = parameters().get("prompt") ?? known?.examples[0] ?? "";
    fitPrompt();
    parts.examples.replaceChildren(new Option("Examples", ""), ...(known?.examples ?? []).map((text) => untranslated(new Option(text, text))));
    parts.examples.hidden = !known?.examples.length;
    try {
      if (!known) throw new ApiError(`There is no model “${wanted.slice(0, 40)}” on this site. Pick another one.`);
      say("");
      parts.view.dataset.state = "asking";
      await showView(parts.view, page, parameters(), models, views, tell);
      parts.view.dataset.state = "shown";
    } catch (error) {
      parts.view.dataset.state = "failed";
      say(sentenceOf(error)); // what was shown before stays, and what was typed, too
      if (!(error instanceof ApiError)) throw error;
    }
  }

  function say(sentence) {
    put(parts.problem, sentence);
    parts.problem.hidden = !sentence;
  }

  /** Show another text or model: what was looked at of the one before is as at first. */
  function become(change) {
    const all = new URLSearchParams({ model: parameters().get("model"), prompt: parts.prompt.value, ...change });
    if (!all.get("prompt") && change.model) all.delete("prompt");
    viewState().become("");
    viewState().flush();
    replaceAddress(all.toString());
    show();
  }

  function tell(event, value) {
    if (event === "navigate") {
      viewState().flush();
      const all = parameters();
      if (value.attention) all.set("attention", value.attention);
      location.href = `${new URL(`${value.page}/`, document.baseURI)}?${all}`;
    } else if (event === "change") {
      const codes = (parameters().get("changes") ?? "").split("!").filter(Boolean);
      const given = (codes) => [codes ?? []].flat();
      const left = codes.filter((code) => !given(value.remove).includes(code) && !given(value.add).includes(code));
      const all = parameters();
      all.set("changes", [...left, ...given(value.add)].join("!"));
      if (!all.get("changes")) all.delete("changes");
      replaceAddress(all.toString());
      show();
    }
  }

  parts.model.addEventListener("change", () => become({ model: parts.model.value, prompt: "" }));
  parts.examples.addEventListener("change", () => parts.examples.value && become({ prompt: parts.examples.value }));
  parts.prompt.addEventListener("change", () => become({}));
  parts.prompt.addEventListener("keydown", (event) => event.key === "Enter" && !event.shiftKey && !isComposing(event) && (event.preventDefault(), parts.prompt.blur()));
  for (const link of parts.pages.querySelectorAll("a")) {
    link.addEventListener("click", () => {
      viewState().flush();
      link.search = location.search; // the view goes along
    });
  }
  addEventListener("popstate", show);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
  drawForPaper(redraw);
  await show();
  keepOffline();
}
