"""The registry of hook points: meaning, formula and shape of each, in the order of the forward pass.

`hook_points(config)` takes the points and their dimensions from the table of equations and adds meaning and formula, so
that pages, documentation and tests all read one registry.

Symbols: x is the residual stream, W a weight matrix, b a bias, i a query's and j a key's position.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

from ..config import ModelConfig
from .equations import LOGITS, PROBABILITIES, equations

ACTIVATIONS = {
    "relu": "max(0, pre)",
    "gelu": "pre · Φ(pre)",
    "gelu_tanh": "pre · Φ(pre), Φ through tanh",
    "silu": "pre / (1 + exp(−pre))",
}
STREAM = {
    "hook_resid_pre": ("The residual stream as it enters the layer.", "x"),
    "hook_resid_mid": ("The residual stream after attention.", "x + attention"),
    "hook_resid_cross": ("The residual stream after cross-attention.", "x + cross-attention"),
}
SUBLAYERS = {"attn": "attention", "cross_attn": "cross-attention", "mlp": "the feed-forward layer"}


@dataclass(frozen=True)
class HookInfo:
    """One hook point: full name, meaning, formula, and the names of its dimensions."""

    name: str
    meaning: str
    formula: str
    shape: tuple[str, ...]


def hook_points(config: ModelConfig) -> dict[str, HookInfo]:
    """Every hook point of a model with this configuration, by name, in the order of the forward pass."""
    return dict(_points(config))


def attention_modules(config: ModelConfig) -> dict[str, list[str]]:
    """The dotted names of a model's attention modules, by kind, from the first layer on.

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


def pattern_names(config: ModelConfig) -> list[str]:
    """The names of all attention patterns, layer by layer; empty for a model without layers."""
    return [f"{module}.hook_pattern" for modules in attention_modules(config).values() for module in modules]


@lru_cache(maxsize=64)
def _points(config: ModelConfig) -> Mapping[str, HookInfo]:
    """Cached, since every recording asks for them."""
    points = [
        HookInfo(name, *_description(config, *name.rpartition(".")[::2]), _shape(name, equation.dims))
        for name, equation in equations(config).items()
        if name not in (LOGITS, PROBABILITIES)
    ]
    return MappingProxyType({point.name: point for point in points})


def _shape(name: str, dims: tuple[str, ...]) -> tuple[str, ...]:
    """A tensor's dimensions: its equation's, with pairs and groups joined again."""
    if "member" in dims:
        dims = tuple("head" if dim == "kv_head" else dim for dim in dims if dim != "member")
    if "pair" in dims:
        dims = tuple("d_head" if dim == "pair" else dim for dim in dims if dim != "side")
    return dims if name.endswith("hook_mask") else ("batch", *dims)


def _description(config: ModelConfig, where: str, point: str) -> tuple[str, str]:
    """The meaning and the formula of a point. where: the dotted name of its module."""
    module = where.rpartition(".")[2]
    sublayer = point.removeprefix("hook_").removesuffix("_out")
    if module in SUBLAYERS and point == "hook_out":
        return f"What {SUBLAYERS[module]} gives, before its norm.", _given(config, module)
    if module.startswith("ln") or module.endswith("_norm"):
        return _norm(config, point, _normalised(config, where, module))
    if module.endswith("attn"):
        return _attention(config, where, point)
    if module in ("mlp", "head"):
        return _hidden(config, module, point)
    if sublayer in SUBLAYERS:
        formula = "the norm's output" if config.norms_what_is_added else _given(config, sublayer)
        return f"What {SUBLAYERS[sublayer]} adds to the residual stream.", formula
    if point.startswith("hook_resid"):
        return STREAM.get(point) or _last_sum(config, where)
    if module == "unembed":
        return "Logits before they are capped.", _affine("x", "U", config.unembed_bias)
    return _embedding(config, point)


def _embedding(config: ModelConfig, point: str) -> tuple[str, str]:
    if point == "hook_segment_embed":
        return "The embedding of each token's segment, added to its own.", "W_S[segment]"
    if point == "hook_embed":
        scaled = " · √d_model" if config.scale_embeddings else ""
        return "Each token's embedding: its row of the table.", f"W_E[token]{scaled}"
    table, formula = "a table that was learned", "W_P[pos]"
    if config.positions == "sinusoidal":
        table, formula = "the fixed table of sines and cosines", "sin and cos of pos / 10000^(2i / d_model)"
    return f"Each position's row of {table}, added to the embedding.", formula


def _last_sum(config: ModelConfig, where: str) -> tuple[str, str]:
    """Describe the stream after a block's last sublayer."""
    if not config.d_ff:
        return STREAM["hook_resid_cross" if where.startswith("decoder.") else "hook_resid_mid"]
    formula = "x + attention + feed-forward" if config.parallel_residual else "x + feed-forward"
    return "The residual stream after the layer.", formula


def _given(config: ModelConfig, sublayer: str) -> str:
    """The formula of what a sublayer gives."""
    if sublayer == "mlp":
        return _affine("hidden", "down", config.mlp_bias)
    return _affine("concat(z)", "O", config.has_out_bias)


def _normalised(config: ModelConfig, where: str, module: str) -> str:
    """A norm's input, in words."""
    if module in ("q_norm", "k_norm"):
        heads = "each head's" if config.qk_norm == "head" else "all heads'"
        return f"{heads} {'queries' if module == 'q_norm' else 'keys'}"
    if module == "ln_final":
        is_memory = where.startswith("encoder.")
        return f"the last residual stream, {'which makes it the memory' if is_memory else 'before the unembedding'}"
    if module in ("ln", "ln_embed"):
        return "the head's hidden layer" if module == "ln" else "the embeddings"
    sublayer = {"ln1": "attention", "ln_cross": "cross-attention", "ln2": "the feed-forward layer"}[
        module.removesuffix("_post")
    ]
    if module.endswith("_post"):
        return f"what {sublayer} gives"
    return f"the residual stream after {sublayer}" if config.norm == "post" else f"the input of {sublayer}"


