// Computes the arcs of attention to draw, and the tokens that reach a position, from the outline of a pass.
//
// What reaches a token is followed from the top down: at each attention half of a share stays in its stream and half goes
// to the keys, by weight; without a residual, all of it (attention rollout, Abnar and Zuidema 2020). Long texts are pooled.

import { HIDDEN } from "../colours.js";

/** @typedef {{ queries: number, keys: number, weights: Float32Array, strongest: Uint8Array }} Weights of an attention, (query, key) */

const LEAST_WEIGHT = 0.03; // of an arc that is drawn
const LEVELS = 254;

/**
 * The weights of an attention as (query, key), from 0 to 1: of one head, or the mean of all with the head that weighs most.
 * arcs: as a pass has them, a byte a cell (head, query, key); head: null for the mean; isAblated(head): whether it is left out.
 *
 * @returns {Weights}
 */
export function weightsOf({ heads, rows: queries, columns: keys, data }, head, isAblated = undefined) {
  const size = queries * keys;
  const weights = new Float32Array(size);
  const strongest = new Uint8Array(size);
  const chosen = head === null ? Array.from({ length: heads }, (_, number) => number) : [Math.min(head, heads - 1)];
  const most = new Int16Array(size).fill(-1);
  for (const number of chosen) {
    if (isAblated?.(number)) continue;
    for (let at = 0, from = number * size; at < size; at++, from++) {
      const byte = data[from];
      if (byte === HIDDEN) continue;
      weights[at] += byte / LEVELS / chosen.length;
      if (byte <= most[at]) continue;
      most[at] = byte;
      strongest[at] = number;
    }
  }
  return { queries, keys, weights, strongest };
}

/** The pooled position of a token among `positions` of `count` tokens, and the first token of a position. */
export function poolOf(token, count, positions) {
  return Math.min(positions - 1, Math.floor(((token + 1) * positions - 1) / count));
}
export function firstIn(position, count, positions) {
  return Math.floor((position * count) / positions);
}

/**
 * What reaches a token of the stack that writes. attentions(id): the weights of a part, as `weightsOf` gives them.
 * Returns { depths, arcs }: by stack prefix the share of each position at each depth of the stream, from the bottom (0) to
 * the top; by part the share of each arc (query, key).
 */
export function reachOf({ stacks, residual }, attentions, token) {
  /** @type {Record<string, Float32Array[]>} */
  const depths = {};
  /** @type {Record<string, Float32Array>} */
  const arcs = {};
  /** @type {Record<string, Float32Array>} */
  const given = {};
  for (const stack of [...stacks].reverse()) {
    const blocks = stack.groups.filter(({ kind }) => kind === "block");
    const positions = positionsOf(blocks, attentions) ?? Math.min(stack.count, 64);
    let shares = given[stack.prefix] ?? new Float32Array(positions);
    if (stack.writes) shares[poolOf(token, stack.count, positions)] = 1;
    const streams = [shares];
    for (const block of [...blocks].reverse()) {
      for (const part of [...block.parts].reverse()) {
        if (!part.module) continue;
        const attention = attentions(part.id);
        const passed = new Float32Array(attention.keys);
        arcs[part.id] = flow(attention, shares, residual ? 0.5 : 1, passed);
        if (part.crosses) {
          const before = given[stacks[0].prefix] ?? new Float32Array(attention.keys);
          given[stacks[0].prefix] = before.map((share, key) => share + passed[key]);
        }
        const kept = residual ? 0.5 : 0;
        shares = part.crosses ? shares.map((share) => share * kept) : passed.map((share, key) => share + kept * shares[key]);
      }
      streams.unshift(shares);
    }
    depths[stack.prefix] = streams;
  }
  return { depths, arcs };
}

/** The share that each arc carries, (query, key); what arrives at each key is added to `passed`. */
function flow({ queries, keys, weights }, shares, part, passed) {
  const carried = new Float32Array(weights.length);
  for (let query = 0; query < queries; query++) {
    if (!(shares[query] > 0)) continue;
    let sum = 0; // the largest of neighbours stands for them all: a pooled row needn't sum to one
    for (let key = 0; key < keys; key++) sum += weights[query * keys + key];
    for (let key = 0; key < keys && sum > 0; key++) {
      const share = (part * shares[query] * weights[query * keys + key]) / sum;
      carried[query * keys + key] = share;
      passed[key] += share;
    }
  }
  return carried;
}

function positionsOf(blocks, attentions) {
  const part = blocks.flatMap(({ parts }) => parts).find(({ module, crosses }) => module && !crosses);
  return part ? attentions(part.id).queries : null;
}

/** The key that a query weighs most. */
export function strongestIn({ keys, weights }, query) {
  let most = 0;
  for (let key = 1; key < keys; key++) if (weights[query * keys + key] > weights[query * keys + most]) most = key;
  return most;
}

/** The arcs that are worth drawing, the faintest first: { query, key, weight, head, share }. */
export function drawnArcs({ queries, keys, weights, strongest }, shares) {
  const arcs = [];
  for (let query = 0; query < queries; query++) {
    for (let key = 0; key < keys; key++) {
      const at = query * keys + key;
      const share = shares ? shares[at] : 0;
      if (weights[at] < LEAST_WEIGHT && share < LEAST_WEIGHT / 4) continue;
      arcs.push({ query, key, weight: weights[at], head: strongest[at], share });
    }
  }
  return arcs.sort((one, other) => one.share - other.share || one.weight - other.weight);
}
