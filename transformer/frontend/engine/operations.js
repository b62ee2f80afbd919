// What each operation of the table of equations means (`OPERATIONS` in transformer/model/equations.py), on whole tensors.
// Each fills `out`, the result of one equation; a row is what its last dimension holds, or what a norm goes over. Numbers
// are computed in double precision and kept in single, as the engine's are.

import { bucketOf, capped, isVisible } from "../arithmetic.js";
import { headWidth, isCausal, scoreDivisor, windowOf } from "../attention_config.js";
import { ACTIVATIONS, positionAngle } from "../inside/scalar_functions.js";

/** @typedef {import("./forward_pass.js").Step} Step */

/** By name; each takes the step of a pass that it computes. @type {Record<string, (step: Step) => void>} */
export const TENSOR_OPERATIONS = {
  "look up"({ out, read, ids, equation: { constants }, config, width }) {
    const table = read("table");
    const factor = constants.factor ?? (config.scale_embeddings ? Math.sqrt(config.d_model) : 1);
    ids().forEach((id, row) => {
      for (let at = 0; at < width; at++) out[row * width + at] = table[id * width + at] * factor;
    });
  },

  position({ out, start, width }) { // Vaswani et al. 2017, §3.5
    for (let cell = 0; cell < out.length; cell++) {
      const at = cell % width;
      const angle = positionAngle(start + Math.floor(cell / width), Math.floor(at / 2), width);
      out[cell] = at % 2 ? Math.cos(angle) : Math.sin(angle);
    }
  },

  add({ out, read }) {
    read("x", out);
  },

  spread({ out, read, config }) {
    const x = read("x");
    const width = x.length / out.length;
    for (let row = 0; row < out.length; row++) {
      const mean = meanOf(x, row * width, width);
      let squares = 0;
      for (let at = row * width; at < (row + 1) * width; at++) squares += (x[at] - mean) ** 2;
      out[row] = Math.sqrt(squares / width + config.layer_norm_eps);
    }
  },

  normalise({ out, read }) { // Ba et al. 2016, eq. 4
    const [x, spread, gain, shift] = ["x", "spread", "gain", "shift"].map((role) => read(role));
    const width = x.length / spread.length;
    for (let row = 0; row < spread.length; row++) {
      const mean = meanOf(x, row * width, width);
      for (let at = row * width; at < (row + 1) * width; at++) {
        const own = at % gain.length;
        out[at] = ((x[at] - mean) / spread[row]) * gain[own] + shift[own];
      }
    }
  },

  length({ out, read, config }) {
    const x = read("x");
    const width = x.length / out.length;
    for (let row = 0; row < out.length; row++) {
      let squares = 0;
      for (let at = row * width; at < (row + 1) * width; at++) squares += x[at] ** 2;
      out[row] = Math.sqrt(squares / width + config.layer_norm_eps);
    }
  },

  shorten({ out, read }) {
    const [x, spread, gain] = ["x", "spread", "gain"].map((role) => read(role));
    const width = x.length / spread.length;
    for (let at = 0; at < out.length; at++) out[at] = (x[at] / spread[Math.floor(at / width)]) * gain[at % gain.length];
  },

  multiply({ multiply }) {
    multiply();
  },

  clip({ out, multiply, equation: { constants: { limit } } }) {
    multiply();
    for (let at = 0; at < out.length; at++) out[at] = Math.max(-limit, Math.min(limit, out[at]));
  },

  rotate({ out, read, start, config, rows, equation: { constants } }) { // Su et al. 2021, eq. 34
    const { base, dims: turned, halves, factors = [], scale = 1 } = constants;
    const [x, width] = [read("x"), headWidth(config)];
    out.set(x);
    for (let pair = 0; pair < turned / 2; pair++) {
      const [first, second] = halves ? [pair, pair + turned / 2] : [2 * pair, 2 * pair + 1];
      const perPosition = positionAngle(1, pair, turned, base) / (factors[pair] ?? 1);
      for (let row = 0; row < rows; row++) {
        const angle = (start + row) * perPosition;
        const cos = scale * Math.cos(angle);
        const sin = scale * Math.sin(angle);
        const end = ((row + 1) * x.length) / rows;
        for (let head = (row * x.length) / rows; head < end; head += width) {
          const a = x[head + first];
          const b = x[head + second];
          out[head + first] = a * cos - b * sin;
          out[head + second] = a * sin + b * cos;
        }
      }
    }
  },

  divide({ out, read, config }) {
    const [x, divisor] = [read("x"), scoreDivisor(config)];
    for (let at = 0; at < out.length; at++) out[at] = x[at] / divisor;
  },

  cap({ out, read, equation: { constants: { cap } } }) {
    const x = read("x");
    for (let at = 0; at < out.length; at++) out[at] = capped(x[at], cap);
  },

  distance({ out, equation: { constants: { slopes } }, ...step }) { // Press et al. 2022, §3
    eachPair(step, (query, key, at, cells) => {
      for (let head = 0; head < slopes.length; head++) out[head * cells + at] = -slopes[head] * Math.abs(query - key);
    });
  },

  bucket({ out, read, equation: { constants }, ...step }) { // Raffel et al. 2020, §2.1
    const table = read("table");
    eachPair(step, (query, key, at, cells) => {
      const heads = out.length / cells;
      const row = bucketOf(query - key, /** @type {any} */ (constants)) * heads;
      for (let head = 0; head < heads; head++) out[head * cells + at] = table[row + head];
    });
  },

  see({ out, equation: { name }, config, ...step }) {
    const looksBack = isCausal(config) && !/^encoder\.|\.cross_attn\./.test(name);
    const window = windowOf(config, Number(/blocks\.(\d+)/.exec(name)[1]));
    eachPair(step, (query, key, at) => {
      out[at] = Number(isVisible(query, key, looksBack, window) && step.keyIds[key] !== config.pad_token_id);
    });
  },

  hide({ out, read }) {
    const [x, mask] = [read("x"), read("mask")];
    for (let at = 0; at < out.length; at++) out[at] = mask[at % mask.length] ? x[at] : -Infinity;
  },

  softmax({ out, read, width }) {
    const x = read("x");
    for (let start = 0; start < out.length; start += width) {
      let largest = -Infinity;
      for (let at = start; at < start + width; at++) if (x[at] > largest) largest = x[at];
      let sum = 0;
      for (let at = start; at < start + width; at++) {
        const exponential = x[at] === -Infinity ? 0 : Math.exp(x[at] - largest); // e⁻∞ = 0, but takes as long as any other
        out[at] = exponential;
        sum += exponential;
      }
      if (sum === 0) continue; // a query that sees nothing gives every key the weight 0
      for (let at = start; at < start + width; at++) out[at] /= sum;
    }
  },

  average({ out, read, width }) {
    const mask = read("x");
    for (let start = 0; start < out.length; start += width) {
      const row = start % mask.length;
      let seen = 0;
      for (let key = 0; key < width; key++) seen += mask[row + key];
      for (let key = 0; key < width; key++) out[start + key] = mask[row + key] / Math.max(seen, 1);
    }
  },

  activate({ out, read, config }) {
    const [x, activation] = [read("x"), ACTIVATIONS[config.activation]];
    for (let at = 0; at < out.length; at++) out[at] = activation(x[at]);
  },

  gate({ out, read, config }) {
    const [x, factor, activation] = [read("x"), read("factor"), ACTIVATIONS[config.activation]];
    for (let at = 0; at < out.length; at++) out[at] = activation(x[at]) * factor[at];
  },
};

function meanOf(x, start, width) {
  let sum = 0;
  for (let at = start; at < start + width; at++) sum += x[at];
  return sum / width;
}

/** Calls `put(query, key, at, cells)` of every pair of positions: the query's in the text, and which of a head's cells it is. */
function eachPair({ start, rows, keyIds }, put) {
  const keys = keyIds.length;
  for (let row = 0; row < rows; row++) {
    for (let key = 0; key < keys; key++) put(start + row, key, row * keys + key, rows * keys);
  }
}
