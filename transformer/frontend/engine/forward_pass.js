// Computes a forward pass by walking the table of equations: every tensor from those before it, without a batch. With a
// cache, a pass computes the newest positions alone, as it reads only keys and values of earlier ones.

import { headWidth, isCausal, keyHeads } from "../attention_config.js";
import { countOf, stridesOf } from "../recording.js";
import { isOfSource, operandsOf } from "./model.js";
import { TENSOR_OPERATIONS } from "./operations.js";
import { loopsOf, sumProducts } from "./products.js";

/**
 * @typedef {import("./model.js").Config} Config
 * @typedef {import("./model.js").Equation} Equation
 * @typedef {import("./model.js").Floats} Floats
 * @typedef {import("./model.js").Model} Model
 * @typedef {import("./model.js").Operand} Operand
 * @typedef {import("./model.js").Tensor} Tensor
 *
 * @typedef {object} Step what an operation computes an equation's tensor from
 * @property {Equation} equation
 * @property {Config} config
 * @property {Floats} out the result; an operation sets every number of it
 * @property {number} width of its last dimension
 * @property {number} start the position of its first row
 * @property {number} rows number of positions
 * @property {() => number[]} ids indices into a table: tokens, or segments, of those positions
 * @property {number[]} keyIds the tokens at its keys
 * @property {(role: string, into?: Floats) => Floats} read the sum of a role's operands; into: where to put it
 * @property {() => void} multiply sets the result to the product of `x` and `weight`
 *
 * @typedef {object} Room an equation's tensor, and what stays the same in every pass with as many rows and keys
 * @property {number} rows
 * @property {number} keys
 * @property {boolean} isKeyed whether it depends on the keys' number
 * @property {Floats} numbers with room for more keys
 * @property {Tensor} tensor
 * @property {number} width of its last dimension
 * @property {Map<number, import("./products.js").Loops>} loops through factors, by the keys' number
 * @property {Map<string, Floats>} weights by role
 *
 * @typedef {object} Cache
 * @property {number} length how many positions have been computed
 * @property {Map<string, Tensor>} tensors of all positions, with room for a whole context; and those that depend on the source alone
 * @property {Map<number, Map<string, Room>>} rooms by the number of positions that a pass computes, and by equation: the next pass of
 *   as many overwrites them
 *
 * @typedef {object} Text
 * @property {ArrayLike<number>} tokens the cached ones included
 * @property {ArrayLike<number>} [source] what an encoder–decoder's encoder reads
 * @property {number[] | null} [segments] of each token, if separators don't tell
 */

const GROUPED = new Set(["kv_head member", "pair side", "side pair"]); // two dimensions of an equation that are one of the tensor

/** An empty cache. rooms: of a cache whose tensors nobody reads any more. @param {Cache["rooms"]} [rooms] @returns {Cache} */
export function emptyCache(rooms = new Map()) {
  return { length: 0, tensors: new Map(), rooms };
}

/**
 * Every tensor of a pass by name, in its order, `logits` and `probabilities` at its end; with a cache, which it extends, of the
 * positions that weren't cached, and without what depends on the source alone from the second pass on. Tensors of one pass are
 * overwritten by the next with the same cache.
 *
 * @param {Model} model
 * @param {Text} text
 * @param {object} [options]
 * @param {Cache} [options.cache]
 * @param {Set<string> | null} [options.wanted] the tensors to compute, what they are made of among them (`neededFor`); null for all
 * @param {Set<string>} [options.atLast] those of which the last position alone is computed (`readAtLast`)
 * @param {import("./interventions.js").Hooks | null} [options.hooks] what changes tensors before others read them
 * @param {number} [options.begin] the position of the first of the tokens in the text that changes count in
 * @returns {Map<string, Tensor>}
 */
export function forwardPass(model, text, options = {}) {
  const steps = passInSteps(model, text, options);
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
  }
}

