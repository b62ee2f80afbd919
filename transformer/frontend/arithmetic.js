// The arithmetic of a forward pass, as pure functions of numbers and flat arrays: the engine in the browser, the pages, and
// the explanation of a cell compute with these. Sums are in double precision. Matrices lie row by row: q (query, d), k and
// v (key, d), scores and masks (query, key). An `out` is filled and returned.
// Sources: Vaswani et al. 2017, eq. 1 and §3; Ba et al. 2016, eq. 4; Su et al. 2021, eq. 34; Raffel et al. 2020, §2.1.

/** @typedef {Float32Array | Float64Array} Floats */
/** @typedef {{ base?: number, dims?: number, halves?: boolean, factors?: number[], scale?: number, [constant: string]: any }} Rotation as the equation of a rotation has it */

// Sums

/** The dot product of every row of x with every row of w, plus the bias of w's row: (row of x, row of w). width: of a row. */
export function dotProducts(x, w, width, bias = null) {
  const [rows, columns] = [x.length / width, w.length / width];
  const products = new Float64Array(rows * columns);
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      let sum = bias ? bias[column] : 0;
      for (let at = 0; at < width; at++) sum += x[row * width + at] * w[column * width + at];
      products[row * columns + column] = sum;
    }
  }
  return products;
}

export function sumOf(values) {
  let sum = 0;
  for (let at = 0; at < values.length; at++) sum += values[at];
  return sum;
}

// Softmax

/** exp(score − the largest) of the scores from `start` to `end`, in `out`: { maximum, sum }. A row of which all is hidden sums to 0. */
export function exponentiate(scores, out, start = 0, end = scores.length) {
  let maximum = -Infinity;
  for (let at = start; at < end; at++) if (scores[at] > maximum) maximum = scores[at];
  let sum = 0;
  for (let at = start; at < end; at++) {
    const exponential = scores[at] === -Infinity ? 0 : Math.exp(scores[at] - maximum); // e⁻∞ = 0, but takes as long as any other
    out[at] = exponential;
    sum += exponential;
  }
  return { maximum, sum };
}

/** Softmax of each row of so many scores; a row of which all is hidden gives every key the weight 0. @param {Floats} scores @param {number} width @param {Floats} out */
export function softmax(scores, width, out = new Float64Array(scores.length)) {
  for (let start = 0; start < out.length; start += width) {
    const { sum } = exponentiate(scores, out, start, start + width);
    if (sum > 0) for (let at = start; at < start + width; at++) out[at] /= sum;
  }
  return out;
}

/** The logarithm of the sum of all exponentials. */
export function logSumExp(logits) {
  const { maximum, sum } = exponentiate(logits, new Float64Array(logits.length));
  return maximum + Math.log(sum);
}

// Masks and position biases

/** Whether a query may see a key: one that isn't after it, if the attention is causal, nor as far away as the window is wide. */
export function isVisible(query, key, causal, window = Infinity) {
  return causal ? key <= query && query - key < window : Math.abs(query - key) < window;
}

/** Which keys each query may see, 0 or 1: (query, key). */
export function visibleMask(queries, keys, causal, window = Infinity) {
  const mask = new Uint8Array(queries * keys);
  for (let query = 0; query < queries; query++) {
    for (let key = 0; key < keys; key++) mask[query * keys + key] = Number(isVisible(query, key, causal, window));
  }
  return mask;
}

/** Scores, those that the mask hides −∞; heads share a mask. @param {Floats} scores @param {ArrayLike<number>} mask @param {Floats} out */
export function hide(scores, mask, out = new Float64Array(scores.length)) {
  for (let at = 0; at < out.length; at++) out[at] = mask[at % mask.length] ? scores[at] : -Infinity;
  return out;
}

/** The plain average: every key that a query may see gets the same weight. @param {ArrayLike<number>} mask @param {number} keys @param {Floats} out */
export function averageWeights(mask, keys, out = new Float64Array(mask.length)) {
  for (let start = 0; start < out.length; start += keys) {
    const row = start % mask.length;
    let seen = 0;
    for (let key = 0; key < keys; key++) seen += mask[row + key];
    for (let key = 0; key < keys; key++) out[start + key] = mask[row + key] / Math.max(seen, 1);
  }
  return out;
}

/** A number that never leaves ± cap. */
export const capped = (value, cap) => cap * Math.tanh(value / cap);

/** The kind of distance of a key so many positions before its query (Raffel et al. 2020, T5, §2.1); as relative_buckets in positions.py. */
export function bucketOf(before, { buckets, distance, causal }) {
  const kinds = causal ? buckets : buckets / 2;
  const first = !causal && before < 0 ? kinds : 0;
  const away = causal ? Math.max(before, 0) : Math.abs(before);
  const exact = Math.floor(kinds / 2);
  if (away < exact) return first + away;
  const share = Math.fround(Math.fround(Math.log(away / exact)) / Math.fround(Math.log(distance / exact))); // as float32 has it
  return first + Math.min(kinds - 1, exact + Math.floor(share * (kinds - exact)));
}

// Attention

