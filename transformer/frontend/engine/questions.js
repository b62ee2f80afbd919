// Reads a question's parameters, as the API has them (transformer/api/request_parameters.py): the same fields, and the same
// words for what can't be.

import { wrong } from "../api_error.js";
import { isCausal } from "../attention_config.js";
import { MOST_CHANGES } from "../intervention_codes.js";
import { overwrittenValues } from "../overwritten_values.js";
import { hooksOf } from "./interventions.js";

/**
 * @typedef {import("./interventions.js").Hooks} Hooks
 * @typedef {import("./live_model.js").LiveModel} LiveModel
 * @typedef {import("../api.js").Parameters} Values
 *
 * @typedef {{ tokens: number[], source: number[] }} Text what a pass reads
 *
 * @typedef {object} OfText what a pass is of, besides
 * @property {string[]} codes of what is changed
 * @property {Hooks} hooks what changes them
 * @property {number} begin the first token's position in the whole text, from whose start changes count
 * @property {string} key the same for equal passes
 *
 * @typedef {Text & OfText} Question
 */

const MOST_TOKENS = 20_000; // of a text that is written on
const IDS = /^\d{1,9}(,\d{1,9})*$/;

/**
 * An ApiError says which parameter is wrong. fits: whether the tokens have to fit the context length.
 *
 * @param {LiveModel} live
 * @param {Values} values
 * @param {{ fits?: boolean }} [options]
 * @returns {Question}
 */
export function questionOf(live, values, { fits = true } = {}) {
  const { config } = live;
  const [tokens, source] = ["tokens", "source"].map((name) => ids(name, values[name]));
  if (!tokens.length) throw wrong("tokens", "it is empty, and a model needs at least one token");
  if ((config.architecture === "encoder-decoder") !== source.length > 0) throw wrong("source", source.length ? "this model has no encoder" : "this model's encoder needs a source");
  for (const [name, read] of Object.entries({ tokens, source })) {
    const unknown = read.find((id) => id >= config.vocab_size);
    if (unknown !== undefined) throw wrong(name, `${unknown} is not in this model's vocabulary of ${config.vocab_size}`);
    const most = fits || name === "source" ? config.context_length : MOST_TOKENS;
    if (read.length > most) throw wrong(name, `it has ${read.length} tokens, and this model reads at most ${most}`);
  }
  const codes = values.changes ? String(values.changes).split("!") : [];
  if (codes.length > MOST_CHANGES) throw wrong("changes", `there are ${codes.length}, and at most ${MOST_CHANGES} can be made at once`);
  const begin = whole("begin", values.begin ?? 0, 0, Infinity);
  return { tokens, source, codes, hooks: hooksFor(live, codes), begin, key: [tokens.join(), source.join(), codes.join("!"), begin].join("|") };
}

/** @param {LiveModel} live @param {string[]} codes */
function hooksFor(live, codes) {
  try {
    return hooksOf(live.model, codes);
  } catch (error) {
    throw wrong("changes", /** @type {Error} */ (error).message);
  }
}

/** @param {string} name @returns {number[]} */
export function ids(name, written) {
  if (written === null || written === undefined || written === "") return [];
  if (!IDS.test(String(written))) throw wrong(name, "it is a list of token ids, such as 31,5,7");
  return String(written).split(",").map(Number);
}

/** A question's text in other orders: of an encoder–decoder, its source. @param {Question} question @param {string | string[]} written @returns {Text[]} */
export function ordersOf({ tokens, source }, written = []) {
  const sorted = (/** @type {number[]} */ read) => [...read].sort().join();
  const own = sorted(source.length ? source : tokens);
  return [written].flat().map((each) => {
    const order = ids("orders", each);
    if (sorted(order) !== own) throw wrong("orders", "each has the tokens of the text, in another order");
    return source.length ? { tokens, source: order } : { tokens: order, source };
  });
}

/** A whole number within bounds. @param {string} name @param {any} written @param {number} least @param {number} most */
export function whole(name, written, least, most) {
  const number = Number(written);
  if (!(Number.isInteger(number) && number >= least && number <= most)) throw wrong(name, `it is a whole number from ${least} to ${most}, not ${String(written).slice(0, 40)}`);
  return number;
}

/** How a token is drawn. @param {Values} values */
export function samplingOf({ temperature = 1, top_k: k = null, top_p: p = null, seed = null }) {
  const settings = { temperature: Number(temperature ?? 1), top_k: k ? whole("top_k", k, 1, 1e6) : 0, top_p: p ? Number(p) : 1, seed: seed === null ? null : BigInt(/** @type {number} */ (seed)) };
  if (!(settings.temperature >= 0 && settings.temperature <= 100)) throw wrong("temperature", "it is a number from 0 to 100");
  if (!(settings.top_p > 0 && settings.top_p <= 1)) throw wrong("top_p", "it is a number above 0 and at most 1");
  return settings;
}

/** What a pass sets by hand, as its outline tells. @param {LiveModel} live @param {Question} question */
export function overwrittenIn(live, { codes, begin }) {
  return overwrittenValues(live.model, codes, begin);
}

/** The position whose logits a text is given for. @param {LiveModel} live @param {number[]} tokens */
export function predictedPosition({ config, about }, tokens) {
  const mask = isCausal(config) ? -1 : tokens.indexOf(about.card.mask_token_id);
  return mask >= 0 ? mask : tokens.length - 1;
}
