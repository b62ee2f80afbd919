// Computes a circuit's matrix: the product of its two factors, at a distance for rotary positions.

import { positionAngle } from "./scalar_functions.js";

/** left · rightᵀ, row-major. left, right: rows of `width` numbers. */
export function product(left, right, width) {
  const [rows, columns] = [left.length / width, right.length / width];
  const product = new Float64Array(rows * columns);
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      let sum = 0;
      for (let at = 0; at < width; at++) sum += left[row * width + at] * right[column * width + at];
      product[row * columns + column] = sum;
    }
  }
  return product;
}

/**
 * Queries as rotary positions turn them where they stand this far behind their keys: each pair by its angle.
 *
 * @param {ArrayLike<number>} rows
 * @param {number} width
 * @param {number} distance
 * @param {{ base: number, dims: number, halves: boolean, factors?: number[] }} rotation as the equation of rotated queries has it
 */
export function turned(rows, width, distance, { base, dims, halves, factors = [] }) {
  const turned = Float64Array.from(rows);
  for (let pair = 0; pair < dims / 2; pair++) {
    const angle = positionAngle(distance, pair, dims, base) / (factors[pair] ?? 1);
    const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
    const [first, second] = halves ? [pair, pair + dims / 2] : [2 * pair, 2 * pair + 1];
    for (let row = 0; row < rows.length; row += width) {
      const [a, b] = [rows[row + first], rows[row + second]];
      turned[row + first] = a * cos - b * sin;
      turned[row + second] = a * sin + b * cos;
    }
  }
  return turned;
}

/** Where the largest and the smallest numbers are, at most `count` of each, the most extreme first. */
export function strongestPairs(values, count) {
  const order = Uint32Array.from(values.keys()).sort((one, other) => values[other] - values[one]);
  const few = Math.min(count, values.length);
  return { most: [...order.subarray(0, few)], least: [...order.subarray(order.length - few)].reverse() };
}
