// Selects the largest terms of a long sum for drawing; the others are combined into one.

import { exactNumber } from "../number_format.js";

const EVERY = 512; // terms up to which each is drawn
const LARGEST = 48;

/** Whether a sum has more terms than are drawn. */
export function hasMany(count) {
  return count > EVERY;
}

/**
 * Which terms are drawn: { indices, others, isAmong }. indices: the largest, from the largest down, and `own` after them unless
 * it is among them; others: how many are left.
 */
export function largestOf(values, own, count = LARGEST) {
  const order = Uint32Array.from({ length: values.length }, (_, at) => at).sort((a, b) => values[b] - values[a] || a - b);
  const indices = [...order.subarray(0, count)];
  const isAmong = indices.includes(own);
  if (!isAmong) indices.push(own);
  return { indices, others: values.length - indices.length, isAmong };
}

/** What the terms that aren't drawn add up to: each of them is added, none is derived from the others. */
export function sumOfOthers(values, { indices }) {
  const drawn = new Set(indices);
  return values.reduce((sum, value, at) => (drawn.has(at) ? sum : sum + value), 0);
}

/** A sum in words, as the terms that are drawn and all others. rest: what the others add up to. */
export function inParts(values, { indices, others, isAmong }, rest, sum) {
  const named = isAmong ? `the ${indices.length} largest` : `the ${indices.length - 1} largest and this one`;
  const drawn = indices.reduce((before, at) => before + values[at], 0);
  return `${named}: ${exactNumber(drawn)}; and ${others.toLocaleString("en")} others: ${exactNumber(rest)}; together ${exactNumber(sum)}`;
}

/**
 * What is computed of a cell, with the terms in `drawn` alone, and one for all others. What adds up of the others is in `added`:
 * their sum for each name of a row; other rows have no number there.
 */
export function condensed({ rows, along, mark, links, ...rest }, drawn, added) {
  const { indices, others } = drawn;
  const restInWords = `${others.toLocaleString("en")} others together`;
  return {
    ...rest,
    mark: indices.indexOf(mark),
    along: { ...along, length: indices.length + 1, label: (which) => (which < indices.length ? along.label(indices[which]) : restInWords) },
    rows: rows.map((row) => ({ ...row, values: Float64Array.from([...indices.map((at) => row.values[at]), added[row.name] ?? NaN]) })),
    links: links.map((link) => ({ ...link, at: (which) => (which < indices.length ? link.at(indices[which]) : null) })),
  };
}
