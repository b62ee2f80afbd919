"""Llama (Touvron et al. 2023; also SmolLM, SmolLM2, TinyLlama): RMSNorm, SwiGLU, grouped-query attention."""

from __future__ import annotations

from typing import Any

from ...config import ModelConfig
from .family import THEIR_ACTIVATIONS, Family, Fields, UnsupportedError, Weight, linear, unembedding


def read_config(fields: Fields) -> ModelConfig:
    """What config.json says, as our configuration."""
    if "sliding_attention" in (fields.layer_kinds(fields.layers("num_hidden_layers")) or ()):
        raise UnsupportedError("its layer_types name sliding_attention, which no Llama has")
    return ModelConfig(
        **common_fields(fields), **biases(fields.flag("attention_bias", False)), mlp_bias=fields.flag("mlp_bias", False)
    )


def common_fields(fields: Fields) -> dict[str, Any]:
    """What Llama and Qwen2 have in common."""
    heads, layers = fields.whole("num_attention_heads"), fields.layers("num_hidden_layers")
    base, fraction = fields.rotation()
    if fraction != 1:
        raise UnsupportedError(f"it turns {fraction} of each head, where all of it is known")
    own_width = fields.get("head_dim")
    return {
        "vocab_size": fields.whole("vocab_size"),
        "context_length": fields.whole("max_position_embeddings"),
        "n_layers": layers,
        "n_heads": heads,
        "d_model": fields.whole("hidden_size"),
        "n_kv_heads": fields.whole("num_key_value_heads", heads),
        "d_ff": fields.whole("intermediate_size"),
        "head_width": None if own_width is None else fields.whole("head_dim"),
        "norm_kind": "rms",
        "mlp_gate": True,
        "layer_norm_eps": fields.number("rms_norm_eps", 1e-6),
        "positions": "rotary",
        "rotary_base": base,
        "rotary_pairs": "halves",
        "activation": fields.activation("hidden_act", "silu"),
        "tie_embeddings": fields.flag("tie_word_embeddings", False),
    }


def biases(of_all: bool) -> dict[str, Any]:
    """Of queries, keys, values and W_O."""
    return {"attention_bias": of_all, "attention_out_bias": of_all}


def write_config(config: ModelConfig) -> dict[str, Any]:
    """What config.json says of our configuration."""
    return {**write_common(config), "attention_bias": config.attention_bias, "mlp_bias": config.mlp_bias}


def write_common(config: ModelConfig) -> dict[str, Any]:
    """What Llama and Qwen2 have in common."""
    return {
        "vocab_size": config.vocab_size,
        "max_position_embeddings": config.context_length,
        "num_hidden_layers": config.n_layers,
        "num_attention_heads": config.n_heads,
        "hidden_size": config.d_model,
        "num_key_value_heads": config.kv_heads,
        "intermediate_size": config.d_ff,
        "head_dim": config.d_head,
        "rms_norm_eps": config.layer_norm_eps,
        "rope_theta": config.rotary_base,
        "rope_parameters": {"rope_type": "default", "rope_theta": config.rotary_base},
        "hidden_act": THEIR_ACTIVATIONS[config.activation],
        "tie_word_embeddings": config.tie_embeddings,
        "bos_token_id": None,
        "eos_token_id": None,
    }


def weights(config: ModelConfig) -> list[Weight]:
    """Where each parameter stands."""
    found = [Weight("embed.weight", ("embed_tokens.weight",))]
    for layer in range(config.n_layers):
        ours, theirs = f"blocks.{layer}.", f"layers.{layer}."
        qkv = [f"{theirs}self_attn.{part}_proj" for part in "qkv"]
        found += linear(f"{ours}ln1", f"{theirs}input_layernorm", bias=False)
        found += linear(f"{ours}ln2", f"{theirs}post_attention_layernorm", bias=False)
        found += linear(f"{ours}attn.qkv", *qkv, bias=config.attention_bias)
        found += linear(f"{ours}attn.out", f"{theirs}self_attn.o_proj", bias=config.has_out_bias)
        for part in ("gate", "up", "down"):
            found += linear(f"{ours}mlp.{part}", f"{theirs}mlp.{part}_proj", bias=config.mlp_bias)
    return [*found, *linear("ln_final", "norm", bias=False), *unembedding(config)]


LLAMA = Family(
    name="Llama",
    model_type="llama",
    architecture="LlamaForCausalLM",
    prefix="model.",
    ignored=r"(layers\.\d+\.self_attn\.)?rotary_emb\.inv_freq",
    read_config=read_config,
    write_config=write_config,
    weights=weights,
)