/**
 * The steps of one head: raw, scaled, capped, biased and masked scores, and weights, (query, key) each; capped and biased where the
 * model has a cap or a bias.
 * without: what is left out, of "scale", "mask" and "positions"; a model that has them didn't compute the result. divisor: what the
 * model divides by; window: how far away a key is hidden; bias(query, key): what is added for where they are.
 */
export function attentionSteps({ q, k, d, causal, without = [], divisor = Math.sqrt(d), window = Infinity, cap = null, bias = null }) {
  const keys = k.length / d;
  const raw = dotProducts(q, k, d);
  const scaled = without.includes("scale") ? raw : raw.map((score) => score / divisor);
  const found = { raw, scaled };
  let scores = scaled;
  if (cap) scores = found.capped = scores.map((score) => capped(score, cap));
  if (bias) {
    const isLeftOut = without.includes("positions");
    scores = found.biased = scores.map((score, at) => (isLeftOut ? score : score + bias(Math.floor(at / keys), at % keys)));
  }
  const masked = without.includes("mask") ? scores.slice() : hide(scores, visibleMask(q.length / d, keys, causal, window));
  return { ...found, masked, weights: softmax(masked, keys) };
}

/** weight × v for every key, (key, d), and their sum z, (d). */
export function weightedValues(weights, v, d) {
  const products = new Float64Array(v.length);
  const z = new Float64Array(d);
  for (let key = 0; key < weights.length; key++) {
    for (let at = 0; at < d; at++) {
      const product = weights[key] * v[key * d + at];
      products[key * d + at] = product;
      z[at] += product;
    }
  }
  return { products, z };
}

// Norms

/** The mean of a row and its variance, the mean of the squared distances from it; { mean: 0 } for a norm that doesn't centre. */
export function momentsOf(row, isCentred = true) {
  const mean = isCentred ? sumOf(row) / row.length : 0;
  let squares = 0;
  for (let at = 0; at < row.length; at++) squares += (row[at] - mean) ** 2;
  return { mean, variance: squares / row.length };
}

// Functions of one number

const ONE_OVER_ODD = Float64Array.from({ length: 256 }, (_, n) => 1 / (2 * n + 1)); // a division takes as long as ten products

/** The error function, by its series of positive terms (Abramowitz and Stegun 7.1.6). */
export function erf(x) {
  const size = Math.abs(x);
  if (size > 6) return Math.sign(x); // nearer to 1 than double precision can tell
  let term = size;
  let sum = size;
  const factor = 2 * size * size;
  for (let n = 1; term > 1e-17 * sum; n++) {
    term *= factor * ONE_OVER_ODD[n];
    sum += term;
  }
  return Math.sign(x) * Math.min((2 / Math.sqrt(Math.PI)) * Math.exp(-size * size) * sum, 1);
}

/** Φ(x), the share of a standard normal distribution below x. */
export function normalShare(x) {
  return (1 + erf(x / Math.SQRT2)) / 2;
}

/** By their names in a configuration. */
export const ACTIVATIONS = {
  relu: (x) => Math.max(0, x),
  gelu: (x) => x * normalShare(x),
  silu: (x) => x / (1 + Math.exp(-x)),
  gelu_tanh: (x) => (x / 2) * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3))),
};

/** The angle in radians of a position for a pair of dimensions, counted from 0 (Vaswani et al. 2017, §3.5). */
export function positionAngle(position, pair, width, base = 10000) {
  return position / base ** ((2 * pair) / width);
}

// Rotary positions

/** The two dimensions that rotary positions turn together. halves: the first half of the dimensions goes with the second. @param {number} pair @param {Rotation} rotation */
export function rotaryPair(pair, { dims, halves }) {
  return halves ? [pair, pair + dims / 2] : [2 * pair, 2 * pair + 1];
}

/** The angle by which a position turns a pair of dimensions. @param {number} position @param {number} pair @param {Rotation} rotation */
export function rotaryAngle(position, pair, { base, dims, factors = [] }) {
  return positionAngle(position, pair, dims, base) / (factors[pair] ?? 1);
}

/** Turn the pair of numbers at two places of a vector, in place. */
export function rotatePair(vector, first, second, cos, sin) {
  const a = vector[first];
  const b = vector[second];
  vector[first] = a * cos - b * sin;
  vector[second] = a * sin + b * cos;
}

// Comparisons

/** The largest difference between two arrays; equal infinities don't differ. */
export function largestDifference(computed, expected) {
  let largest = 0;
  for (let at = 0; at < computed.length; at++) {
    if (computed[at] !== expected[at]) largest = Math.max(largest, Math.abs(computed[at] - expected[at]));
  }
  return largest;
}

/** The largest absolute value among the finite ones; 0 if there is none. */
export function largestAbsolute(values) {
  let largest = 0;
  for (let at = 0; at < values.length; at++) {
    const size = Math.abs(values[at]);
    if (size > largest && size !== Infinity) largest = size;
  }
  return largest;
}

/** The Euclidean length of a vector. */
export function norm(vector) {
  return Math.sqrt(vector.reduce((sum, value) => sum + value * value, 0));
}
