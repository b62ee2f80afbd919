// Continues a text, token by token, as transformer/inference/generation.py does: keys and values of earlier tokens are cached;
// past the context the window moves by a quarter of it at a time, with an empty cache.

import { isCausal } from "../attention_config.js";
import { tokenAt } from "../generation/sampling.js";
import { windowStart } from "../generation/view_params.js";
import { emptyCache, forwardPass } from "./forward_pass.js";
import { neededFor, readAtLast } from "./model.js";
import { randomPoint } from "./random_points.js";

/**
 * @typedef {import("./forward_pass.js").Cache} Cache
 * @typedef {import("./interventions.js").Hooks} Hooks
 * @typedef {import("./model.js").Model} Model
 * @typedef {import("./model.js").Tensor} Tensor
 * @typedef {{ temperature: number, top_k?: number, top_p?: number, seed?: number | bigint | null }} Settings without a seed, each text is different
 * @typedef {{ token: number, position: number, point: number, logits: import("./model.js").Floats, tensors: Map<string, Tensor> }} Written
 */

/** The state of a text that is being generated. */
export class DecodeState {
  /**
   * @param {Model} model
   * @param {object} text
   * @param {number[]} text.tokens what it begins with
   * @param {number[]} [text.source] what an encoder–decoder reads
   * @param {Settings} [text.settings] how tokens are sampled; left out, the likeliest is taken
   * @param {Hooks | null} [text.hooks] what changes each pass
   * @param {string[]} [text.record] tensors that are computed besides what logits are made of
   */
  constructor(model, { tokens, source = [], settings = { temperature: 0 }, hooks = null, record = [] }) {
    if (!isCausal(model.config)) throw new Error("This model reads in both directions and writes nothing on; it fills gaps.");
    this.model = model;
    this.tokens = [...tokens];
    this.source = source;
    this.settings = settings;
    this.hooks = hooks;
    this.wanted = neededFor(["logits", ...record, ...(hooks?.at.keys() ?? [])], model.equations);
    this.atLast = hooks?.at.size ? undefined : readAtLast(this.wanted, model.equations);
    /** @type {Cache} */
    this.cache = emptyCache();
    this.begin = 0; // first position of the cached window
  }

  /** Computes the next logits, and draws a token. @returns {Written} */
  step() {
    const begin = windowStart(this.tokens.length, this.model.config.context_length);
    if (this.hooks?.looksAhead) this.cache = emptyCache();
    else if (begin !== this.begin) this.cache = emptyCache(this.cache.rooms);
    this.begin = begin;
    const text = { tokens: this.tokens.slice(begin), source: this.source };
    const tensors = forwardPass(this.model, text, { cache: this.cache, wanted: this.wanted, atLast: this.atLast, hooks: this.hooks, begin });
    const logits = tensors.get("logits").data.slice(-this.model.config.vocab_size);
    const position = this.tokens.length;
    const point = pointAt(position, this.settings);
    const token = tokenAt(point, logits, this.settings);
    this.tokens.push(token);
    return { token, position, point, logits, tensors };
  }
}

/** The random number that selects a position's token; greedy decoding needs none. @param {number} position @param {Settings} settings */
export function pointAt(position, { temperature, seed = null }) {
  if (temperature === 0) return 0;
  return seed === null ? Math.random() : randomPoint(seed, position);
}
