// Answers an instrument's questions about a model as the routes of transformer/api do: same paths, same parameters, same form.

import { ApiError, wrong } from "../api_error.js";
import { logSumExp } from "../arithmetic.js";
import { isCausal } from "../attention_config.js";
import { checkLogits, ranking } from "../generation/sampling.js";
import { ablation } from "./ablation.js";
import { overview } from "./attention_overview.js";
import { circuit } from "./circuits.js";
import { attribution, lens } from "./logit_lens.js";
import { patching } from "./patching.js";
import { checks, outline } from "./pass_outline.js";
import { questionOf } from "./questions.js";
import { partsOf, taken } from "./tensor_parts.js";
import { generate, predictions, rows, scores } from "./written_texts.js";
/** @import { LiveModel, Rest } from "./live_model.js" */
/** @import { Question } from "./questions.js" */
/** @import { Recording } from "../recording.js" */

const CANDIDATES = 10; // tokens that are named at a mask
const ANSWERS = { tensors, overview, outline, lens, attribution, checks, masked, predictions, ablation, patching };
const OF_TEXTS = { generate, scores, rows }; // which may be longer than the context

/**
 * A recording, or a value for JSON; nothing for a stream, whose events are told. Rejects with an ApiError for an invalid question.
 *
 * @param {LiveModel} model
 * @param {string} path
 * @param {Record<string, any>} values
 * @param {{ rest: Rest, tell?: (event: string, data: object) => void }} during
 * @returns {Promise<any>}
 */
export async function answer(model, path, { new_words: newWords, ...values }, { rest, tell = () => {} }) {
  await rest();
  const live = model.withNewWords(newWords ?? []);
  const given = Object.fromEntries(Object.entries(values).filter(([, value]) => value !== null && value !== undefined));
  if (path === "circuit") return circuit(live, given, rest);
  const isOfText = Object.hasOwn(OF_TEXTS, path);
  if (!isOfText && !Object.hasOwn(ANSWERS, path)) throw new ApiError(`A browser can't answer “${path}”; ask a server.`);
  const question = questionOf(live, given, { fits: !isOfText });
  return (isOfText ? OF_TEXTS : ANSWERS)[path](live, question, given, rest, tell);
}

/** @param {LiveModel} live @param {Question} question @param {{ names?: string | string[] }} values @param {Rest} rest @returns {Promise<Recording>} */
async function tensors(live, question, { names = [] }, rest) {
  const parts = partsOf([names].flat(), live.entries(question));
  const { tokens: text, source } = question;
  const isOfPass = parts.some(({ entry }) => entry.kind !== "parameter");
  const computed = isOfPass ? await live.pass(question, rest) : new Map();
  return {
    tensors: Object.fromEntries(parts.map(({ text: name, entry, ranges }) => {
      const { shape, data } = taken(computed.get(entry.name) ?? live.weight(entry), ranges);
      return [name, { shape, data: entry.name.endsWith("hook_mask") ? Uint8Array.from(data) : data }];
    })),
    metadata: { config: live.about.config, labels: { text: live.labels(text), source: live.labels(source) }, ids: { text, source } },
  };
}

/** What an encoder expects at each mask. @param {LiveModel} live @param {Question} question @param {unknown} _ @param {Rest} rest */
async function masked(live, question, _, rest) {
  const { config, about: { card: { mask_token_id: mask } } } = live;
  if (isCausal(config)) throw wrong("model", "it sees nothing after a token, so it fills no masks; ask generate");
  const { data } = (await live.pass(question, rest)).get("logits");
  const named = new Set(question.tokens);
  const masks = question.tokens.flatMap((token, position) => {
    if (token !== mask) return [];
    const logits = Float64Array.from(data.subarray(position * config.vocab_size, (position + 1) * config.vocab_size));
    checkLogits(logits);
    logits[mask] = -Infinity;
    const total = logSumExp(logits);
    const order = [...ranking(logits)].slice(0, Math.min(CANDIDATES, config.vocab_size - 1));
    order.forEach((id) => named.add(id));
    return [{ position, candidates: order.map((id) => ({ id, probability: Math.exp(logits[id] - total) })) }];
  });
  return { masks, kinds: live.kindsOf(named) };
}
