// All heads of an attention at a glance, like transformer/inference/attention_outline.py: each head's weights in a few cells of a
// byte, and its measures.

import { wrong } from "../api_error.js";
import { HIDDEN } from "../colours.js";
import { overwrittenIn, predictedPosition } from "./questions.js";
/** @import { LiveModel, Rest } from "./live_model.js" */
/** @import { Question } from "./questions.js" */
/** @import { Tensor } from "../recording.js" */

const BEFORE_A_QUOTATION = "␣↵⇥([—-"; // signs of labels
const LIMIT = 64; // rows and columns of one head's overview

/** @param {LiveModel} live @param {Question} question @param {{ kind?: string | null }} values @param {Rest} rest */
export async function overview(live, question, { kind: asked }, rest) {
  const { attentions, config, measures, rounding } = live.about;
  const kind = asked ?? Object.keys(attentions).at(-1);
  const about = attentions[kind];
  if (!about) throw wrong("kind", `this model has ${Object.keys(attentions).join(", ") || "no attention"}`);
  const tensors = await live.pass(question, rest);
  const { tokens, source } = question;
  const read = kind === "cross" ? null : kind === "encoder" ? source : tokens;
  const [queries, keys] = [(kind === "encoder" ? source : tokens).length, (kind === "self" || kind === "decoder" ? tokens : source).length];
  const layers = about.modules.map((module) => [tensors.get(`${module}.hook_pattern`), tensors.get(`${module}.hook_mask`)]);
  const cells = layers.map(([pattern, mask]) => pooled(pattern, mask.data));
  const changed = overwrittenIn(live, question);
  const isPacked = about.causal && !changed.some(({ rule }) => rule === "mask");
  const [heads, rows, columns] = cells[0].shape;
  const whole = { shape: [cells.length, heads, rows, columns], data: new Uint8Array(cells.length * heads * rows * columns) };
  cells.forEach(({ data }, layer) => whole.data.set(data, layer * data.length));
  const measured = layers.flatMap(([pattern, mask]) => headMeasures(pattern, mask.data, read, live.labels(read ?? []), measures.map(({ name }) => name)));
  return {
    tensors: {
      overview: isPacked ? belowDiagonal(whole) : whole,
      measures: { shape: [cells.length, heads, measures.length], data: Float32Array.from(measured) },
    },
    metadata: {
      config, labels: { text: live.labels(tokens), source: live.labels(source) }, kind, ...about, measures, queries, keys,
      predicted_position: kind === "encoder" ? queries - 1 : predictedPosition(live, tokens), changed, rounding,
    },
  };
}

/** The cells that a causal mask leaves, row by row. @param {Tensor} whole */
function belowDiagonal({ shape, data: cells }) {
  const [[layers, heads, side], data] = [shape, /** @type {Uint8Array} */ (cells)];
  const found = new Uint8Array((layers * heads * side * (side + 1)) / 2);
  let to = 0;
  for (let head = 0; head < layers * heads; head++) {
    for (let row = 0; row < side; row++) {
      const start = (head * side + row) * side;
      found.set(data.subarray(start, start + row + 1), to);
      to += row + 1;
    }
  }
  return { shape: [layers, heads, (side * (side + 1)) / 2], data: found };
}

/**
 * The largest weight of each block as a byte from 0 to 254; HIDDEN where the mask hides the whole block.
 *
 * @param {{ shape: number[], data: ArrayLike<number> }} pattern (head, query, key)
 * @param {ArrayLike<number>} mask (query, key), 0 where hidden
 */
export function pooled({ shape, data }, mask) {
  const [heads, queries, keys] = shape;
  const [rows, columns] = [Math.min(queries, LIMIT), Math.min(keys, LIMIT)];
  const [rowOf, columnOf] = [blocks(queries, rows), blocks(keys, columns)];
  const largest = new Float32Array(heads * rows * columns).fill(-Infinity);
  for (let head = 0; head < heads; head++) {
    for (let query = 0; query < queries; query++) {
      for (let key = 0; key < keys; key++) {
        if (!mask[query * keys + key]) continue;
        const at = (head * rows + rowOf[query]) * columns + columnOf[key];
        const weight = data[(head * queries + query) * keys + key];
        if (weight > largest[at]) largest[at] = weight;
      }
    }
  }
  const bytes = Uint8Array.from(largest, (weight) => (weight === -Infinity ? HIDDEN : toEven(Math.fround(Math.min(1, Math.max(0, weight)) * (HIDDEN - 1)))));
  return { shape: [heads, rows, columns], data: bytes };
}

