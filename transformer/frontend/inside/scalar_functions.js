// Computes the functions of one number that a pass uses (activations, angles of positions), in double precision.

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
