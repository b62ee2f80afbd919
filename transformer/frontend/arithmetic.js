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

/** Scores whose keys after the query, or further before it than a window reaches, are −∞, if the attention is causal. */
export function maskedScores(scores, keys, causal, window = Infinity) {
  const masked = scores.slice();
  if (!causal) return masked;
  for (let query = 0; query * keys < scores.length; query++) {
    masked.fill(-Infinity, query * keys + query + 1, (query + 1) * keys);
    if (query >= window) masked.fill(-Infinity, query * keys, query * keys + query - window + 1);
  }
  return masked;
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
 * The four steps of one head: raw, scaled, masked scores and weights, (query, key) each.
 * without: what is left out, of "scale" and "mask"; a model that has both didn't compute the result. divisor: what the model
 * divides by; window: how many keys a query sees at most, its own the last of them.
 */
export function fourSteps({ q, k, d, causal, without = [], divisor: own = Math.sqrt(d), window = Infinity }) {
  const keys = k.length / d;
  const raw = rawScores(q, k, d);
  const divisor = without.includes("scale") ? 1 : own;
  const scaled = new Float64Array(raw.length);
  for (let at = 0; at < raw.length; at++) scaled[at] = raw[at] / divisor;
  const masked = maskedScores(scaled, keys, causal && !without.includes("mask"), window);
  return { raw, scaled, masked, weights: softmax(masked, keys) };
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
export function largestDifference(found, expected) {
  let largest = 0;
  for (let at = 0; at < found.length; at++) {
    if (found[at] !== expected[at]) largest = Math.max(largest, Math.abs(found[at] - expected[at]));
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
