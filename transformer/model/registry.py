"""The registry of hook points: meaning, formula and shape of each, in the order of the forward pass.

`hook_points(config)` walks the forward pass of that configuration and lists what it meets, so that pages,
documentation and tests all read the same registry, and a point a configuration lacks is not in it.

Symbols: x is the residual stream, W a weight matrix, b a bias, i a query's and j a key's position.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from ..config import ModelConfig

STREAM = ("batch", "pos", "d_model")
HEADS, KV_HEADS = ("batch", "pos", "head", "d_head"), ("batch", "pos", "kv_head", "d_head")
ACTIVATIONS = {
    "relu": "max(0, pre)",
    "gelu": "pre · Φ(pre)",
    "gelu_tanh": "pre · Φ(pre), Φ through tanh",
    "silu": "pre / (1 + exp(−pre))",
}
SCORES = ("batch", "head", "query", "key")


@dataclass(frozen=True)
class HookInfo:
    """One hook point: its full name, what its tensor means, how it is computed, and its dimensions' names."""

    name: str
    meaning: str
    formula: str
    shape: tuple[str, ...]


def hook_points(config: ModelConfig) -> dict[str, HookInfo]:
    """Every hook point of a model with this configuration, by name, in the order of the forward pass."""
    return {point.name: point for point in _walked(config)}


def attention_modules(config: ModelConfig) -> dict[str, list[str]]:
    """Where a model's attentions are: by kind, the dotted name of each layer's, from the first layer on.

    Kinds: "self" in a model of one stack; "encoder", "decoder" and "cross" in an encoder–decoder. A kind without a
    layer is left out.

    >>> shape = ModelConfig(vocab_size=2, context_length=2, n_layers=2, n_heads=1, d_model=2)
    >>> attention_modules(shape)
    {'self': ['blocks.0.attn', 'blocks.1.attn']}
    """
    places = {"self": ("blocks.{}.attn", config.n_layers)}
    if config.architecture == "encoder-decoder":
        places = {
            "encoder": ("encoder.blocks.{}.attn", config.n_encoder_layers),
            "decoder": ("decoder.blocks.{}.attn", config.n_layers),
            "cross": ("decoder.blocks.{}.cross_attn", config.n_layers),
        }
    return {kind: [name.format(layer) for layer in range(depth)] for kind, (name, depth) in places.items() if depth}


@lru_cache(maxsize=64)
def _walked(config: ModelConfig) -> tuple[HookInfo, ...]:
    """What the walk meets; kept, since every look at a pass asks for it."""
    is_one = config.architecture != "encoder-decoder"
    points = _stack(config, config.n_layers, causal=config.is_causal) if is_one else _encoder_decoder(config)
    return (*points, *_logits(config))


def _logits(config: ModelConfig) -> Iterator[HookInfo]:
    if config.masked_word_head:
        yield HookInfo(
            "head.hook_pre", "The head's hidden layer, before the activation.", _affine("x", "head", True), STREAM
        )
        formula = ACTIVATIONS[config.activation]
        yield HookInfo("head.hook_post", "The head's hidden layer, after the activation.", formula, STREAM)
        yield from _within("head.ln.", _norm(config, "the head's hidden layer"))
    if config.logit_cap:
        formula = _affine("x", "U", config.unembed_bias)
        yield HookInfo("unembed.hook_uncapped", "Logits before they are capped.", formula, ("batch", "pos", "vocab"))


def _encoder_decoder(config: ModelConfig) -> Iterator[HookInfo]:
    yield from _within("encoder.", _stack(config, config.n_encoder_layers, causal=False))
    yield from _within("decoder.", _stack(config, config.n_layers, cross=True))


def _stack(config: ModelConfig, n_layers: int, *, causal: bool = True, cross: bool = False) -> Iterator[HookInfo]:
    yield from _embeddings(config)
    for layer in range(n_layers):
        yield from _within(f"blocks.{layer}.", _block(config, causal, cross, layer))
    if config.has_final_norm:
        is_memory = config.architecture == "encoder-decoder" and not causal
        where = "which makes it the memory" if is_memory else "before the unembedding"
        yield from _within("ln_final.", _norm(config, f"the last residual stream, {where}"))


def _embeddings(config: ModelConfig) -> Iterator[HookInfo]:
    scaled = " · √d_model" if config.scale_embeddings else ""
    yield HookInfo("hook_embed", "Each token's embedding: its row of the table.", f"W_E[token]{scaled}", STREAM)
    if config.positions in ("sinusoidal", "learned"):
        rows = {
            "sinusoidal": ("sin and cos of pos / 10000^(2i / d_model)", "the fixed table of sines and cosines"),
            "learned": ("W_P[pos]", "a table that was learned"),
        }
        formula, table = rows[config.positions]
        yield HookInfo("hook_pos_embed", f"Each position's row of {table}, added to the embedding.", formula, STREAM)
    if config.n_segments:
        meaning = "The embedding of each token's segment, added to its own."
        yield HookInfo("hook_segment_embed", meaning, "W_S[segment]", STREAM)
    if config.embed_norm:
        yield from _within("ln_embed.", _norm(config, "the embeddings"))