/** The same tensor by tensor, so that callers can do something else in between. @type {(...given: Parameters<typeof forwardPass>) => Generator<void, Map<string, Tensor>>} */
export function* passInSteps(model, text, { cache = emptyCache(), wanted = null, atLast = new Set(), hooks = null, begin = 0 } = {}) {
  checkText(model, text, cache);
  const pass = new Pass(model, text, cache, { atLast });
  for (const equation of model.equations) {
    if (wanted && !wanted.has(equation.name)) continue;
    if (cache.length && isOfSource(equation)) continue;
    const tensor = pass.compute(equation);
    const place = { start: isOfSource(equation) ? 0 : begin + pass.startOf(equation), tensors: pass.tensors };
    for (const hook of hooks?.at.get(equation.name) ?? []) hook(tensor, place);
    pass.keep(equation, tensor);
    yield;
  }
  cache.length = text.tokens.length;
  return pass.tensors;
}

/**
 * An equation's result in double precision, from the tensors of a finished pass: over a whole text, or over some positions if all
 * its operands are cut to these.
 *
 * @param {Model} model
 * @param {Text} text
 * @param {Map<string, Tensor>} tensors
 * @param {Equation} equation
 */
export function recomputed(model, text, tensors, equation) {
  const pass = new Pass(model, text, emptyCache(), { Numbers: Float64Array });
  pass.tensors = tensors;
  return pass.compute(equation);
}

/** @param {Model} model @param {Text} text @param {Cache} cache */
function checkText({ config }, { tokens, source = [] }, cache) {
  const readsSource = config.architecture === "encoder-decoder";
  if (cache.length && !isCausal(config)) throw new Error("This model reads in both directions: each pass computes the whole text.");
  if (tokens.length <= cache.length) throw new Error("There are no new tokens; a model reads at least one.");
  if (readsSource !== source.length > 0) throw new Error(readsSource ? "An encoder–decoder needs a source of at least one token." : "This model reads no source; put all of it into the prompt.");
  for (const [ids, known] of /** @type {[ArrayLike<number>, number][]} */ ([[tokens, cache.length], [source, cache.length ? source.length : 0]])) {
    if (ids.length > config.context_length) throw new Error(`The text has ${ids.length} tokens; this model reads at most ${config.context_length}.`);
    for (let at = known; at < ids.length; at++) {
      if (!(Number.isInteger(ids[at]) && ids[at] >= 0 && ids[at] < config.vocab_size)) throw new Error(`Token id ${ids[at]} is not in this model's vocabulary of ${config.vocab_size}.`);
    }
  }
}

class Pass {
  /**
   * @param {Model} model
   * @param {Text} text
   * @param {Cache} cache
   * @param {{ atLast?: Set<string>, Numbers?: typeof Float32Array | typeof Float64Array }} [options] Numbers: what results are kept in
   */
  constructor(model, { tokens, source = [], segments = null }, cache, { atLast = new Set(), Numbers = Float32Array } = {}) {
    this.model = model;
    this.Numbers = Numbers;
    this.atLast = atLast;
    this.tokens = Array.from(tokens);
    this.source = Array.from(source);
    this.segments = segments ?? segmentsOf(tokens, model.config);
    this.cache = cache;
    this.start = cache.length;
    const count = tokens.length - cache.length;
    if (!cache.rooms.has(count)) cache.rooms.set(count, new Map());
    this.rooms = cache.rooms.get(count);
    /** @type {Map<string, Tensor>} */
    this.tensors = new Map();
    const { config } = model;
    /** @type {Record<string, number>} sizes that are the same in every pass */
    this.sizes = {
      head: config.n_heads,
      kv_head: keyHeads(config),
      member: config.n_heads / keyHeads(config),
      d_head: headWidth(config),
      pair: headWidth(config) / 2,
      side: 2,
      d_model: config.d_model,
      d_ff: config.d_ff,
      vocab: config.vocab_size,
      1: 1,
    };
  }

  /** The position of the first row that is computed. @param {Equation} equation */
  startOf(equation) {
    if (isOfSource(equation)) return 0;
    return this.atLast.has(equation.name) ? this.tokens.length - 1 : this.start;
  }

