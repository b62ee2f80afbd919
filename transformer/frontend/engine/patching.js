// Activation patching, as /api/patching does it: the text is read with one activation at a time from another text, in a pass each.

import { ApiError, wrong } from "../api_error.js";
import { isCausal } from "../attention_config.js";
import { hookPoints } from "../intervention_checks.js";
import { passInSteps } from "./forward_pass.js";
import { inTurns } from "./live_model.js";
import { neededFor } from "./model.js";
import { ids, predictedPosition, whole } from "./questions.js";
/** @import { LiveModel, Rest } from "./live_model.js" */
/** @import { Question } from "./questions.js" */

const SITES = { stream: "hook_resid_pre", attention: "hook_attn_out", "cross-attention": "hook_cross_attn_out", "feed-forward": "hook_mlp_out" };
const STACKS = { self: "", encoder: "encoder.", decoder: "decoder." };
const MOST_WORK = 200e9; // multiplications, about: some minutes of a browser

/** @param {LiveModel} live @param {Question} question @param {Record<string, any>} values @param {Rest} rest @param {(event: string, data: object) => void} tell */
export async function patching(live, question, values, rest, tell) {
  const { model, config } = live;
  const { tokens, source, hooks, begin } = question;
  const [answer, against] = ["answer", "against"].map((name) => whole(name, values[name], 0, config.vocab_size - 1));
  const clean = { tokens: ids("clean_tokens", values.clean_tokens), source: ids("clean_source", values.clean_source) };
  if (!clean.tokens.length) clean.tokens = tokens;
  if (!clean.source.length) clean.source = source;
  for (const [name, one, other] of /** @type {const} */ ([["clean_tokens", tokens, clean.tokens], ["clean_source", source, clean.source]])) {
    if (one.length !== other.length) throw wrong(name, `it has ${other.length} tokens and the other text ${one.length}; both must have as many`);
  }
  const stack = values.stack ?? (source.length ? "encoder" : "self");
  const sites = sitesOf(live, stack);
  const position = predictedPosition(live, tokens);

  /** @param {{ tokens: number[], source: number[] }} text @param {string[]} names @param {typeof hooks} changes */
  const read = (text, names, changes) => {
    const wanted = neededFor(["logits", ...names, ...changes.at.keys()], model.equations);
    return inTurns(passInSteps(model, text, { wanted, hooks: changes, begin }), rest);
  };
  const difference = (tensors) => {
    const { data } = tensors.get("logits");
    return data[position * config.vocab_size + answer] - data[position * config.vocab_size + against];
  };

  const known = await read(clean, Object.values(sites).flat(), hooks);
  const [top, bottom] = [difference(known), difference(await read({ tokens, source }, [], hooks))];
  if (!Number.isFinite(top - bottom)) throw new ApiError("This model's logits are not numbers here, so there is nothing to compare.");
  if (Math.abs(top - bottom) < 1e-6) throw new ApiError("Both texts say the same of these two tokens, so there is no difference to trace.");
  const [own, others] = stack === "encoder" ? [source, clean.source] : [tokens, clean.tokens];
  const looksBack = stack === "self" && isCausal(config) && !hooks.looksAhead; // what is before the first difference is the same in both
  const first = looksBack ? own.findIndex((id, at) => id !== others[at]) : 0;
  const points = Object.values(sites);
  const passes = points.flat().length * (own.length - first);
  const work = passes * (tokens.length + source.length) * [...model.weights.values()].reduce((sum, { data }) => sum + data.length, 0);
  if (work > MOST_WORK) throw new ApiError(`This would take about ${(work / MOST_WORK).toFixed(1)} times as long as a browser may compute; take a shorter text, or a smaller model.`);
  let done = 0;
  const restored = points.map((layers) => layers.map(() => own.map(() => 0)));
  for (const [site, layers] of points.entries()) {
    for (const [layer, name] of layers.entries()) {
      const { shape: [rows], data } = known.get(name);
      const row = data.length / rows;
      for (let at = first; at < own.length; at++) {
        const put = (tensor) => tensor.data.set(data.subarray(at * row, (at + 1) * row), at * row);
        const patched = { ...hooks, at: new Map(hooks.at).set(name, [...(hooks.at.get(name) ?? []), put]) };
        restored[site][layer][at] = (difference(await read({ tokens, source }, [], patched)) - bottom) / (top - bottom);
        tell("progress", { share: (done += 1) / passes });
      }
    }
  }
  tell("result", { sites: Object.keys(sites), points, restored, clean: top, corrupted: bottom });
}

/** The hook points of what is patched at each position, by site and layer. @param {LiveModel} live @param {string} stack @returns {Record<string, string[]>} */
function sitesOf(live, stack) {
  const names = hookPoints(live.model).filter((name) => name.startsWith(`${STACKS[stack]}blocks.`));
  const found = Object.entries(SITES).map(([site, ending]) => [site, names.filter((name) => name.split(".").length === (stack === "self" ? 3 : 4) && name.endsWith(`.${ending}`))]);
  const sites = Object.fromEntries(found.filter(([, layers]) => layers.length));
  if (!Object.keys(sites).length) throw new ApiError("This model has no layers, so there is nothing to patch.");
  return sites;
}
