// What a configuration says of attention, where it leaves unsaid what one expects.

/** d_head, the width of a head. */
export function headWidth({ head_width: width, d_model: stream, n_heads: heads }) {
  return width ?? stream / heads;
}

/** How many heads keys and values have. */
export function keyHeads({ n_kv_heads: shared, n_heads: heads }) {
  return shared ?? heads;
}

/** Which of them a head of queries looks at: neighbours share one. */
export function keyHeadOf(config, head) {
  return Math.floor((head * keyHeads(config)) / config.n_heads);
}

/** What scores are divided by. */
export function scoreDivisor(config) {
  return config.attention_scale === false ? 1 : Math.sqrt(headWidth(config));
}

/** How many positions a query of a layer sees, its own the last of them; Infinity for all. */
export function windowOf({ attention_windows: windows = [] }, layer) {
  return windows[layer % windows.length] || Infinity;
}
