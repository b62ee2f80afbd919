// Tells which numbers of a pass interventions set, and each intervention in plain words, as
// transformer/inference/overwritten_values.py and plain_names.py do.

import { RULES, isWhole } from "./interventions.js";
/** @import { Model } from "./model.js" */
/** @import { SetNumbers } from "../interventions.js" */

const OF_A_BLOCK = {
  cross_attn: ", cross-attention", ln1: ", first norm", ln1_post: ", norm of attention's output", ln2_post: ", norm of feed-forward's output",
  ln_cross: ", norm of cross-attention", ln2: ", norm of feed-forward",
};
const WHOLE = {
  attn_out: "attention of", cross_attn_out: "cross-attention of", mlp_out: "feed-forward of", resid_pre: "the stream before",
  resid_mid: "the stream after the attention of", resid_cross: "the stream after the cross-attention of", resid_post: "the stream after",
};
const OF_THE_MODEL = { "unembed.uncapped": "the logits before they are capped", "ln_embed.out": "the embedding after its norm" };
const NAMED = {
  q: "queries", k: "keys", v: "values", rot_q: "rotated queries", rot_k: "rotated keys", pre: "pre-activation", post: "post-activation",
  out: "output", result: "what each head adds", z: "all heads", "q_norm.out": "normalised queries", "k_norm.out": "normalised keys",
  "attn.out": "attention before its norm", "mlp.out": "feed-forward before its norm",
};
const RULES_IN_WORDS = { mask: "the causal mask", scale: "÷ √d_head", positions: "positions", norm: "the norm's division" };

/**
 * What changes set, in their order. begin: the position of the pass's first token in the text.
 *
 * @param {Model} model
 * @param {string[]} codes
 * @param {number} begin
 * @returns {SetNumbers[]}
 */
export function overwrittenValues(model, codes, begin) {
  return codes.flatMap((code) => {
    const [kind, point, ...fields] = code.split("~");
    const words = inWords(code);
    const record = (fields) => ({ point, head: null, position: null, words, rule: "", weighed: null, ablated: false, ...fields });
    if (kind === "without") return pointsOf(model, point, fields[0]).map((name) => record({ point: name, rule: point }));
    const isOfSource = point.startsWith("encoder.");
    const start = isOfSource ? 0 : begin; // an encoder reads the source as a whole
    if (kind === "weigh") {
      const [head, query, key, weight, isRenormalised] = fields;
      const first = isOfSource || point.includes(".cross_attn.") ? 0 : begin;
      return [record({ head: Number(head), position: Number(query) - start, weighed: [Number(key) - first, Number(weight), isRenormalised === "1"] })];
    }
    const [head, at] = fields;
    const position = at === "" ? null : Number(at) - start;
    const own = record({ head: head === "" ? null : Number(head), position, ablated: kind === "scale" && Number(fields[2]) === 0 });
    if (!point.endsWith(".hook_result")) return [own];
    const [, block, name] = /^(.*)\.(\w+)\.hook_result$/.exec(point);
    return [own, record({ point: `${block}.hook_${name}_out`, position })]; // its heads' sum is what attention gives
  });
}

/** The points that a pass goes without a rule at. */
function pointsOf({ config, equations }, rule, where) {
  const named = equations.map(({ name }) => name).filter((name) => RULES[rule].test(name) && name.startsWith(where));
  return rule === "mask" ? named.filter((name) => !/^encoder\.|\.cross_attn\./.test(name) && config.architecture !== "encoder-only") : named;
}

/** A change in plain words: "layer 0, head 0 ablated"; what is none, which the engine refuses, as it is. @param {string} code */
export function inWords(code) {
  if (!isWhole(code)) return code;
  const [kind, point, ...fields] = code.split("~");
  if (kind === "without") return `without ${RULES_IN_WORDS[point]}${fields[0] ? ` in ${moduleInWords(fields[0])}` : ""}`;
  if (kind === "weigh") {
    const [head, query, key, weight] = fields;
    return `${moduleInWords(point.replace(/\.hook_pattern$/, ""))}, head ${head}: query ${query} gives key ${key} the weight ${short(weight)}`;
  }
  const part = partInWords(point, fields[0], fields[1]);
  if (kind === "scale") return `${part} ${Number(fields[2]) === 0 ? "ablated" : `× ${short(fields[2])}`}`;
  if (kind === "mean") return `${part} replaced by its mean`;
  return kind === "from" ? `${part} as on another prompt` : `${part} + ${short(fields[5])} × the difference of two prompts`;
}

/** Six digits, as Python's %g writes them. */
function short(text) {
  return String(Number(Number(text).toPrecision(6)));
}

/** A block, an attention or a norm: "decoder layer 1". @param {string} name */
function moduleInWords(name) {
  const found = /(?:(encoder|decoder)\.)?blocks\.(\d+)\.?(\w*)/.exec(name);
  if (!found) return name.includes("ln_final") ? "the last norm" : ({ "encoder.": "the encoder", "decoder.": "the decoder" }[name] ?? name);
  const [, side, layer, part] = found;
  return `${side ? `${side} ` : ""}layer ${layer}${OF_A_BLOCK[part] ?? ""}`;
}

/** "layer 0, head 0", "feed-forward of layer 2 at position 3". head, position: empty for all. */
function partInWords(point, head, position) {
  const where = moduleInWords(point);
  const names = point.split(".");
  const last = names.at(-1).replace(/^hook_/, "");
  const owned = names.length > 1 ? `${names.at(-2)}.${last}` : last;
  const named = NAMED[owned] ?? NAMED[last] ?? last;
  let whole = OF_THE_MODEL[owned] ?? (WHOLE[last] ? `${WHOLE[last]} ${where}` : `${where}, ${named}`);
  if (last === "embed" || last === "pos_embed") whole = `${names.length > 1 ? `the ${names[0]}'s` : "the"} ${last === "pos_embed" ? "positions" : "embedding"}`;
  if (head !== "") whole = `${where}, head ${head}${last === "z" ? "" : `, ${named}`}`;
  return position === "" ? whole : `${whole} at position ${position}`;
}
