// Gives tensors and blocks plain names, such as "queries" for "blocks.1.attn.hook_q".

import { shortName } from "./structure.js";
/** @import { Config } from "../attention_config.js" */

const PLAIN = {
  hook_embed: "embedding", hook_pos_embed: "positions", hook_segment_embed: "segments",
  hook_resid_pre: "stream in", hook_resid_mid: "stream midway", hook_resid_cross: "stream, crossed", hook_resid_post: "stream out",
  hook_out: "norm's output",
  hook_q: "queries", hook_k: "keys", hook_v: "values", hook_rot_q: "rotated queries", hook_rot_k: "rotated keys",
  hook_capped_scores: "capped scores", hook_position_bias: "position bias", hook_uncapped: "uncapped logits",
  hook_raw_scores: "scores q · k", hook_scaled_scores: "scores ÷ √d_head", hook_mask: "mask", hook_attn_scores: "masked scores",
  hook_pattern: "attention weights", hook_z: "weighted values", hook_result: "output by head",
  hook_attn_out: "output", hook_cross_attn_out: "output", hook_mlp_out: "output",
  hook_pre: "pre-activation", hook_pre_linear: "up projection", hook_post: "post-activation",
  logits: "logits", probabilities: "probabilities",
  "embed.weight": "embedding table", "pos_embed.weight": "position table", "segment_embed.weight": "segment table",
  "q_norm.hook_out": "normalized queries", "k_norm.hook_out": "normalized keys", "ln_embed.hook_out": "normalized embedding",
  "ln1_post.hook_out": "normalized output", "ln2_post.hook_out": "normalized output",
  "attn.hook_out": "output before its norm", "mlp.hook_out": "output before its norm",
};
const NORMS = { q_norm: "query norm", k_norm: "key norm", ln1_post: "output norm", ln2_post: "output norm" }; // others are "norm"
const OF_NORM = { weight: "gain", bias: "shift" };
const MATRICES = { qkv: ["Q", "K", "V"], kv: ["K", "V"], q: ["Q"], v: ["V"], out: ["O"], gate: ["gate"], up: ["up"], down: ["down"], dense: ["head"], unembed: ["U"] };
const INPUT = /(?:^|\.)ln(?:1|2|_cross)\.hook_out$/;

/** A name in words, beside its sublayer; of a weight as formulas have it. @param {string} name @param {Partial<Config>} config the model's */
export function plainName(name, config = {}) {
  if ((config.norm === "pre" || config.norm === "sandwich") && INPUT.test(name)) return "normalized input";
  const [owner, last] = name.split(".").slice(-2);
  const divisor = config.norm_kind === "rms" ? "root mean square" : "standard deviation";
  if (last === "hook_scale") return NORMS[owner] ? `${NORMS[owner]}'s ${divisor}` : divisor;
  if ((NORMS[owner] || owner.startsWith("ln")) && OF_NORM[last]) return `${NORMS[owner] ?? "norm"}'s ${OF_NORM[last]}`;
  if (owner === "relative_bias") return "table of distances";
  if (MATRICES[owner] && !last.startsWith("hook_")) return MATRICES[owner].map((which) => `${last === "bias" ? "b" : "W"}_${which}`).join(", ");
  return PLAIN[name] ?? PLAIN[`${owner}.${last}`] ?? PLAIN[last ?? owner] ?? shortName(name);
}

/** The same where no sublayer stands beside it: "Layer 1 attention: queries". location: as `Structure.locations` has it. */
export function fullName(name, { stack, group, part }, config) {
  const plain = plainName(name, config);
  if (group.kind === "block") return `${sublayerName({ stack, group, part })}: ${plain}`;
  if (group.kind === "head") return `${capital(group.title)}: ${plain}`;
  return group.kind === "ln_final" ? `Final ${plain}` : capital(plain);
}

/** "Layer 1 attention", "Decoder layer 0 cross-attention". */
export function sublayerName({ stack, group, part }) {
  return capital(`${layerName(stack, group)} ${part.title}`);
}

/** "layer 1", "decoder layer 0". */
export function layerName(stack, group) {
  return `${stack.title} ${group.title}`.trim();
}

export function capital(text) {
  return text[0].toUpperCase() + text.slice(1);
}
