// The outline of a pass, as transformer/inference/pass_outline.py makes it: statistics and thumbnails of every tensor, small
// enough to be drawn at once; and every tensor checked against its equation.

import { largestAbsolute, largestDifference } from "../arithmetic.js";
import { checkLogits } from "../generation/sampling.js";
import { pooled, toEven } from "./attention_overview.js";
import { recomputed } from "./forward_pass.js";
import { logitLens } from "./logit_lens.js";
import { overwrittenIn, predictedPosition } from "./questions.js";
/** @import { LiveModel, Rest } from "./live_model.js" */
/** @import { Question } from "./questions.js" */
/** @import { Tensors } from "../recording.js" */

const STRIP_CELLS = 48; // of a token's strip, at most
const LIKELIEST = 3; // tokens that are named of each position's prediction
const LABELLED_VOCABULARY = 512; // tokens of a vocabulary that is named in full

/** @param {LiveModel} live @param {Question} question @param {unknown} _ @param {Rest} rest */
export async function outline(live, question, _, rest) {
  const { config, equations, stacks, circuits, rounding, attentions } = live.about;
  const computed = await live.pass(question, rest);
  const entries = [...live.entries(question).values()];
  /** @type {Tensors} */
  const tensors = {};
  const limits = {};
  const statistics = [];
  for (const { name, kind, dims } of entries) {
    await rest();
    if (kind === "parameter") {
      if (!live.statistics.has(name)) live.statistics.set(name, statisticsOf(live.numbers(name)));
      statistics.push(...live.statistics.get(name));
      continue;
    }
    const { data, shape } = computed.get(name);
    statistics.push(...statisticsOf(data));
    if (kind === "point" && dims.join() === "pos,d_model") {
      const { cells, limit } = strip(data, shape[1]);
      tensors[`strip.${name}`] = cells;
      limits[name] = limit;
    }
  }
  const modules = Object.values(attentions).flatMap((of) => of.modules);
  for (const module of modules) tensors[`arcs.${module}`] = pooled(computed.get(`${module}.hook_pattern`), computed.get(`${module}.hook_mask`).data);
  const { tokens, source } = question;
  const next = likeliest(computed.get("probabilities"));
  const lens = await logitLens(live, question, computed, tokens.map((_, position) => position), rest);
  return {
    tensors: { statistics: { shape: [entries.length, 4], data: Float32Array.from(statistics) }, ...tensors, ...next, ...lens },
    metadata: {
      config, rounding, tensors: entries, equations, stacks, strip_limits: limits, ids: { text: tokens, source }, circuits,
      predicted_position: predictedPosition(live, tokens), changed: overwrittenIn(live, question),
      labels: { text: live.labels(tokens), source: live.labels(source) },
      vocabulary: vocabularyOf(live, [...tokens, ...source, ...next.next.data, ...lens.lens.data]),
    },
  };
}

/** The labels of all tokens, or of many of those that are named. @param {LiveModel} live @param {number[]} named */
function vocabularyOf(live, named) {
  const { kinds } = live.about;
  const all = Object.keys(kinds).map(Number);
  if (all.length <= LABELLED_VOCABULARY) return live.labels(all);
  return Object.fromEntries([...new Set(named)].map((token) => [token, live.label(token)]));
}

/** Mean, spread (standard deviation), smallest and largest of the finite numbers; NaN where there is none. @param {ArrayLike<number>} data */
export function statisticsOf(data) {
  let [count, sum, smallest, largest] = [0, 0, Infinity, -Infinity];
  for (let at = 0; at < data.length; at++) {
    const value = data[at];
    if (!Number.isFinite(value)) continue;
    count += 1;
    sum += value;
    if (value < smallest) smallest = value;
    if (value > largest) largest = value;
  }
  if (!count) return [NaN, NaN, NaN, NaN];
  const mean = sum / count;
  let squares = 0;
  for (let at = 0; at < data.length; at++) if (Number.isFinite(data[at])) squares += (data[at] - mean) ** 2;
  return [mean, Math.sqrt(squares / count), smallest, largest];
}

/** A stream as bytes, of the numbers that share a cell the farthest from 0: 128 + 127 · value / limit; and the limit. */
function strip(data, width) {
  const cells = Math.min(width, STRIP_CELLS);
  const rows = data.length / width;
  const limit = largestAbsolute(data);
  const bytes = new Uint8Array(rows * cells);
  for (let row = 0; row < rows; row++) {
    for (let cell = 0; cell < cells; cell++) {
      let [high, low] = [-Infinity, Infinity];
      for (let at = Math.floor((cell * width) / cells); at < Math.floor(((cell + 1) * width) / cells); at++) {
        const value = Number.isFinite(data[row * width + at]) ? data[row * width + at] : 0;
        if (value > high) high = value;
        if (value < low) low = value;
      }
      const farthest = high >= -low ? high : low;
      bytes[row * cells + cell] = toEven(128 + 127 * (limit ? farthest / limit : farthest));
    }
  }
  return { cells: { shape: [rows, cells], data: bytes }, limit };
}

/** The most probable tokens at each position, and their probabilities. Throws as `checkLogits`. @param {import("./model.js").Tensor} probabilities */
function likeliest({ shape, data }) {
  const [rows, vocab] = shape;
  const count = Math.min(LIKELIEST, vocab);
  checkLogits(data);
  const [ids, shares] = [new Int32Array(rows * count), new Float32Array(rows * count)];
  for (let row = 0; row < rows; row++) {
    const own = data.subarray(row * vocab, (row + 1) * vocab);
    const chosen = [];
    for (let rank = 0; rank < count; rank++) {
      let best = -1;
      for (let id = 0; id < vocab; id++) if (!chosen.includes(id) && (best < 0 || own[id] > own[best])) best = id;
      chosen.push(best);
      ids[row * count + rank] = best;
      shares[row * count + rank] = own[best];
    }
  }
  return { next: { shape: [rows, count], data: ids }, "next.probability": { shape: [rows, count], data: shares } };
}

/** How far each tensor of a pass is from what its equation gives in double precision. @param {LiveModel} live @param {Question} question @param {unknown} _ @param {Rest} rest */
export async function checks(live, question, _, rest) {
  const computed = await live.pass(question, rest);
  const changed = overwrittenIn(live, question);
  const found = [];
  for (const equation of live.model.equations) {
    await rest();
    const { data } = computed.get(equation.name);
    const largest = largestDifference(recomputed(live.model, question, computed, equation).data, data);
    const setBy = changed.filter(({ point }) => point === equation.name).map(({ words }) => words);
    found.push({ name: equation.name, largest: Number.isFinite(largest) ? largest : null, magnitude: largestAbsolute(data), set_by: setBy });
  }
  return { checks: found };
}
