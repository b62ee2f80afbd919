"""BART (Lewis et al. 2020) and mBART (Liu et al. 2020): encoder–decoders with learned positions, counted from 2.

BART has its norms on the stream, mBART before each sublayer. Kin with a fixed table of positions is in `marian.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from ...config import ModelConfig
from .family import THEIR_ACTIVATIONS, Family, Fields, UnsupportedError, Weight, linear, norm
from .pair import NO_TOKENS, OWN, SIDES, depth, refuse_one_stack, tables, unembedding_of_pair

OFFSET = 2
"""Unused first rows of the tables of positions."""
HEAD = ("lm_head.", "final_logits_bias")


def read_config(fields: Fields) -> ModelConfig:
    """Our configuration from BART's config.json."""
    return _learned(fields, "post")


def read_mbart(fields: Fields) -> ModelConfig:
    """The same from mBART's."""
    return _learned(fields, "pre")


def _learned(fields: Fields, norm: str) -> ModelConfig:
    return ModelConfig(**common_fields(fields, norm=norm, is_fixed=False), embed_norm=True)


def common_fields(fields: Fields, *, norm: str, is_fixed: bool) -> dict[str, Any]:
    """The fields that BART and its kin share. is_fixed: whether positions are a fixed table."""
    refuse_one_stack(fields)
    before = norm == "pre"
    again = {"normalize_before": before, "add_final_layer_norm": before, "static_position_embeddings": is_fixed}
    for name, is_so in (again | {"normalize_embedding": not is_fixed}).items():  # the name in older files
        if fields.flag(name, is_so) != is_so:
            raise UnsupportedError(f"it sets {name} to {str(not is_so).lower()}, as no model of this family does")
    for name in ("extra_pos_embeddings", "force_bos_token_to_be_generated"):
        fields.get(name)  # of older files: sizes of tables, and a rule for generation
    layers, is_tied = fields.layers("encoder_layers"), fields.flag("tie_word_embeddings", True)
    if fields.whole("num_hidden_layers", layers) != layers:
        raise UnsupportedError("its num_hidden_layers is another number than its encoder_layers")
    return {
        "architecture": "encoder-decoder",
        "vocab_size": fields.whole("vocab_size"),
        "context_length": fields.whole("max_position_embeddings", 1024),
        "n_layers": fields.layers("decoder_layers"),
        "n_encoder_layers": layers,
        "n_heads": _of_both_sides(fields, "attention_heads"),
        "d_model": fields.whole("d_model"),
        "d_ff": _of_both_sides(fields, "ffn_dim"),
        "positions": "learned",
        "norm": norm,
        "activation": fields.activation("activation_function", "gelu"),
        "scale_embeddings": fields.flag("scale_embedding", False),
        "unembed_bias": True,
        "tie_embeddings": is_tied,
        "share_embeddings": not is_tied,
    }


def _of_both_sides(fields: Fields, name: str) -> int:
    encoder, decoder = (fields.whole(f"{side}_{name}") for side in SIDES)
    if encoder != decoder:
        raise UnsupportedError(f"its encoder_{name} is {encoder}, its decoder_{name} {decoder}; here they are the same")
    return encoder


def write_config(config: ModelConfig) -> dict[str, Any]:
    """BART's or mBART's config.json from our configuration."""
    if not config.embed_norm:
        raise UnsupportedError("it has a norm on its embeddings")
    return write_common(config)


def write_common(config: ModelConfig) -> dict[str, Any]:
    """The shared fields of BART and its kin, from our configuration."""
    sizes = {"layers": depth, "attention_heads": lambda *_: config.n_heads, "ffn_dim": lambda *_: config.d_ff}
    return {
        "vocab_size": config.vocab_size,
        "max_position_embeddings": config.context_length,
        **{f"{side}_{name}": size(config, side) for side in SIDES for name, size in sizes.items()},
        "d_model": config.d_model,
        "activation_function": THEIR_ACTIVATIONS[config.activation],
        "scale_embedding": config.scale_embeddings,
        "tie_word_embeddings": config.tie_embeddings,
        **NO_TOKENS,
    }


def weights(
    config: ModelConfig,
    fields: Fields,
    *,
    skipped: int = OFFSET,
    missing: Callable[[tuple[int, ...]], Tensor] | None = None,
) -> list[Weight]:
    """Where each parameter is in the files. skipped, missing: as in `Weight`, for the tables of positions."""
    found = tables(config) if config.tie_embeddings or not config.share_embeddings else _twice()
    for side in SIDES:
        table = (f"{side}.embed_positions.weight",)
        found.append(Weight(f"{side}.pos_embed.weight", table, skipped=skipped, missing=missing))
        if config.embed_norm:
            found += norm(config, f"{side}.ln_embed", f"{side}.layernorm_embedding", bias=True)
        for layer in range(depth(config, side)):
            found += _layer(config, f"{side}.blocks.{layer}.", f"{side}.layers.{layer}.", side == "decoder")
        if config.has_final_norm:
            found += norm(config, f"{side}.ln_final", f"{side}.layer_norm", bias=True)
    bias = Weight("unembed.bias", ("final_logits_bias",), "one row", missing=torch.zeros)
    return [*found, bias, *unembedding_of_pair(config)]


def _twice() -> list[Weight]:
    """One table, where theirs has two that aren't tied."""
    return [Weight("embed.weight", (own,), instead=("shared.weight",)) for own in OWN]


def _layer(config: ModelConfig, ours: str, theirs: str, is_decoder: bool) -> list[Weight]:
    norms = {"ln1": "self_attn_layer_norm", "ln2": "final_layer_norm"}
    maps = {
        "attn.qkv": [f"self_attn.{part}_proj" for part in "qkv"],
        "attn.out": ["self_attn.out_proj"],
        "mlp.up": ["fc1"],
        "mlp.down": ["fc2"],
    }
    if is_decoder:
        norms["ln_cross"] = "encoder_attn_layer_norm"
        maps["cross_attn.q"] = ["encoder_attn.q_proj"]
        maps["cross_attn.kv"] = [f"encoder_attn.{part}_proj" for part in "kv"]
        maps["cross_attn.out"] = ["encoder_attn.out_proj"]
    found = [each for own, other in norms.items() for each in norm(config, ours + own, theirs + other, bias=True)]
    for own, others in maps.items():
        found += linear(ours + own, *(theirs + other for other in others), bias=True)
    return found


BART = Family(
    name="BART",
    model_type="bart",
    architecture="BartForConditionalGeneration",
    prefix="model.",
    ignored=r"(encoder|decoder)\.version",
    read_config=read_config,
    write_config=write_config,
    weights=weights,
    shape="encoder-decoder",
    head=HEAD,
)
MBART = replace(
    BART, name="mBART", model_type="mbart", architecture="MBartForConditionalGeneration", read_config=read_mbart
)
