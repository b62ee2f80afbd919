// A page of its own that computes: an instrument, the model that it asks, and above it what a visitor changes: the prompt, and
// the heads that are ablated. It needs no server.

import { AblationControls } from "./ablation_controls.js";
import { ApiError, sentenceOf } from "./api_error.js";
import { attribute, isComposing, node, put, sends } from "./dom.js";
import { embedded } from "./embedded_recordings.js";
import { deviationInWords, deviationOf } from "./engine_deviation.js";
import { inWords } from "./engine/overwritten_values.js";
import { tokenizerFrom } from "./engine/tokenizer.js";
import { fitToText } from "./field_height.js";
import { windowStart } from "./generation/view_params.js";
import { LocalApi, LocalEngine, workerOfText } from "./local_api.js";
import { drawForPaper } from "./printing.js";
/** @import { Change } from "./intervention_controls.js" */
/** @import { AboutModel } from "./engine/live_model.js" */

/**
 * What is read, and what is changed.
 *
 * @typedef {object} Reading
 * @property {string} text as it was typed
 * @property {number[]} tokens
 * @property {number[]} source
 * @property {number} begin the position of the first token in the text
 * @property {string[]} next of an encoder–decoder: the label of the token that was chosen after each
 * @property {string[]} changes codes
 *
 * @typedef {object} LiveView draws an instrument on such a page
 * @property {(api: LocalApi, reading: Reading) => Promise<void>} begin resolved once it shows something
 * @property {() => void} draw
 * @property {boolean} [reads] whether it shows a pass over the text, and not what comes after it
 *
 * @typedef {{ about: AboutModel, tokenizer: object, reads_names: boolean, title: string, reading: Reading, kind: string | null, chosen: Record<string, any> }} ModelOfPage
 */

