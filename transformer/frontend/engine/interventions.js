// Interventions in a pass: what each of their codes, as links have them (transformer/inference/intervention_codes.py),
// changes in the tensors of a pass (transformer/inference/interventions.py). A tensor is changed once it is computed, and
// later ones read what is left. Positions count from the start of the text.

import { keyHeads, scoreDivisor } from "../attention_config.js";
import { forwardPass } from "./forward_pass.js";
import { neededFor } from "./model.js";

/**
 * @typedef {import("./model.js").Model} Model
 * @typedef {import("./model.js").Tensor} Tensor
 * @typedef {{ start: number, tensors: Map<string, Tensor> }} Place where the tensor's first row is in its text, and the pass so far
 * @typedef {(tensor: Tensor, place: Place) => void} Change
 *
 * @typedef {object} Changes
 * @property {Map<string, Change[]>} of by the tensor that is changed
 * @property {boolean} looksAhead whether a position depends on later ones, so that no keys and values can be cached
 */

const FIELDS = { scale: 4, mean: 3, from: 5, steer: 8, without: 2, weigh: 6 }; // of each kind's code
export const RULES = { mask: /hook_mask$/, scale: /hook_scaled_scores$/, positions: /hook_(pos_embed|position_bias|rot_[qk])$/, norm: /hook_scale$/ };

/** Whether a code is of a kind that there is, and has its fields. @param {string} code */
export function isWhole(code) {
  const [kind, ...fields] = code.split("~");
  return Object.hasOwn(FIELDS, kind) && fields.length === FIELDS[kind];
}

/**
 * What interventions change, in their order. An Error says what is wrong with a code.
 *
 * @param {Model} model
 * @param {string[]} codes
 * @returns {Changes}
 */
export function changesOf(model, codes) {
  const of = new Map();
  const put = (name, change) => of.set(name, [...(of.get(name) ?? []), change]);
  for (const code of codes) {
    const [kind, ...fields] = code.split("~");
    if (!Object.hasOwn(FIELDS, kind)) throw new Error(`There is no change called “${kind}”.`);
    if (fields.length !== FIELDS[kind]) throw new Error(`${kind} takes ${FIELDS[kind]} values, and ${fields.length} are given.`);
    KINDS[kind](model, fields, put);
  }
  return { of, looksAhead: codes.some((code) => /^(mean|without~mask)~/.test(code)) };
}

/** By a code's first word: puts the changes that its fields say. */
const KINDS = {
  scale: (model, [point, head, position, factor], put) => {
    const times = numberOf(factor);
    atPoint(model, { point, head, position }, put, (value) => value * times);
  },

  mean: (model, [point, head, position], put) => atPoint(model, { point, head, position }, put, (_, { at, row, tensor }) => {
    const rows = tensor.shape[0];
    let sum = 0;
    for (let each = 0; each < rows; each++) sum += tensor.data[each * row + at];
    return sum / rows;
  }),

  from: (model, [point, head, position, tokens, source], put) => {
    const there = recorded(model, point, tokens, source);
    atPoint(model, { point, head, position }, put, (value, { at, row, position: own }) => there.data[own * row + at] ?? value); // where the other text has ended
  },

  steer: (model, [point, head, position, tokens, against, source, factor, againstSource], put) => {
    const [toward, away] = [recorded(model, point, tokens, source), recorded(model, point, against, againstSource || source)];
    const times = numberOf(factor);
    const last = ({ data, shape }, { at, row }) => data[(shape[0] - 1) * row + at];
    atPoint(model, { point, head, position }, put, (value, cell) => value + times * (last(toward, cell) - last(away, cell)));
  },

  without: (model, [rule, where], put) => {
    if (!Object.hasOwn(RULES, rule)) throw new Error(`There is no rule “${rule}”.`);
    const points = model.equations.filter(({ name }) => RULES[rule].test(name) && name.startsWith(where));
    const isCausal = ({ name }) => !/^encoder\.|\.cross_attn\./.test(name) && model.config.architecture !== "encoder-only";
    const changed = rule === "mask" ? points.filter(isCausal) : points;
    if (!changed.length) throw new Error(`This model has no ${rule} ${where ? `in ${where}` : "to go without"}.`);
    for (const equation of changed) put(equation.name, WITHOUT[rule](model, equation));
  },

  weigh: (model, [point, head, query, key, weight, isRenormalised], put) => {
    equationOf(model, point);
    checkHead(point, head, model.config.n_heads);
    if (!point.endsWith("hook_pattern")) throw new Error(`${point} is no attention pattern.`);
    if (!(Number(weight) >= 0 && Number(weight) <= 1)) throw new Error(`A weight is from 0 to 1, not ${weight}.`);
    put(point, ({ shape: [, queries, keys], data }, { start }) => {
      const row = Number(query) - start;
      if (row < 0 || row >= queries) return;
      const firstKey = /^encoder\.|\.cross_attn\./.test(point) ? 0 : start + queries - keys; // those before may be cached
      const at = Number(key) - firstKey;
      if (at < 0 || at >= keys) return;
      const weights = data.subarray((Number(head) * queries + row) * keys).subarray(0, keys);
      const rest = 1 - weights[at];
      const share = rest > 0 ? (1 - Number(weight)) / Math.max(rest, 1e-12) : 0;
      if (isRenormalised === "1") for (let each = 0; each < keys; each++) weights[each] *= share;
      weights[at] = Number(weight);
    });
  },
};