  /** @param {Equation} equation @returns {Tensor} */
  compute(equation) {
    const { name, operands, operation } = equation;
    const isEncoder = name.startsWith("encoder.");
    const start = this.startOf(equation);
    const rows = (isOfSource(equation) ? this.source : this.tokens).length - start;
    const keyIds = isEncoder || name.includes(".cross_attn.") ? this.source : this.tokens;
    const room = this.room(equation, rows, keyIds.length);
    const { tensor, width } = room;
    const out = tensor.data;
    const read = (role, into) => this.read(equation, role, { room, start, rows, into });
    const multiply = () => {
      const [x, w, bias] = [read("x"), read("weight"), operands.bias ? read("bias") : null];
      if (!room.loops.has(room.keys)) room.loops.set(room.keys, this.loops(equation, rows, room.keys));
      sumProducts(room.loops.get(room.keys), { x, w, bias, out }, this.model.simd);
    };
    const ids = () => (operands.table[0].cells[0] === "segment" ? this.segments : isEncoder ? this.source : this.tokens).slice(start, start + rows);
    TENSOR_OPERATIONS[operation]({ equation, config: this.model.config, out, width, start, rows, ids, keyIds, read, multiply });
    return tensor;
  }

  /** The room for an equation's tensor. @param {Equation} equation @param {number} rows @param {number} keys @returns {Room} */
  room(equation, rows, keys) {
    const { name, dims } = equation;
    const { rooms } = this;
    const last = rooms.get(name);
    const known = last?.rows === rows ? last : null;
    if (known && (known.keys === keys || !known.isKeyed)) return known;
    const sizes = this.sizesOf(equation, rows, keys);
    const size = countOf(sizes);
    const isKeyed = known?.isKeyed ?? [dims, ...operandsOf(equation).map((operand) => operand.dims)].some((all) => all.includes("key"));
    const numbers = known?.numbers.length >= size ? known.numbers : new this.Numbers(known ? 2 * size : size);
    const tensor = { shape: merged(dims, sizes), data: numbers.subarray(0, size) };
    const { loops, weights } = known ?? { loops: new Map(), weights: new Map() };
    const room = { rows, keys, isKeyed, numbers, tensor, width: sizes.at(-1), loops, weights };
    rooms.set(name, room);
    return room;
  }

  /** @param {Equation} equation @param {number} rows @param {number} keys */
  sizesOf({ dims }, rows, keys) {
    return dims.map((dim) => (dim === "key" ? keys : dim === "pos" || dim === "query" ? rows : this.sizes[dim]));
  }

  /** @param {Equation} equation @param {number} rows @param {number} keys */
  loops(equation, rows, keys) {
    const { dims, operands: { x, weight, bias } } = equation;
    const out = strided(dims, this.sizesOf(equation, rows, keys));
    return loopsOf({ x: this.axes(x[0], true), w: this.axes(weight[0], true), bias: bias ? this.axes(bias[0], true) : [], out });
  }

  /** Store a tensor for later equations and later passes. @param {Equation} equation @param {Tensor} tensor */
  keep(equation, tensor) {
    const { name } = equation;
    const { tensors } = this.cache;
    this.tensors.set(name, tensor);
    if (equation.dims[0] === "key") tensors.set(name, tensor);
    if (!this.model.cached.has(name)) return;
    const row = countOf(tensor.shape.slice(1));
    if (!tensors.has(name)) tensors.set(name, { shape: [], data: new Float32Array(this.model.config.context_length * row) });
    const whole = tensors.get(name);
    whole.data.set(tensor.data, this.start * row);
    whole.shape = [this.start + tensor.shape[0], ...tensor.shape.slice(1)];
  }

  /** A tensor as an operand reads it: keys and values of all positions. @param {Operand} operand @returns {Tensor} */
  tensor({ name, dims }) {
    const { cache, model, tensors } = this;
    const isOfAll = dims[0] === "key" && cache.tensors.has(name);
    return isOfAll ? cache.tensors.get(name) : (tensors.get(name) ?? model.weights.get(name));
  }

