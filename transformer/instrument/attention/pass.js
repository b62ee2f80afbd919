// One forward pass, as far as its recordings have arrived: what every head did in outline, and of the heads that were
// looked at the queries, keys and values, from which everything else is derived here.

import { fourSteps, uniformWeights } from "../arithmetic.js";

const KEPT = 24; // heads whose steps are remembered

export class Pass {
  /** outline: the recording that begins a pass; the others are added as they come. */
  constructor({ metadata, tensors }) {
    Object.assign(this, metadata);
    this.cells = tensors.overview;
    this.measured = tensors.measures;
    this.tensors = {};
    this.derived = new Map();
    this.layers = this.modules.length;
    this.heads = this.config.n_heads;
    this.width = this.config.d_model / this.heads;
  }

  /** Take in a recording of parts. */
  add({ tensors }) {
    Object.assign(this.tensors, tensors);
  }

  /** Whether a head can be drawn in full. */
  has(layer, head) {
    return this.part(layer, "v", `[:, ${head}]`) !== undefined;
  }

  /** Whether what the model computed for a row is there, to be compared with. */
  hasRow(layer, head, query) {
    return this.part(layer, "pattern", `[${head}, ${query}]`) !== undefined;
  }

  /** A tensor of one layer, by its name in the recording's list of names, and the part in brackets. */
  part(layer, name, brackets) {
    return this.tensors[`${this.names[layer][name]}${brackets}`]?.data;
  }

  /** The four steps of a head, (query, key) each, or null while they aren't there; only weights if it is uniform. */
  steps(layer, head, without = []) {
    const key = `${layer},${head},${without}`;
    if (!this.derived.has(key)) {
      if (!this.has(layer, head)) return null;
      this.derived.set(key, this.derive(layer, head, without));
      if (this.derived.size > KEPT) this.derived.delete(this.derived.keys().next().value);
    }
    return this.derived.get(key);
  }

  derive(layer, head, without) {
    if (this.uniform) return { weights: uniformWeights(this.queries, this.keys, this.causal && !without.includes("mask")) };
    const [q, k] = ["q", "k"].map((name) => this.part(layer, name, `[:, ${head}]`));
    return fourSteps({ q, k, d: this.width, causal: this.causal, without });
  }

  /** A head's weights, in 255 steps and max-pooled if the text is long, while its steps aren't there. */
  outline(layer, head) {
    const [, heads, rows, columns] = this.cells.shape;
    const size = rows * columns;
    const bytes = this.cells.data.subarray((layer * heads + head) * size, (layer * heads + head + 1) * size);
    return { rows, columns, values: Float64Array.from(bytes, (level) => (level === 255 ? -Infinity : level / 254)) };
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

  visible(query, key) {
    return !this.causal || key <= query;
  }

  /** "“r” at place 5": a token in words. which: "queries" or "keys". */
  token(which, at) {
    return `“${this.labels[which][at]}” at place ${this.offsets[which] + at}`;
  }
}
