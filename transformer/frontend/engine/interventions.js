// Applies interventions to a pass, by their codes (transformer/inference/interventions.py). A tensor is changed as soon as it is
// computed, before others read it. Positions count from the start of the text.

import { scoreDivisor } from "../attention_config.js";
import { check, pointsWithout } from "../intervention_checks.js";
import { KINDS, looksAhead, otherText, parsed } from "../intervention_codes.js";
import { compiled } from "../intervention_formulas.js";
import { setWeight } from "../overwritten_values.js";
import { forwardPass } from "./forward_pass.js";
import { neededFor } from "./model.js";

/**
 * @typedef {import("./model.js").Model} Model
 * @typedef {import("./model.js").Tensor} Tensor
 * @typedef {{ start: number, tensors: Map<string, Tensor> }} Place start: position of the tensor's first row in the text; tensors: the pass so far
 * @typedef {(tensor: Tensor, place: Place) => void} Hook changes a tensor
 * @typedef {(name: string, hook: Hook) => void} Put
 *
 * @typedef {object} Hooks
 * @property {Map<string, Hook[]>} at by the name of the tensor
 * @property {boolean} looksAhead whether positions depend on later ones, so that keys and values can't be cached
 */

/**
 * The hooks of interventions, in their order. An Error says what is wrong with a code.
 *
 * @param {Model} model
 * @param {string[]} codes
 * @returns {Hooks}
 */
export function hooksOf(model, codes) {
  const at = new Map();
  const put = (name, hook) => at.set(name, [...(at.get(name) ?? []), hook]);
  const interventions = codes.map(parsed);
  for (const intervention of interventions) {
    check(intervention, model);
    const { kind, values } = intervention;
    if (kind === "without") takeAway(model, values, put);
    else if (kind === "weigh") put(values.point, weightSet(values));
    else changeRows(model, kind, values, put);
  }
  return { at, looksAhead: interventions.some(looksAhead) };
}

/** Leave out a rule. @param {Model} model @param {Record<string, any>} values @param {Put} put */
function takeAway(model, values, put) {
  const points = new Set(pointsWithout(model, values));
  for (const equation of model.equations) if (points.has(equation.name)) put(equation.name, WITHOUT[values.rule](model, equation));
}

/** Set a weight by hand. @param {Record<string, any>} values @returns {Hook} */
function weightSet({ point, head, query, key, weight, renormalised }) {
  return ({ shape: [, queries, keys], data }, { start }) => {
    const row = query - start;
    const firstKey = /^encoder\.|\.cross_attn\./.test(point) ? 0 : start + queries - keys; // earlier keys may be cached
    if (row >= 0 && row < queries) setWeight(data.subarray((head * queries + row) * keys).subarray(0, keys), key - firstKey, weight, renormalised);
  };
}

/** What a tensor becomes without each rule. */
const WITHOUT = {
  mask: () => showToAll,
  later: () => ({ shape: [queries, keys], data }) => {
    for (let query = 0; query < queries; query++) data.fill(0, query * keys + query + 1, (query + 1) * keys);
  },
  windows: () => showToAll,
  scale: ({ config }) => ({ data }) => data.forEach((value, at) => (data[at] = value * scoreDivisor(config))),
  positions: (_, { operation, operands }) => ({ data }, { tensors }) => {
    if (operation === "rotate") data.set(tensors.get(operands.x[0].name).data); // as before the rotation
    else data.fill(0);
  },
  norm: () => ({ data }) => data.fill(1),
};

/** Show every key to every query; a key that no query saw is padding, and stays hidden. @param {Tensor} mask */
function showToAll({ shape: [queries, keys], data }) {
  for (let key = 0; key < keys; key++) {
    let isSeen = 0;
    for (let query = 0; query < queries; query++) isSeen ||= data[query * keys + key];
    for (let query = 0; query < queries; query++) data[query * keys + key] = isSeen;
  }
}

/** Change a point, or one head or position of it: each value becomes what the kind's formula says. */
function changeRows(model, kind, values, put) {
  const { point, head, position } = values;
  const there = (text) => recorded(model, point, otherText(values, KINDS[kind].texts[text]));
  const valueOf = compiled(KINDS[kind].becomes, values, {
    mean: () => (_, { at, row, tensor: { shape: [rows], data } }) => {
      let sum = 0;
      for (let each = 0; each < rows; each++) sum += data[each * row + at];
      return sum / rows;
    },
    "same position": (text) => {
      const { data } = there(text);
      return (value, { at, row, position: own }) => data[own * row + at] ?? value; // where the other text is shorter
    },
    "last position": (text) => {
      const { data, shape: [rows] } = there(text);
      return (_, { at, row }) => data[(rows - 1) * row + at];
    },
  });
  /** @type {Hook} */
  const change = (tensor, { start }) => {
    const before = { shape: tensor.shape, data: tensor.data.slice() };
    const [rows, heads] = tensor.shape;
    const row = tensor.data.length / rows;
    const [first, end] = head === null ? [0, row] : [(row / heads) * head, (row / heads) * (head + 1)];
    for (let each = 0; each < rows; each++) {
      if (position !== null && position !== start + each) continue;
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
  let added = null; // how the change moves the sum over heads, which is attention's output
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

/** A point's tensor on another text, without interventions. */
function recorded(model, point, text) {
  return forwardPass(model, text, { wanted: neededFor([point], model.equations) }).get(point);
}
