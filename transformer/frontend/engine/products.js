// Sums of products, whatever their dimensions are called: queries times keys, weights times values, rows times matrices.
// All are out[batch, row, column] = Σ x[batch, row, k] · w[batch, column, k]: a dimension that both read is a batch's, one
// that x alone has is the rows', one that w alone has the columns'. Sums are in double precision.

/** @import { Floats } from "./model.js" */
/**
 * @typedef {{ name: string, size: number, stride: number }} Axis
 * @typedef {{ data: Floats, axes: Axis[] }} Factor its sums' axes are called "Σ …"
 * @typedef {{ data: Floats, lines: Int32Array }} Lines where each begins in the data
 * @typedef {{ data: Floats, start: number, rows: Int32Array, columns: Int32Array }} Cells where each row and column is
 */

/**
 * Fills `out` with the sums of products, plus the biases.
 *
 * @param {{ x: Factor, w: Factor, bias: Factor | null, out: Factor }} factors
 */
export function sumProducts({ x, w, bias, out }) {
  const inX = new Set(x.axes.map(({ name }) => name));
  const inW = new Set(w.axes.map(({ name }) => name));
  const batch = out.axes.filter(({ name }) => inX.has(name) && inW.has(name));
  const rows = out.axes.filter(({ name }) => !inW.has(name));
  const columns = out.axes.filter(({ name }) => !inX.has(name));
  const sums = x.axes.filter(({ name }) => name.startsWith("Σ"));
  const [places, ofRows, ofColumns] = [batch, rows, columns].map((axes) => offsets(out, axes));
  const biases = new Float64Array(ofColumns.length);
  if (bias) offsets(bias, columns).forEach((at, column) => (biases[column] = bias.data[at]));
  const length = sums.reduce((all, { size }) => all * size, 1);
  const [linesOfX, linesOfW] = [lines(x, batch, rows, sums), lines(w, batch, columns, sums)];
  places.forEach((start, at) => {
    multiply(linesOfX[at], linesOfW[at], length, biases, { data: out.data, start, rows: ofRows, columns: ofColumns });
  });
}

/** Where each place along some axes is in a tensor, in row-major order over them. An axis that it lacks doesn't move it. */
function offsets({ axes: own }, axes) {
  let found = Int32Array.of(0);
  for (const { name, size } of axes) {
    const stride = own.find((axis) => axis.name === name)?.stride ?? 0;
    const next = new Int32Array(found.length * size);
    for (let before = 0; before < found.length; before++) {
      for (let at = 0; at < size; at++) next[before * size + at] = found[before] + at * stride;
    }
    found = next;
  }
  return found;
}

/**
 * A factor's lines for each place in the batch, the numbers of a line next to one another: in the tensor itself, where it has
 * them so, else in a copy.
 *
 * @returns {Lines[]}
 */
function lines(factor, batch, across, sums) {
  const [places, starts, along] = [batch, across, sums].map((axes) => offsets(factor, axes));
  const isWhole = along.at(-1) === along.length - 1;
  return Array.from(places, (place) => {
    const own = place ? starts.map((start) => place + start) : starts;
    if (isWhole) return { data: factor.data, lines: own };
    const data = new Float32Array(own.length * along.length);
    for (let line = 0; line < own.length; line++) {
      for (let k = 0; k < along.length; k++) data[line * along.length + k] = factor.data[own[line] + along[k]];
    }
    return { data, lines: own.map((_, line) => line * along.length) };
  });
}

/**
 * Every line of x times every line of w. Four rows and two columns at once, or one row and four columns, so that each number
 * that is fetched takes part in several products; what is left over, one by one.
 *
 * @param {Lines} x
 * @param {Lines} w
 * @param {number} length of a line
 * @param {Float64Array} biases one a column
 * @param {Cells} out
 */
function multiply({ data: x, lines: rows }, { data: w, lines: columns }, length, biases, out) {
  const wholeRows = rows.length - (rows.length % 4);
  const wholeColumns = wholeRows ? columns.length - (columns.length % 2) : 0;
  for (let column = 0; column < wholeColumns; column += 2) {
    const w0 = columns[column];
    const w1 = columns[column + 1];
    for (let row = 0; row < wholeRows; row += 4) {
      const x0 = rows[row];
      const x1 = rows[row + 1];
      const x2 = rows[row + 2];
      const x3 = rows[row + 3];
      let s0 = 0, s1 = 0, s2 = 0, s3 = 0; // the sums of the first column
      let t0 = 0, t1 = 0, t2 = 0, t3 = 0; // and of the second
      for (let k = 0; k < length; k++) {
        const a = w[w0 + k];
        const b = w[w1 + k];
        const c0 = x[x0 + k];
        const c1 = x[x1 + k];
        const c2 = x[x2 + k];
        const c3 = x[x3 + k];
        s0 += c0 * a;
        s1 += c1 * a;
        s2 += c2 * a;
        s3 += c3 * a;
        t0 += c0 * b;
        t1 += c1 * b;
        t2 += c2 * b;
        t3 += c3 * b;
      }
      putColumn(out, row, column, biases[column], s0, s1, s2, s3);
      putColumn(out, row, column + 1, biases[column + 1], t0, t1, t2, t3);
    }
  }
  for (let row = 0; row < wholeRows; row++) multiplyRow(x, rows, row, w, columns, wholeColumns, length, biases, out);
  for (let row = wholeRows; row < rows.length; row++) multiplyRow(x, rows, row, w, columns, 0, length, biases, out);
}

/** One line of x times the lines of w from `first` on. */
function multiplyRow(x, rows, row, w, columns, first, length, biases, out) {
  const x0 = rows[row];
  let column = first;
  for (; column + 4 <= columns.length; column += 4) {
    const w0 = columns[column];
    const w1 = columns[column + 1];
    const w2 = columns[column + 2];
    const w3 = columns[column + 3];
    let s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    for (let k = 0; k < length; k++) {
      const a = x[x0 + k];
      s0 += a * w[w0 + k];
      s1 += a * w[w1 + k];
      s2 += a * w[w2 + k];
      s3 += a * w[w3 + k];
    }
    const to = out.start + out.rows[row];
    out.data[to + out.columns[column]] = s0 + biases[column];
    out.data[to + out.columns[column + 1]] = s1 + biases[column + 1];
    out.data[to + out.columns[column + 2]] = s2 + biases[column + 2];
    out.data[to + out.columns[column + 3]] = s3 + biases[column + 3];
  }
  for (; column < columns.length; column++) {
    let sum = 0;
    for (let k = 0; k < length; k++) sum += x[x0 + k] * w[columns[column] + k];
    out.data[out.start + out.rows[row] + out.columns[column]] = sum + biases[column];
  }
}

function putColumn({ data, start, rows, columns }, row, column, bias, s0, s1, s2, s3) {
  const to = start + columns[column];
  data[to + rows[row]] = s0 + bias;
  data[to + rows[row + 1]] = s1 + bias;
  data[to + rows[row + 2]] = s2 + bias;
  data[to + rows[row + 3]] = s3 + bias;
}
