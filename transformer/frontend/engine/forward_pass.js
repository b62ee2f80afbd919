// Computes a forward pass by walking the table of equations: every tensor from those before it. There is no batch.
// With a cache, a pass computes the newest positions alone: of earlier ones, keys and values are all that is read.

import { headWidth, isCausal, keyHeads } from "../attention_config.js";
import { isOfSource } from "./model.js";
import { TENSOR_OPERATIONS } from "./operations.js";

/**
 * @typedef {import("./model.js").Config} Config
 * @typedef {import("./model.js").Equation} Equation
 * @typedef {import("./model.js").Floats} Floats
 * @typedef {import("./model.js").Model} Model
 * @typedef {import("./model.js").Operand} Operand
 * @typedef {import("./model.js").Tensor} Tensor
 *
 * @typedef {object} Step what an operation is given to compute the tensor of one equation
 * @property {Equation} equation
 * @property {Config} config
 * @property {Floats} out the result, zeros
 * @property {number} width of its last dimension
 * @property {number} start the position of its first row
 * @property {number} rows how many positions it has
 * @property {number[]} ids what a table is looked up by: tokens, or segments, of those positions
 * @property {number[]} keyIds the tokens that stand at its keys
 * @property {(role: string) => Floats} read what stands in a role, added together
 * @property {() => Parameters<typeof import("./products.js").sumProducts>[0]} factors those of a sum of products
 *
 * @typedef {object} Cache
 * @property {number} length how many positions have been computed
 * @property {Map<string, Tensor>} tensors of all of them, with room for the context's; and what depends on the source alone
 *
 * @typedef {object} Text
 * @property {ArrayLike<number>} tokens all of them, those that are cached among them
 * @property {ArrayLike<number>} [source] what an encoder–decoder's encoder reads
 * @property {number[] | null} [segments] of each token, where separators don't say it
 */

const GROUPED = new Set(["kv_head member", "pair side", "side pair"]); // two dimensions of an equation, one of the tensor

/** Nothing, so far. @returns {Cache} */
export function emptyCache() {
  return { length: 0, tensors: new Map() };
}

/**
 * Every tensor of a pass by name, in its order, `logits` and `probabilities` at its end; with a cache, which it extends, of the
 * positions that weren't cached, and without what depends on the source alone from the second pass on.
 *
 * @param {Model} model
 * @param {Text} text
 * @param {object} [options]
 * @param {Cache} [options.cache]
 * @param {Set<string> | null} [options.wanted] the tensors to compute, what they are made of among them (`neededFor`); null for all
 * @param {import("./interventions.js").Changes | null} [options.changes] what is changed in tensors before others read them
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

/** The same tensor by tensor, for who does something else in between. @type {(...given: Parameters<typeof forwardPass>) => Generator<void, Map<string, Tensor>>} */
export function* passInSteps(model, text, { cache = emptyCache(), wanted = null, changes = null, begin = 0 } = {}) {
  checkText(model, text, cache);
  const pass = new Pass(model, text, cache);
  for (const equation of model.equations) {
    if (wanted && !wanted.has(equation.name)) continue;
    if (cache.length && isOfSource(equation)) continue;
    const tensor = pass.compute(equation);
    const place = { start: isOfSource(equation) ? 0 : begin + pass.start, tensors: pass.tensors };
    for (const change of changes?.of.get(equation.name) ?? []) change(tensor, place);
    pass.keep(equation, tensor);
    yield;
  }
  cache.length = text.tokens.length;
  return pass.tensors;
}

/**
 * What an equation gives, in double precision, from tensors of a pass that is over; of a text, or of some of its positions, if all
 * that it reads is cut to these.
 *
 * @param {Model} model
 * @param {Text} text
 * @param {Map<string, Tensor>} tensors
 * @param {Equation} equation
 */
export function recomputed(model, text, tensors, equation) {
  const pass = new Pass(model, text, emptyCache(), Float64Array);
  pass.tensors = tensors;
  return pass.compute(equation);
}

/** @param {Model} model @param {Text} text @param {Cache} cache */
function checkText({ config }, { tokens, source = [] }, cache) {
  const readsSource = config.architecture === "encoder-decoder";
  if (cache.length && !isCausal(config)) throw new Error("This model reads in both directions: each pass computes the whole text.");
  if (tokens.length <= cache.length) throw new Error("There are no new tokens; a model reads at least one.");
  if (readsSource !== source.length > 0) throw new Error(readsSource ? "An encoder–decoder needs a source of at least one token." : "This model reads no source; put all of it into the prompt.");
  for (const ids of [tokens, source]) {
    if (ids.length > config.context_length) throw new Error(`The text has ${ids.length} tokens; this model reads at most ${config.context_length}.`);
    const bad = Array.from(ids).find((id) => !(Number.isInteger(id) && id >= 0 && id < config.vocab_size));
    if (bad !== undefined) throw new Error(`Token id ${bad} is not in this model's vocabulary of ${config.vocab_size}.`);
  }
}

