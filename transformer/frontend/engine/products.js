// Sums of products, whatever their dimensions are called: queries times keys, weights times values, rows times matrices.
// All are out[batch, row, column] = Σ x[batch, row, k] · w[batch, column, k]: a dimension that both read is a batch's, one
// that x alone has is the rows', one that w alone has the columns'. Sums are in double precision.

/** @import { Floats } from "./model.js" */
/**
 * @typedef {{ name: string, size: number, stride: number }} Axis one that is summed over is called "Σ …"
 * @typedef {{ size: number, x: number, w: number, bias: number, out: number }} Loop how far apart its places are in each tensor
 *
 * @typedef {object} Loops the way through four tensors of some shapes
 * @property {Loop[]} batch
 * @property {Loop} rows
 * @property {Loop} columns
 * @property {Loop} sums
 */

const ONCE = { size: 1, x: 0, w: 0, bias: 0, out: 0 };

/**
 * How sums of products go through tensors of these axes; an axis that a tensor lacks doesn't move it.
 *
 * @param {{ x: Axis[], w: Axis[], bias: Axis[], out: Axis[] }} axes
 * @returns {Loops}
 */
export function loopsOf(axes) {
  const { x, w, out } = axes;
  const [inX, inW] = [x, w].map((of) => new Set(of.map(({ name }) => name)));
  const strideOf = (of, name) => axes[of].find((axis) => axis.name === name)?.stride ?? 0;
  const along = (chosen) => joined(chosen.map(({ name, size }) => (
    { size, x: strideOf("x", name), w: strideOf("w", name), bias: strideOf("bias", name), out: strideOf("out", name) })));
  const rows = along(out.filter(({ name }) => !inW.has(name)));
  const columns = along(out.filter(({ name }) => !inX.has(name)));
  const sums = along(x.filter(({ name }) => name.startsWith("Σ")));
  if (sums.length > 1) throw new Error("What a sum goes over must lie evenly in both tensors.");
  const batch = along(out.filter(({ name }) => inX.has(name) && inW.has(name)));
  const [innerRows, innerColumns] = [rows.pop() ?? ONCE, columns.pop() ?? ONCE];
  return { batch: [...batch, ...rows, ...columns], rows: innerRows, columns: innerColumns, sums: sums[0] ?? ONCE };
}

/** Loops within one another as fewer: two are one where the inner one ends at the outer one's next place, in every tensor. @param {Loop[]} loops */
function joined(loops) {
  const found = [];
  for (const inner of loops.filter(({ size }) => size > 1)) {
    const outer = found.at(-1);
    const isOne = outer && ["x", "w", "bias", "out"].every((of) => outer[of] === inner.size * inner[of]);
    if (isOne) found[found.length - 1] = { ...inner, size: outer.size * inner.size };
    else found.push(inner);
  }
  return found;
}

/**
 * Fills `out` with the sums of products, plus the biases.
 *
 * @param {Loops} loops
 * @param {{ x: Floats, w: Floats, bias: Floats | null, out: Floats }} tensors
 * @param {import("./simd.js").Simd | null} [simd] what multiplies faster, in single precision, with some of the numbers
 */
export function sumProducts(loops, tensors, simd = null) {
  const byFours = simd?.fits(loops, tensors) ? simd : null;
  each(loops.batch, 0, { x: 0, w: 0, bias: 0, out: 0 }, (start) => {
    if (byFours) eachRow(loops, start, (at) => multiplyRow(loops, tensors, at, byFours.multiplyRow(loops, tensors, at)));
    else multiply(loops, tensors, start);
  });
}

/** Calls `act` with where every row is. */
function eachRow({ rows }, start, act) {
  for (let row = 0; row < rows.size; row++) act({ ...start, x: start.x + row * rows.x, out: start.out + row * rows.out });
}

/** Calls `act` with every place of loops within one another. @param {Loop[]} loops @param {number} depth */
function each(loops, depth, start, act) {
  if (depth === loops.length) {
    act(start);
    return;
  }
  const { size, x, w, bias, out } = loops[depth];
  for (let at = 0; at < size; at++) {
    each(loops, depth + 1, { x: start.x + at * x, w: start.w + at * w, bias: start.bias + at * bias, out: start.out + at * out }, act);
  }
}