def _block(config: ModelConfig, causal: bool, cross: bool, layer: int) -> Iterator[HookInfo]:
    if config.residual:
        yield HookInfo("hook_resid_pre", "The residual stream as it enters the layer.", "x", STREAM)
    if config.norms_before and (layer or config.norm_first_input):
        yield from _within("ln1.", _norm(config, "the input of attention"))
    yield from _within("attn.", _self_attention(config, causal, layer))
    yield from _given(config, "attention", "attn", "ln1_post", _affine("concat(z)", "O", config.has_out_bias))
    if config.residual and not config.parallel_residual:
        name = "hook_resid_mid" if config.d_ff or cross else "hook_resid_post"
        yield HookInfo(name, "The residual stream after attention.", "x + attention", STREAM)
    if config.norm == "post":
        yield from _within("ln1.", _norm(config, "the residual stream after attention"))
    if cross:
        yield from _cross(config)
    if config.d_ff:
        yield from _feed_forward(config)


def _given(config: ModelConfig, sublayer: str, module: str, norm: str, formula: str) -> Iterator[HookInfo]:
    """What a sublayer adds to the stream, and how it is normalised before, where it is."""
    if config.norms_what_is_added:
        yield HookInfo(f"{module}.hook_out", f"What {sublayer} gives, before its norm.", formula, STREAM)
        yield from _within(f"{norm}.", _norm(config, f"what {sublayer} gives"))
        formula = "the norm's output"
    yield HookInfo(f"hook_{module}_out", f"What {sublayer} adds to the residual stream.", formula, STREAM)


def _cross(config: ModelConfig) -> Iterator[HookInfo]:
    if config.norm == "pre":
        yield from _within("ln_cross.", _norm(config, "the input of cross-attention"))
    yield from _within("cross_attn.", _cross_attention(config))
    yield HookInfo(
        "hook_cross_attn_out",
        "What cross-attention adds to the residual stream.",
        _affine("concat(z)", "O", config.has_out_bias),
        STREAM,
    )
    if config.residual:
        name = "hook_resid_cross" if config.d_ff else "hook_resid_post"
        yield HookInfo(name, "The residual stream after cross-attention.", "x + cross-attention", STREAM)
    if config.norm == "post":
        yield from _within("ln_cross.", _norm(config, "the residual stream after cross-attention"))


def _feed_forward(config: ModelConfig) -> Iterator[HookInfo]:
    if config.norms_before:
        yield from _within("ln2.", _norm(config, "the input of the feed-forward layer"))
    yield from _within("mlp.", _mlp(config))
    yield from _given(config, "the feed-forward layer", "mlp", "ln2_post", _affine("hidden", "down", config.mlp_bias))
    if config.residual:
        formula = "x + attention + feed-forward" if config.parallel_residual else "x + feed-forward"
        yield HookInfo("hook_resid_post", "The residual stream after the layer.", formula, STREAM)
    if config.norm == "post":
        yield from _within("ln2.", _norm(config, "the residual stream after the feed-forward layer"))


def _norm(
    config: ModelConfig, of: str, one: tuple[str, ...] = ("batch", "pos", "1"), shape: tuple[str, ...] = STREAM
) -> Iterator[HookInfo]:
    if config.norm_kind == "rms":
        yield HookInfo("hook_scale", f"RMS norm of {of}: the root mean square it divides by.", "√(mean(x²) + ε)", one)
        yield HookInfo(
            "hook_out", f"RMS norm of {of}: its output, gain included.", "x / root mean square · gain", shape
        )
        return
    yield HookInfo("hook_scale", f"Layer norm of {of}: the standard deviation it divides by.", "√(var(x) + ε)", one)
    yield HookInfo(
        "hook_out",
        f"Layer norm of {of}: its output, gain and shift included.",
        "(x − mean(x)) / standard deviation · gain + shift",
        shape,
    )


