// Finds the view on the page Attention that corresponds to the current one.

/**
 * A cell of an attention: key null for the one that the query weighs most, head null for whichever.
 *
 * @typedef {{ module: string, head: number | null, query: number, key: number | null, stage: string }} AttentionCell
 */

const STAGES = { hook_raw_scores: "raw", hook_scaled_scores: "scaled", hook_capped_scores: "capped", hook_position_bias: "biased", hook_attn_scores: "masked" };

/** The attention that is looked at: the one that is open, or a block's first; of the whole model the last of the stack that writes. */
export function attentionAt({ stacks }, focus) {
  if (focus?.part) return focus.part.module ? focus.part : null;
  const parts = (focus ? focus.group.parts : stacks.find(({ writes }) => writes).groups.flatMap((group) => group.parts)).filter(({ module }) => module);
  return (focus ? parts[0] : parts.at(-1)) ?? null;
}

/**
 * Null where no attention is looked at. of: an instrument, whose pass, structure, focus, chosen, head, token and source are read.
 *
 * @returns {AttentionCell | null}
 */
export function attentionCell({ pass, structure, focus, chosen, head, token, source }) {
  const part = attentionAt(structure, focus);
  if (!part) return null;
  const name = focus?.name ?? "";
  const { dims } = pass.describe(name) ?? { dims: [] };
  const cell = (dim) => chosen.cell?.[dims.indexOf(dim)] ?? null; // −1 is no index of an array
  const isEncoder = part.id.startsWith("encoder.");
  const looks = isEncoder ? source ?? pass.labels.source.length - 1 : token;
  const isOfKey = /hook_(rot_)?[kv]$|k_norm\./.test(name);
  return {
    module: part.id, head: cell("head") ?? head, stage: STAGES[name.split(".").at(-1)] ?? "weights",
    query: cell("query") ?? (isOfKey ? null : cell("pos")) ?? looks, key: cell("key") ?? (isOfKey ? cell("pos") : null),
  };
}
