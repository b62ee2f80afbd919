// Holds what has arrived of a forward pass: an overview of all heads, and the queries, keys and values of those that were
// selected. All else is derived from these.

import { attentionSteps, averageWeights, bucketOf, isVisible, visibleMask } from "../arithmetic.js";
import { OverwrittenValues } from "../overwritten_values.js";
import { HIDDEN } from "../colours.js";
import { headWidth, keyHeadOf, scoreDivisor, windowOf } from "../attention_config.js";
import { STEPS } from "./tensor_names.js";
/** @import { SetNumbers } from "../overwritten_values.js" */
/** @import { Described } from "../intervention_controls.js" */
/** @import { Recording, Tensor, Tensors } from "../recording.js" */
/** @import { Config } from "../attention_config.js" */
/** @import { Floats } from "../arithmetic.js" */

/**
 * What a pass begins with, as inference/attention_outline.py writes it.
 *
 * @typedef {object} Overview
 * @property {Config} config
 * @property {{ text: string[], source?: string[] }} labels
 * @property {Kind} kind
 * @property {string[]} modules the attention of each layer
 * @property {Record<string, string>[]} names of each layer's tensors, by role: "q", "k", "v", "out", …
 * @property {boolean} causal
 * @property {boolean} uniform
 * @property {number | null} [cap] of scores
 * @property {{ slopes: number[] } | { buckets: number, distance: number, causal: boolean } | null} [bias] added to scores, by position
 * @property {Measure[]} measures
 * @property {number} queries
 * @property {number} keys
 * @property {number} predicted_position the query that is selected at first
 * @property {{ queries: number, keys: number }} offsets positions of the first query and key in the whole text
 * @property {string[] | null} next the token chosen after each query, for cross-attention
 * @property {string} title
 * @property {number} [rounding] relative distance of neighbouring numbers in the model's precision
 * @property {boolean} [complete] whether nothing more will arrive
 * @property {SetNumbers[]} [changed]
 * @property {Described[]} [interventions]
 *
 * @typedef {"self" | "decoder" | "encoder" | "cross"} Kind
 * @typedef {{ name: string, title: string, sentence: string }} Measure
 */

/**
 * A head's numbers, (query, key) each; a uniform head has weights alone.
 *
 * @typedef {{ raw?: Floats, scaled?: Floats, capped?: Floats, biased?: Floats, masked?: Floats, weights: Floats }} Steps
 */

const KEPT = 1_500_000; // cells of the heads whose steps are cached, with four numbers each

export class Pass {
  /** @type {Config} */ config;
  /** @type {Kind} */ kind;
  /** @type {string[]} */ modules;
  /** @type {Overview["names"]} */ names;
  /** @type {boolean} */ causal;
  /** @type {boolean} */ uniform;
  /** @type {number | null} */ cap;
  /** @type {any} */ bias;
  /** @type {number} */ queries;
  /** @type {number} */ keys;
  /** @type {number} */ predictedPosition;
  /** @type {Overview["offsets"]} */ offsets;
  /** @type {string[] | null} */ next;
  /** @type {string} */ title;

  /** @param {Recording} recording the one that begins a pass; the others are added as they come */
  constructor({ metadata, tensors }) {
    const { config, labels, kind, modules, names, causal, uniform, cap = null, bias = null, measures, queries, keys, predicted_position: predictedPosition, offsets, next, title, complete } = metadata;
    Object.assign(this, { config, kind, modules, names, causal, uniform, cap, bias, queries, keys, predictedPosition, offsets, next, title });
    this.changed = new OverwrittenValues(metadata.changed);
    this.rounding = metadata.rounding ?? 0; // of the model's precision
    this.interventions = metadata.interventions ?? [];
    this.isComplete = complete === true;
    this.labels = {
      queries: kind === "encoder" ? labels.source : labels.text,
      keys: kind === "self" || kind === "decoder" ? labels.text : labels.source,
    };
    // A row of cross-attention is named by its token and, after an arrow, the one that was chosen next.
    this.rowLabels = next ? this.labels.queries.map((label, at) => (next[at] ? `${label} → ${next[at]}` : label)) : this.labels.queries;
    this.measureKinds = measures;
    this.cells = unpacked(tensors.overview);
    this.measured = tensors.measures;
    /** @type {Tensors} */
    this.tensors = {};
    /** @type {Map<string, Steps>} */
    this.derived = new Map();
    this.kept = Math.max(2, Math.floor(KEPT / (queries * keys))); // a head with the rules, and without
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
    return this.start(layer, head, "v") !== undefined && (this.uniform || this.start(layer, head, "q") !== undefined)
      && (!this.bias?.buckets || this.learnedBias(layer, head) !== undefined);
  }

  /** Whether the model's own numbers of a row have arrived, to compare with. */
  hasRow(layer, head, query) {
    return this.own(layer, "z", `[${query}, ${head}]`) !== undefined || this.own(layer, "weights", `[${head}, ${query}]`) !== undefined;
  }

