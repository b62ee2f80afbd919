// Generated texts, as transformer/api/generated_texts.py tells of them: tokens as they are written, what the model thought of
// those of a text, and where a head looked to choose each.

import { wrong } from "../api_error.js";
import { isCausal } from "../attention_config.js";
import { windowStart } from "../generation/view_params.js";
import { logSumExp } from "../arithmetic.js";
import { checkLogits, ranking, statisticsOf, tokenAt } from "../generation/sampling.js";
import { inTurns } from "./live_model.js";
import { DecodeState, pointAt } from "./generation.js";
import { passInSteps } from "./forward_pass.js";
import { neededFor } from "./model.js";
import { ordersOf, samplingOf, whole } from "./questions.js";
/** @import { Floats } from "./model.js" */
/** @import { LiveModel, Rest } from "./live_model.js" */
/** @import { Question, Text } from "./questions.js" */
/** @import { Recording } from "../recording.js" */

const SMALL_VOCABULARY = 256; // up to this size all logits of a token are told
const LIKELIEST = 64; // of a larger one so many stand for all
const NAMED = 10;
const MOST_WINDOWS = 8; // passes that one question about rows may take
const MOST_NEW_TOKENS = 500;

/** Continues a text: calls `tell` with each event and its data. @param {LiveModel} live @param {Question} question @param {Record<string, any>} values @param {Rest} rest @param {(event: string, data: object) => void} tell */
export async function generate(live, question, values, rest, tell) {
  const { tokens, source, hooks } = question;
  const [module, head] = lookedAt(live, values);
  const count = whole("max_new_tokens", values.max_new_tokens ?? 100, 1, MOST_NEW_TOKENS);
  const pattern = module ? `${module}.hook_pattern` : null;
  const seed = values.seed ?? Math.floor(Math.random() * 2 ** 53);
  const settings = samplingOf({ ...values, seed });
  const state = new DecodeState(live.model, { tokens, source, settings, hooks, record: pattern ? [pattern] : [] });
  tell("begin", { seed });
  const ends = live.about.card.stop_tokens;
  for (let written = 0; written < count; written++) {
    const step = state.step();
    const { token, position, point, logits } = step;
    const { probability, rank, entropy } = statisticsOf(logits, token);
    const told = { position, id: token, label: live.label(token), probability, rank, entropy, point, window_start: state.begin };
    if (logits.length <= SMALL_VOCABULARY) told.logits = logits;
    else {
      const { ids, values: scores, normaliser } = topOf(logits);
      Object.assign(told, { top: { ids: [...ids], logits: scores, normaliser }, kinds: live.kindsOf([token, ...ids.slice(0, NAMED)]) });
    }
    if (pattern) {
      const { shape: [, queries, keys], data } = step.tensors.get(pattern);
      const end = (head + 1) * queries * keys;
      Object.assign(told, { row: data.slice(end - keys, end), row_start: module.endsWith("cross_attn") ? 0 : state.begin });
    }
    tell("token", told);
    if (ends.includes(token)) {
      tell("end", { reason: "stop" });
      return;
    }
    await rest();
  }
  tell("end", { reason: "length" });
}

/** The likeliest tokens and their logits, and the logarithm of the sum of all exponentials. */
function topOf(logits) {
  const ids = ranking(logits).slice(0, LIKELIEST);
  return { ids, values: Float32Array.from(ids, (id) => logits[id]), normaliser: logSumExp(logits) };
}

/** @param {LiveModel} live @param {Record<string, any>} values @returns {[string | null, number]} */
function lookedAt({ about: { attentions }, config }, { attention = null, head = 0 }) {
  if (attention === null) return [null, 0];
  const modules = Object.entries(attentions).filter(([kind]) => kind !== "encoder").flatMap(([, of]) => of.modules);
  if (!modules.includes(attention)) throw wrong("attention", `this model's decoder has ${modules.slice(0, 3).join(", ") || "none"}`);
  return [attention, whole("head", head ?? 0, 0, config.n_heads - 1)];
}

/** Positions, each with the start of the window that it is predicted from: one pass serves those of a window. */
function byWindow(first, last, context, hooks) {
  const windows = [];
  for (let length = first; length <= last; length++) {
    const start = windowStart(length, context);
    if (windows.at(-1)?.start === start && !hooks.looksAhead) windows.at(-1).lengths.push(length);
    else windows.push({ start, lengths: [length] });
  }
  return windows;
}

/** A tensor of the pass from which the tokens at some positions are predicted. */
async function ofWindow(live, { tokens, source, hooks }, { start, lengths }, name, rest) {
  const wanted = neededFor([name, ...hooks.at.keys()], live.model.equations);
  const text = { tokens: tokens.slice(start, lengths.at(-1)), source };
  return (await inTurns(passInSteps(live.model, text, { wanted, hooks, begin: start }), rest)).get(name);
}