def _norm(config: ModelConfig, point: str, of: str) -> tuple[str, str]:
    is_scale = point == "hook_scale"
    if config.norm_kind == "rms":
        if is_scale:
            return f"RMS norm of {of}: the root mean square it divides by.", "√(mean(x²) + ε)"
        return f"RMS norm of {of}: its output, gain included.", "x / root mean square · gain"
    if is_scale:
        return f"Layer norm of {of}: the standard deviation it divides by.", "√(var(x) + ε)"
    formula = "(x − mean(x)) / standard deviation · gain + shift"
    return f"Layer norm of {of}: its output, gain and shift included.", formula


def _attention(config: ModelConfig, where: str, point: str) -> tuple[str, str]:
    is_self = not where.endswith("cross_attn")
    is_softmax = config.attention == "softmax" or not is_self
    biased = is_self and config.positions in ("alibi", "relative")
    match point:
        case "hook_q" | "hook_k" | "hook_v":
            return _projection(config, point, is_self)
        case "hook_rot_q" | "hook_rot_k":
            return _rotated(config, point)
        case "hook_raw_scores":
            return "q · k of each query and each key.", "q_i · k_j"
        case "hook_scaled_scores" if config.attention_scale:
            return "Scores whose spread no longer grows with d_head.", "q_i · k_j / √d_head"
        case "hook_scaled_scores":
            return "The same scores: this model doesn't divide them by √d_head.", "q_i · k_j"
        case "hook_capped_scores":
            return "Scaled scores, capped softly.", f"{config.score_cap:g} · tanh(score / {config.score_cap:g})"
        case "hook_position_bias" if config.positions == "relative":
            return "What was learned for a key's distance, added to its score.", "b[kind of i − j]"
        case "hook_position_bias":
            return "What a key's distance costs its score.", "−slope · |i − j|"
        case "hook_mask":
            return "True where a query may see a key.", _visible(config, where, is_self)
        case "hook_attn_scores":
            score = "score + bias" if biased else "score"
            return "Scaled scores, −∞ where the key is hidden.", f"{score} if visible, else −∞"
        case "hook_pattern":
            formula = "exp(score_ij) / Σ_j exp(score_ij)" if is_softmax else "1 / number of visible keys"
            return "Attention weights: each row sums to one.", formula
        case "hook_z":
            return "Each head's average of the values, weighted by its row.", "Σ_j pattern_ij · v_j"
        case _:
            return "What each head adds to the residual stream, without the output bias.", "z_head · W_O[head]"


def _projection(config: ModelConfig, point: str, is_self: bool) -> tuple[str, str]:
    """Describe queries, keys and values."""
    each = point[-1]
    formula = _affine("x" if is_self or each == "q" else "memory", each.upper(), config.attention_bias)
    if config.qkv_clip and is_self:
        formula += f", within ± {config.qkv_clip:g}"
    if not is_self:
        whose = {"q": "target looks for", "k": "source offers to be found by", "v": "source passes on"}
        return f"What each position of the {whose[each]}.", formula
    shared = "" if config.kv_heads == config.n_heads else ", once for a group of heads"
    does = {"q": "looks for", "k": f"offers to be found by{shared}", "v": f"passes on when it is looked at{shared}"}
    return f"What each position {does[each]}.", formula


def _rotated(config: ModelConfig, point: str) -> tuple[str, str]:
    turned = "rotated, pair by pair, by their position's angle"
    if config.rotated_dims < config.d_head:
        turned = f"the first {config.rotated_dims} dimensions {turned}"
    if config.rotary_scale != 1:
        turned += f", times {config.rotary_scale:.4g}"
    return f"{'Queries' if point.endswith('q') else 'Keys'} {turned}.", f"R(pos) · {point[-1]}"


def _visible(config: ModelConfig, where: str, is_self: bool) -> str:
    """Which keys j a query i may see."""
    window = config.window(int(where.split(".")[-2])) if is_self else None
    if is_self and config.is_causal and not where.startswith("encoder."):
        return f"i − {window} < j ≤ i" if window else "j ≤ i"
    return f"|i − j| < {window}" if window else "every j that is no padding"


def _hidden(config: ModelConfig, module: str, point: str) -> tuple[str, str]:
    """Describe the hidden layer of a feed-forward layer, or of the head that fills in masks."""
    activation = ACTIVATIONS[config.activation]
    if module == "head":
        if point == "hook_pre":
            return "The head's hidden layer, before the activation.", _affine("x", "head", True)
        return "The head's hidden layer, after the activation.", activation
    up, gate = _affine("x", "up", config.mlp_bias), _affine("x", "gate", config.mlp_bias)
    match point:
        case "hook_pre" if config.mlp_gate:
            return "The gate, before the activation.", gate
        case "hook_pre":
            return "The hidden layer, before the activation.", up
        case "hook_pre_linear":
            return "The up projection, which the gate multiplies.", up
        case _ if config.mlp_gate:
            meaning = "The hidden layer: the gate, after the activation, times the up projection."
            return meaning, f"{activation} · pre_linear"
        case _:
            return "The hidden layer, after the activation.", activation


def _affine(of: str, weight: str, bias: bool) -> str:
    return f"{of} · W_{weight}" + (f" + b_{weight}" if bias else "")
