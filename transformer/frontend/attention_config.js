// Reads the properties of attention from a configuration, with defaults for missing ones.

/**
 * A model's configuration, as `ModelConfig` has it; what is as one expects may be left out.
 *
 * @typedef {object} Config
 * @property {string} [architecture]
 * @property {number} [n_layers]
 * @property {number} n_heads
 * @property {number} d_model
 * @property {number} [d_ff]
 * @property {number} [head_width]
 * @property {number} [n_kv_heads]
 * @property {boolean} [attention_scale]
 * @property {number[]} [attention_windows]
 * @property {Norm} [norm]
 * @property {"layer" | "rms"} [norm_kind]
 * @property {"none" | "head" | "all"} [qk_norm]
 * @property {boolean} [residual]
 * @property {boolean} [parallel_residual]
 * @property {number} [vocab_size]
 * @property {number} [context_length]
 * @property {string} [activation]
 * @property {boolean} [mlp_gate]
 * @property {boolean} [scale_embeddings]
 * @property {number | null} [pad_token_id]
 * @property {number} [n_segments]
 * @property {number | null} [separator_token_id]
 * @property {boolean} [masked_word_head]
 * @property {number | null} [qkv_clip]
 * @property {number} [layer_norm_eps]
 * @property {number} [rotary_base]
 * @property {number} [rotary_dims]
 * @property {"halves" | "neighbours"} [rotary_pairs]
 *
 * @typedef {"pre" | "post" | "sandwich" | "res-post" | "none"} Norm
 */

/** Whether a position sees none after it, in the stack that makes the logits; else it predicts its own token. @param {Pick<Config, "architecture">} config */
export function isCausal({ architecture }) {
  return architecture !== "encoder-only";
}

/** d_head, the width of a head. @param {Config} config */
export function headWidth({ head_width: width, d_model: stream, n_heads: heads }) {
  return width ?? stream / heads;
}

/** How many heads keys and values have. @param {Config} config */
export function keyHeads({ n_kv_heads: shared, n_heads: heads }) {
  return shared ?? heads;
}

/**
 * Which of them a head of queries looks at: neighbours share one.
 *
 * @param {Config} config
 * @param {number} head
 */
export function keyHeadOf(config, head) {
  return Math.floor((head * keyHeads(config)) / config.n_heads);
}

/** What scores are divided by. @param {Config} config */
export function scoreDivisor(config) {
  return config.attention_scale === false ? 1 : Math.sqrt(headWidth(config));
}

/**
 * How far away the keys of a query of a layer are, fewer positions than this; Infinity for any number.
 *
 * @param {Config} config
 * @param {number} layer
 */
export function windowOf({ attention_windows: windows = [] }, layer) {
  return windows[layer % windows.length] || Infinity;
}
