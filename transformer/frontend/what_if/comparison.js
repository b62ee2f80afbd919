// Compares two prompts, two models, or a model with its changes and without: what they predict, how one head attends, and the logit lens.

import { button, choice, node, offer, partsOf, put } from "../dom.js";
import { partInWords } from "../intervention_codes.js";
import { Matrix } from "../matrix/matrix.js";
import { percent, plainNumber } from "../number_format.js";
import { pageState } from "../page/page_state.js";
import { kindOf } from "../page/text_reading.js";
import { showBars } from "./bars.js";
import { divergence, inOrder } from "./distributions.js";
import { PythonDrawer, TableDrawer } from "./drawers.js";
import { showLines } from "./lines.js";
import { OtherPromptField } from "./other_prompt.js";
import { linesOfComparison } from "./python_lines.js";
/** @import { Side } from "./data.js" */
/** @import { OtherPrompt } from "./other_prompt.js" */
/** @import { WhatIfView } from "./view.js" */

/**
 * @typedef {object} ComparisonAbout
 * @property {"prompts" | "models" | "changes"} mode
 * @property {OtherPrompt | null} other of two prompts
 * @property {[Side, Side] | null} sides null where there is nothing to compare
 * @property {string[]} notes
 * @property {string} prompt
 * @property {boolean} isCausal
 * @property {string} file
 *
 * @typedef {{ title: string, weights: Float32Array, isHidden: boolean[], labels: [string[], string[]], offsets: [number, number], note: string }} Panel
 */

const CANDIDATES = 6; // the likeliest of each side that are drawn, as far as they can be seen
const UNSEEN = 5e-4;
const ROUNDING = 1e-5; // a change of a probability this small
const MOVED = 3; // tokens of which it is said how much likelier or less likely they are
const MOST_TOKENS = 64; // of a picture of attention, from the end of a longer text
const KINDS = { self: "Self-attention", encoder: "Encoder: the source attends to itself", decoder: "Decoder: the text attends to itself", cross: "Cross: the text attends to the source" };
const MARKUP = `
  <div data-part="prompt"></div>
  <p class="faint" data-part="notes"></p>
  <p data-part="none"></p>
  <div data-part="all">
    <section>
      <h2 data-part="heading"></h2>
      <p data-part="likeliest"></p>
      <div data-part="bars"></div>
      <p class="faint" data-part="drawn"></p>
      <p data-part="difference"></p>
      <div data-part="nextTable"></div>
    </section>
    <section>
      <h2>Attention of one head</h2>
      <p class="faint" data-part="noHeads"></p>
      <div class="what-if-row" data-part="dials"></div>
      <div class="what-if-columns narrow" data-part="panels"></div>
      <div data-part="attentionTable"></div>
    </section>
    <section>
      <h2>Logit lens</h2>
      <div data-part="lens"></div>
      <p class="faint" data-part="lensWords"></p>
      <div data-part="lensTable"></div>
    </section>
    <div data-part="drawers"></div>
  </div>`;

export class Comparison {
  /** @type {ComparisonAbout} */ about;
  /** @type {string[][]} */ names = [];
  /** @type {{ root: HTMLElement, title: HTMLElement, matrix: Matrix, note: HTMLElement }[]} */ panels = [];
  asked = "";

  /** @param {HTMLElement} root @param {WhatIfView} page */
  constructor(root, page) {
    this.page = page;
    root.innerHTML = MARKUP; // constant
    const parts = (this.parts = partsOf(root));
    this.field = new OtherPromptField(parts.prompt, page.host);
    this.noChanges = node("span", "", parts.none);
    put(this.noChanges, "This model has no changes. Ablate a head first, for example. ");
    button(parts.none, "Go to Ablation", () => pageState().set({ question: null }), { className: "act" });
    this.dials = Object.fromEntries([["attention", "Attention"], ["layer", "Layer"], ["head", "Head"]].map(([name, title]) => [name, choice(parts.dials, title, (value) => {
      page.host.select({ [name]: value });
      this.askAttention();
    })]));
    this.nextTable = new TableDrawer(parts.nextTable, "Both distributions as a table");
    this.attentionTable = new TableDrawer(parts.attentionTable, "These weights as a table");
    this.lensTable = new TableDrawer(parts.lensTable, "The logit lens as a table");
    this.python = new PythonDrawer(parts.drawers);
  }

