// Computes attention from a recording: scores, weights, weighted averages of values, and outputs.
// Sums are in double precision. Matrices are flat, row by row: q (query, d), k and v (key, d), scores (query, key).
// Source: Vaswani et al. 2017, eq. 1 and §3.2.2.

/** q · k of every query with every key: (query, key). */
export function rawScores(q, k, d) {
  const queries = q.length / d;
  const keys = k.length / d;
  const scores = new Float64Array(queries * keys);
  for (let query = 0; query < queries; query++) {
    for (let key = 0; key < keys; key++) {
      let sum = 0;
      for (let at = 0; at < d; at++) sum += q[query * d + at] * k[key * d + at];
      scores[query * keys + key] = sum;
    }
  }
  return scores;
}

/** Whether a query may see a key: one that isn't after it, if the attention is causal, nor as far away as the window is wide. */
export function isVisible(query, key, causal, window = Infinity) {
  return causal ? key <= query && query - key < window : Math.abs(query - key) < window;
}

/** Scores whose keys can't be seen are −∞. */
export function maskedScores(scores, keys, causal, window = Infinity) {
  return scores.map((score, at) => (isVisible(Math.floor(at / keys), at % keys, causal, window) ? score : -Infinity));
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

/** The parts of one row's softmax: its largest score, the exponentials above it, and their sum. */
export function softmaxParts(row) {
  let maximum = -Infinity;
  for (let key = 0; key < row.length; key++) if (row[key] > maximum) maximum = row[key];
  const exponentials = new Float64Array(row.length); // 0 where hidden
  let sum = 0;
  for (let key = 0; key < row.length; key++) {
    if (row[key] === -Infinity) continue;
    exponentials[key] = Math.exp(row[key] - maximum);
    sum += exponentials[key];
  }
  return { maximum, exponentials, sum };
}

/** Softmax over the keys of every query. */
export function softmax(scores, keys) {
  const weights = new Float64Array(scores.length);
  for (let start = 0; start < scores.length; start += keys) {
    const { exponentials, sum } = softmaxParts(scores.subarray(start, start + keys));
    if (sum > 0) for (let key = 0; key < keys; key++) weights[start + key] = exponentials[key] / sum;
  }
  return weights;
}

/** The plain average over the visible keys. */
export function uniformWeights(queries, keys, causal) {
  const weights = new Float64Array(queries * keys);
  for (let query = 0; query < queries; query++) {
    const visible = causal ? Math.min(query + 1, keys) : keys;
    weights.fill(1 / visible, query * keys, query * keys + visible);
  }
  return weights;
}

/**
 * The steps of one head: raw, scaled, capped, biased and masked scores, and weights, (query, key) each; capped and biased where the
 * model has a cap or a bias.
 * without: what is left out, of "scale", "mask" and "positions"; a model that has them didn't compute the result. divisor: what the
 * model divides by; window: how far away a key is hidden; bias(query, key): what is added for where they are.
 */
export function attentionSteps({ q, k, d, causal, without = [], divisor: own = Math.sqrt(d), window = Infinity, cap = null, bias = null }) {
  const keys = k.length / d;
  const raw = rawScores(q, k, d);
  const divisor = without.includes("scale") ? 1 : own;
  const scaled = new Float64Array(raw.length);
  for (let at = 0; at < raw.length; at++) scaled[at] = raw[at] / divisor;
  const found = { raw, scaled };
  let scores = scaled;
  if (cap) scores = found.capped = scores.map((score) => capped(score, cap));
  if (bias) {
    const isLeftOut = without.includes("positions");
    scores = found.biased = scores.map((score, at) => (isLeftOut ? score : score + bias(Math.floor(at / keys), at % keys)));
  }
  const masked = without.includes("mask") ? scores.slice() : maskedScores(scores, keys, causal, window);
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

/** z · W_O of one head: (d_model). out: (d_model, d), as `nn.Linear` lays it out. */
export function project(z, out) {
  const d = z.length;
  const result = new Float64Array(out.length / d);
  for (let row = 0; row < result.length; row++) {
    let sum = 0;
    for (let at = 0; at < d; at++) sum += z[at] * out[row * d + at];
    result[row] = sum;
  }
  return result;
}

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
