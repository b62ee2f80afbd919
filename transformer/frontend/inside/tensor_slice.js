// Selects the two dimensions of a tensor to draw, with the others fixed. Independent of the DOM.

import { largestAbsolute } from "../arithmetic.js";
import { stridesOf } from "../recording.js";
import { kindOf } from "./vector_strips.js";
/** @import { InsidePass } from "./pass.js" */

const TABLE = ["part", "head", "kv_head"]; // dimensions that are held before others are
const OWN_SCALE = /_scores$/; // a head's own, as on the page Attention; other tensors have one scale for all that is held
const LABELLED = 4096; // indices along a dimension that are labelled at most
const BINS = 48;

/** The dimensions of a tensor that have to be held at an index, and those that are drawn, two at most: { held, drawn }. */
export function sliceDims(dims, most = 2) {
  const drawn = [...dims];
  const held = [];
  while (drawn.length > most) {
    const next = TABLE.find((dim) => drawn.includes(dim)) ?? drawn[0];
    held.push(...drawn.splice(drawn.indexOf(next), 1));
  }
  return { held, drawn };
}

export class TensorSlice {
  /** @type {InsidePass} */ pass;
  /** @type {string} */ name;
  /** @type {Record<string, number>} */ fixed;
  /** @type {string[]} */ dims;
  /** @type {number} */ rows;
  /** @type {number} */ columns;
  /** @type {string[] | null} */ rowLabels;
  /** @type {string[] | null} */ columnLabels;
  /** @type {"weights" | "scores"} */ kind;

  /**
   * Its numbers are null while they are on their way, or beyond `most`.
   *
   * @param {InsidePass} pass
   * @param {string} name
   * @param {Record<string, number>} fixed where the other dimensions are held, by name
   * @param {number} [most]
   */
  constructor(pass, name, fixed, most = Infinity) {
    const { dims, sizes } = pass.describe(name);
    Object.assign(this, { pass, name, fixed, dims });
    const { held, drawn } = sliceDims(dims, pass.isByRow(name) ? 1 : 2);
    this.axes = drawn.map((dim) => dims.indexOf(dim));
    if (this.axes.length === 1) this.axes.unshift(null); // one row
    [this.rows, this.columns] = this.axes.map((axis) => (axis === null ? 1 : sizes[axis]));
    this.part = held.includes("head") ? fixed.head : pass.isByRow(name) && held.length ? fixed[held[0]] : null;
    this.kind = kindOf(name);
    [this.rowLabels, this.columnLabels] = this.axes.map((axis) => (axis === null || sizes[axis] === 1 ? null : this.labels(axis, sizes[axis])));
    this.values = this.rows * this.columns <= most ? this.cut() : null;
    const largest = this.values && OWN_SCALE.test(name) ? largestAbsolute(this.values) : pass.magnitude(name);
    this.limit = this.kind === "weights" ? 1 : largest || 1;
  }

  labels(axis, size) {
    if (size > LABELLED) return null;
    return Array.from({ length: size }, (_, at) => this.pass.label(this.name, this.dims[axis], at));
  }

  cut() {
    const tensor = this.pass.tensor(this.name, this.part);
    if (!tensor) return null;
    const values = new Float64Array(this.rows * this.columns);
    const strides = stridesOf(tensor.sizes);
    const stride = (dim) => strides[tensor.dims.indexOf(dim)] ?? 0;
    const [down, across] = this.axes.map((axis) => (axis === null ? 0 : stride(this.dims[axis])));
    const start = Object.entries(this.fixed).reduce((sum, [dim, at]) => sum + at * stride(dim), 0);
    for (let row = 0; row < this.rows; row++) {
      for (let column = 0; column < this.columns; column++) values[row * this.columns + column] = tensor.data[start + row * down + column * across];
    }
    return values;
  }

  /** The numbers as they are drawn: a weight that the mask hides is exactly 0, but it isn't a small one. */
  get drawn() {
    if (!this.values || !this.name.endsWith("hook_pattern")) return this.values;
    return this.values.map((value, at) => {
      const { isSeen } = this.pass.visibility(this.name, Math.floor(at / this.columns), at % this.columns);
      return isSeen ? value : -Infinity;
    });
  }

  /** The index in the tensor of a cell that is drawn. */
  indexOf({ row, column }) {
    const [rows, columns] = this.axes;
    return this.dims.map((dim, axis) => (axis === rows ? row : axis === columns ? column : this.fixed[dim]));
  }

  /** The cell that is drawn for an index of the tensor. */
  cellAt(index) {
    const [rows, columns] = this.axes;
    return { row: rows === null ? 0 : index[rows], column: index[columns] };
  }

  /** Mean, spread, and the cells of the extremes of what is finite: { mean, spread, smallest, largest, counted }; null without numbers. */
  get statistics() {
    const { values } = this;
    if (!values) return null;
    let [counted, sum, low, high] = [0, 0, -1, -1];
    for (let at = 0; at < values.length; at++) {
      if (!Number.isFinite(values[at])) continue;
      counted += 1;
      sum += values[at];
      if (low < 0 || values[at] < values[low]) low = at;
      if (high < 0 || values[at] > values[high]) high = at;
    }
    if (!counted) return null;
    const mean = sum / counted;
    const squares = values.reduce((total, value) => (Number.isFinite(value) ? total + (value - mean) ** 2 : total), 0);
    const extreme = (at) => ({ value: values[at], cell: { row: Math.floor(at / this.columns), column: at % this.columns } });
    return { mean, spread: Math.sqrt(squares / counted), smallest: extreme(low), largest: extreme(high), counted };
  }

  /** How many numbers lie where: { counts, from, to }, of equally wide bins between the smallest and the largest. */
  histogram({ smallest: { value: from }, largest: { value: to } }) {
    const counts = new Float64Array(from === to ? 1 : BINS);
    for (const value of this.values) {
      if (Number.isFinite(value)) counts[Math.min(Math.floor(((value - from) / (to - from || 1)) * counts.length), counts.length - 1)] += 1;
    }
    return { counts, from, to };
  }
}
