// Samples the next token from logits, as transformer/inference/sampling.py does: temperature, top-k, top-p, and a
// random number that falls into one token's share. All in double precision, and in the vocabulary's order.
// settings: { temperature, top_k, top_p }; top_k 0 and top_p 1 keep everything.

import { ApiError } from "../api_error.js";
import { exponentiate, logSumExp } from "../arithmetic.js";

/** @typedef {ArrayLike<number>} Logits (vocab,) */

const MOST_TOKENS = 2 ** 21; // the largest vocabulary that can be ranked
const COLDEST = 1e-250; // a difference of two logits, divided by it, doesn't overflow

/**
 * The likeliest tokens first; of equal ones the one that comes first in the vocabulary. Each logit and its token are made one
 * number, as numbers sort themselves in a third of the time that a comparing function takes.
 *
 * @param {Logits} logits in single precision
 */
export function ranking(logits) {
  const singles = new Float32Array(logits);
  const bits = new Int32Array(singles.buffer); // bits of a float grow with positive numbers, and shrink with negative ones
  const keys = new Float64Array(bits.length);
  for (let id = 0; id < keys.length; id++) {
    const place = singles[id] === 0 ? 0 : bits[id] < 0 ? bits[id] ^ 0x7fffffff : bits[id]; // −0 is 0
    keys[id] = id - place * MOST_TOKENS;
  }
  keys.sort();
  const order = new Int32Array(keys.length);
  for (let rank = 0; rank < order.length; rank++) order[rank] = keys[rank] - Math.floor(keys[rank] / MOST_TOKENS) * MOST_TOKENS;
  return order;
}

/** The first of the likeliest. @param {Logits} logits */
export function likeliest(logits) {
  let largest = 0;
  for (let id = 1; id < logits.length; id++) if (logits[id] > logits[largest]) largest = id;
  return largest;
}

/** exp((logit − largest) / temperature); 0 for a logit of −∞. */
function exponentials(logits, temperature) {
  const largest = logits[likeliest(logits)];
  const weights = new Float64Array(logits).map((logit) => (logit - largest) / Math.max(temperature, COLDEST));
  exponentiate(weights, weights);
  return weights;
}

/**
 * The steps of one draw: { weights, total, order, ofTopK, kept }. weights: unnormalised probabilities, 0 where cut off;
 * total: their sum; order: the likeliest first; ofTopK: how many of them top-k keeps; kept: how many of these top-p keeps.
 */
export function drawing(logits, { temperature, top_k: k, top_p: p }) {
  const order = ranking(logits);
  const count = logits.length;
  if (temperature === 0) {
    const weights = new Float64Array(count);
    weights[order[0]] = 1;
    return { weights, total: 1, order, ofTopK: 1, kept: 1 };
  }
  const weights = exponentials(logits, temperature);
  let ofTopK = count;
  if (k && k < count) {
    const last = logits[order[k - 1]];
    while (ofTopK > 0 && !(logits[order[ofTopK - 1]] >= last)) ofTopK -= 1; // more than k if the last are equal
  }
  let kept = ofTopK;
  if (p && p < 1) {
    let whole = 0;
    for (let rank = 0; rank < ofTopK; rank++) whole += weights[order[rank]];
    let reached = 0;
    kept = 0;
    for (let rank = 0; rank < ofTopK; rank++) {
      reached += weights[order[rank]];
      if (reached - weights[order[rank]] < p * whole) kept += 1; // the likelier tokens don't reach p
    }
  }
  for (let rank = kept; rank < count; rank++) weights[order[rank]] = 0;
  let total = 0;
  for (let id = 0; id < count; id++) total += weights[id];
  return { weights, total, order, ofTopK, kept };
}

/** The sampling probabilities, which sum to 1. */
export function drawnWith(logits, settings) {
  const { weights, total } = drawing(logits, settings);
  return weights.map((weight) => weight / total);
}

/** The token whose share of [0, 1] contains a point, with the share's bounds: { token, from, to }. */
export function landing(point, { weights, total }) {
  const at = point * total;
  let reached = 0;
  let last = 0;
  for (let id = 0; id < weights.length; id++) {
    if (weights[id] > 0) last = id;
    if (reached + weights[id] > at) return { token: id, from: reached / total, to: (reached + weights[id]) / total };
    reached += weights[id];
  }
  return { token: last, from: (total - weights[last]) / total, to: 1 }; // rounding has moved the point beyond the last share
}

/** The bounds of a token's share: { token, from, to }. */
export function shareOf(token, { weights, total }) {
  let before = 0;
  for (let id = 0; id < token; id++) before += weights[id];
  return { token, from: before / total, to: (before + weights[token]) / total };
}

/** Throws an ApiError, in the engine's words (transformer/inference/analysis.py), for logits of which no softmax can be taken. */
export function checkLogits(logits) {
  if (logits.some((logit) => Number.isNaN(logit) || logit === Infinity) || logits.every((logit) => logit === -Infinity)) {
    throw new ApiError("The model's logits are not numbers: with its weights, or with what is changed in it, its numbers overflow. Take a change back, or use another model.");
  }
}

/** The token that a random number selects; the likeliest if greedy or without one. Throws as `checkLogits`. */
export function tokenAt(point, logits, settings) {
  checkLogits(logits);
  return settings.temperature === 0 ? likeliest(logits) : landing(point, drawing(logits, settings)).token;
}

/** Whether two settings, seeds included, draw the same tokens. */
export function sameSettings(one, other) {
  const plain = ({ temperature, top_k: k, top_p: p, seed }) => [temperature, k || 0, p || 1, seed ?? null].join();
  return Boolean(one && other) && plain(one) === plain(other);
}

// A token's scores

/** A token's rank, 1 for the likeliest; equal logits rank by id. @param {Logits} logits @param {number} token */
export function rankOf(logits, token) {
  let rank = 1;
  for (let id = 0; id < logits.length; id++) rank += Number(logits[id] > logits[token] || (logits[id] === logits[token] && id < token));
  return rank;
}

/** A token's probability and rank, and the distribution's entropy in nats. @param {Logits} logits @param {number} token */
export function statisticsOf(logits, token) {
  const total = logSumExp(logits);
  let entropy = 0;
  for (let id = 0; id < logits.length; id++) {
    const probability = Math.exp(logits[id] - total);
    if (probability > 0) entropy -= probability * (logits[id] - total);
  }
  return { probability: Math.exp(logits[token] - total), rank: rankOf(logits, token), entropy: Math.max(entropy, 0) };
}
