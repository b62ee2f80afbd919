// Colour-blind-safe colours for the parts of a model (Okabe and Ito 2008), in light and dark.

// Their vermilion is what is selected.
const HEADS = ["#e69f00", "#56b4e9", "#009e73", "#d8c412", "#0072b2", "#a51e69"];
export const ROLES = { mlp: "#cc79a7", embed: "#8a7a5c", norm: "#7f8fa6", stream: "#8c929c", unembed: "#8a7a5c" };

/** The colour of a head: a cycle. */
export function headColour(head) {
  return HEADS[head % HEADS.length];
}

/** The colour of a part: of attention the chosen head's, or grey for the mean of all. */
export function roleColour(kind, head) {
  if (kind === "attn" || kind === "cross_attn") return head === null ? ROLES.stream : headColour(head);
  return ROLES[kind] ?? ROLES.norm;
}