  /**
   * A role's operand: of a matrix that holds several, the part that is read; of a table of positions, the rows of this pass.
   *
   * @param {Equation} equation
   * @param {string} role
   * @param {{ room: Room, start: number, rows: number, into?: Floats }} where
   */
  read({ operands }, role, { room, start, rows, into }) {
    if (room.weights.has(role)) return room.weights.get(role);
    const all = operands[role];
    const parts = all.map((operand) => this.part(operand, start, rows));
    if (all.length === 1 && !into) {
      if (this.model.weights.has(all[0].name) && !isOfPositions(all[0])) room.weights.set(role, parts[0]);
      return parts[0];
    }
    const sum = into ?? new this.Numbers(parts[0].length);
    sum.set(parts[0]);
    for (const part of parts.slice(1)) for (let at = 0; at < sum.length; at++) sum[at] += part[at];
    return sum;
  }

  /** The part of an operand that is read. @param {Operand} operand @param {number} start @param {number} rows */
  part(operand, start, rows) {
    const { shape, data } = this.tensor(operand);
    const { cells: [first], shift = 0 } = operand;
    if ((first === "pos" || first === "query") && shape[0] > rows && !isOfPositions(operand)) return data.subarray((data.length / shape[0]) * (shape[0] - rows));
    if (typeof first !== "number" && !shift && !isOfPositions(operand)) return data;
    const [{ size, stride }] = this.axes(operand);
    const [from, end] = isOfPositions(operand) ? [start, start + rows] : typeof first === "number" ? [first, first + 1] : [shift, size];
    return data.subarray(from * stride, end * stride);
  }

  /**
   * An operand's axes, named after the result's dimensions that index them, or "Σ …" where a whole dimension is read.
   *
   * @param {Operand} operand
   * @param {boolean} [isOpen] whether those that are read at one place are left out
   */
  axes(operand, isOpen = false) {
    const names = operand.cells.map((cell, axis) => (cell === ":" ? `Σ ${operand.dims[axis]}` : String(cell)));
    const axes = strided(names, this.viewed(operand));
    return isOpen ? axes.filter((_, axis) => typeof operand.cells[axis] !== "number") : axes;
  }

  /** A tensor's shape in the dimensions by which an operand reads it. @param {Operand} operand */
  viewed(operand) {
    const { shape } = this.tensor(operand);
    const { dims } = operand;
    if (shape.length === dims.length) return shape;
    if (dims.includes("member")) {
      const at = dims.indexOf("kv_head");
      return [...shape.slice(0, at), this.sizes.kv_head, this.sizes.member, ...shape.slice(at + 1)];
    }
    const known = dims.map((dim) => (["pos", "query", "key", "vocab"].includes(dim) ? undefined : this.sizes[dim]));
    const rest = countOf(shape) / countOf(known.map((size) => size ?? 1));
    return known.map((size) => size ?? rest);
  }
}

/** @param {Operand} operand */
function isOfPositions({ name }) {
  return name.endsWith("pos_embed.weight");
}

/** Each token's segment: the number of separators before it. @param {ArrayLike<number>} tokens @param {Config} config */
function segmentsOf(tokens, { n_segments: count = 0, separator_token_id: separator = null }) {
  let before = 0;
  return Array.from(tokens, (token) => Math.min(count - 1, token === separator ? before++ : before));
}

/** A tensor's shape in the registry's dimensions, in which groups and pairs are one dimension. */
function merged(dims, sizes) {
  const second = dims.findIndex((dim, axis) => GROUPED.has(`${dims[axis - 1]} ${dim}`));
  return second < 0 ? sizes : [...sizes.slice(0, second - 1), sizes[second - 1] * sizes[second], ...sizes.slice(second + 1)];
}

function strided(names, sizes) {
  const strides = stridesOf(sizes);
  return names.map((name, axis) => ({ name, size: sizes[axis], stride: strides[axis] }));
}
