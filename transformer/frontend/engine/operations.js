// What each operation of the table of equations means (`OPERATIONS` in transformer/model/equations.py), on whole tensors.
// Each fills `out`, the result of one equation; a row is what its last dimension holds, or what a norm goes over. Numbers
// are computed in double precision and kept in single, as the engine's are.

import { ACTIVATIONS, averageWeights, bucketOf, capped, hide, isVisible, momentsOf, positionAngle, rotaryAngle, rotaryPair, rotatePair, softmax } from "../arithmetic.js";
import { headWidth, isCausal, scoreDivisor, windowOf } from "../attention_config.js";

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

  spread(step) {
    spreads(step, true);
  },

  normalise(step) { // Ba et al. 2016, eq. 4
    normalise(step, true, step.read("shift"));
  },

  length(step) { // Zhang and Sennrich 2019, eq. 4
    spreads(step, false);
  },

  shorten(step) {
    normalise(step, false);
  },

  multiply({ multiply }) {
    multiply();
  },

  clip({ out, multiply, equation: { constants: { limit } } }) {
    multiply();
    for (let at = 0; at < out.length; at++) out[at] = Math.max(-limit, Math.min(limit, out[at]));
  },

  rotate({ out, read, start, config, rows, equation: { constants } }) { // Su et al. 2021, eq. 34
    const { dims, scale = 1 } = constants;
    const [x, width] = [read("x"), headWidth(config)];
    out.set(x);
    for (let pair = 0; pair < dims / 2; pair++) {
      const [first, second] = rotaryPair(pair, constants);
      const perPosition = rotaryAngle(1, pair, constants);
      for (let row = 0; row < rows; row++) {
        const angle = (start + row) * perPosition;
        const [cos, sin] = [scale * Math.cos(angle), scale * Math.sin(angle)];
        const end = ((row + 1) * x.length) / rows;
        for (let head = (row * x.length) / rows; head < end; head += width) rotatePair(out, head + first, head + second, cos, sin);
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
    hide(read("x"), read("mask"), out);
  },

  softmax({ out, read, width }) {
    softmax(read("x"), width, out);
  },

  average({ out, read, width }) {
    averageWeights(read("x"), width, out);
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

/** Each row's standard deviation, or, where a norm doesn't centre, its root mean square. */
function spreads({ out, read, config }, isCentred) {
  const x = read("x");
  const width = x.length / out.length;
  for (let row = 0; row < out.length; row++) {
    out[row] = Math.sqrt(momentsOf(x.subarray(row * width, (row + 1) * width), isCentred).variance + config.layer_norm_eps);
  }
}

function normalise({ out, read }, isCentred, shift = null) {
  const [x, spread, gain] = ["x", "spread", "gain"].map((role) => read(role));
  const width = x.length / spread.length;
  for (let row = 0; row < spread.length; row++) {
    const { mean } = momentsOf(x.subarray(row * width, (row + 1) * width), isCentred);
    for (let at = row * width; at < (row + 1) * width; at++) {
      const own = at % gain.length;
      out[at] = ((x[at] - mean) / spread[row]) * gain[own] + (shift ? shift[own] : 0);
    }
  }
}

/** Calls `put(query, key, at, cells)` of every pair of positions: the query's in the text, and which of a head's cells it is. */
function eachPair({ start, rows, keyIds }, put) {
  const keys = keyIds.length;
  for (let row = 0; row < rows; row++) {
    for (let key = 0; key < keys; key++) put(start + row, key, row * keys + key, rows * keys);
  }
}
