// Holds what has arrived of a forward pass: an outline of every tensor, the table of equations (which cells each cell
// is computed from), and the tensors that were opened. An index has one number per dimension.

import { OverwrittenValues } from "../overwritten_values.js";
import { headWidth, isCausal, keyHeads, windowOf } from "../attention_config.js";
import { arithmeticOf } from "./cell_arithmetic.js";
import { countOf } from "../recording.js";
import { LoadedTensors, flat } from "./loaded_tensors.js";
/** @import { SetNumbers } from "../overwritten_values.js" */
/** @import { Described } from "../intervention_controls.js" */
/** @import { Recording, Tensors } from "../recording.js" */
/** @import { Config } from "../attention_config.js" */
/** @import { Entry } from "./loaded_tensors.js" */

/**
 * How each cell of a tensor is computed from others, as equations.py writes it.
 *
 * @typedef {object} Equation
 * @property {string} name
 * @property {string} operation
 * @property {string[]} dims
 * @property {Record<string, Operand[]>} operands by role
 * @property {Record<string, any>} constants what else the operation takes
 *
 * @typedef {{ name: string, dims: string[], cells: (string | number)[], shift?: number }} Operand
 */

/** @typedef {{ text: string[], source?: string[] }} Labels of tokens */

/**
 * What a pass begins with, as inference/pass_outline.py writes it.
 *
 * @typedef {object} Outline
 * @property {string} id
 * @property {string} title
 * @property {Config} config
 * @property {Labels} labels
 * @property {{ text: number[], source?: number[] }} ids
 * @property {number} predicted_position the token that is selected at first
 * @property {{ prefix: string, tokens: "text" | "source", layers: number, heights: string[][] }[]} stacks
 * @property {Record<number, string>} vocabulary labels of the tokens that were named so far
 * @property {Record<string, number>} strip_limits
 * @property {Entry[]} tensors
 * @property {Equation[]} equations
 * @property {Record<string, string[]>} circuits kinds of circuits, by attention
 * @property {number} [rounding] relative distance of neighbouring numbers in the model's precision
 * @property {number} [offset] the position of the first token in the text
 * @property {boolean} [complete]
 * @property {SetNumbers[]} [changed]
 * @property {Described[]} [interventions]
 */

const ALL = ":"; // in an operand's cells, as equations.py writes them
const TOKEN = "token";
const SEGMENT = "segment";
const UNITS = { pos: "position", d_model: "dimension", d_head: "dimension", d_ff: "neuron", head: "head", kv_head: "key–value head", qkv_head: "head", part: "part", vocab: "token" };
const LOADING = { number: "loading", tensor: "Its numbers are being loaded.", cell: "The numbers that it is made of are being loaded." };
const LEFT_OUT = { // on a saved page, which has no server to ask
  number: "left out of this page",
  tensor: "Its numbers were left out of this page, which would be too large with them.",
  cell: "Some of the numbers that it is made of were left out of this page, which would be too large with them.",
};
const PARTS = { 2: ["k", "v"], 3: ["q", "k", "v"] }; // what a matrix with several parts holds

/** What an index of a dimension is called. */
export function unitOf(dim) {
  return UNITS[dim] ?? dim;
}

export class InsidePass extends LoadedTensors {
  /** @type {string} */ id;
  /** @type {string} */ title;
  /** @type {Config} */ config;
  /** @type {Labels} */ labels;
  /** @type {Outline["ids"]} */ ids;
  /** @type {number} */ predictedPosition; // of the token that is selected at first
  /** @type {Outline["stacks"]} */ stacks;
  /** @type {Outline["vocabulary"]} */ vocabulary;
  /** @type {Record<string, number>} */ stripLimits;

