// Says why a model can't be changed in a way, in the words of transformer/inference/intervention_checks.py.

import { isCausal, keyHeads } from "./attention_config.js";
import { FIELDS, KINDS, POINTS, RULES, moduleInWords, otherText, parsed } from "./intervention_codes.js";
/** @import { Config } from "./attention_config.js" */
/** @import { Intervention } from "./intervention_codes.js" */

/** @typedef {{ config: Config, equations: { name: string, dims: string[] }[] }} Described a model, as `about_model` in live_model.py describes it */

const RESULTS = new Set(["logits", "probabilities"]); // have no hook point

/** Why a model can't be changed so; empty if it can. @param {string} code @param {Described} model */
export function problemOf(code, model) {
  try {
    check(parsed(code), model);
  } catch (error) {
    return /** @type {Error} */ (error).message;
  }
  return "";
}

/** The hook points of a model, in the order of the pass. @param {Described} model */
export function hookPoints({ equations }) {
  return equations.map(({ name }) => name).filter((name) => !RESULTS.has(name));
}

/** The hook points at which a pass goes without a rule. @param {Described} model @param {{ rule?: string, where?: string }} from */
export function pointsWithout(model, { rule, where = "" }) {
  const { points, needs } = RULES[rule];
  const { config } = model;
  const readsBothWays = (name) => !isCausal(config) || name.startsWith("encoder.");
  const has = {
    causal: (name) => !readsBothWays(name), encoder: readsBothWays,
    encoder_windows: (name) => readsBothWays(name) && (config.attention_windows ?? []).some(Boolean), attention_scale: () => config.attention_scale !== false,
  };
  return hookPoints(model).filter((name) => name.startsWith(where) && points.some((point) => name.endsWith(point)) && (has[needs]?.(name) ?? true));
}

/** An Error says why a model can't be changed so. @param {Intervention} intervention @param {Described} model */
export function check({ kind, values }, model) {
  if (KINDS[kind].points) checkPoint(kind, values, model);
  else checkRule(values, model);
  for (const text of KINDS[kind].texts ?? []) checkText(otherText(values, text), model.config);
}

/** @param {Record<string, any>} values @param {Described} model */
function checkRule({ rule, where }, model) {
  if (!Object.hasOwn(RULES, rule)) throw new Error(`there is no rule “${rule}”; it can be ${Object.keys(RULES).join(", ")}`);
  if (!pointsWithout(model, { rule, where }).length) throw new Error(`this model doesn't have ${RULES[rule].words} ${where ? `in ${moduleInWords(where)}` : "anywhere"}`);
}

function checkPoint(kind, values, { config, equations }) {
  const { point } = values;
  const equation = equations.find(({ name }) => name === point);
  if (!equation || RESULTS.has(point)) throw new Error(`this model computes no ${point}`);
  const { dims } = equation;
  const { refused, only = "", except, without } = POINTS[KINDS[kind].points];
  if (!point.endsWith(only) || (except && point.endsWith(except)) || dims.includes(without)) throw new Error(`${point} ${refused}`);
  const heads = dims.includes("head") || dims.includes("member") ? config.n_heads : dims.includes("kv_head") ? keyHeads(config) : 0;
  for (const [name, value] of Object.entries(values)) {
    if (value === null) continue;
    const { type, bounds: [least, most] = [-Infinity, Infinity] } = FIELDS[name];
    if (name === "head" && !(value >= 0 && value < heads)) throw new Error(`${point} has no head ${value}`);
    if (["position", "query", "key"].includes(name)) {
      const isOfSource = point.startsWith("encoder.") || (name === "key" && point.includes(".cross_attn."));
      const longest = isOfSource ? config.context_length : Infinity; // a decoder's text slides
      if (!(dims.includes(name.replace("position", "pos")) && value >= 0 && value < longest)) throw new Error(`${point} has no ${name} ${value}`);
    }
    if (type === "number" && !Number.isFinite(value)) throw new Error(`the ${name} must be a number, not ${value}`);
    if (type === "number" && !(value >= least && value <= most)) throw new Error(`the ${name} is from ${least} to ${most}, not ${value}`);
  }
}

function checkText({ tokens, source }, config) {
  const readsSource = config.architecture === "encoder-decoder";
  if (!tokens.length || readsSource !== source.length > 0) throw new Error("the other prompt is one that this model can't read");
  const longest = Math.max(tokens.length, source.length);
  if (longest > config.context_length) throw new Error(`the other prompt has ${longest} tokens, and this model reads ${config.context_length}`);
  const unknown = [...tokens, ...source].find((id) => id >= config.vocab_size);
  if (unknown !== undefined) throw new Error(`the other prompt has a token ${unknown}, which this model doesn't know`);
}
