// Selects the largest terms of a long sum for drawing; the others are combined into one.

import { exactNumber } from "../numbers.js";

const EVERY = 512; // terms up to which each is drawn
const LARGEST = 48;

/** Whether a sum has more terms than are drawn. */
export function hasMany(count) {
  return count > EVERY;
}

/**
 * Which terms are drawn: { places, others, isAmong }. places: the largest, from the largest down, and `own` after them unless
 * it is among them; others: how many are left.
 */
export function largestOf(values, own, count = LARGEST) {
  const order = Uint32Array.from({ length: values.length }, (_, at) => at).sort((a, b) => values[b] - values[a] || a - b);
  const places = [...order.subarray(0, count)];
  const isAmong = places.includes(own);
  if (!isAmong) places.push(own);
  return { places, others: values.length - places.length, isAmong };
}

/** What the terms that aren't drawn add up to: each of them is added, none is derived from the others. */
export function sumOfOthers(values, { places }) {
  const drawn = new Set(places);
  return values.reduce((sum, value, at) => (drawn.has(at) ? sum : sum + value), 0);
}

/** A sum in words, as the terms that are drawn and all others. rest: what the others add up to. */
export function inParts(values, { places, others, isAmong }, rest, sum) {
  const named = isAmong ? `the ${places.length} largest` : `the ${places.length - 1} largest and this one`;
  const drawn = places.reduce((before, at) => before + values[at], 0);
  return `${named}: ${exactNumber(drawn)}; and ${others.toLocaleString("en")} others: ${exactNumber(rest)}; together ${exactNumber(sum)}`;
}

/**
 * What is found of a cell, with the terms in `drawn` alone, and one for all others. What adds up of the others is in `added`:
 * their sum for each name of a row; other rows have no number there.
 */
export function condensed({ rows, along, mark, links, ...found }, drawn, added) {
  const { places, others } = drawn;
  const rest = `${others.toLocaleString("en")} others together`;
  return {
    ...found,
    mark: places.indexOf(mark),
    along: { ...along, length: places.length + 1, label: (which) => (which < places.length ? along.label(places[which]) : rest) },
    rows: rows.map((row) => ({ ...row, values: Float64Array.from([...places.map((at) => row.values[at]), added[row.name] ?? NaN]) })),
    links: links.map((link) => ({ ...link, at: (which) => (which < places.length ? link.at(places[which]) : null) })),
  };
}
