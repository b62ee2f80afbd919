// Shows one prompt on every rung of a ladder of models: its loss, its next token, and the text that each writes.

import { button, node, partsOf, put, untranslated } from "../dom.js";
import { percent } from "../number_format.js";
import { showBars } from "./bars.js";
import { lastOf } from "./distributions.js";
import { TableDrawer } from "./drawers.js";
/** @import { Side } from "./data.js" */
/** @import { WhatIfView } from "./view.js" */

/**
 * @typedef {object} LadderAbout
 * @property {"first" | "since-2017"} which
 * @property {string | null} problem why nothing is shown
 * @property {{ name: string, title: string }} [last] the highest rung
 * @property {{ name: string, attends: boolean }[]} rungs attends: whether it has softmax attention
 * @property {number[]} tokens
 * @property {string | null} corpus what the rungs were trained on, if the selected model wasn't
 * @property {boolean} changed whether the selected model is
 * @property {string} model the selected one
 * @property {string} prompt
 * @property {import("./ablation.js").AblationAbout["sampling"]} sampling
 *
 * @typedef {{ loss: number | null, names: string[], likeliest: [name: string, share: number][], text: string }} Result of a rung
 */

const INTRODUCTIONS = {
  first: "Your prompt on models that add one part at a time. Where the loss falls, the part helps on this text; where it rises, it doesn't.",
  "since-2017": "The decoder of 2017, then modern changes, one per rung. Some save time or memory instead.",
};
const WRITTEN = 60; // tokens that each rung writes
const LIKELIEST = 3; // next tokens that are named of each
const MARKUP = `
  <p data-part="introduction"></p>
  <p class="what-if-problem" data-part="problem" role="status"></p>
  <p data-part="onward"></p>
  <div data-part="all">
    <figure class="what-if-figure">
      <div data-part="bars"></div>
      <figcaption class="faint" data-part="words"></figcaption>
    </figure>
    <div class="what-if-columns" data-part="rungs"></div>
    <div data-part="drawers"></div>
  </div>`;

export class Ladder {
  /** @type {LadderAbout} */ about;

  /** @param {HTMLElement} root @param {WhatIfView} page */
  constructor(root, page) {
    this.page = page;
    root.innerHTML = MARKUP; // constant
    this.parts = partsOf(root);
    this.onward = button(this.parts.onward, "", () => page.host.choose({ model: this.about.last.name }), { className: "act" });
    this.table = new TableDrawer(this.parts.drawers, "The ladder as a table");
  }

  /** @param {LadderAbout} about */
  async show(about) {
    this.about = about;
    const { parts, page } = this;
    const { which, problem, last, rungs, corpus, changed, tokens } = about;
    parts.problem.hidden = !problem;
    put(parts.problem, problem ?? "");
    parts.onward.hidden = !problem || !last;
    if (last) put(this.onward, `Go on to ${last.title}, and its own prompt`);
    parts.all.hidden = Boolean(problem);
    put(parts.introduction, problem ? "" : `${INTRODUCTIONS[which]}${corpus ? ` They were trained on a different text from your model's: ${corpus}.` : ""}${changed ? " The ladder shows the models without your changes." : ""}`);
    if (problem) return;
    const sides = rungs.map(({ name }) => ({ model: name, title: "", tokens, source: [], begin: 0, position: 0, changes: null }));
    const results = await Promise.all(sides.map((side) => this.read(side)));
    const cards = rungs.map(({ name }) => page.models[name].card);
    const chosen = rungs.findIndex(({ name }) => name === about.model);
    showBars(parts.bars, {
      first: "rung", labels: cards.map(({ title }) => title), names: ["this text", "held-out text"], marked: chosen, areData: false,
      values: [results.map(({ loss }) => loss), cards.map(({ validation_loss: loss }) => loss || null)], says: (loss) => loss.toFixed(2),
    });
    const context = Math.min(...rungs.map(({ name }) => page.models[name].about.config.context_length));
    put(parts.words, `The mean loss of your prompt's tokens, in nats, each predicted from at most ${context} before it, beside that of the text held out from training. A short prompt can be easier, or harder, than the rest.${results.some(({ loss }) => loss !== null) ? "" : " A single token has no loss."}`);
    parts.rungs.replaceChildren(...results.map((result, at) => this.rung(at, result, results[at - 1] ?? null)));
    this.table.offer(`ladder-${which}.csv`, () => ({
      columns: ["rung", "parameters", "loss (nats)", "validation loss (nats)", "next token", "probability", "writes"],
      rows: results.map(({ loss, likeliest: [[name, share]], text }, at) => [cards[at].title, cards[at].parameters, loss, cards[at].validation_loss ?? null, name, share, text]),
    }));
  }

  /** A rung's loss, next token and text. Each token is predicted from those before it in the rung's window. @param {Side} side @returns {Promise<Result>} */
  async read(side) {
    const { page, about: { sampling, tokens } } = this;
    const api = page.api(side, { onServer: true });
    const scores = await api.recording("scores", { first: 1 });
    const shares = Array.from(scores.tensors.probability.data).slice(0, -1);
    const loss = tokens.length > 1 ? -shares.reduce((sum, share) => sum + Math.log(Math.max(share, Number.MIN_VALUE)), 0) / shares.length : null;
    const names = await page.namesOf(side);
    const next = lastOf(scores);
    const best = [...next].sort(([, one], [, other]) => other - one).slice(0, LIKELIEST);
    let text = "";
    for await (const { event, data } of api.stream("generate", { ...sampling, max_new_tokens: WRITTEN })) if (event === "token") text += page.pieceOf(side, data.id);
    return { loss, names, likeliest: best.map(([id, log]) => [names[id], Math.exp(log)]), text };
  }

  /** One rung: what it has more than the last, what it says next, what it writes, and the way to it. @param {number} at @param {Result} result @param {Result | null} before */
  rung(at, { loss, likeliest, text }, before) {
    const { about: { rungs, model, prompt }, page } = this;
    const { name, attends } = rungs[at];
    const { title, summary } = page.models[name].card;
    const root = node("section", "rung", null);
    const heading = node("div", "what-if-row", root);
    put(node("h3", "", heading), title);
    if (name === model) put(node("span", "", heading), "✓ This is the selected model.");
    else button(heading, "Choose this rung", () => page.host.choose({ model: name, prompt }), { className: "act", words: `Choose this rung: ${title}` });
    const change = loss !== null && before && before.loss !== null ? loss - before.loss : null;
    const losses = loss === null ? "" : `Loss ${loss.toFixed(3)} nats${change === null ? "" : `, ${Math.abs(change).toFixed(3)} ${change > 0 ? "more" : "less"} than the rung before it`}. `;
    put(node("p", "", root), `${summary} ${losses}Next token: ${likeliest.map(([label, share]) => `“${label}” ${percent(share)}`).join(", ")}.`);
    put(node("p", "faint", root), `It writes ${WRITTEN} more characters:`);
    untranslated(node("pre", "", root)).textContent = `${prompt}${text}`;
    const higher = attends ? null : rungs.slice(at).find((rung) => rung.attends);
    if (name !== model || !higher) return root;
    put(node("p", "faint", root), "It has no softmax attention.");
    button(root, `Go on to ${page.models[higher.name].card.title}`, () => page.host.choose({ model: higher.name, prompt }), { className: "act" });
    return root;
  }
}
