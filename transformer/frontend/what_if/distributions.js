// Compares two distributions over the next token: the likeliest of both, how far one is from the other, and what moved most.

import { logSumExp } from "../arithmetic.js";

const UNSEEN = 1e-5; // a change of a probability this small is rounding
export const TOO_LARGE = "With these changes the model's numbers overflow. Turn a change off.";

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

/** Log-probabilities of logits. @param {ArrayLike<number>} logits */
export function logSoftmax(logits) {
  const total = logSumExp(logits);
  return Float64Array.from(logits, (logit) => logit - total);
}

/** The ids of the largest, the largest first; equal ones by their id. @param {ArrayLike<number>} values @param {number} count */
export function inOrder(values, count) {
  return Array.from(values, (_, id) => id).sort((one, other) => values[other] - values[one] || one - other).slice(0, count);
}

/** KL(one ‖ other) in nats, of log-probabilities. Source: Kullback and Leibler 1951. @param {ArrayLike<number>} one @param {ArrayLike<number>} other */
export function divergence(one, other) {
  return Array.from(one).reduce((sum, log, id) => sum + (log > -Infinity ? Math.exp(log) * (log - other[id]) : 0), 0);
}

/** Tokens whose probability falls most, or rises most. @param {[ArrayLike<number>, ArrayLike<number>]} logs @param {1 | -1} sign @param {number} count */
export function movedMost([one, other], sign, count) {
  const moved = Array.from(one, (log, id) => sign * (Math.exp(other[id]) - Math.exp(log)));
  return inOrder(moved, count).filter((id) => moved[id] > UNSEEN);
}

/** How many tokens two texts begin with alike. @param {number[][]} both */
export function sharedLength([one, other]) {
  const at = one.findIndex((id, position) => id !== other[position]);
  return at < 0 ? one.length : at;
}
