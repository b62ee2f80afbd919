// Holds the tensors of a pass that have been loaded: completely, by head, or by row.

import { arrayKind, countOf } from "../recording.js";
/** @import { Numbers } from "../recording.js" */

/**
 * A tensor of the pass or a parameter, as the outline lists it.
 *
 * @typedef {object} Entry
 * @property {string} name
 * @property {"point" | "parameter"} kind
 * @property {string} meaning
 * @property {string} formula
 * @property {string[]} dims
 * @property {number[]} sizes
 * @property {number} [row] of the outline's tables
 */

const SLICED = 100_000; // cells above which a tensor with heads comes head by head
const BY_ROW = 500_000; // cells above which a tensor over the vocabulary comes row by row

export class LoadedTensors {
  /**
   * @param {Entry[]} entries in the order of the pass
   * @param {boolean} isComplete nobody can be asked for more
   */
  constructor(entries, isComplete) {
    this.isComplete = isComplete;
    /** @type {Map<string, Entry>} */
    this.entries = new Map(entries.map((entry, row) => [entry.name, { ...entry, row }]));
    /** @type {Map<string, Numbers>} */
    this.loaded = new Map(); // by name, or name[head]
  }

  get names() {
    return [...this.entries.keys()];
  }

  /** What is known of a tensor, or null. @returns {Entry | null} */
  describe(name) {
    return this.entries.get(name) ?? null;
  }

  /** How many heads a tensor has; 0 for none. */
  headsOf(name) {
    const { dims, sizes } = this.entries.get(name);
    return sizes[dims.indexOf("head")] ?? 0;
  }

  /** The dimension along which a tensor comes part by part: its heads, or the rows of one over a large vocabulary; −1 for none. */
  partAxis(name) {
    const { dims, sizes } = this.entries.get(name);
    if (dims.includes("head")) return dims.indexOf("head");
    return this.isByRow(name) && sizes.length > 1 ? 0 : -1;
  }

  /** Whether a tensor is too large to be had whole, and comes row by row: of a position, or of a token. */
  isByRow(name) {
    const { dims, sizes } = this.entries.get(name);
    return !this.isComplete && dims.includes("vocab") && countOf(sizes) > BY_ROW;
  }

  /** Whether a tensor, or the part of it that belongs to a head, is there. */
  has(name, head = null) {
    return this.missing(name, head).length === 0 && (head !== null || this.loaded.has(name) || !this.isByRow(name));
  }

  /** The parts to ask for, so that a tensor, or the part of it that belongs to a head, is there. */
  missing(name, head = null) {
    if (this.loaded.has(name)) return [];
    if (this.isByRow(name)) return head === null || this.loaded.has(`${name}[${head}]`) ? [] : [["row", name, head]];
    const heads = this.headsOf(name);
    const wanted = head === null ? Array.from({ length: heads }, (_, number) => number) : [head];
    const absent = wanted.filter((number) => !this.loaded.has(`${name}[${number}]`)).map((number) => ["slice", name, number]);
    return heads && (!absent.length || countOf(this.entries.get(name).sizes) > SLICED) ? absent : [["tensor", name]];
  }

  /** A tensor, or of one with heads what belongs to a head, without that dimension: { dims, sizes, data }; null while it isn't there. */
  tensor(name, head = null) {
    const { dims, sizes } = this.entries.get(name);
    const axis = head === null ? -1 : this.partAxis(name);
    const without = (list) => list.filter((_, at) => at !== axis);
    if (!this.has(name, axis < 0 ? null : head)) return null;
    const shape = { dims: without(dims), sizes: without(sizes) };
    const whole = this.loaded.get(name);
    if (axis < 0 && whole) return { ...shape, data: whole };
    const slice = axis >= 0 ? this.loaded.get(`${name}[${head}]`) : null;
    if (slice) return { ...shape, data: slice };
    const own = new (arrayKind(whole ?? Float32Array.of()))(countOf(shape.sizes));
    if (axis < 0) {
      for (let at = 0; at < own.length; at++) own[at] = this.cell(name, at);
    } else {
      const inner = countOf(sizes.slice(axis + 1));
      for (let at = 0; at < own.length; at++) own[at] = whole[(Math.floor(at / inner) * sizes[axis] + head) * inner + (at % inner)];
    }
    return { ...shape, data: own };
  }

  /** The number at an index. */
  value(name, index) {
    return this.cell(name, flat(index, this.entries.get(name).sizes));
  }

  /** The number at an index in row-major order. */
  cell(name, at) {
    const whole = this.loaded.get(name);
    if (whole) return whole[at];
    const { sizes } = this.entries.get(name);
    const axis = this.partAxis(name);
    const inner = countOf(sizes.slice(axis + 1));
    const outer = Math.floor(at / inner);
    return this.loaded.get(`${name}[${outer % sizes[axis]}]`)[Math.floor(outer / sizes[axis]) * inner + (at % inner)];
  }
}

/** Where an index is in row-major order. */
export function flat(index, sizes) {
  return index.reduce((sum, at, axis) => sum * sizes[axis] + at, 0);
}
