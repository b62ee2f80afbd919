"""GPT-J (Wang & Komatsuzaki 2021): sublayers side by side after one norm, part of each head rotated."""

from __future__ import annotations

from typing import Any

from ...config import ModelConfig
from .family import Family, Fields, Weight, linear, norm, unembedding
from .gpt2 import read_common, write_common


def read_config(fields: Fields) -> ModelConfig:
    common, dims = read_common(fields), fields.whole("rotary_dim", 64)
    for name in ("rotary", "scale_attn_weights"):
        fields.expect(name, True)
    return ModelConfig(
        **common,
        positions="rotary",
        rotary_dims=None if dims * common["n_heads"] == common["d_model"] else dims,
        attention_bias=False,
        unembed_bias=True,
        parallel_residual=True,
        tie_embeddings=fields.flag("tie_word_embeddings", False),
    )


def write_config(config: ModelConfig) -> dict[str, Any]:
    return {**write_common(config), "rotary_dim": config.rotated_dims}


def weights(config: ModelConfig, fields: Fields) -> list[Weight]:
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
