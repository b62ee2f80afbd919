// A model that answers questions in the browser: its weights, what transformer/frontend/live_model.py says of it, and the
// latest passes, which several questions share.

import { ApiError, wrong } from "../api_error.js";
import { countOf } from "../recording.js";
import { passInSteps } from "./forward_pass.js";
import { modelOf } from "./model.js";
import { mostNewWords, withNames } from "./new_words.js";

/**
 * @typedef {import("./model.js").Config} Config
 * @typedef {import("./model.js").Equation} Equation
 * @typedef {import("./model.js").Model} Model
 * @typedef {import("./model.js").Tensor} Tensor
 * @typedef {import("./questions.js").Question} Question
 * @typedef {import("../inside/loaded_tensors.js").Entry} Entry
 *
 * @typedef {object} AboutModel as `about_model` in live_model.py makes it
 * @property {Config} config
 * @property {Equation[]} equations
 * @property {Entry[]} tensors of a text and a source of one token each
 * @property {{ prefix: string, tokens: "text" | "source", layers: number, heights: string[][] }[]} stacks
 * @property {Record<string, { modules: string[], names: Record<string, string | null>[], causal: boolean, uniform: boolean, cap: number | null, bias: any }>} attentions
 * @property {Record<string, string[]>} circuits
 * @property {{ name: string, title: string, sentence: string }[]} measures
 * @property {number} rounding
 * @property {Record<string, string[]>} kinds
 * @property {import("../page/grammar.js").GrammarJson | null} [grammar] of its texts
 * @property {{ before: boolean, added: boolean, last: boolean }} norms
 * @property {{ title: string, task: string, start_tokens: number[], stop_tokens: number[], mask_token_id: number | null }} card
 *
 * @typedef {() => Promise<void>} Rest yields to other work, and throws if nobody waits any more
 */

const MOST_WEIGHTS = 60_000_000; // bytes of a model's file; numbers take twice as many in memory
const MOST_OF_PASS = 256_000_000; // bytes of a pass
const KEPT = 2; // passes

/** Ends the work on a question that nobody waits for any more. */
export class Abandoned extends Error {}

export class LiveModel {
  /**
   * @param {Uint8Array | ArrayBuffer} weights model.safetensors
   * @param {AboutModel} about
   */
  constructor(weights, about) {
    if (weights.byteLength > MOST_WEIGHTS) {
      throw new ApiError(`This model's weights take ${megabytes(weights.byteLength)} MB; a browser computes with models of at most ${megabytes(MOST_WEIGHTS)} MB.`);
    }
    this.about = about;
    /** @type {Model} */
    this.model = opened(weights, about);
    /** @type {Map<string, Promise<Map<string, Tensor>>>} */
    this.passes = new Map();
    /** @type {Map<string, number[]>} */
    this.statistics = new Map(); // of weights, by name
  }

  get config() {
    return this.model.config;
  }

  /** The same, with the names of these new words. An ApiError if there are too many. @param {string[]} words @returns {LiveModel} */
  withNewWords(words) {
    if (!words.length) return this;
    const most = mostNewWords(this.about);
    if (words.length > most) throw wrong("new_words", `this model reads at most ${most}`);
    return Object.assign(Object.create(LiveModel.prototype), this, { about: withNames(this.about, words) });
  }

  label(token) {
    return this.about.kinds[token]?.[0] ?? `#${token}`;
  }

  labels(tokens) {
    return Array.from(tokens, (token) => this.label(token));
  }

  /** Names of tokens by id. @param {Iterable<number>} tokens */
  kindsOf(tokens) {
    const named = [...new Set(tokens)].filter((token) => this.about.kinds[token]);
    return Object.fromEntries(named.map((token) => [token, this.about.kinds[token]]));
  }

  /** Every tensor of a pass with its sizes, by name. @param {Question} question @returns {Map<string, Entry>} */
  entries({ tokens, source }) {
    return new Map(this.about.tensors.map((entry) => {
      if (entry.kind === "parameter") return [entry.name, entry];
      const isEncoder = entry.name.startsWith("encoder.");
      const keys = isEncoder || entry.name.includes(".cross_attn.") ? source.length : tokens.length;
      const read = { pos: isEncoder ? source.length : tokens.length, query: isEncoder ? source.length : tokens.length, key: keys };
      return [entry.name, { ...entry, sizes: entry.dims.map((dim, axis) => read[dim] ?? entry.sizes[axis]) }];
    }));
  }

  /**
   * Every tensor of a pass by name, weights among them, in the dimensions of `entries`.
   *
   * @param {Question} question
   * @param {Rest} rest
   */
  async pass(question, rest) {
    for (;;) {
      try {
        return await this.known(question, rest);
      } catch (error) {
        if (!(error instanceof Abandoned)) throw error;
        await rest(); // the question that began the pass was given up; go on unless this one was, too
      }
    }
  }

  known(question, rest) {
    const { key } = question;
    const known = this.passes.get(key) ?? this.compute(question, rest);
    this.passes.delete(key);
    this.passes.set(key, known); // the last entry is the last used
    known.catch(() => this.passes.delete(key));
    if (this.passes.size > KEPT) this.passes.delete(this.passes.keys().next().value);
    return known;
  }

  async compute(question, rest) {
    const computed = [...this.entries(question).values()].filter(({ kind }) => kind !== "parameter");
    const bytes = computed.reduce((sum, { sizes }) => sum + 4 * countOf(sizes), 0);
    if (bytes > MOST_OF_PASS) throw new ApiError(`The numbers of this pass take ${megabytes(bytes)} MB, and a browser holds at most ${megabytes(MOST_OF_PASS)} MB; take a shorter text.`);
    const { tokens, source, hooks, begin } = question;
    return inTurns(passInSteps(this.model, { tokens, source }, { hooks, begin }), rest);
  }

  /** A weight in the dimensions by which equations read it. @param {Entry} entry @returns {Tensor} */
  weight({ name, sizes }) {
    return { shape: sizes, data: this.model.weights.get(name).data };
  }

  /** A weight's numbers. @param {string} name */
  numbers(name) {
    return this.model.weights.get(name).data;
  }
}

/** What a generator returns; yields to other work between its steps. @template T @param {Generator<void, T>} steps @param {Rest} rest @returns {Promise<T>} */
export async function inTurns(steps, rest) {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return /** @type {T} */ (value);
    await rest();
  }
}

/** @param {Uint8Array | ArrayBuffer} weights @param {AboutModel} about */
function opened(weights, { config, equations, tensors }) {
  let model;
  try {
    model = modelOf(weights, config, equations);
  } catch (error) {
    throw new ApiError(`This model's file can't be read. ${/** @type {Error} */ (error).message}`);
  }
  for (const { name, kind, sizes } of tensors) {
    if (kind !== "parameter") continue;
    const [needed, there] = [countOf(sizes), model.weights.get(name)?.data.length];
    if (there !== needed) throw new ApiError(`This model's file can't be read. ${name} should have ${needed} numbers; ${there ?? "none"} are there.`);
  }
  return model;
}

function megabytes(bytes) {
  return Math.ceil(bytes / 1e6).toLocaleString("en");
}
