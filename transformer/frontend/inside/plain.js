// Plain names of what a pass computes, to stand before the name that code goes by: "queries" before "blocks.1.attn.hook_q".

import { shortName } from "./structure.js";

const PLAIN = {
  hook_embed: "embedding", hook_pos_embed: "positions",
  hook_resid_pre: "stream in", hook_resid_mid: "stream midway", hook_resid_cross: "stream, crossed", hook_resid_post: "stream out",
  hook_scale: "norm's divisor", hook_normalized: "norm's output",
  hook_q: "queries", hook_k: "keys", hook_v: "values", hook_rot_q: "rotated queries", hook_rot_k: "rotated keys",
  hook_raw_scores: "scores q · k", hook_scaled_scores: "scores ÷ √d", hook_mask: "mask", hook_attn_scores: "masked scores",
  hook_pattern: "attention weights", hook_z: "weighted values", hook_result: "output by head",
  hook_attn_out: "what it adds", hook_cross_attn_out: "what it adds", hook_mlp_out: "what it adds",
  hook_pre: "before activation", hook_pre_linear: "what is gated", hook_post: "after activation",
  logits: "logits", probabilities: "probabilities",
};
const READ = /(?:^|\.)ln(?:1|2|_cross)\.hook_normalized$/;

/** A tensor's name in words, beside its sublayer; of a weight, which has none, the name of code. norm: where the model has its norms. */
export function plainName(name, norm) {
  if (norm === "pre" && READ.test(name)) return "what it reads";
  return PLAIN[name.split(".").at(-1)] ?? shortName(name);
}

/** The same where no sublayer stands beside it: "what attention adds, layer 1". place: as `Structure.places` has it. */
export function fullName(name, { stack, group, part }, norm) {
  const plain = plainName(name, norm);
  if (group.kind !== "block") return capital(plain);
  const subject = part.kind === "mlp" ? "the feed-forward layer" : part.title;
  const isOwn = / it /.test(plain) || part.kind !== "cross_attn";
  return `${capital(plain.replace(" it ", ` ${subject} `))}${isOwn ? "" : ` of ${subject}`}, ${layerName(stack, group)}`;
}

/** "layer 1", "decoder layer 0". */
export function layerName(stack, group) {
  return `${stack.title} ${group.title}`.trim();
}

function capital(text) {
  return text[0].toUpperCase() + text.slice(1);
}