  /** @param {ComparisonAbout} about */
  async show(about) {
    this.about = about;
    const { parts, page } = this;
    const { mode, other, sides, notes, isCausal } = about;
    parts.prompt.hidden = mode !== "prompts";
    if (other) this.field.show(other, about.prompt);
    put(parts.notes, notes.join(" "));
    parts.none.hidden = mode !== "changes" || Boolean(sides);
    parts.all.hidden = !sides;
    this.asked = "";
    if (!sides) return;
    put(parts.heading, isCausal ? "Next token" : "Predicted token");
    const vocabularies = await Promise.all(sides.map((side) => page.namesOf(side)));
    this.isShared = vocabularies[0].length === vocabularies[1].length && vocabularies[0].every((name, id) => name === vocabularies[1][id]);
    this.names = vocabularies.map(uniqueNames);
    const logs = (this.logs = await Promise.all(sides.map((side) => page.distribution(side))));
    this.showNext(logs);
    this.python.show(linesOfComparison(sides, sides.map((side) => page.modelOf(side))));
    this.askAttention();
    page.host.fetch(() => this.readLens(logs), (lenses) => this.showLens(lenses));
  }

  setSelection() {
    if (this.about?.sides && this.logs) this.askAttention();
  }

  draw() {
    for (const { matrix } of this.panels) if (matrix.values) matrix.draw();
  }

  /** @param {Float64Array[]} logs */
  showNext(logs) {
    const { parts, names, isShared, about: { sides, isCausal, file } } = this;
    const shares = logs.map((log, at) => new Map(names[at].map((name, id) => [name, Math.exp(log[id])])));
    const order = logs.map((log) => inOrder(log, CANDIDATES));
    put(parts.likeliest, sides.map(({ title, tokens, position }, at) => {
      const [best] = order[at];
      const here = `“${names[at][tokens[position]]}”`;
      return `${title}: ${isCausal ? `after ${here} comes` : `at ${here} it predicts`} “${names[at][best]}”, ${percent(Math.exp(logs[at][best]))}.`;
    }).join(" "));
    const likely = order.flatMap((ids, at) => ids.filter((id, rank) => !rank || Math.exp(logs[at][id]) > UNSEEN).map((id) => names[at][id]));
    const most = (name) => Math.max(...shares.map((of) => of.get(name) ?? 0));
    const drawn = [...new Set(likely)].sort((one, other) => most(other) - most(one));
    showBars(parts.bars, { first: "token", labels: drawn, names: sides.map(({ title }) => title), values: shares.map((of) => drawn.map((name) => of.get(name) ?? null)), says: percent });
    put(parts.drawn, `The likeliest ${isCausal ? "next " : ""}tokens of both, at most ${CANDIDATES} each.${isShared ? "" : " The two models have different vocabularies. Tokens that a model doesn't know have no bar."}`);
    put(parts.difference, isShared ? this.differenceOf(logs) : "");
    this.nextTable.offer(`${file}-comparison.csv`, () => {
      const every = [...new Set(names.flat())];
      const columns = ["token", ...sides.map(({ title }) => `probability: ${title}`), ...(isShared ? ["difference"] : [])];
      return { columns, rows: every.map((name) => [name, ...shares.map((of) => of.get(name) ?? null), ...(isShared ? [shares[1].get(name) - shares[0].get(name)] : [])]) };
    });
  }

  /** What differs most, for two sides that have the same tokens. @param {Float64Array[]} logs */
  differenceOf([one, other]) {
    const { names: [names], about: { sides: [first, second] } } = this;
    const change = other.map((log, id) => Math.exp(log) - Math.exp(one[id]));
    const sizes = change.map(Math.abs);
    const most = inOrder(sizes, MOVED).filter((id) => sizes[id] > ROUNDING);
    if (!most.length) return "Both predict the same, or very nearly.";
    const named = most.map((id) => `“${names[id]}” ${change[id] < 0 ? "−" : "+"}${(100 * sizes[id]).toFixed(1)}`).join(", ");
    return `From the first to the second, in percentage points: ${named}. KL(${first.title} ‖ ${second.title}): ${plainNumber(divergence(one, other), 3)} nats.`;
  }

  /** Those of the two that have layers. @returns {Side[]} */
  get able() {
    return this.about.sides.filter((side) => Object.keys(this.page.modelOf(side).about.attentions).length);
  }

