// Compares two distributions over the next token: the likeliest of both, how far one is from the other, and what moved most.

import { logSumExp } from "../arithmetic.js";

const UNSEEN = 1e-5; // a change of a probability this small is rounding

/**
 * Log-probabilities by token: of a small vocabulary all, of a larger one the likeliest.
 *
 * @typedef {Map<number, number>} Distribution
 */

/** The distributions that an answer about "scores" or "predictions" has, by position. @param {import("../recording.js").Recording} recording @returns {Distribution[]} */
export function distributionsOf({ tensors }) {
  const { logits, top_logits: top, top_ids: ids, normaliser } = tensors;
  const { shape: [count, width], data } = logits ?? top;
  return Array.from({ length: count }, (_, row) => {
    const begin = row * width;
    const all = Float64Array.from(data.subarray(begin, begin + width));
    const total = normaliser ? normaliser.data[row] : logSumExp(all);
    return new Map(Array.from(all, (logit, at) => [ids ? ids.data[begin + at] : at, logit - total]));
  });
}

/** The one at its end. @param {import("../recording.js").Recording} recording @returns {Distribution} */
export const lastOf = (recording) => /** @type {Distribution} */ (distributionsOf(recording).at(-1));

/** A token's probability, 0 where the distribution doesn't have it. @param {Distribution} distribution @param {number} id */
export function probabilityOf(distribution, id) {
  return Math.exp(distribution.get(id) ?? -Infinity);
}

/** The likeliest tokens of either, those first that the first gives most. @param {[Distribution, Distribution]} both @param {number} count */
export function likeliestOf(both, count) {
  const best = (distribution) => [...distribution].sort(([, a], [, b]) => b - a).slice(0, count).map(([id]) => id);
  const [first] = both;
  return [...new Set(both.flatMap(best))].sort((a, b) => probabilityOf(first, b) - probabilityOf(first, a));
}

/** KL(one ‖ other) in nats, over the tokens that both have. Source: Kullback and Leibler 1951. @param {[Distribution, Distribution]} both */
export function divergence([one, other]) {
  let sum = 0;
  for (const [id, log] of one) if (other.has(id)) sum += Math.exp(log) * (log - other.get(id));
  return Math.max(sum, 0);
}

/** Tokens whose probability falls most, or rises most. @param {[Distribution, Distribution]} both @param {1 | -1} sign @param {number} count @returns {number[]} */
export function movedMost([one, other], sign, count) {
  const moved = [...new Set([...one.keys(), ...other.keys()])].map((id) => /** @type {const} */ ([id, sign * (probabilityOf(other, id) - probabilityOf(one, id))]));
  return moved.filter(([, by]) => by > UNSEEN).sort(([, a], [, b]) => b - a).slice(0, count).map(([id]) => id);
}

/** How many tokens two texts begin with alike. @param {number[][]} both */
export function sharedLength([one, other]) {
  const at = one.findIndex((id, position) => id !== other[position]);
  return at < 0 ? one.length : at;
}