  /** A head's queries, keys or values, (pos, d_head); name: "q", "k" or "v". Heads may share the latter two. */
  start(layer, head, name) {
    return this.tensors[`${this.names[layer][name]}[:, ${name === "q" ? head : keyHeadOf(this.config, head)}]`]?.data;
  }

  /** The model's own numbers of a step; name as in `STEPS`. */
  own(layer, name, brackets) {
    return this.tensors[`${this.modules[layer]}.${STEPS[name]}${brackets}`]?.data;
  }

  /** The learned bias of each bucket of distances, (bucket). */
  learnedBias(layer, head) {
    return this.tensors[`${this.modules[layer]}.relative_bias.weight[:, ${head}]`]?.data;
  }

  /** The bias of a head's scores as a function of query and key, or null. */
  biasOf(layer, head) {
    if (!this.bias) return null;
    const { bias } = this;
    if (bias.slopes) return (query, key) => -bias.slopes[head] * Math.abs(query - key);
    const learned = this.learnedBias(layer, head);
    return (query, key) => learned[bucketOf(query - key, bias)];
  }

  get stages() {
    return ["raw", "scaled", ...(this.cap ? ["capped"] : []), ...(this.bias ? ["biased"] : []), "masked", "weights"];
  }

  /**
   * The residual stream `before` and `after` the attention; `out`, which attention adds to it; and `given`, the sum over heads,
   * where that is normalised first: (d_model) each.
   */
  around(layer, name, query) {
    return this.tensors[`${this.names[layer][name]}[${query}]`]?.data;
  }

  /** A head's part of W_O, (d_model, d_head). */
  projection(layer, head) {
    return this.tensors[`${this.modules[layer]}.out.weight[:, ${head}]`]?.data;
  }

  /**
   * The steps of a head; null until its numbers arrive.
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
    const followed = this.follow(layer, head, this.left(layer, without));
    this.changed.weigh(this.modules[layer], head, followed.weights, this.keys);
    return followed;
  }

  /** @returns {Steps} */
  follow(layer, head, without) {
    const [divisor, causal, window] = [scoreDivisor(this.config), this.isCausal(layer, without), this.window(layer, without)];
    if (this.uniform) {
      const mask = without.includes("mask") ? visibleMask(this.queries, this.keys, false) : visibleMask(this.queries, this.keys, causal, window);
      return { weights: averageWeights(mask, this.keys) };
    }
    const [q, k] = ["q", "k"].map((name) => this.start(layer, head, name));
    return attentionSteps({ q, k, d: this.width, causal, without, divisor, window, cap: this.cap, bias: this.biasOf(layer, head) });
  }

  /** The rules that a layer's steps leave out: those that the model went without, and `without`. */
  left(layer, without = []) {
    return [...new Set([...this.changed.rules(this.modules[layer]), ...without])].sort();
  }

  /** The intervention that set a step's numbers at a query, in words; name as in `STEPS`. */
  setBy(layer, name, head, query) {
    return this.changed.setBy(`${this.modules[layer]}.${STEPS[name]}`, head, query);
  }

  /** A preview of a head's weights, (query, key), in 255 steps; a long text has the largest of each block. */
  outline(layer, head) {
    const { queries, keys } = this;
    const [, heads, rows, columns] = this.cells.shape;
    const start = (layer * heads + head) * rows * columns;
    // Blocks as `pool` in inference/pattern_pooling.py cuts them.
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

  /** A head's measures, { name, title, sentence, value }, without those that are undefined. */
  measures(layer, head) {
    const count = this.measureKinds.length;
    const start = (layer * this.heads + head) * count;
    const measures = this.measureKinds.map((kind, at) => ({ ...kind, value: this.measured.data[start + at] }));
    return measures.filter(({ value }) => !Number.isNaN(value));
  }

  /** The measures to sort heads by: those that some head has. */
  get orders() {
    const { measureKinds, measured: { data } } = this;
    return measureKinds.filter((_, at) => data.some((value, index) => index % measureKinds.length === at && !Number.isNaN(value)));
  }

  visible(layer, query, key) {
    return this.left(layer).includes("mask") || isVisible(query, key, this.isCausal(layer), this.window(layer));
  }

  /** Whether a layer's mask hides any key. left: the rules that the layer does without. */
  hasMask(layer, left = this.left(layer)) {
    return !left.includes("mask") && (this.isCausal(layer, left) || this.window(layer, left) < this.keys);
  }

  /** Whether the model doesn't divide by √d_head. */
  get undivided() {
    return this.config.attention_scale === false;
  }

  /** Whether a layer hides later keys, by its mask or by a change of it. */
  isCausal(layer, left = this.left(layer)) {
    return this.causal || left.includes("later");
  }

  /** The distance from which a layer hides keys. */
  window(layer, left = this.left(layer)) {
    return left.includes("windows") ? Infinity : windowOf(this.config, layer);
  }

  /** A token in words: "“r” at position 5". which: "queries" or "keys". */
  token(which, at) {
    return `“${this.labels[which][at]}” at position ${this.offsets[which] + at}`;
  }
}

/**
 * An overview with all its cells. A causal attention's hidden ones may be left out of the recording: (layer, head, cell).
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
