"""BLOOM (Le Scao et al. 2022): ALiBi, and a norm on the embeddings."""

from __future__ import annotations

from typing import Any

from ...config import ModelConfig
from .family import Family, Fields, UnsupportedError, Weight, linear, norm, unembedding


def read_config(fields: Fields) -> ModelConfig:
    fields.refuse("apply_residual_connection_post_layernorm", "by which the stream itself is normalised")
    width = fields.whole("n_embed", fields.whole("hidden_size", 64))
    return ModelConfig(
        vocab_size=fields.whole("vocab_size"),
        context_length=fields.whole("seq_length", 2048),
        n_layers=fields.layers("num_hidden_layers" if fields.says("num_hidden_layers") else "n_layer"),
        n_heads=fields.whole("num_attention_heads" if fields.says("num_attention_heads") else "n_head"),
        d_model=width,
        positions="alibi",
        embed_norm=True,
        activation="gelu_tanh",
        layer_norm_eps=fields.number("layer_norm_epsilon", 1e-5),
        tie_embeddings=fields.flag("tie_word_embeddings", True),
    )


def write_config(config: ModelConfig) -> dict[str, Any]:
    if config.d_ff != 4 * config.d_model:
        raise UnsupportedError("its feed-forward layers are four times as wide as its stream")
    return {
        "vocab_size": config.vocab_size,
        "seq_length": config.context_length,
        "n_layer": config.n_layers,
        "n_head": config.n_heads,
        "hidden_size": config.d_model,
        "layer_norm_epsilon": config.layer_norm_eps,
        "tie_word_embeddings": config.tie_embeddings,
        "bos_token_id": None,
        "eos_token_id": None,
    }


def weights(config: ModelConfig, fields: Fields) -> list[Weight]:
    found = [Weight("embed.weight", ("word_embeddings.weight",))]
    found += norm(config, "ln_embed", "word_embeddings_layernorm", bias=True)
    for layer in range(config.n_layers):
        ours, theirs = f"blocks.{layer}.", f"h.{layer}."
        found += norm(config, f"{ours}ln1", f"{theirs}input_layernorm", bias=True)
        found += norm(config, f"{ours}ln2", f"{theirs}post_attention_layernorm", bias=True)
        qkv = f"{theirs}self_attention.query_key_value"
        found += linear(f"{ours}attn.qkv", qkv, bias=True, layout="by group")
        found += linear(f"{ours}attn.out", f"{theirs}self_attention.dense", bias=True)
        found += linear(f"{ours}mlp.up", f"{theirs}mlp.dense_h_to_4h", bias=True)
        found += linear(f"{ours}mlp.down", f"{theirs}mlp.dense_4h_to_h", bias=True)
    return [*found, *norm(config, "ln_final", "ln_f", bias=True), *unembedding(config)]


BLOOM = Family(
    name="BLOOM",
    model_type="bloom",
    architecture="BloomForCausalLM",
    prefix="transformer.",
    ignored="",
    read_config=read_config,
    write_config=write_config,
    weights=weights,
)
