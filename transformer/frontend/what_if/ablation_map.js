// Draws the effect of ablating each head and feed-forward layer, one at a time: a picture for each stack of attentions.

import { offer, partsOf, put } from "../dom.js";
import { codeOf, moduleInWords, partInWords } from "../intervention_codes.js";
import { pageState } from "../page/page_state.js";
import { TableDrawer } from "./drawers.js";
import { EffectHeatmaps } from "./effects.js";
import { LongRequest } from "./long_request.js";
import { TOO_LARGE, inOrder } from "./distributions.js";
/** @import { EffectMatrix } from "./effects.js" */
/** @import { WhatIfView } from "./view.js" */

/**
 * @typedef {{ point: string, head: number | null }} Part
 * @typedef {Part & { row: number, column: number, value: number }} Placed in a picture
 *
 * @typedef {object} Ablated what /api/ablation answers; numbers by part, null where they overflow
 * @property {Part[]} parts
 * @property {number} token
 * @property {(number | null)[] | null} loss
 * @property {(number | null)[]} logit
 * @property {(number | null)[]} with
 * @property {(number | null)[]} without
 * @property {(number | null)[]} divergence
 */

const EFFECTS = { probability: "Probability", logit: "Logit", loss: "Loss" };
const UNITS = { probability: " percentage points", logit: "", loss: " nats" };
const CHOOSABLE = 300; // the likeliest tokens, of which the server knows all logits
const [USUAL, BEYOND, LEAST] = [0.9, 3, 0.02]; // colours end at so many times the largest usual effect, but at no less than this share of the largest
const FAINTEST = 1; // percentage points that colours go to at the least: less is next to nothing
const [UNMOVED, SLIGHT] = [5e-5, 0.01]; // an effect this small, or this share of the largest, isn't worth a word
const [TALL, LEAST_PITCH, MOST_PITCH] = [216, 20, 44]; // pixels: the map's height, and the least and the most that one of its rows has of it
const MARKUP = `
  <div class="what-if-row"><h2>Which parts matter</h2><select data-part="effect" aria-label="Effect on"></select><select data-part="token" aria-label="Token"></select></div>
  <p class="faint" data-part="notice" hidden></p>
  <p class="faint" data-part="how"></p>
  <div data-part="picture" hidden></div>
  <div data-part="long"></div>
  <p class="faint" data-part="verdict"></p>`;

export class AblationMap {
  /** @type {import("./ablation.js").AblationAbout} */ about;
  /** @type {string[]} */ names; // of tokens
  /** @type {number[]} */ likely; // the tokens that can be chosen
  /** @type {number} */ usual; // the one that is shown unless another is chosen
  /** @type {Ablated | null} */ ablated = null;
  /** @type {Placed[][]} */ cells = []; // by picture, then by cell

  /** @param {HTMLElement} parent @param {HTMLElement} drawers @param {WhatIfView} page @param {(ablated: Ablated, map: AblationMap) => void} tell */
  constructor(parent, drawers, page, tell) {
    this.page = page;
    this.tell = tell;
    parent.innerHTML = MARKUP; // constant
    this.parts = partsOf(parent);
    this.effects = new EffectHeatmaps(this.parts.picture, (cell) => this.choose(cell));
    this.long = new LongRequest(this.parts.long, { ask: "Ablate each part", does: "Each head and each feed-forward layer is ablated in turn." });
    this.table = new TableDrawer(drawers, "These effects as a table");
    this.parts.effect.addEventListener("change", () => this.select({ effect: this.parts.effect.value }));
    this.parts.token.addEventListener("change", () => this.select({ token: this.parts.token.value === String(this.usual) ? null : this.parts.token.value }));
  }

  select(chosen) {
    this.page.host.select(chosen);
    this.ask();
  }

  /** @param {import("./ablation.js").AblationAbout} about @param {string[]} names of tokens @param {ArrayLike<number>[]} logs of the unchanged model and the changed one */
  show(about, names, [unchanged, changed]) {
    Object.assign(this, { about, names });
    this.likely = inOrder(changed, CHOOSABLE);
    const [answer] = inOrder(unchanged, 1);
    this.usual = this.likely.includes(answer) ? answer : this.likely[0];
    this.ask();
  }