/**
 * Every row of x times every column of w. Four rows and two columns at once, or one row and four columns, so that each number
 * that is fetched takes part in several products; what is left over, one by one.
 */
function multiply({ rows, columns, sums }, { x, w, bias, out }, start) {
  const wholeRows = rows.size - (rows.size % 4);
  const wholeColumns = wholeRows ? columns.size - (columns.size % 2) : 0;
  const [length, xStep, wStep] = [sums.size, sums.x, sums.w];
  const [second, third, fourth] = [rows.x, 2 * rows.x, 3 * rows.x];
  const nextColumn = columns.w;
  for (let column = 0; column < wholeColumns; column += 2) {
    const w0 = start.w + column * columns.w;
    const bias0 = bias ? bias[start.bias + column * columns.bias] : 0;
    const bias1 = bias ? bias[start.bias + (column + 1) * columns.bias] : 0;
    for (let row = 0; row < wholeRows; row += 4) {
      let s0 = bias0, s1 = bias0, s2 = bias0, s3 = bias0; // the sums of the first column
      let t0 = bias1, t1 = bias1, t2 = bias1, t3 = bias1; // and of the second
      let inX = start.x + row * rows.x;
      let inW = w0;
      for (let k = 0; k < length; k++) {
        const a = w[inW];
        const b = w[inW + nextColumn];
        const c0 = x[inX];
        const c1 = x[inX + second];
        const c2 = x[inX + third];
        const c3 = x[inX + fourth];
        s0 += c0 * a;
        s1 += c1 * a;
        s2 += c2 * a;
        s3 += c3 * a;
        t0 += c0 * b;
        t1 += c1 * b;
        t2 += c2 * b;
        t3 += c3 * b;
        inX += xStep;
        inW += wStep;
      }
      const to = start.out + row * rows.out + column * columns.out;
      putColumn(out, to, rows.out, s0, s1, s2, s3);
      putColumn(out, to + columns.out, rows.out, t0, t1, t2, t3);
    }
  }
  for (let row = 0; row < rows.size; row++) {
    multiplyRow({ columns, sums }, { x, w, bias, out }, { ...start, x: start.x + row * rows.x, out: start.out + row * rows.out }, row < wholeRows ? wholeColumns : 0);
  }
}

/** One row of x times the columns of w from `first` on, eight at once. */
function multiplyRow({ columns, sums }, { x, w, bias, out }, start, first) {
  const [length, xStep, wStep, step] = [sums.size, sums.x, sums.w, columns.w];
  const biasOf = (column) => (bias ? bias[start.bias + column * columns.bias] : 0);
  let column = first;
  for (; column + 8 <= columns.size; column += 8) {
    let s0 = biasOf(column), s1 = biasOf(column + 1), s2 = biasOf(column + 2), s3 = biasOf(column + 3);
    let s4 = biasOf(column + 4), s5 = biasOf(column + 5), s6 = biasOf(column + 6), s7 = biasOf(column + 7);
    let inX = start.x;
    let inW = start.w + column * step;
    for (let k = 0; k < length; k++) {
      const a = x[inX];
      s0 += a * w[inW];
      s1 += a * w[inW + step];
      s2 += a * w[inW + 2 * step];
      s3 += a * w[inW + 3 * step];
      s4 += a * w[inW + 4 * step];
      s5 += a * w[inW + 5 * step];
      s6 += a * w[inW + 6 * step];
      s7 += a * w[inW + 7 * step];
      inX += xStep;
      inW += wStep;
    }
    const to = start.out + column * columns.out;
    putColumn(out, to, columns.out, s0, s1, s2, s3);
    putColumn(out, to + 4 * columns.out, columns.out, s4, s5, s6, s7);
  }
  for (; column < columns.size; column++) {
    let sum = biasOf(column);
    for (let k = 0; k < length; k++) sum += x[start.x + k * xStep] * w[start.w + column * step + k * wStep];
    out[start.out + column * columns.out] = sum;
  }
}

function putColumn(out, to, step, s0, s1, s2, s3) {
  out[to] = s0;
  out[to + step] = s1;
  out[to + 2 * step] = s2;
  out[to + 3 * step] = s3;
}
