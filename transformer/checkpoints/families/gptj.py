"""GPT-J (Wang & Komatsuzaki 2021): sublayers side by side after one norm, part of each head rotated."""

from __future__ import annotations

from typing import Any

from ...config import ModelConfig
from .family import THEIR_ACTIVATIONS, Family, Fields, Weight, linear, norm, unembedding


def read_config(fields: Fields) -> ModelConfig:
    """Our configuration from config.json."""
    width, heads = fields.whole("n_embd"), fields.whole("n_head")
    dims = fields.whole("rotary_dim", 64)
    for name in ("rotary", "scale_attn_weights"):
        fields.expect(name, True)
    return ModelConfig(
        vocab_size=fields.whole("vocab_size"),
        context_length=fields.whole("n_positions"),
        n_layers=fields.layers("n_layer"),
        n_heads=heads,
        d_model=width,
        d_ff=fields.whole("n_inner", 4 * width),
        positions="rotary",
        rotary_dims=None if dims * heads == width else dims,
        activation=fields.activation("activation_function", "gelu_new"),
        layer_norm_eps=fields.number("layer_norm_epsilon", 1e-5),
        attention_bias=False,
        unembed_bias=True,
        parallel_residual=True,
        tie_embeddings=fields.flag("tie_word_embeddings", False),
    )


def write_config(config: ModelConfig) -> dict[str, Any]:
    """config.json from our configuration."""
    return {
        "vocab_size": config.vocab_size,
        "n_positions": config.context_length,
        "n_layer": config.n_layers,
        "n_head": config.n_heads,
        "n_embd": config.d_model,
        "n_inner": config.d_ff,
        "rotary_dim": config.rotated_dims,
        "activation_function": THEIR_ACTIVATIONS[config.activation],
        "layer_norm_epsilon": config.layer_norm_eps,
        "tie_word_embeddings": config.tie_embeddings,
        "bos_token_id": None,
        "eos_token_id": None,
    }


def weights(config: ModelConfig, fields: Fields) -> list[Weight]:
    """Where each parameter is in the files."""
    found = [Weight("embed.weight", ("wte.weight",))]
    for layer in range(config.n_layers):
        ours, theirs = f"blocks.{layer}.", f"h.{layer}."
        for own in ("ln1", "ln2"):
            found += norm(config, ours + own, f"{theirs}ln_1", bias=True)
        found += linear(f"{ours}attn.qkv", *(f"{theirs}attn.{part}_proj" for part in "qkv"), bias=False)
        found += linear(f"{ours}attn.out", f"{theirs}attn.out_proj", bias=False)
        found += linear(f"{ours}mlp.up", f"{theirs}mlp.fc_in", bias=True)
        found += linear(f"{ours}mlp.down", f"{theirs}mlp.fc_out", bias=True)
    return [*found, *norm(config, "ln_final", "ln_f", bias=True), *unembedding(config, bias=True)]


GPTJ = Family(
    name="GPT-J",
    model_type="gptj",
    architecture="GPTJForCausalLM",
    prefix="transformer.",
    ignored=r"h\.\d+\.attn\.(masked_)?bias",
    read_config=read_config,
    write_config=write_config,
    weights=weights,
    notes=lambda fields: ["Its one norm a layer stands in both places."],
)
