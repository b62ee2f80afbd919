// Plain names of what a pass computes and is computed with, to stand before the name that code goes by: "queries" before
// "blocks.1.attn.hook_q".

import { shortName } from "./structure.js";

const PLAIN = {
  hook_embed: "embedding", hook_pos_embed: "positions",
  hook_resid_pre: "stream in", hook_resid_mid: "stream midway", hook_resid_cross: "stream, crossed", hook_resid_post: "stream out",
  hook_scale: "norm's divisor", hook_normalized: "norm's output",
  hook_q: "queries", hook_k: "keys", hook_v: "values", hook_rot_q: "rotated queries", hook_rot_k: "rotated keys",
  hook_raw_scores: "scores q · k", hook_scaled_scores: "scores ÷ √d", hook_mask: "mask", hook_attn_scores: "masked scores",
  hook_pattern: "attention weights", hook_z: "weighted values", hook_result: "output by head",
  hook_attn_out: "output", hook_cross_attn_out: "output", hook_mlp_out: "output",
  hook_pre: "before activation", hook_pre_linear: "up projection", hook_post: "after activation",
  logits: "logits", probabilities: "probabilities",
  "embed.weight": "embedding table", "pos_embed.weight": "position table",
};
const MATRICES = { qkv: ["Q", "K", "V"], kv: ["K", "V"], q: ["Q"], v: ["V"], out: ["O"], gate: ["gate"], up: ["up"], down: ["down"], unembed: ["U"] };
const INPUT = /(?:^|\.)ln(?:1|2|_cross)\.hook_normalized$/;

/** A name in words, beside its sublayer; of a weight as formulas have it. norm: where the model has its norms. */
export function plainName(name, norm = "none") {
  if (norm === "pre" && INPUT.test(name)) return "normalized input";
  const [owner, last] = name.split(".").slice(-2);
  if (owner.startsWith("ln") && last === "weight") return "norm's gain";
  if (owner.startsWith("ln") && last === "bias") return "norm's shift";
  if (MATRICES[owner]) return MATRICES[owner].map((which) => `${last === "bias" ? "b" : "W"}_${which}`).join(", ");
  return PLAIN[name] ?? PLAIN[last ?? owner] ?? shortName(name);
}

/** The same where no sublayer stands beside it: "Layer 1 attention: queries". place: as `Structure.places` has it. */
export function fullName(name, { stack, group, part }, norm) {
  const plain = plainName(name, norm);
  if (group.kind === "block") return `${sublayerName({ stack, group, part })}: ${plain}`;
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
