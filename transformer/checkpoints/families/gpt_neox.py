"""GPT-NeoX (Black et al. 2022; for example Pythia): parallel blocks, and rotary positions on part of each head."""

from __future__ import annotations

from typing import Any

from ...config import ModelConfig
from .family import THEIR_ACTIVATIONS, Family, Fields, Weight, linear, read_sizes, unembedding, write_sizes
from .rope_scaling import notes_on_rotation, rotary_fields, written_rotation


def read_config(fields: Fields) -> ModelConfig:
    sizes = read_sizes(fields)
    bases, shares = ("rotary_emb_base", "rope_theta"), ("rotary_pct", "partial_rotary_factor")
    rotation = rotary_fields(
        fields, max(sizes["d_model"] // sizes["n_heads"], 1), bases=bases, shares=shares, share=0.25
    )
    return ModelConfig(
        rotary_pairs="halves",
        activation=fields.activation("hidden_act", "gelu"),
        layer_norm_eps=fields.number("layer_norm_eps", 1e-5),
        attention_bias=fields.flag("attention_bias", True),
        parallel_residual=fields.flag("use_parallel_residual", True),
        tie_embeddings=fields.flag("tie_word_embeddings", False),
        **{**sizes, **rotation},
    )


def write_config(config: ModelConfig) -> dict[str, Any]:
    fraction = config.rotated_dims / config.d_head
    return {
        **write_sizes(config),
        "rotary_pct": fraction,
        "rotary_emb_base": config.rotary_base,
        "rope_parameters": {**written_rotation(config), "partial_rotary_factor": fraction},
        "hidden_act": THEIR_ACTIVATIONS[config.activation],
        "layer_norm_eps": config.layer_norm_eps,
        "attention_bias": config.attention_bias,
        "use_parallel_residual": config.parallel_residual,
        "tie_word_embeddings": config.tie_embeddings,
        "bos_token_id": None,
        "eos_token_id": None,
    }


def weights(config: ModelConfig, fields: Fields) -> list[Weight]:
    found = [Weight("embed.weight", ("embed_in.weight",))]
    for layer in range(config.n_layers):
        ours, theirs = f"blocks.{layer}.", f"layers.{layer}."
        qkv, out = f"{theirs}attention.query_key_value", f"{theirs}attention.dense"
        found += linear(f"{ours}ln1", f"{theirs}input_layernorm", bias=True)
        found += linear(f"{ours}ln2", f"{theirs}post_attention_layernorm", bias=True)
        found += linear(f"{ours}attn.qkv", qkv, bias=config.attention_bias, layout="by group")
        found += linear(f"{ours}attn.out", out, bias=config.has_out_bias)
        found += linear(f"{ours}mlp.up", f"{theirs}mlp.dense_h_to_4h", bias=True)
        found += linear(f"{ours}mlp.down", f"{theirs}mlp.dense_4h_to_h", bias=True)
    return [*found, *linear("ln_final", "final_layer_norm", bias=True), *unembedding(config, "embed_out")]


GPT_NEOX = Family(
    name="GPT-NeoX",
    model_type="gpt_neox",
    architecture="GPTNeoXForCausalLM",
    prefix="gpt_neox.",
    ignored=r"layers\.\d+\.attention\.(bias|masked_bias|rotary_emb\.inv_freq)",
    read_config=read_config,
    write_config=write_config,
    weights=weights,
    notes=notes_on_rotation,
)
