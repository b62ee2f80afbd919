// What a model predicts of a text in two readings, under its own mask and under another: what is shown of it beside the mask.

import { counted } from "../number_format.js";
import { likeliestOf, probabilityOf } from "../what_if/distributions.js";
import { groupsOf, layersInWords } from "./panels.js";
/** @import { Distribution } from "../what_if/distributions.js" */

/**
 * @typedef {object} Readings
 * @property {Distribution[]} own what is predicted at each token that is shown
 * @property {Distribution[]} other
 * @property {(number | null)[]} right the token that came next, or stands there; null where that isn't known
 * @property {(id: number) => string} label
 *
 * @typedef {object} Predictions as `Masks` shows them
 * @property {string} heading what is predicted, before the token's name
 * @property {[string, string]} names of the two readings
 * @property {[string, number][][][]} rows by token and reading
 * @property {(number | null)[][]} right which of them came next, or stands there
 * @property {string[]} sees what each token's row of the mask lets it see
 * @property {number} row the token that is shown first
 * @property {string} words said of the last token
 */

const TOP = 5; // tokens of each prediction
const SEEN = 0.01; // a loss of probability that can be seen in bars
const ROUNDING = 1e-5; // a change of a probability this small is rounding

/**
 * With the causal mask and without it. It begins where the token that came next loses most probability, or else in the middle.
 *
 * @param {Readings} readings
 * @param {{ windows: number[], length: number, first: number }} about windows: by layer; length: of all that is read; first: how many
 *   tokens are read before those that are shown
 * @returns {Predictions}
 */
export function withoutMask(readings, { windows, length, first }) {
  const { own, other, right } = readings;
  const count = own.length;
  const lost = right.slice(0, count - 1).map((id, at) => probabilityOf(own[at], id) - probabilityOf(other[at], id));
  const most = Math.max(...lost, 0);
  const row = most >= SEEN ? lost.indexOf(most) : Math.floor(lost.length / 2);
  const sees = own.map((_, at) => {
    const near = groupsOf(windows, first + at + 1).filter(({ size }) => size).reverse().map(({ size, layers }) => `; in ${layersInWords(layers)} the last ${size}`);
    return `${at + 1} of ${counted(count, "key")} visible${near.join("")}.`;
  });
  if (lost.length) {
    const why = most >= SEEN ? "the token that came next (✓) loses most probability here." : "it is the middle one: no token loses much probability.";
    sees[row] += ` This row is shown first because ${why}`;
  }
  return { heading: "What comes after", names: ["With the mask", "Without the mask, unlike in training"], ...listsOf(readings), sees, row, words: lastWithoutMask(largestChange(readings), windows, length) };
}

/**
 * With an encoder's own mask and with a causal one. It begins at the token that the encoder is asked about.
 *
 * @param {Readings} readings
 * @param {{ windows: number[], row: number }} about
 * @returns {Predictions}
 */
export function underCausalMask(readings, { windows, row }) {
  const { own, right } = readings;
  const sees = own.map((_, at) => `${own.length} of ${counted(own.length, "key")} visible, ${at + 1} of them under a causal mask.${right[at] === null ? "" : " Here this token is masked, too; ✓ marks it."}`);
  if (right[row] === null) sees[row] += " This row is shown first because it is the first mask.";
  const first = "The last token comes after all others, so a causal mask hides nothing from it in the first layer.";
  const words = windows.length === 1 ? `${first} This model has no other.`
    : `${first} But the tokens before it don't look ahead there any more, and from the second layer on it reads what they made of it: the largest change of a probability here is ${points(largestChange(readings))}.`;
  return { heading: "Predicted at", names: ["With its own mask", "With a causal mask, unlike in training"], ...listsOf(readings), sees, row, words };
}

/** The likeliest tokens of each prediction as a table. @param {Readings} readings @param {{ labels: string[], offset: number, isEncoder: boolean }} about */
export function tableOfPredictions({ own, other, label }, { labels, offset, isEncoder }) {
  const names = isEncoder ? ["with its own mask", "with a causal mask"] : ["with the mask", "without it"];
  return {
    columns: ["mask", "position", "token", "rank", isEncoder ? "predicted token" : "next token", "probability"],
    rows: [own, other].flatMap((reading, which) => reading.flatMap((of, at) => top(of).map((id, rank) => [names[which], offset + at, labels[at], rank + 1, label(id), probabilityOf(of, id)]))),
  };
}

/** Why the prediction after the last token changes, or doesn't, although the mask hides nothing from it. @param {number} moved @param {number[]} windows @param {number} length */
function lastWithoutMask(moved, windows, length) {
  const change = moved < ROUNDING ? "no probability changes here" : `the largest change of a probability here is ${points(moved)}`;
  if (length === 1) return `The last token is the only one: ${change}.`;
  if (windows[0] > 0 && windows[0] < length) return `The last token comes after all others, but in layer 0 the mask leaves it only the last ${counted(windows[0], "token")}: ${change}.`;
  const first = "The last token comes after all others, so the mask hides nothing from it, and its first layer is the same.";
  if (windows.length === 1) return `${first} This model has no other layer: ${change}.`;
  return `${first} But the tokens before it have looked ahead in that layer, and from the second layer on it reads what they made of it: ${change}.`;
}

const top = (/** @type {Distribution} */ of) => likeliestOf([of, of], TOP);
const points = (/** @type {number} */ moved) => `${Number((100 * moved).toPrecision(3))} percentage points`;

/** At the last token. @param {Readings} readings */
function largestChange({ own, other }) {
  const [one, two] = [own.at(-1), other.at(-1)];
  return Math.max(...[...one.keys(), ...two.keys()].map((id) => Math.abs(probabilityOf(one, id) - probabilityOf(two, id))));
}

/** @param {Readings} readings */
function listsOf({ own, other, right, label }) {
  const both = own.map((of, at) => [of, other[at]]);
  return {
    rows: both.map((pair) => pair.map((of) => top(of).map((id) => /** @type {[string, number]} */ ([label(id), probabilityOf(of, id)])))),
    right: both.map((pair, at) => pair.map((of) => placeOf(top(of), right[at]))),
  };
}

/** Where a token is in a list; null where it isn't. */
function placeOf(ids, id) {
  const at = ids.indexOf(id);
  return at < 0 ? null : at;
}