  /** Have the head that is chosen fetched, of both. */
  askAttention() {
    const { page, parts, able, dials } = this;
    const models = able.map((side) => page.modelOf(side).about);
    put(parts.noHeads, this.about.sides.filter((side) => !able.includes(side)).map(({ title }) => `${title}: this model has no layers, and so no attention to look at.`).join(" "));
    parts.dials.hidden = parts.panels.hidden = parts.attentionTable.hidden = !able.length;
    if (!able.length) return;
    const [first] = models;
    const shared = Object.keys(first.attentions).filter((kind) => models.every(({ attentions }) => attentions[kind]));
    const wish = pageState().get("attention") ?? "cross";
    const kinds = models.map(({ attentions }) => kindOf(attentions, wish, shared.length ? shared : undefined));
    const layers = first.attentions[kinds[0]].modules.length;
    const opening = page.modelOf(able[0]).card.opening;
    const usual = opening?.attention === kinds[0] ? opening : { layer: kinds[0] === "cross" ? layers - 1 : 0, head: 0 };
    const isChosen = pageState().number("layer") !== null || pageState().number("head") !== null;
    const [layer, head] = /** @type {const} */ (["layer", "head"]).map((name) => Math.min(pageState().number(name) ?? (isChosen ? 0 : usual[name]), (name === "layer" ? layers : first.config.n_heads) - 1));
    offer(dials.attention, shared.map((kind) => [kind, KINDS[kind]]));
    dials.attention.parentElement.hidden = shared.length < 2;
    offer(dials.layer, numbers(layers));
    offer(dials.head, numbers(first.config.n_heads));
    Object.entries({ attention: kinds[0], layer, head }).forEach(([name, value]) => (dials[name].value = String(value)));
    const key = JSON.stringify([able, kinds, layer, head]);
    if (key === this.asked) return;
    this.asked = key;
    page.host.fetch(() => Promise.all(able.map((side, at) => this.readPanel(side, kinds[at], layer, head))), (panels) => {
      if (key === this.asked) this.showAttention(panels, layer);
    });
  }

  /** A head's weights; of a model that has fewer layers or heads, the last it has. @param {Side} side @param {string} kind @param {number} wishedLayer @param {number} wishedHead @returns {Promise<Panel>} */
  async readPanel(side, kind, wishedLayer, wishedHead) {
    const { about: { attentions, config } } = this.page.modelOf(side);
    const { modules } = attentions[kind];
    const [layer, head] = [Math.min(wishedLayer, modules.length - 1), Math.min(wishedHead, config.n_heads - 1)];
    const asked = [`${modules[layer]}.hook_pattern[${head}]`, `${modules[layer]}.hook_mask`];
    const { tensors } = await this.page.api(side).recording("tensors", { names: asked });
    const [{ shape: [queries, keys], data }, mask] = asked.map((name) => tensors[name]);
    const names = this.names[this.about.sides.indexOf(side)];
    const [rows, columns] = [kind === "encoder" ? side.source : side.tokens, kind === "encoder" || kind === "cross" ? side.source : side.tokens];
    const first = [queries, keys].map((size) => Math.max(size - MOST_TOKENS, 0));
    const cells = Array.from({ length: queries - first[0] }, (_, row) => Array.from({ length: keys - first[1] }, (_cell, column) => (row + first[0]) * keys + column + first[1])).flat();
    const begin = [kind === "encoder" ? 0 : side.begin, kind === "self" || kind === "decoder" ? side.begin : 0];
    return {
      title: `${side.title}, layer ${layer}, head ${head}`, weights: Float32Array.from(cells, (cell) => data[cell]), isHidden: cells.map((cell) => !mask.data[cell % mask.data.length] && data[cell] === 0),
      labels: [rows.slice(first[0]).map((id) => names[id]), columns.slice(first[1]).map((id) => names[id])], offsets: [begin[0] + first[0], begin[1] + first[1]],
      note: first.some(Boolean) ? `Only the last ${MOST_TOKENS} tokens are drawn.` : "",
    };
  }

