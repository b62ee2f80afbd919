// The table of sines and cosines that gives every position a row of its own (Vaswani et al. 2017, §3.5).

/**
 * Even columns sines, odd ones cosines of the same angle: (length, width), row after row.
 *
 * @param {number} length
 * @param {number} width even
 * @param {number} base
 * @param {number[]} [factors] how many times slower each pair of columns turns; none for 1
 */
export function sinusoidalTable(length, width, base, factors = []) {
  const table = new Float32Array(length * width);
  for (let position = 0; position < length; position++) {
    for (let column = 0; column < width; column++) {
      const angle = angleOf(position, column, width, base) / (factors[Math.floor(column / 2)] ?? 1);
      table[position * width + column] = column % 2 ? Math.cos(angle) : Math.sin(angle);
    }
  }
  return table;
}

/** In radians. @param {number} position @param {number} column @param {number} width @param {number} base */
export const angleOf = (position, column, width, base) => position / base ** ((column - (column % 2)) / width);

/** The cosine of the angle between two rows. @param {Float32Array} table @param {number} width @param {number} one @param {number} other */
export function likenessOf(table, width, one, other) {
  const product = (a, b) => table.subarray(a * width, (a + 1) * width).reduce((sum, value, at) => sum + value * table[b * width + at], 0);
  return product(one, other) / Math.sqrt(product(one, one) * product(other, other));
}
