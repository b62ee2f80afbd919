// The numbers of a circuit, without a page: the product of its two factors, for rotary positions at a distance.

import { positionAngle } from "./functions.js";

/** left · rightᵀ, row-major. left, right: rows of `width` numbers. */
export function product(left, right, width) {
  const [rows, columns] = [left.length / width, right.length / width];
  const found = new Float64Array(rows * columns);
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      let sum = 0;
      for (let at = 0; at < width; at++) sum += left[row * width + at] * right[column * width + at];
      found[row * columns + column] = sum;
    }
  }
  return found;
}

/** Queries as rotary positions turn them where they stand this far behind their keys: each pair by its angle. */
export function turned(rows, width, distance) {
  const found = new Float64Array(rows.length);
  for (let pair = 0; pair < width / 2; pair++) {
    const angle = positionAngle(distance, pair, width);
    const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
    for (let at = 2 * pair; at < rows.length; at += width) {
      found[at] = rows[at] * cos - rows[at + 1] * sin;
      found[at + 1] = rows[at] * sin + rows[at + 1] * cos;
    }
  }
  return found;
}

/** Where the largest and the smallest numbers are, at most `count` of each, the most extreme first. */
export function strongestPairs(values, count) {
  const order = Uint32Array.from(values.keys()).sort((one, other) => values[other] - values[one]);
  const few = Math.min(count, values.length);
  return { most: [...order.subarray(0, few)], least: [...order.subarray(order.length - few)].reverse() };
}