  /** @param {Panel[]} panels @param {number} layer */
  showAttention(panels, layer) {
    const { parts, about: { file } } = this;
    const least = Math.min(...this.able.map((side) => Math.max(...Object.values(this.page.modelOf(side).about.attentions).map(({ modules }) => modules.length))));
    if (layer >= least) put(parts.noHeads, `One model has fewer layers; of it, layer ${least - 1} is drawn, its last.`);
    const [one, other] = panels;
    const isAlike = other && one.labels.every((labels, side) => labels.length === other.labels[side].length);
    const shown = isAlike ? [...panels, lessOf(one, other)] : panels;
    while (this.panels.length > shown.length) this.panels.pop().root.remove();
    while (this.panels.length < shown.length) {
      const root = node("section", "", parts.panels);
      this.panels.push({ root, title: node("h3", "", root), matrix: new Matrix({ root: node("div", "", root) }), note: node("p", "faint", root) });
    }
    shown.forEach(({ title, weights, isHidden, labels, offsets, note }, at) => {
      const isDifference = at === 2;
      const panel = this.panels[at];
      put(panel.title, title);
      put(panel.note, note);
      const values = weights.map((weight, cell) => (isHidden[cell] ? -Infinity : weight));
      const limit = isDifference ? Math.max(...weights.map(Math.abs)) || 1 : 1;
      const about = { name: title, across: "keys", down: "queries", unit: isDifference ? "difference" : "weight", kind: isDifference ? "scores" : "weights", square: true, labels, offsets, selected: null, chooses: false, limit };
      panel.matrix.update({ tensors: { values: { shape: labels.map(({ length }) => length), data: values } }, metadata: { about } }, () => {});
    });
    this.attentionTable.offer(`${file}-comparison-attention.csv`, () => ({
      columns: ["query position", "query", "key position", "key", "weight", "side"],
      rows: shown.flatMap(({ title, weights, labels: [queries, keys] }) => Array.from(weights, (weight, cell) => {
        const [query, key] = [Math.floor(cell / keys.length), cell % keys.length];
        return [query, queries[query], key, keys[key], weight, title];
      })),
    }));
  }

  /** What each layer of both predicts, and how likely the likeliest token of each is there. @param {Float64Array[]} logs */
  async readLens(logs) {
    const best = logs.map((log) => inOrder(log, 1)[0]);
    return Promise.all(this.about.sides.map(async (side, at) => {
      const of = this.isShared ? [best[at], best[1 - at]] : [best[at]];
      const { tensors } = await this.page.api(side).recording("lens", { position: side.position, of: of.join() });
      const { data, shape: [depth, width] } = tensors["lens.of"];
      const lines = of.map((id, column) => ({ id, values: Array.from({ length: depth }, (_, row) => data[row * width + column]) }));
      return { lines, says: Array.from(tensors.lens.data, (id) => this.names[at][id]), probabilities: Array.from(tensors["lens.probability"].data) };
    }));
  }

  /** @param {Awaited<ReturnType<Comparison["readLens"]>>} lenses */
  showLens(lenses) {
    const { parts, names, isShared, about: { sides, isCausal, file } } = this;
    const lines = [0, 1].flatMap((column) => lenses.flatMap(({ lines: of, says }, at) => (of[column] ? [{ name: `${sides[at].title}: ${names[at][of[column].id]}`, values: of[column].values, says }] : [])));
    const distinct = [...new Map(lines.map((line) => [line.name, line])).values()];
    showLines(parts.lens, distinct, { name: "Logit lens", across: "after layer", down: "probability" });
    put(parts.lensWords, `The probability of each side's likeliest ${isCausal ? "next token" : "token"}${isShared && distinct.length > 2 ? " and that of the other's" : ""}, had the model ended after that layer.`);
    this.lensTable.offer(`${file}-comparison-lens.csv`, () => ({
      columns: ["side", "after", "likeliest", "probability", "probability of its last"],
      rows: lenses.flatMap(({ lines: [own], says, probabilities }, at) => says.map((name, depth) => [sides[at].title, depth ? partInWords({ point: `blocks.${depth - 1}.hook_resid_post` }) : "the embedding", name, probabilities[depth], own.values[depth]])),
    }));
  }
}

const numbers = (count) => Array.from({ length: count }, (_, at) => [at, at]);

/** Names by id, with the id where several tokens look alike. @param {string[]} names */
export function uniqueNames(names) {
  const count = new Map();
  for (const name of names) count.set(name, (count.get(name) ?? 0) + 1);
  return names.map((name, id) => (count.get(name) === 1 ? name : `${name} [${id}]`));
}

/** The second panel minus the first, by position. @param {Panel} one @param {Panel} other @returns {Panel} */
function lessOf(one, other) {
  const labels = /** @type {[string[], string[]]} */ (one.labels.map((names, side) => names.map((name, at) => (name === other.labels[side][at] ? name : `${name}|${other.labels[side][at]}`))));
  return {
    title: "The difference", weights: other.weights.map((weight, cell) => weight - one.weights[cell]), isHidden: one.isHidden.map((isHidden, cell) => isHidden && other.isHidden[cell]), labels,
    offsets: one.offsets, note: "Second minus first: red where the second gives more weight, blue where it gives less.",
  };
}
