// One forward pass, as far as its recordings have arrived: what every head did in outline, and of the heads that were
// looked at the queries, keys and values, from which everything else is derived here.

import { fourSteps, uniformWeights } from "../arithmetic.js";
import { Changed } from "../interventions.js";
import { HIDDEN } from "../colours.js";
import { headWidth, keyHeadOf, scoreDivisor, windowOf } from "../shape.js";
/** @import { Place } from "../interventions.js" */
/** @import { Intervention } from "../intervention_controls.js" */
/** @import { Recording, Tensor, Tensors } from "../recording.js" */
/** @import { Config } from "../shape.js" */

/**
 * What is known of a pass from the first, as overview.py writes it.
 *
 * @typedef {object} Overview
 * @property {Config} config
 * @property {{ text: string[], source?: string[] }} labels
 * @property {Kind} kind
 * @property {string[]} modules the attention of each layer
 * @property {Record<string, string>[]} names of the tensors of each layer, by what they are to it: "q", "k", "v", "out", …
 * @property {boolean} causal
 * @property {boolean} uniform
 * @property {Measure[]} measures
 * @property {number} queries
 * @property {number} keys
 * @property {{ queries: number, keys: number }} offsets the places of the first of each in the whole text
 * @property {string[] | null} next of cross-attention: the token that was chosen after each query
 * @property {string} title
 * @property {boolean} [complete] what isn't there won't come
 * @property {Place[]} [changed]
 * @property {Intervention[]} [interventions]
 *
 * @typedef {"self" | "decoder" | "encoder" | "cross"} Kind
 * @typedef {{ name: string, title: string, sentence: string }} Measure
 */

/**
 * A head's numbers, (query, key) each; of a uniform one only its weights.
 *
 * @typedef {{ raw?: Float64Array, scaled?: Float64Array, masked?: Float64Array, weights: Float64Array }} Steps
 */

const KEPT = 1_500_000; // cells of the heads whose steps are remembered, four numbers each
const STEPS = { raw: "hook_raw_scores", scaled: "hook_scaled_scores", masked: "hook_attn_scores", weights: "hook_pattern", z: "hook_z", result: "hook_result" };

export class Pass {
  /** @type {Config} */ config;
  /** @type {Kind} */ kind;
  /** @type {string[]} */ modules;
  /** @type {Overview["names"]} */ names;
  /** @type {boolean} */ causal;
  /** @type {boolean} */ uniform;
  /** @type {number} */ queries;
  /** @type {number} */ keys;
  /** @type {Overview["offsets"]} */ offsets;
  /** @type {string[] | null} */ next;
  /** @type {string} */ title;

  /** @param {Recording} recording the one that begins a pass; the others are added as they come */
  constructor({ metadata, tensors }) {
    const { config, labels, kind, modules, names, causal, uniform, measures, queries, keys, offsets, next, title, complete } = metadata;
    Object.assign(this, { config, kind, modules, names, causal, uniform, queries, keys, offsets, next, title });
    this.changed = new Changed(metadata.changed);
    this.interventions = metadata.interventions ?? []; // [{ code, words }], for a page that can change them
    this.isComplete = complete === true; // what isn't there by now won't come
    this.labels = {
      queries: kind === "encoder" ? labels.source : labels.text,
      keys: kind === "self" || kind === "decoder" ? labels.text : labels.source,
    };
    // In cross-attention a row has its token and, after an arrow, the one that was chosen next.
    this.rowLabels = next ? this.labels.queries.map((label, at) => (next[at] ? `${label} → ${next[at]}` : label)) : this.labels.queries;
    this.measureKinds = measures;
    this.cells = unpacked(tensors.overview);
    this.measured = tensors.measures;
    /** @type {Tensors} */
    this.tensors = {};
    /** @type {Map<string, Steps>} */
    this.derived = new Map();
    this.kept = Math.max(config.n_heads + 1, Math.floor(KEPT / (queries * keys))); // a layer's mean needs all its heads
    this.layers = modules.length;
    this.heads = config.n_heads;
    this.width = headWidth(config);
  }

  /** Take in a recording of parts. @param {Recording} recording */
  add({ tensors }) {
    Object.assign(this.tensors, tensors);
  }

  /** Whether a head can be drawn in full. */
  has(layer, head) {
    return this.start(layer, head, "v") !== undefined && (this.uniform || this.start(layer, head, "q") !== undefined);
  }

  /** Whether what the model computed for a row is there, to be compared with. */
  hasRow(layer, head, query) {
    return this.own(layer, "z", `[${query}, ${head}]`) !== undefined || this.own(layer, "weights", `[${head}, ${query}]`) !== undefined;
  }

  /** What a head's arithmetic starts from, (pos, d_head): name "q", "k" or "v"; heads may share the latter two. */
  start(layer, head, name) {
    return this.tensors[`${this.names[layer][name]}[:, ${name === "q" ? head : keyHeadOf(this.config, head)}]`]?.data;
  }

  /** A part of what the model computed in a step: name as in `STEPS`. */
  own(layer, name, brackets) {
    return this.tensors[`${this.modules[layer]}.${STEPS[name]}${brackets}`]?.data;
  }

