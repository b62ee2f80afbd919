// Turns the queries of a circuit for a distance, where positions are rotary, and finds its strongest pairs of tokens.

import { rotaryAngle, rotaryPair, rotatePair } from "../arithmetic.js";

/**
 * Queries as rotary positions turn them where they stand this far behind their keys: each pair by its angle.
 *
 * @param {ArrayLike<number>} rows
 * @param {number} width
 * @param {number} distance
 * @param {{ base: number, dims: number, halves: boolean, factors?: number[] }} rotation as the equation of rotated queries has it
 */
export function turned(rows, width, distance, rotation) {
  const turned = Float64Array.from(rows);
  for (let pair = 0; pair < rotation.dims / 2; pair++) {
    const angle = rotaryAngle(distance, pair, rotation);
    const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
    const [first, second] = rotaryPair(pair, rotation);
    for (let row = 0; row < rows.length; row += width) rotatePair(turned, row + first, row + second, cos, sin);
  }
  return turned;
}

/** Where the largest and the smallest numbers are, at most `count` of each, the most extreme first. */
export function strongestPairs(values, count) {
  const order = Uint32Array.from(values.keys()).sort((one, other) => values[other] - values[one]);
  const few = Math.min(count, values.length);
  return { most: [...order.subarray(0, few)], least: [...order.subarray(order.length - few)].reverse() };
}