class Pass {
  /** @param {Model} model @param {Text} text @param {Cache} cache @param {typeof Float32Array | typeof Float64Array} [Numbers] what results are kept in */
  constructor(model, { tokens, source = [], segments = null }, cache, Numbers = Float32Array) {
    this.model = model;
    this.Numbers = Numbers;
    this.tokens = Array.from(tokens);
    this.source = Array.from(source);
    this.segments = segments ?? segmentsOf(tokens, model.config);
    this.cache = cache;
    this.start = cache.length;
    /** @type {Map<string, Tensor>} */
    this.tensors = new Map();
    const { config } = model;
    /** @type {Record<string, number>} of the dimensions that are the same in every pass */
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

  /** @param {Equation} equation @returns {Tensor} */
  compute(equation) {
    const { name, dims, operation } = equation;
    const isEncoder = name.startsWith("encoder.");
    const start = isOfSource(equation) ? 0 : this.start;
    const rows = isOfSource(equation) ? this.source.length : this.tokens.length - start;
    const keyIds = isEncoder || name.includes(".cross_attn.") ? this.source : this.tokens;
    const sizes = dims.map((dim) => (dim === "key" ? keyIds.length : dim === "pos" || dim === "query" ? rows : this.sizes[dim]));
    const out = new this.Numbers(product(sizes));
    const read = (role) => this.read(equation, role, start, rows);
    const factors = () => ({
      x: { data: read("x"), axes: this.axes(equation.operands.x[0], true) },
      w: { data: read("weight"), axes: this.axes(equation.operands.weight[0], true) },
      bias: equation.operands.bias ? { data: read("bias"), axes: this.axes(equation.operands.bias[0], true) } : null,
      out: { data: out, axes: strided(dims, sizes) },
    });
    const isSegment = equation.operands.table?.[0].cells[0] === "segment";
    const ids = (isSegment ? this.segments : isEncoder ? this.source : this.tokens).slice(start, start + rows);
    TENSOR_OPERATIONS[operation]({ equation, config: this.model.config, out, width: sizes.at(-1), start, rows, ids, keyIds, read, factors });
    return { shape: merged(dims, sizes), data: out };
  }

  /** Hand a tensor on to later equations, and to later passes. @param {Equation} equation @param {Tensor} tensor */
  keep(equation, tensor) {
    const { name } = equation;
    const { tensors } = this.cache;
    this.tensors.set(name, tensor);
    if (equation.dims[0] === "key") tensors.set(name, tensor);
    if (!this.model.cached.has(name)) return;
    const row = product(tensor.shape.slice(1));
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
   * What stands in a role; of several matrices in one the part that is read, of a table of positions the rows of this pass.
   *
   * @param {Equation} equation
   * @param {string} role
   * @param {number} start
   * @param {number} rows
   */
  read({ operands }, role, start, rows) {
    const parts = operands[role].map((operand) => {
      const { data } = this.tensor(operand);
      const { name, cells: [first], shift = 0 } = operand;
      const isOfPositions = name.endsWith("pos_embed.weight");
      if (typeof first !== "number" && !shift && !isOfPositions) return data;
      const [{ size, stride }] = this.axes(operand);
      const [from, end] = isOfPositions ? [start, start + rows] : typeof first === "number" ? [first, first + 1] : [shift, size];
      return data.subarray(from * stride, end * stride);
    });
    if (parts.length === 1) return parts[0];
    const sum = new this.Numbers(parts[0]);
    for (const part of parts.slice(1)) for (let at = 0; at < sum.length; at++) sum[at] += part[at];
    return sum;
  }

  /**
   * An operand's axes, called as the result's dimensions whose place they share, or "Σ …" where all of one is read.
   *
   * @param {Operand} operand
   * @param {boolean} [isOpen] whether those that are read at one place are left out
   */
  axes(operand, isOpen = false) {
    const names = operand.cells.map((cell, axis) => (cell === ":" ? `Σ ${operand.dims[axis]}` : String(cell)));
    const axes = strided(names, this.viewed(operand));
    return isOpen ? axes.filter((_, axis) => typeof operand.cells[axis] !== "number") : axes;
  }

  /** The shape of a tensor in the dimensions that it is read by. @param {Operand} operand */
  viewed(operand) {
    const { shape } = this.tensor(operand);
    const { dims } = operand;
    if (shape.length === dims.length) return shape;
    if (dims.includes("member")) {
      const at = dims.indexOf("kv_head");
      return [...shape.slice(0, at), this.sizes.kv_head, this.sizes.member, ...shape.slice(at + 1)];
    }
    const known = dims.map((dim) => (["pos", "query", "key", "vocab"].includes(dim) ? undefined : this.sizes[dim]));
    const rest = product(shape) / product(known.map((size) => size ?? 1));
    return known.map((size) => size ?? rest);
  }
}

/** Which segment each token is in: after how many separators. @param {ArrayLike<number>} tokens @param {Config} config */
function segmentsOf(tokens, { n_segments: count = 0, separator_token_id: separator = null }) {
  let before = 0;
  return Array.from(tokens, (token) => Math.min(count - 1, token === separator ? before++ : before));
}

/** A tensor's shape in the registry's dimensions: heads and their dimensions are counted, not grouped. */
function merged(dims, sizes) {
  const second = dims.findIndex((dim, axis) => GROUPED.has(`${dims[axis - 1]} ${dim}`));
  return second < 0 ? sizes : sizes.toSpliced(second - 1, 2, sizes[second - 1] * sizes[second]);
}

function strided(names, sizes) {
  let stride = product(sizes);
  return names.map((name, axis) => ({ name, size: sizes[axis], stride: (stride /= sizes[axis]) }));
}

function product(sizes) {
  return sizes.reduce((all, size) => all * size, 1);
}
