"""T5 (Raffel et al. 2020): an encoder–decoder whose scores tell distances, with RMS norms and without biases.

Encoder and decoder have one learned table of distances each. The files keep it in the first layer, but every layer uses
it; ours have a copy in each.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from ...config import Activation, ModelConfig
from .family import ACTIVATIONS, THEIR_ACTIVATIONS, Family, Fields, UnsupportedError, Weight, linear, norm
from .pair import NO_TOKENS, SIDES, depth, refuse_one_stack, tables, unembedding_of_pair

FEED_FORWARD: dict[str, tuple[Activation, bool]] = {
    **{name: (activation, False) for name, activation in ACTIVATIONS.items()},
    **{f"gated-{name}": (activation, True) for name, activation in ACTIVATIONS.items()},
    "gated-gelu": ("gelu_tanh", True),
}
"""By feed_forward_proj: the activation, and whether there is a gate."""
CONTEXT = 512
"""The context of its training, in tokens."""
ATTENTIONS = {
    "encoder": (("attn", "ln1", "SelfAttention"),),
    "decoder": (("attn", "ln1", "SelfAttention"), ("cross_attn", "ln_cross", "EncDecAttention")),
}
"""The sublayers of a layer on each side, in order, with their norms and their names."""


def read_config(fields: Fields, feed_forward: str = "relu") -> ModelConfig:
    """Our configuration from config.json. feed_forward: the default of feed_forward_proj."""
    refuse_one_stack(fields)
    said = fields.get("feed_forward_proj", feed_forward)
    if said not in FEED_FORWARD:
        raise UnsupportedError(f"its feed_forward_proj is {str(said)[:60]!r}; known are {', '.join(FEED_FORWARD)}")
    activation, has_gate = FEED_FORWARD[said]
    again = fields.activation("dense_act_fn", THEIR_ACTIVATIONS[activation]), fields.flag("is_gated_act", has_gate)
    if again != (activation, has_gate):
        raise UnsupportedError(f"its dense_act_fn or is_gated_act says something else than feed_forward_proj, {said}")
    fields.get("initializer_factor")
    _are_logits_scaled(fields)
    layers, is_tied = fields.layers("num_layers"), fields.flag("tie_word_embeddings", True)
    return ModelConfig(
        architecture="encoder-decoder",
        vocab_size=fields.whole("vocab_size"),
        context_length=fields.whole("n_positions", CONTEXT),
        n_layers=fields.layers("num_decoder_layers", layers),
        n_encoder_layers=layers,
        n_heads=fields.whole("num_heads"),
        head_width=fields.whole("d_kv"),
        d_model=fields.whole("d_model"),
        d_ff=fields.whole("d_ff"),
        positions="relative",
        relative_buckets=fields.whole("relative_attention_num_buckets", 32),
        relative_distance=fields.whole("relative_attention_max_distance", 128),
        norm_kind="rms",
        layer_norm_eps=fields.number("layer_norm_epsilon", 1e-6),
        activation=activation,
        mlp_gate=has_gate,
        attention_scale=False,
        attention_bias=False,
        mlp_bias=False,
        tie_embeddings=is_tied,
        share_embeddings=not is_tied,
    )


def _are_logits_scaled(fields: Fields) -> bool:
    """Whether logits are divided by √d_model, as in T5 1.0, which has tied tables."""
    return fields.flag("scale_decoder_outputs", fields.flag("tie_word_embeddings", True))


def write_config(config: ModelConfig) -> dict[str, Any]:
    if config.positions != "relative" or config.norm_kind != "rms" or config.attention_scale:
        raise UnsupportedError("its scores tell distances and aren't ÷ √d_head, and its norms take no mean off")
    if config.mlp_gate and config.activation == "gelu":
        raise UnsupportedError("its gate has no GELU that isn't approximated")
    kind = THEIR_ACTIVATIONS[config.activation]
    if config.mlp_gate:
        kind = "gated-" + kind.replace("gelu_new", "gelu")
    return {
        "vocab_size": config.vocab_size,
        "n_positions": config.context_length,
        "num_layers": config.n_encoder_layers,
        "num_decoder_layers": config.n_layers,
        "num_heads": config.n_heads,
        "d_kv": config.d_head,
        "d_model": config.d_model,
        "d_ff": config.d_ff,
        "relative_attention_num_buckets": config.relative_buckets,
        "relative_attention_max_distance": config.relative_distance,
        "layer_norm_epsilon": config.layer_norm_eps,
        "feed_forward_proj": kind,
        "tie_word_embeddings": config.tie_embeddings,
        **NO_TOKENS,
    }


def weights(config: ModelConfig, fields: Fields, *, scales: bool = True) -> list[Weight]:
    """Where each parameter is in the files. scales: whether logits may be divided by √d_model."""
    found = tables(config)
    for side in SIDES:
        bias = f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
        for layer in range(depth(config, side)):
            ours, theirs = f"{side}.blocks.{layer}.", f"{side}.block.{layer}.layer."
            found.append(Weight(f"{ours}attn.relative_bias.weight", (bias,)))
            for place, (name, own_norm, other) in enumerate(ATTENTIONS[side]):
                found += norm(config, ours + own_norm, f"{theirs}{place}.layer_norm")
                for part in ("qkv",) if name == "attn" else ("q", "kv"):
                    found += linear(f"{ours}{name}.{part}", *(f"{theirs}{place}.{other}.{x}" for x in part), bias=False)
                found += linear(f"{ours}{name}.out", f"{theirs}{place}.{other}.o", bias=False)
            last = f"{theirs}{len(ATTENTIONS[side])}."
            found += norm(config, f"{ours}ln2", f"{last}layer_norm")
            for part, other in _feed_forward(config):
                found += linear(f"{ours}mlp.{part}", f"{last}DenseReluDense.{other}", bias=False)
        is_scaled = scales and side == "decoder" and _are_logits_scaled(fields)
        scale = config.d_model**-0.5 if is_scaled else 1.0
        found += norm(config, f"{side}.ln_final", f"{side}.final_layer_norm", scale=scale)
    return [*found, *unembedding_of_pair(config)]


def _feed_forward(config: ModelConfig) -> list[tuple[str, str]]:
    return [("gate", "wi_0"), ("up", "wi_1"), ("down", "wo")] if config.mlp_gate else [("up", "wi"), ("down", "wo")]


def notes(fields: Fields) -> list[str]:
    return [f"It reads and writes at most {fields.whole('n_positions', CONTEXT)} tokens here, as many as in training."]


T5 = Family(
    name="T5",
    model_type="t5",
    architecture="T5ForConditionalGeneration",
    prefix="",
    ignored=r"decoder\.block\.0\.layer\.1\.EncDecAttention\.relative_attention_bias\.weight",
    read_config=read_config,
    write_config=write_config,
    weights=weights,
    notes=notes,
    shape="encoder-decoder",
)


def _weights_of_mt5(config: ModelConfig, fields: Fields) -> list[Weight]:
    return weights(config, fields, scales=False)


MT5 = replace(
    T5,
    name="mT5",
    model_type="mt5",
    architecture="MT5ForConditionalGeneration",
    read_config=partial(read_config, feed_forward="gated-gelu"),
    weights=_weights_of_mt5,
)