  get effect() {
    const wish = pageState().get("effect") ?? "";
    return !Object.hasOwn(EFFECTS, wish) || (wish === "loss" && !this.about.isCausal) ? "probability" : wish; // an encoder predicts none of the tokens that it reads
  }

  /** Whose probability or logit is shown: the answer, unless another token is chosen. */
  get token() {
    const wish = pageState().number("token");
    return wish !== null && this.likely.includes(wish) ? wish : this.usual;
  }

  /** Have the effects computed of what is chosen. */
  ask() {
    const { effect, token, about, parts } = this;
    const wish = pageState().number("token");
    const isLeftOut = wish !== null && wish < this.names.length && !this.likely.includes(wish);
    parts.notice.hidden = !isLeftOut;
    put(parts.notice, isLeftOut ? `Of this model the ${this.likely.length} likeliest tokens can be chosen, and “${this.names[wish]}” isn't among them; the likeliest is taken.` : "");
    offer(parts.effect, Object.entries(EFFECTS).filter(([name]) => name !== "loss" || about.isCausal));
    parts.effect.value = effect;
    parts.token.hidden = effect === "loss";
    offer(parts.token, this.likely.map((id) => [id, this.names[id]]), true);
    parts.token.value = String(token);
    const { side } = about;
    const key = JSON.stringify([side, token]);
    if (key === this.asked && this.ablated) {
      this.draw();
      return;
    }
    this.asked = key;
    const api = this.page.api(side, { onServer: true });
    const stream = (signal) => api.stream("ablation", { position: side.position, token }, { signal });
    this.page.host.fetch(() => this.long.run(JSON.stringify(side), stream, this.page.modelOf(side).isLarge), (ablated) => {
      if (key !== this.asked) return;
      this.ablated = ablated;
      this.draw();
    });
  }

  /** By part, how much larger what is looked at is without it; null where that is too large to be known. */
  get values() {
    const { loss, logit, with: withIt, without } = this.ablated;
    if (this.effect === "probability") return without.map((share, at) => (share === null || withIt[at] === null ? null : 100 * (share - withIt[at])));
    return this.effect === "logit" ? logit : loss;
  }

  draw() {
    const { effect, values, parts, about } = this;
    const problem = !values ? "A single token has no loss. Type a longer prompt." : values.includes(null) ? TOO_LARGE : "";
    parts.picture.hidden = parts.verdict.hidden = Boolean(problem);
    put(parts.how, problem || this.how());
    if (problem) return;
    const inForce = new Set(about.interventions.map(({ code }) => code));
    const left = values.map((value, at) => (inForce.has(codeOfPart(this.ablated.parts[at])) ? 0 : value));
    const { matrices, cells } = matricesOf(this.ablated.parts, values, inForce);
    this.cells = cells;
    const what = effect === "loss" ? "the loss" : `the ${effect} of “${this.names[this.token]}”`;
    const limit = Math.max(colourLimit(left.filter((_, at) => !inForce.has(codeOfPart(this.ablated.parts[at])))), effect === "probability" ? FAINTEST : 0);
    this.effects.show({
      name: "Which parts matter", matrices, limit, actions: ["ablate it", "bring it back"], pitch: Math.min(Math.max(TALL / matrices[0].rows.length, LEAST_PITCH), MOST_PITCH),
      sentences: [`Without {cell}, ${what} is {value}${UNITS[effect]} higher.`, `Without {cell}, ${what} is {value}${UNITS[effect]} lower.`],
    });
    put(parts.verdict, this.verdict(left));
    this.table.offer(`${about.file}-ablation.csv`, () => this.asTable());
    this.tell(this.ablated, this);
  }

  /** What the numbers are of, and what a click does. */
  how() {
    const { effect, about } = this;
    const act = about.interventions.length ? "Measured with your changes: each cell ablates one part more than those crossed out." : "Each cell ablates one part. Click one to keep it ablated and measure the map again.";
    if (effect !== "loss") return `For this answer: change in the ${effect} of “${this.names[this.token]}”${UNITS[effect] && `, in${UNITS[effect]}`}. ${act}`;
    const text = about.side.tokens.slice(1).map((id) => this.page.pieceOf(about.side, id)).join("");
    return `Average over the text: change in the loss, in nats per token.${about.whose ? ` The text is what ${about.whose}: “${text.trim()}”.` : ""} ${act}`;
  }