  /** @param {Recording} recording the outline; tensors are added as they arrive */
  constructor({ metadata: about, tensors }) {
    const metadata = /** @type {Outline} */ (about);
    super(metadata.tensors.map(merged), Boolean(metadata.complete));
    const { id, title, config, labels, ids, predicted_position: predictedPosition, stacks, vocabulary, strip_limits: stripLimits } = metadata;
    Object.assign(this, { id, title, config, labels, ids, predictedPosition, stacks, vocabulary, stripLimits });
    this.changed = new OverwrittenValues(metadata.changed);
    this.rounding = metadata.rounding ?? 0; // of the model's precision
    this.interventions = metadata.interventions ?? [];
    this.offset = metadata.offset ?? 0; // the position of the first token in the text
    this.metadata = metadata;
    this.absent = this.isComplete ? LEFT_OUT : LOADING; // shown in place of what is missing
    this.outline = tensors;
    /** @type {Map<string, Equation>} */
    this.equations = new Map(metadata.equations.map((equation) => [equation.name, equation]));
    /** @type {Map<string, string[]>} */
    this.readBy = new Map();
    for (const { name, operands } of metadata.equations) {
      for (const read of new Set(Object.values(operands).flat().map((operand) => operand.name))) {
        if (!this.readBy.has(read)) this.readBy.set(read, []);
        this.readBy.get(read).push(name);
      }
    }
    /** @type {Tensors} */
    this.more = {}; // parts of analyses, by name: they aren't tensors of the pass
    /** @type {Record<string, any>} */
    this.partMetadata = {};
  }

  /** Add a recording of parts. @param {Recording} recording */
  add({ metadata, tensors }) {
    Object.assign(this.partMetadata, metadata);
    Object.assign(this.vocabulary, metadata?.vocabulary); // of tokens that weren't named before
    for (const [name, tensor] of Object.entries(tensors)) {
      if (this.entries.has(name.replace(/\[\d+\]$/, ""))) this.loaded.set(name, tensor.data);
      else if (!this.addLens(name, tensor)) this.more[name] = tensor;
    }
  }

  // The logit lens at one more position: a column of the outline's tensors.
  addLens(name, { data }) {
    const [, part, position] = /^(lens(?:\.\w+)?)\[(\d+)\]$/.exec(name) ?? [];
    const whole = this.outline[part];
    if (!whole) return false;
    data.forEach((value, depth) => (whole.data[depth * whole.shape[1] + Number(position)] = value));
    return true;
  }

  /** Whether the logit lens is known at a position. */
  hasLens(position) {
    return this.outline.lens.data[position] >= 0;
  }

  // What there is

  /** How a tensor is computed; null for a parameter. @returns {Equation | null} */
  equation(name) {
    return this.equations.get(name) ?? null;
  }

  /** The operands of its equation, with their roles. */
  operands(name) {
    return Object.entries(this.equation(name)?.operands ?? {}).flatMap(([role, list]) => list.map((operand) => ({ role, ...operand })));
  }

  /** Names of the tensors whose equations read it. */
  readers(name) {
    return this.readBy.get(name) ?? [];
  }

  /** { mean, spread, smallest, largest } of the tensor's finite numbers. */
  statistics(name) {
    const start = 4 * this.entries.get(name).row;
    const [mean, spread, smallest, largest] = this.outline.statistics.data.subarray(start, start + 4);
    return { mean, spread, smallest, largest };
  }

  /** The largest absolute value of the whole tensor. */
  magnitude(name) {
    const { smallest, largest } = this.statistics(name);
    return Math.max(Math.abs(smallest), Math.abs(largest)) || 0;
  }

  /** A preview of a stream's tensor, a byte a cell: { rows, columns, data, limit }, or null. */
  strip(name) {
    const strip = this.outline[`strip.${name}`];
    return strip ? { rows: strip.shape[0], columns: strip.shape[1], data: strip.data, limit: this.stripLimits[name] } : null;
  }

  /** A preview of an attention's weights, a byte a cell: { heads, rows, columns, data }, or null. */
  arcs(module) {
    const arcs = this.outline[`arcs.${module}`];
    return arcs ? { heads: arcs.shape[0], rows: arcs.shape[1], columns: arcs.shape[2], data: arcs.data } : null;
  }

  /** Which intervention set a cell, or any cell of a tensor, in words; nothing where its equation holds. */
  setBy(name, cell = null) {
    const { dims } = this.entries.get(name);
    const along = (...among) => cell?.[dims.findIndex((dim) => among.includes(dim))] ?? null;
    return this.changed.setBy(name, along("head"), along("pos", "query"));
  }