/** What the model thought of each token of a text, and of the one to come. @param {LiveModel} live @param {Question} question @param {Record<string, any>} values @param {Rest} rest @returns {Promise<Recording>} */
export async function scores(live, question, values, rest) {
  const { tokens, source } = question;
  const { vocab_size: vocab, context_length: context } = live.config;
  const first = whole("first", values.first ?? 1, 1, tokens.length);
  const settings = samplingOf(values);
  const count = tokens.length - first + 1;
  const found = {
    drawn: new Int32Array(count), points: new Float64Array(count), probability: new Float64Array(count), rank: new Int32Array(count),
    entropy: new Float32Array(count), window_start: new Int32Array(count),
  };
  const expected = new LogitRows(vocab, count);
  const named = new Set([...tokens, ...source]);
  for (const window of byWindow(first, tokens.length, context, question.hooks)) {
    const { data } = await ofWindow(live, question, window, "logits", rest);
    for (const position of window.lengths) {
      const [at, row] = [position - first, position - 1 - window.start];
      const logits = data.subarray(row * vocab, (row + 1) * vocab);
      const point = pointAt(position, settings);
      const drawn = tokenAt(point, logits, settings);
      const told = { drawn, points: point, ...statisticsOf(logits, tokens[position] ?? drawn), window_start: window.start };
      for (const [name, value] of Object.entries(told)) found[name][at] = value;
      for (const id of [drawn, ...expected.put(at, logits)]) named.add(id);
    }
  }
  const tensors = Object.fromEntries(Object.entries(found).map(([name, data]) => [name, { shape: [count], data }]));
  return { tensors: { ...tensors, ...expected.tensors }, metadata: { first, kinds: expected.isWhole ? live.about.kinds : live.kindsOf(named) } };
}

/**
 * What a model predicts after the token at each of some positions, all of one pass; an encoder in its place, where it is masked.
 * Of other orders of the text the same follows.
 *
 * @param {LiveModel} live
 * @param {Question} question
 * @param {Record<string, any>} values
 * @param {Rest} rest
 * @returns {Promise<Recording>}
 */
export async function predictions(live, question, values, rest) {
  const { tokens, source, hooks, begin } = question;
  const { config, model, about: { card: { mask_token_id: mask } } } = live;
  const last = whole("last", values.last ?? tokens.length - 1, 0, tokens.length - 1);
  const first = whole("first", values.first ?? 0, 0, last);
  const texts = [{ tokens, source }, ...ordersOf(question, values.orders)];
  if (texts.length > 1 && first !== last) throw wrong("orders", "first and last are one position then");
  const expected = new LogitRows(config.vocab_size, texts.length * (last - first + 1));
  const named = new Set([...tokens, ...source]);
  const wanted = neededFor(["logits", ...hooks.at.keys()], model.equations);
  const pass = async (/** @type {Text} */ read) => (await inTurns(passInSteps(model, read, { wanted, hooks, begin }), rest)).get("logits").data;
  let row = 0;
  for (const text of texts) {
    const ofText = isCausal(config) ? await pass(text) : null;
    for (let position = first; position <= last; position++) {
      const data = ofText ?? (await pass({ ...text, tokens: text.tokens.map((token, at) => (at === position ? mask : token)) }));
      const logits = data.subarray(position * config.vocab_size, (position + 1) * config.vocab_size);
      checkLogits(logits);
      for (const id of expected.put(row++, logits)) named.add(id);
    }
  }
  return { tensors: expected.tensors, metadata: { kinds: expected.isWhole ? live.about.kinds : live.kindsOf(named) } };
}

/** Logits of some positions: of a small vocabulary all, of a larger one the likeliest. */
class LogitRows {
  /** @param {number} vocab @param {number} count of positions */
  constructor(vocab, count) {
    this.isWhole = vocab <= SMALL_VOCABULARY;
    this.width = this.isWhole ? vocab : LIKELIEST;
    const shape = [count, this.width];
    const logits = { shape, data: new Float32Array(count * this.width) };
    /** @type {Recording["tensors"]} */
    this.tensors = this.isWhole ? { logits } : { top_ids: { shape, data: new Int32Array(count * this.width) }, top_logits: logits, normaliser: { shape: [count], data: new Float32Array(count) } };
  }

  /** Returns the tokens that are named with them. @param {number} at @param {Floats} logits @returns {number[]} */
  put(at, logits) {
    const { logits: all, top_ids: ids, top_logits: values, normaliser } = this.tensors;
    if (this.isWhole) {
      all.data.set(logits, at * this.width);
      return [];
    }
    const top = topOf(logits);
    ids.data.set(top.ids, at * this.width);
    values.data.set(top.values, at * this.width);
    normaliser.data[at] = top.normaliser;
    return [...top.ids.slice(0, NAMED)];
  }
}

/** The attention rows from which the token at each of some positions was chosen, in the last few windows. @param {LiveModel} live @param {Question} question @param {Record<string, any>} values @param {Rest} rest @returns {Promise<Recording>} */
export async function rows(live, question, values, rest) {
  const [module, head] = lookedAt(live, values);
  if (!module) throw wrong("attention", "it is left out; blocks.0.attn is one");
  const last = whole("last", values.last, 1, question.tokens.length);
  const first = whole("first", values.first, 1, last);
  const isCross = module.endsWith("cross_attn");
  const found = [];
  for (const window of byWindow(first, last, live.config.context_length, question.hooks).slice(-MOST_WINDOWS)) {
    const { shape: [, queries, keys], data } = await ofWindow(live, question, window, `${module}.hook_pattern`, rest);
    for (const position of window.lengths) {
      const row = position - 1 - window.start;
      const from = (head * queries + row) * keys;
      found.push({ place: position, start: isCross ? 0 : window.start, weights: data.subarray(from, from + (isCross ? keys : row + 1)) });
    }
  }
  const column = (numbers) => ({ shape: [found.length], data: Int32Array.from(numbers) });
  const weights = found.flatMap((row) => [...row.weights]);
  return {
    tensors: {
      rows: { shape: [weights.length], data: Float32Array.from(weights) }, place: column(found.map(({ place }) => place)),
      start: column(found.map(({ start }) => start)), length: column(found.map((row) => row.weights.length)),
    },
    metadata: { module, head },
  };
}