  /** The residual stream `before` and `after` the attention, or what all its heads gave, `out`: (d_model). */
  around(layer, name, query) {
    return this.tensors[`${this.names[layer][name]}[${query}]`]?.data;
  }

  /** A head's part of W_O, (d_model, d_head). */
  projection(layer, head) {
    return this.tensors[`${this.modules[layer]}.out.weight[:, ${head}]`]?.data;
  }

  /**
   * The four steps of a head, or null while they aren't there.
   *
   * @param {number} layer
   * @param {number} head
   * @param {string[]} [without] rules that are left out
   * @returns {Steps | null}
   */
  steps(layer, head, without = []) {
    const key = `${layer},${head},${this.left(layer, without)}`;
    if (!this.derived.has(key)) {
      if (!this.has(layer, head)) return null;
      this.derived.set(key, this.derive(layer, head, without));
      if (this.derived.size > this.kept) this.derived.delete(this.derived.keys().next().value);
    }
    return this.derived.get(key);
  }

  /** @returns {Steps} */
  derive(layer, head, without) {
    const found = this.follow(layer, head, this.left(layer, without));
    this.changed.weigh(this.modules[layer], head, found.weights, this.keys);
    return found;
  }

  /** @returns {Steps} */
  follow(layer, head, without) {
    if (this.uniform) return { weights: uniformWeights(this.queries, this.keys, this.causal && !without.includes("mask")) };
    const [q, k] = ["q", "k"].map((name) => this.start(layer, head, name));
    const [divisor, window] = [scoreDivisor(this.config), this.window(layer)];
    return fourSteps({ q, k, d: this.width, causal: this.causal, without, divisor, window });
  }

  /** The rules that are left out of a layer's steps: those that the model went without, and `without`. */
  left(layer, without = []) {
    return [...new Set([...this.changed.rules(this.modules[layer]), ...without])].sort();
  }

  /** What set a step's numbers at a query, in words; name as in `STEPS`. */
  setBy(layer, name, head, query) {
    return this.changed.setBy(`${this.modules[layer]}.${STEPS[name]}`, head, query);
  }

  /** A head's weights while its steps aren't there, (query, key): in 255 steps, and of a long text the largest of a block. */
  outline(layer, head) {
    const { queries, keys } = this;
    const [, heads, rows, columns] = this.cells.shape;
    const start = (layer * heads + head) * rows * columns;
    // Blocks as `pool` in overview.py cuts them.
    const block = (at, blocks, length) => Math.floor(((at + 1) * blocks - 1) / length);
    const values = new Float64Array(queries * keys).fill(-Infinity);
    for (let query = 0; query < queries; query++) {
      const row = start + block(query, rows, queries) * columns;
      for (let key = 0; key < keys; key++) {
        if (!this.visible(layer, query, key)) continue;
        const level = this.cells.data[row + block(key, columns, keys)];
        if (level !== HIDDEN) values[query * keys + key] = level / (HIDDEN - 1);
      }
    }
    return values;
  }

  /** The mean of all heads' weights in a layer, or null while one of them isn't there. */
  mean(layer) {
    const all = Array.from({ length: this.heads }, (_, head) => this.steps(layer, head)?.weights);
    if (all.some((weights) => !weights)) return null;
    return all[0].map((_, at) => all.reduce((sum, weights) => sum + weights[at], 0) / all.length);
  }

  /** What was measured of a head: { name, title, sentence, value }, those that can't be had left out. */
  measures(layer, head) {
    const count = this.measureKinds.length;
    const start = (layer * this.heads + head) * count;
    const found = this.measureKinds.map((kind, at) => ({ ...kind, value: this.measured.data[start + at] }));
    return found.filter(({ value }) => !Number.isNaN(value));
  }

  /** The measures that some head has, to sort heads by. */
  get orders() {
    const { measureKinds, measured: { data } } = this;
    return measureKinds.filter((_, at) => data.some((value, place) => place % measureKinds.length === at && !Number.isNaN(value)));
  }

  visible(layer, query, key) {
    return !this.causal || this.left(layer).includes("mask") || (key <= query && query - key < this.window(layer));
  }

  /** Whether the model leaves ÷ √d_head out. */
  get undivided() {
    return this.config.attention_scale === false;
  }

  /** How many keys a query of a layer sees at most, its own the last of them. */
  window(layer) {
    return windowOf(this.config, layer);
  }

  /** "“r” at position 5": a token in words. which: "queries" or "keys". */
  token(which, at) {
    return `“${this.labels[which][at]}” at position ${this.offsets[which] + at}`;
  }
}

/**
 * An overview with all its cells: what a causal attention hides may have been left out, (layer, head, cell) remaining.
 *
 * @param {Tensor} overview
 */
function unpacked({ shape, data }) {
  if (shape.length === 4) return { shape, data };
  const [layers, heads, count] = shape;
  const side = Math.round((Math.sqrt(8 * count + 1) - 1) / 2); // count = side · (side + 1) / 2
  const cells = new Uint8Array(layers * heads * side * side).fill(HIDDEN);
  for (let at = 0, start = 0; start < cells.length; start += side * side) {
    for (let row = 0; row < side; row++) {
      cells.set(data.subarray(at, at + row + 1), start + row * side);
      at += row + 1;
    }
  }
  return { shape: [layers, heads, side, side], data: cells };
}