  // How a cell is computed

  /** A cell's index by dimension: { pos: 3, head: 0, … }. */
  indexByDim(name, cell) {
    const { dims } = this.equation(name);
    const indices = this.viewed(name, cell, dims);
    return Object.fromEntries(dims.map((dim, at) => [dim, indices[at]]));
  }

  /** The segment of the token at a position: the number of separators before it. */
  segmentAt(position) {
    const { n_segments: count, separator_token_id: separator } = this.config;
    return Math.min(count - 1, this.ids.text.slice(0, position).filter((token) => token === separator).length);
  }

  /**
   * The cells of an operand that a cell reads. shape: [name, size] of the dimensions that they extend over, none for a
   * single cell. at(index): the index in the operand's tensor of each of them, in row-major order. along: a dimension of
   * the operand to read whole.
   */
  reads(name, cell, operand, along = null) {
    const by = this.indexByDim(name, cell);
    const token = this.ids[name.startsWith("encoder.") ? "source" : "text"][by.pos];
    const sizes = this.sizesBy(operand.name, operand.dims);
    const index = operand.cells.map((wanted, axis) => {
      if (wanted === ALL || operand.dims[axis] === along) return null;
      if (wanted === SEGMENT) return this.segmentAt(by.pos);
      return wanted === TOKEN ? token : typeof wanted === "number" ? wanted : by[wanted];
    });
    if (operand.shift) index[0] += operand.shift;
    const open = index.flatMap((at, axis) => (at === null ? [axis] : []));
    const shape = open.map((axis) => [operand.dims[axis], sizes[axis]]);
    const lengths = shape.map(([, size]) => size);
    const at = (which) => {
      const indices = unravelled(which, lengths);
      const whole = index.slice();
      open.forEach((axis, order) => (whole[axis] = indices[order]));
      return unravelled(flat(whole, sizes), this.entries.get(operand.name).sizes);
    };
    return { index, shape, length: countOf(lengths), at };
  }

  /** The cells that a cell reads: [{ name, role, index }], with null in an index where a whole dimension is read. */
  cellsOf(name, cell) {
    return this.operands(name).flatMap((operand) => {
      const { index, length, at } = this.reads(name, cell, operand);
      const { dims } = this.entries.get(operand.name);
      const about = { name: operand.name, role: operand.role };
      if (dims.length === operand.dims.length) return [{ ...about, index }];
      return Array.from({ length }, (_, which) => ({ ...about, index: at(which) })); // a part that is read by other dimensions than its own
    });
  }

  /** The parts that a cell's arithmetic needs. */
  needs(name, cell) {
    const own = [[name, cell]];
    for (const { name: read, index } of this.cellsOf(name, cell)) own.push([read, index]);
    const parts = own.flatMap(([read, index]) => this.missing(read, index[this.partAxis(read)] ?? null));
    return [...new Map(parts.map((part) => [part.join(), part])).values()];
  }

  /** A cell's arithmetic, with its numbers; null while one is missing, and for a parameter. */
  arithmetic(name, cell) {
    return this.equation(name) && !this.needs(name, cell).length ? arithmeticOf(this, name, cell) : null;
  }

  /** Whether a query sees a key in the attention of a tensor, and why not. */
  visibility(name, query, key) {
    const [isCross, isSource] = [name.includes(".cross_attn."), name.startsWith("encoder.")];
    const isEncoder = isSource || !isCausal(this.config);
    const window = windowOf(this.config, Number(/blocks\.(\d+)/.exec(name)[1]));
    const isAfter = !isCross && !isEncoder && key > query;
    const isFar = (isEncoder ? Math.abs(query - key) : query - key) >= window;
    const { pad_token_id: padding } = this.config;
    const isPadding = padding !== null && this.ids[isCross || isSource ? "source" : "text"][key] === padding;
    return { isCross, isEncoder, window, isAfter, isFar, isPadding, isSeen: !isAfter && !isFar && !isPadding };
  }

  // In words