export class LivePage {
  /** @param {(root: HTMLElement, page: LivePage) => LiveView} make */
  constructor(make) {
    /** @type {ModelOfPage} */
    this.model = JSON.parse(document.getElementById("model").textContent);
    const { about, reading } = this.model;
    this.about = about;
    this.reading = reading;
    const main = document.querySelector("main");
    main.replaceChildren();
    this.root = node("div", "live", main);
    this.makeControls(node("header", "", this.root));
    this.problem = node("p", "problem", this.root);
    attribute(this.problem, "role", "alert");
    this.say("");
    this.view = make(node("div", "", this.root), this);
    this.computed = node("p", "computed", this.root);
    put(this.computed, "Computed in your browser.");
    const script = document.getElementById("worker").textContent;
    this.engine = new LocalEngine(() => workerOfText(script), { weights: document.getElementById("weights").textContent, about });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.view.draw());
    drawForPaper(() => this.view.draw());
    this.show();
    this.compare();
  }

  makeControls(parent) {
    const form = node("form", "prompt", parent);
    const label = node("label", "", form);
    label.append("Prompt ");
    this.prompt = Object.assign(node("textarea", "", label), { value: this.reading.text, rows: Math.min(this.reading.text.split("\n").length, 4), spellcheck: false });
    fitToText(this.prompt);
    const button = Object.assign(node("button", "", form), { type: "submit" });
    put(button, "Compute");
    sends(button, () => this.type(this.prompt.value));
    this.prompt.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !isComposing(event)) button.click();
    });
    const modules = Object.values(this.about.attentions).flatMap((of) => of.modules);
    this.ablating = new AblationControls(parent, { modules, heads: this.about.config.n_heads }, (change) => this.change(change));
  }

  /** Another prompt: what it can't be is said, and what was there stays. @param {string} text */
  async type(text) {
    try {
      const { tokenizer, reads_names: readsNames } = this.model;
      const tokens = tokenizerFrom(tokenizer, { readsNames }).encode(text);
      if (!tokens.length) throw new Error("The prompt is empty; a model needs at least one token.");
      await this.read({ ...this.reading, ...this.placed(tokens), text });
    } catch (error) {
      this.say(/** @type {Error} */ (error).message);
    }
  }

  /** Where a prompt's tokens stand: of an encoder–decoder in its source. @param {number[]} prompt */
  placed(prompt) {
    const { config, card } = this.about;
    if (config.architecture !== "encoder-decoder") return { tokens: prompt, source: [], begin: 0, next: [] };
    if (prompt.length > config.context_length) throw new Error(`The prompt has ${prompt.length} tokens, and this model reads at most ${config.context_length}.`);
    return { tokens: card.start_tokens, source: prompt, begin: 0, next: [] };
  }

  /** Show another reading. @param {Reading} reading */
  async read(reading) {
    this.reading = reading;
    this.ablating.show(this.interventions);
    await this.show();
  }

  /** @param {Change} change */
  change({ add, remove }) {
    const added = new Set(add.map(partOf));
    const kept = this.reading.changes.filter((code) => !remove.includes(code) && !added.has(partOf(code)));
    const { text, source, tokens } = this.reading;
    const isWritten = source.length > 0 && this.view.reads; // by a model that was another one
    const again = isWritten ? this.placed(source) : { source, tokens };
    this.read({ ...this.reading, ...again, text, changes: [...kept, ...add] });
  }

  /** What is changed, as instruments show it. */
  get interventions() {
    return this.reading.changes.map((code) => ({ code, words: inWords(code) }));
  }

  async show() {
    this.api?.end();
    const given = this.apiOf(this.reading);
    this.api = given;
    this.root.dataset.state = "asking";
    try {
      const reading = this.view.reads ? await this.windowed(given) : this.reading;
      if (given !== this.api) return;
      this.reading = reading;
      this.api = this.view.reads ? this.apiOf(reading) : given;
      const { api } = this;
      await this.view.begin(api, reading);
      if (api !== this.api) return;
      this.say("");
      this.root.dataset.state = "shown";
      this.ablating.show(this.interventions);
    } catch (error) {
      this.fail(error);
    }
  }

  apiOf({ tokens, source, changes, begin }) {
    return new LocalApi({ tokens: tokens.join(), source: source.join() || null, changes: changes.join("!") || null, begin: begin || null }, this.engine);
  }

  /** What a view of a pass reads: the end of a long text; of an encoder–decoder what it writes. @returns {Promise<Reading>} */
  async windowed(api) {
    const { config, card } = this.about;
    const { tokens, source } = this.reading;
    const begin = windowStart(tokens.length, config.context_length);
    if (!source.length) return { ...this.reading, tokens: tokens.slice(begin), begin: this.reading.begin + begin };
    if (tokens.length > card.start_tokens.length) return this.reading;
    const written = [];
    for await (const { event, data } of api.stream("generate", { temperature: 0, max_new_tokens: config.context_length })) {
      if (event === "token") written.push(data.id);
    }
    const isEnded = card.stop_tokens.includes(written.at(-1));
    const text = [...tokens, ...(isEnded ? written.slice(0, -1) : written)].slice(0, config.context_length);
    const next = [...tokens, ...written].slice(1, text.length + 1).map((token) => this.about.kinds[token][0]);
    return { ...this.reading, tokens: text, next };
  }

  /** Ask something more: what the promise gives goes to `use`, unless something else is shown by then. */
  async fetch(ask, use) {
    const { api } = this;
    try {
      const answer = await ask();
      if (api === this.api) use(answer);
    } catch (error) {
      if (api === this.api) this.fail(error);
    }
  }

  fail(error) {
    this.root.dataset.state = "failed";
    this.say(sentenceOf(error));
    if (!(error instanceof ApiError)) throw error;
  }

  say(sentence) {
    put(this.problem, sentence);
    this.problem.hidden = !sentence;
  }

  /** Say how far this browser's numbers are from the engine's, on a sample that the page holds. */
  async compare() {
    const sample = embedded("sample");
    const { tokens, source } = sample.metadata;
    const api = this.apiOf({ tokens, source, changes: [], begin: 0 });
    try {
      const off = deviationOf(await api.recording("tensors", { names: Object.keys(sample.tensors) }), sample);
      put(this.computed, `Computed in your browser. ${deviationInWords(off, tokens.length + source.length)}`);
      this.computed.dataset.deviation = String(off);
    } catch (error) {
      this.fail(error);
    }
  }
}

/** What a code changes: a later change of the same takes the place of an earlier one. @param {string} code */
function partOf(code) {
  const [kind, ...fields] = code.split("~");
  if (kind === "scale" || kind === "mean") return fields.slice(0, 3).join("~");
  return kind === "weigh" ? fields.slice(0, 4).join("~") : code;
}
