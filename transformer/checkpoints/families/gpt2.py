"""GPT-2 (Radford et al. 2019): learned positions, linear maps stored as (in, out)."""

from __future__ import annotations

from typing import Any

from ...config import ModelConfig
from .family import THEIR_ACTIVATIONS, Family, Fields, Weight, linear, unembedding


def read_common(fields: Fields) -> dict[str, Any]:
    """The fields that GPT-2 and GPT-J share."""
    width = fields.whole("n_embd")
    return {
        "vocab_size": fields.whole("vocab_size"),
        "context_length": fields.whole("n_positions"),
        "n_layers": fields.layers("n_layer"),
        "n_heads": fields.whole("n_head"),
        "d_model": width,
        "d_ff": fields.whole("n_inner", 4 * width),
        "activation": fields.activation("activation_function", "gelu_new"),
        "layer_norm_eps": fields.number("layer_norm_epsilon", 1e-5),
    }


def write_common(config: ModelConfig) -> dict[str, Any]:
    """The inverse of `read_common`."""
    return {
        "vocab_size": config.vocab_size,
        "n_positions": config.context_length,
        "n_layer": config.n_layers,
        "n_head": config.n_heads,
        "n_embd": config.d_model,
        "n_inner": config.d_ff,
        "activation_function": THEIR_ACTIVATIONS[config.activation],
        "layer_norm_epsilon": config.layer_norm_eps,
        "tie_word_embeddings": config.tie_embeddings,
        "bos_token_id": None,
        "eos_token_id": None,
    }


def read_config(fields: Fields) -> ModelConfig:
    fields.refuse("add_cross_attention", "which is for a decoder beside an encoder")
    fields.flag("scale_attn_by_inverse_layer_idx", False)
    return ModelConfig(
        **read_common(fields),
        positions="learned",
        attention_scale=fields.flag("scale_attn_weights", True),
        tie_embeddings=fields.flag("tie_word_embeddings", True),
    )


def write_config(config: ModelConfig) -> dict[str, Any]:
    return {**write_common(config), "scale_attn_weights": config.attention_scale}


def weights(config: ModelConfig, fields: Fields) -> list[Weight]:
    found = [Weight("embed.weight", ("wte.weight",)), Weight("pos_embed.weight", ("wpe.weight",))]
    for layer in range(config.n_layers):
        ours, theirs = f"blocks.{layer}.", f"h.{layer}."
        found += linear(f"{ours}ln1", f"{theirs}ln_1", bias=True)
        found += linear(f"{ours}ln2", f"{theirs}ln_2", bias=True)
        for own, other in (
            ("attn.qkv", "attn.c_attn"),
            ("attn.out", "attn.c_proj"),
            ("mlp.up", "mlp.c_fc"),
            ("mlp.down", "mlp.c_proj"),
        ):
            # Scores may be divided by the layer's number, counted from 1.
            is_divided = own == "attn.qkv" and fields.flag("scale_attn_by_inverse_layer_idx", False)
            scale = 1 / (layer + 1) if is_divided else 1.0
            found += linear(ours + own, theirs + other, bias=True, layout="transposed", query_scale=scale)
    return [*found, *linear("ln_final", "ln_f", bias=True), *unembedding(config)]


GPT2 = Family(
    name="GPT-2",
    model_type="gpt2",
    architecture="GPT2LMHeadModel",
    prefix="transformer.",
    ignored=r"h\.\d+\.attn\.(masked_)?bias",
    read_config=read_config,
    write_config=write_config,
    weights=weights,
)