  /** The name of an index: a token's label, a part's letter, or the number itself. */
  label(name, dim, at) {
    const texts = this.tokensAlong(name, dim);
    if (texts) return texts[at] ?? String(at);
    if (dim === "vocab") return this.vocabulary[at] ?? String(at);
    if (dim === "qkv_head") return this.headInWords(at);
    if (dim === "part") return PARTS[this.entries.get(name).sizes[0]]?.[at] ?? String(at);
    return String(at);
  }

  /** A head of the matrix that holds queries, keys and values: "q 2", "k 0". */
  headInWords(at) {
    const [heads, shared] = [this.config.n_heads, keyHeads(this.config)];
    return at < heads ? `q ${at}` : `${at < heads + shared ? "k" : "v"} ${(at - heads) % shared}`;
  }

  /** The tokens' labels along a dimension; null for a dimension of something else. */
  tokensAlong(name, dim) {
    if (!["pos", "query", "key"].includes(dim) || this.entries.get(name).kind === "parameter") return null;
    const isSource = name.startsWith("encoder.") || (dim === "key" && name.includes(".cross_attn."));
    return this.labels[isSource ? "source" : "text"];
  }

  /**
   * A cell in words: "“r” at position 5, head 2, dimension 17"; indices that are null are left out. Positions count what the model
   * reads; where the text is longer, the position in the whole text follows, as other pages count.
   */
  cellInWords(name, cell) {
    const { dims } = this.entries.get(name);
    const words = dims.map((dim, axis) => {
      const at = cell[axis];
      if (at === null || dim === "1") return "";
      if (dim === "pos" || dim === "query" || dim === "key") {
        const labels = this.tokensAlong(name, dim);
        if (labels?.[at] === undefined) return `position ${at}`;
        const inWhole = this.offset && labels === this.labels.text ? ` (position ${at + this.offset} of the whole text)` : "";
        return `${dim === "pos" ? "" : `${dim} `}“${labels[at]}” at position ${at}${inWhole}`;
      }
      return dim === "vocab" ? `token “${this.label(name, dim, at)}” (${at})` : `${unitOf(dim)} ${this.label(name, dim, at)}`;
    });
    return words.filter(Boolean).join(", ");
  }

  /** The same in numbers: "head 2, query 5, key 3". */
  inNumbers(name, cell) {
    const { dims } = this.entries.get(name);
    return dims.map((dim, axis) => (dim === "1" ? "" : `${unitOf(dim)} ${cell[axis]}`)).filter(Boolean).join(", ");
  }

  // The dimensions that a tensor is read by, with their sizes.
  sizesBy(name, dims) {
    const entry = this.entries.get(name);
    if (entry.dims.length === dims.length) return entry.sizes;
    const { n_heads: head, d_model } = this.config;
    const [d_head, kv_head] = [headWidth(this.config), keyHeads(this.config)];
    const member = head / kv_head;
    if (dims.includes("member")) return dims.map((dim, at) => ({ kv_head, member })[dim] ?? entry.sizes[at > dims.indexOf("member") ? at - 1 : at]);
    const known = { head, kv_head, d_model, d_head, pair: d_head / 2, side: 2, part: name.includes("cross_attn") ? 2 : 3 };
    const product = dims.reduce((size, dim) => size * (known[dim] ?? 1), 1);
    return dims.map((dim) => known[dim] ?? countOf(entry.sizes) / product);
  }

  viewed(name, cell, dims) {
    return unravelled(flat(cell, this.entries.get(name).sizes), this.sizesBy(name, dims));
  }
}

/** An entry with the pairs that rotations turn merged into one dimension, as in the tensors beside it. */
function merged(entry) {
  const at = entry.dims.indexOf("pair");
  if (at < 0) return entry;
  const { dims, sizes } = entry;
  return { ...entry, dims: [...dims.slice(0, at), "d_head"], sizes: [...sizes.slice(0, at), sizes[at] * sizes[at + 1]] };
}

function unravelled(flatAt, sizes) {
  const index = new Array(sizes.length);
  let at = flatAt;
  for (let axis = sizes.length - 1; axis >= 0; axis--) {
    index[axis] = at % sizes[axis];
    at = Math.floor(at / sizes[axis]);
  }
  return index;
}