/** By a rule: what a tensor becomes without it. */
const WITHOUT = {
  mask: () => ({ shape: [queries, keys], data }) => {
    for (let key = 0; key < keys; key++) {
      let isSeen = 0; // what no query sees is padding
      for (let query = 0; query < queries; query++) isSeen ||= data[query * keys + key];
      for (let query = 0; query < queries; query++) data[query * keys + key] = isSeen;
    }
  },
  scale: ({ config }) => ({ data }) => data.forEach((value, at) => (data[at] = value * scoreDivisor(config))),
  positions: (_, { operation, operands }) => ({ data }, { tensors }) => {
    if (operation === "rotate") data.set(tensors.get(operands.x[0].name).data); // as they were before they were turned
    else data.fill(0);
  },
  norm: () => ({ data }) => data.fill(1),
};

/**
 * Changes a point's cells, or those of a head or a position: each becomes what `valueOf` says of it, of its place in a row, the
 * length of a row, its position in the text, and the tensor as it was.
 */
function atPoint(model, { point, head, position }, put, valueOf) {
  const { dims } = equationOf(model, point);
  if (dims.includes("query") || point.endsWith("hook_scale")) throw new Error(`${point} can't be changed in this way.`);
  checkHead(point, head, dims.some((dim) => dim === "head" || dim === "member") ? model.config.n_heads : dims.includes("kv_head") ? keyHeads(model.config) : 0);
  /** @type {Change} */
  const change = (tensor, { start }) => {
    const before = { shape: tensor.shape, data: tensor.data.slice() };
    const [rows, heads] = tensor.shape;
    const row = tensor.data.length / rows;
    const [first, end] = head === "" ? [0, row] : [(row / heads) * Number(head), (row / heads) * (Number(head) + 1)];
    for (let each = 0; each < rows; each++) {
      if (position !== "" && Number(position) !== start + each) continue;
      for (let at = first; at < end; at++) {
        const cell = each * row + at;
        tensor.data[cell] = valueOf(before.data[cell], { at, row, position: start + each, tensor: before });
      }
    }
  };
  if (!point.endsWith("hook_result")) {
    put(point, change);
    return;
  }
  let added = null; // by the heads to what attention gives, which is their sum
  put(point, (tensor, place) => {
    const before = sumOfHeads(tensor);
    change(tensor, place);
    added = sumOfHeads(tensor).map((sum, at) => sum - before[at]);
  });
  const z = point.replace("hook_result", "hook_z");
  const out = model.equations.find(({ dims, operands }) => operands.x?.[0].name === z && dims.join() === "pos,d_model");
  put(out.name, ({ data }) => data.forEach((value, at) => (data[at] = value + added[at])));
}

/** @param {Tensor} tensor */
function sumOfHeads({ shape: [rows, heads, width], data }) {
  const sums = new Float64Array(rows * width);
  for (let cell = 0; cell < data.length; cell++) sums[Math.floor(cell / (heads * width)) * width + (cell % width)] += data[cell];
  return sums;
}

/** A point's tensor on another text, which nothing intervenes in; of either, ids with points between them. */
function recorded(model, point, tokens, source) {
  equationOf(model, point);
  const ids = (written) => (written ? written.split(".").map(Number) : []);
  return forwardPass(model, { tokens: ids(tokens), source: ids(source) }, { wanted: neededFor([point], model.equations) }).get(point);
}

/** @param {Model} model @param {string} point */
function equationOf(model, point) {
  const equation = model.equations.find(({ name }) => name === point);
  if (!equation) throw new Error(`This model computes no ${point}.`);
  return equation;
}

function checkHead(point, head, heads) {
  if (head !== "" && !(Number(head) >= 0 && Number(head) < heads)) throw new Error(`${point} has no head ${head}.`);
}

function numberOf(text) {
  const number = Number(text);
  if (text === "" || !Number.isFinite(number)) throw new Error(`A factor must be a number, not “${text}”.`);
  return number;
}
