// Says by how much numbers that a browser computes differ from the engine's, measured on a sample.

import { largestAbsolute, largestDifference } from "./arithmetic.js";
import { plainNumber } from "./number_format.js";
/** @import { Recording } from "./recording.js" */

/** By how much tensors differ at most, in parts of each one's largest number. @param {Recording} found @param {Recording} expected */
export function deviationOf({ tensors }, expected) {
  return Math.max(...Object.entries(expected.tensors).map(([name, { data }]) => largestDifference(tensors[name].data, data) / (largestAbsolute(data) || 1)));
}

/** The same in words. @param {number} deviation @param {number} tokens of the sample */
export function deviationInWords(deviation, tokens) {
  return `Its numbers differ from the engine's by at most ${plainNumber(deviation, 2)} of the largest (measured here, on ${tokens} tokens).`;
}
