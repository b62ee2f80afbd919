"""OPT (Zhang et al. 2022): GPT-3's shape, positions counted from 2; a narrow table may be widened to the stream."""

from __future__ import annotations

from typing import Any

from ...config import ModelConfig
from .family import (
    THEIR_ACTIVATIONS,
    Family,
    Fields,
    UnsupportedError,
    Weight,
    linear,
    norm,
    read_sizes,
    unembedding,
    write_sizes,
)

OFFSET = 2
"""Unused first rows of the table of positions."""


def read_config(fields: Fields) -> ModelConfig:
    is_before, has_bias = fields.flag("do_layer_norm_before", True), fields.flag("enable_bias", True)
    if is_before:
        fields.refuse("_remove_final_layer_norm", "which leaves the last norm out")
    fields.flag("layer_norm_elementwise_affine", True)
    is_tied, is_narrow = fields.flag("tie_word_embeddings", True), table_width(fields) is not None
    return ModelConfig(
        **read_sizes(fields, "ffn_dim"),
        positions="learned",
        norm="pre" if is_before else "post",
        activation=fields.activation("activation_function", "relu"),
        attention_bias=has_bias,
        mlp_bias=has_bias,
        tie_embeddings=is_tied and not is_narrow,
    )


def table_width(fields: Fields) -> int | None:
    """The width of the table of embeddings if the stream is wider."""
    width = fields.whole("word_embed_proj_dim", fields.whole("hidden_size"))
    return None if width == fields.whole("hidden_size") else width


def write_config(config: ModelConfig) -> dict[str, Any]:
    if config.attention_bias != config.mlp_bias:
        raise UnsupportedError("it has all biases or none")
    return {
        **write_sizes(config, "ffn_dim"),
        "word_embed_proj_dim": config.d_model,
        "do_layer_norm_before": config.norm == "pre",
        "enable_bias": config.mlp_bias,
        "activation_function": THEIR_ACTIVATIONS[config.activation],
        "tie_word_embeddings": config.tie_embeddings,
        "bos_token_id": None,
        "eos_token_id": None,
        "pad_token_id": None,
    }


def weights(config: ModelConfig, fields: Fields) -> list[Weight]:
    narrow, has_gains = table_width(fields), fields.flag("layer_norm_elementwise_affine", True)
    table, vocab, width = "embed_tokens.weight", config.vocab_size, config.d_model
    found = [Weight("embed.weight", (table,))]
    if narrow:
        shapes = ((vocab, narrow), (width, narrow))
        found = [Weight("embed.weight", (table, "project_in.weight"), shapes=shapes)]
    found.append(Weight("pos_embed.weight", ("embed_positions.weight",), skipped=OFFSET))
    for layer in range(config.n_layers):
        ours, theirs = f"blocks.{layer}.", f"layers.{layer}."
        for own, other in (("ln1", "self_attn_layer_norm"), ("ln2", "final_layer_norm")):
            found += norm(config, ours + own, theirs + other if has_gains else None, bias=True)
        names = [f"{theirs}self_attn.{part}_proj" for part in "qkv"]
        found += linear(f"{ours}attn.qkv", *names, bias=config.attention_bias)
        found += linear(f"{ours}attn.out", f"{theirs}self_attn.out_proj", bias=config.has_out_bias)
        found += linear(f"{ours}mlp.up", f"{theirs}fc1", bias=config.mlp_bias)
        found += linear(f"{ours}mlp.down", f"{theirs}fc2", bias=config.mlp_bias)
    if config.has_final_norm:
        found += norm(config, "ln_final", "final_layer_norm" if has_gains else None, bias=True)
    if narrow:
        head = table if fields.flag("tie_word_embeddings", True) else "lm_head.weight"
        shapes = ((vocab, narrow), (narrow, width))
        return [*found, Weight("unembed.weight", (head, "project_out.weight"), shapes=shapes)]
    return [*found, *unembedding(config)]


def notes(fields: Fields) -> list[str]:
    return ["Its table of embeddings is as it is once widened to the stream."] if table_width(fields) else []


OPT = Family(
    name="OPT",
    model_type="opt",
    architecture="OPTForCausalLM",
    prefix="model.decoder.",
    ignored=r"lm_head\.weight",
    read_config=read_config,
    write_config=write_config,
    weights=weights,
    notes=notes,
)