/** The block of each index of a dimension. */
export function blocks(length, count) {
  return Array.from({ length }, (_, at) => Math.floor(((at + 1) * count - 1) / length));
}

/** Round to the nearest whole number, halves to an even one, like NumPy. */
export function toEven(value) {
  const rounded = Math.round(value);
  return rounded - value === 0.5 && rounded % 2 ? rounded - 1 : rounded;
}

/** The measures of `head_measures` in head_measures.py, head after head. tokens: null if queries and keys belong to different texts. */
function headMeasures({ shape, data }, mask, tokens, labels, names) {
  const [heads, queries, keys] = shape;
  const sees = (query, key) => mask[query * keys + key] !== 0;
  let looksAhead = false;
  for (let query = 0; query < queries; query++) for (let key = query + 1; key < keys; key++) looksAhead ||= sees(query, key);
  const isSame = (query, key) => tokens[query] === tokens[key] && query !== key && (looksAhead || key < query);
  /** @type {Record<string, (query: number, key: number) => boolean>} a measure's targets: which keys count for a query */
  const targets = tokens ? {
    previous: (query, key) => key === query - 1,
    next: (query, key) => key === query + 1,
    first: (query, key) => key === 0 && query > 0,
    itself: (query, key) => key === query,
    same: isSame,
    induction: (query, key) => key > 0 && isSame(query, key - 1),
  } : { first: (_, key) => key === 0 };
  if (!looksAhead) delete targets.next;
  const marks = openingMarks(labels);
  if (marks.some((mark) => mark !== null)) targets.quotation = (query, key) => marks[query] === key;
  const on = Object.fromEntries(Object.entries(targets).map(([name, isTarget]) => [name, weightOn(isTarget)]));
  return Array.from({ length: heads }, (_, head) => names.map((name) => (name === "spread" ? spread(head) : (on[name]?.(head) ?? NaN)))).flat();

  /** The mean weight on visible targets, over the queries that have one. */
  function weightOn(isTarget) {
    const cells = [];
    let having = 0;
    for (let query = 0; query < queries; query++) {
      let has = false;
      for (let key = 0; key < keys; key++) {
        if (!isTarget(query, key)) continue;
        has = true;
        if (sees(query, key)) cells.push(query * keys + key);
      }
      having += Number(has);
    }
    return (head) => Math.min(1, Math.max(0, cells.reduce((sum, cell) => sum + data[head * queries * keys + cell], 0) / having));
  }

  /** The mean entropy of queries that see several keys, relative to the largest possible one. */
  function spread(head) {
    let [sum, several] = [0, 0];
    for (let query = 0; query < queries; query++) {
      let [visible, entropy] = [0, 0];
      for (let key = 0; key < keys; key++) {
        visible += Number(sees(query, key));
        const weight = data[(head * queries + query) * keys + key];
        if (weight > 0) entropy -= weight * Math.log(weight);
      }
      if (visible < 2) continue;
      several += 1;
      sum += entropy / Math.log(visible);
    }
    return Math.min(1, Math.max(0, sum / several));
  }
}

/** Of each token the mark that opens the quotation that it stands in, or null, as `_quotation` in head_measures.py has it. @param {string[]} labels */
function openingMarks(labels) {
  const text = labels.join("");
  let at = 0;
  let opening = null;
  return labels.map((label, query) => {
    const mark = opening;
    for (const end = at + label.length; at < end; at++) {
      const isFirst = at === 0 || BEFORE_A_QUOTATION.includes(text[at - 1]);
      if ('"“'.includes(text[at]) && isFirst && /[\p{L}\p{N}]/u.test(text[at + 1] ?? "")) opening = query;
      else if ('"”'.includes(text[at])) opening = null;
    }
    return mark;
  });
}