def _self_attention(config: ModelConfig, causal: bool, layer: int) -> Iterator[HookInfo]:
    softmax, window = config.attention == "softmax", config.window(layer)
    of_keys, shared = (HEADS, "") if config.kv_heads == config.n_heads else (KV_HEADS, ", once for a group of heads")
    formula = {each: _affine("x", each, config.attention_bias) for each in "QKV"}
    if config.qkv_clip:
        formula = {each: f"{text}, within ± {config.qkv_clip:g}" for each, text in formula.items()}
    if softmax:
        yield HookInfo("hook_q", "What each position looks for.", formula["Q"], HEADS)
        yield HookInfo("hook_k", f"What each position offers to be found by{shared}.", formula["K"], of_keys)
    yield HookInfo("hook_v", f"What each position passes on when it is looked at{shared}.", formula["V"], of_keys)
    if softmax and config.qk_norm != "none":
        for name, which, shape in (("q_norm.", "queries", HEADS), ("k_norm.", "keys", of_keys)):
            is_each, over = config.qk_norm == "head", (*shape[:-1], "1")
            of, one = (f"each head's {which}", over) if is_each else (f"all heads' {which}", ("batch", "pos", "1", "1"))
            yield from _within(name, _norm(config, of, one, shape))
    if softmax and config.is_rotated(layer):
        turned = "rotated, pair by pair, by their position's angle"
        if config.rotated_dims < config.d_head:
            turned = f"the first {config.rotated_dims} dimensions {turned}"
        if config.rotary_scale != 1:
            turned += f", times {config.rotary_scale:.4g}"
        yield HookInfo("hook_rot_q", f"Queries {turned}.", "R(pos) · q", HEADS)
        yield HookInfo("hook_rot_k", f"Keys {turned}.", "R(pos) · k", of_keys)
    visible = "every j that is no padding"
    if causal:
        visible = f"i − {window} < j ≤ i" if window else "j ≤ i"
    elif window:
        visible = f"|i − j| < {window}"
    yield from _weighing(config, softmax, visible, is_self=True)


def _cross_attention(config: ModelConfig) -> Iterator[HookInfo]:
    of_memory = ("batch", "key", "head" if config.kv_heads == config.n_heads else "kv_head", "d_head")
    bias = config.attention_bias
    yield HookInfo("hook_q", "What each position of the target looks for.", _affine("x", "Q", bias), HEADS)
    yield HookInfo(
        "hook_k", "What each position of the source offers to be found by.", _affine("memory", "K", bias), of_memory
    )
    yield HookInfo("hook_v", "What each position of the source passes on.", _affine("memory", "V", bias), of_memory)
    yield from _weighing(config, softmax=True, visible="every j that is no padding")


def _weighing(config: ModelConfig, softmax: bool, visible: str, is_self: bool = False) -> Iterator[HookInfo]:
    """From scores to each head's result. visible: which keys j a query i may see."""
    if softmax:
        yield HookInfo("hook_raw_scores", "q · k of each query and each key.", "q_i · k_j", SCORES)
        scaled = ("Scores whose spread no longer grows with d_head.", "q_i · k_j / √d_head")
        if not config.attention_scale:
            scaled = ("The same scores: this model doesn't divide them by √d_head.", "q_i · k_j")
        yield HookInfo("hook_scaled_scores", *scaled, SCORES)
    score = "score"
    if is_self and config.score_cap:
        formula = f"{config.score_cap:g} · tanh(score / {config.score_cap:g})"
        yield HookInfo("hook_capped_scores", "Scaled scores, capped softly.", formula, SCORES)
    if is_self and config.positions in ("alibi", "relative"):
        score = "score + bias"
        meaning, formula = "What a key's distance costs its score.", "−slope · |i − j|"
        if config.positions == "relative":
            meaning, formula = "What was learned for a key's distance, added to its score.", "b[kind of i − j]"
        yield HookInfo("hook_position_bias", meaning, formula, SCORES)
    yield HookInfo("hook_mask", "True where a query may see a key.", visible, ("query", "key"))
    if softmax:
        yield HookInfo(
            "hook_attn_scores", "Scaled scores, −∞ where the key is hidden.", f"{score} if visible, else −∞", SCORES
        )
    formula = "exp(score_ij) / Σ_j exp(score_ij)" if softmax else "1 / number of visible keys"
    yield HookInfo("hook_pattern", "Attention weights: each row sums to one.", formula, SCORES)
    yield HookInfo("hook_z", "Each head's average of the values, weighted by its row.", "Σ_j pattern_ij · v_j", HEADS)
    yield HookInfo(
        "hook_result",
        "What each head adds to the residual stream, without the output bias.",
        "z_head · W_O[head]",
        ("batch", "pos", "head", "d_model"),
    )


def _mlp(config: ModelConfig) -> Iterator[HookInfo]:
    hidden, up = ("batch", "pos", "d_ff"), _affine("x", "up", config.mlp_bias)
    activation = ACTIVATIONS[config.activation]
    if config.mlp_gate:
        yield HookInfo("hook_pre", "The gate, before the activation.", _affine("x", "gate", config.mlp_bias), hidden)
        yield HookInfo("hook_pre_linear", "The up projection, which the gate multiplies.", up, hidden)
        yield HookInfo(
            "hook_post",
            "The hidden layer: the gate, after the activation, times the up projection.",
            f"{activation} · pre_linear",
            hidden,
        )
        return
    yield HookInfo("hook_pre", "The hidden layer, before the activation.", up, hidden)
    yield HookInfo("hook_post", "The hidden layer, after the activation.", activation, hidden)


def _affine(of: str, weight: str, bias: bool) -> str:
    return f"{of} · W_{weight}" + (f" + b_{weight}" if bias else "")


def _within(prefix: str, points: Iterator[HookInfo]) -> Iterator[HookInfo]:
    return (replace(point, name=prefix + point.name) for point in points)