  /** The parts with the largest effects, either way. @param {number[]} left the effects, 0 for what is ablated already */
  verdict(left) {
    const most = Math.max(...left.map(Math.abs));
    const said = [["fall", -1, "−"], ["rise", 1, "+"]].flatMap(([word, sign, mark]) => {
      const sizes = left.map((value) => value * Number(sign));
      const at = sizes.indexOf(Math.max(...sizes));
      return sizes[at] > Math.max(UNMOVED, SLIGHT * most) ? [`Largest ${word}: ${partInWords(this.ablated.parts[at])}, ${mark}${Number(sizes[at].toPrecision(3))}${UNITS[this.effect]}.`] : [];
    });
    return said.join(" ") || "No single part makes a difference here.";
  }

  /** @param {import("./effects.js").EffectCell} cell */
  choose({ matrix, row, column }) {
    const code = codeOfPart(this.cells[matrix].find((part) => part.row === row && part.column === column));
    const isInForce = this.about.interventions.some((intervention) => intervention.code === code);
    this.page.host.change({ add: isInForce ? [] : [code], remove: isInForce ? [code] : [] });
  }

  asTable() {
    const { parts, loss, logit, with: withIt, without, token } = this.ablated;
    const label = this.names[token];
    const inForce = new Set(this.about.interventions.map(({ code }) => code));
    return {
      columns: ["part", "hook point", "head", "ablated", ...(loss ? ["rise of the loss (nats)"] : []), `rise of the logit of ${label}`, `probability of ${label} with it`, `probability of ${label} without it`],
      rows: parts.map((part, at) => [partInWords(part), part.point, part.head, inForce.has(codeOfPart(part)), ...(loss ? [loss[at]] : []), logit[at], withIt[at], without[at]]),
    };
  }
}

/** @param {Part} part */
export const codeOfPart = ({ point, head }) => codeOf("scale", { point, head, factor: 0 });

/** Where the colours end: a few effects that are far beyond the others don't make these all pale. @param {number[]} values */
export function colourLimit(values) {
  const sizes = values.map(Math.abs).sort((one, other) => one - other);
  if (!sizes.length) return 1;
  const at = USUAL * (sizes.length - 1);
  const [low, high] = [sizes[Math.floor(at)], sizes[Math.ceil(at)]];
  return Math.max(Math.min(BEYOND * (low + (high - low) * (at % 1)), sizes.at(-1)), LEAST * sizes.at(-1)) || 1;
}

/**
 * A picture for each stack of attentions, in the order of the pass: a row a layer, a column a head, the feed-forward layer's after them.
 *
 * @param {Part[]} parts
 * @param {number[]} values
 * @param {Set<string>} inForce the codes of those that are ablated
 */
export function matricesOf(parts, values, inForce) {
  /** @type {Map<string, Placed[]>} */
  const stacks = new Map();
  const heads = Math.max(...parts.map(({ head }) => head ?? -1)) + 1;
  for (const [at, part] of parts.entries()) {
    const [, side, layer, cross] = /(?:(\w+)\.)?blocks\.(\d+)\.(cross_)?/.exec(part.point);
    const title = cross ? "Cross-attention" : ({ encoder: "Encoder", decoder: "Decoder" }[side] ?? "");
    stacks.set(title, [...(stacks.get(title) ?? []), { ...part, row: Number(layer), column: part.head ?? heads, value: values[at] }]);
  }
  /** @type {EffectMatrix[]} */
  const matrices = [...stacks].map(([title, placed]) => {
    const [rows, columns] = ["row", "column"].map((axis) => Math.max(...placed.map((part) => part[axis])) + 1);
    const grid = Array.from({ length: rows }, () => new Array(columns).fill(null));
    const names = new Array(rows);
    for (const { row, column, value, point } of placed) {
      grid[row][column] = value;
      names[row] = moduleInWords(point);
    }
    const called = Array.from({ length: columns }, (_, column) => (column < heads ? `head ${column}` : "feed-forward"));
    return {
      title, values: grid, rows: names, columns: called, rowLabels: names.map((_, row) => `layer ${row}`), columnLabels: called,
      marked: placed.filter((part) => inForce.has(codeOfPart(part))).map(({ row, column }) => [row, column]),
    };
  });
  return { matrices, cells: [...stacks.values()] };
}
