"""Phi-3 and Phi-4 (Abdin et al. 2024): Llama with queries, keys and values in one matrix, and gate and up in one."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from ...config import ModelConfig
from .family import Fields, UnsupportedError
from .llama import LLAMA, biases, common_fields, weights
from .mistral import windows_of_all
from .mistral import write_config as write_common
from .rope_scaling import kind_of, rotary_parameters

WITHOUT_EFFECT = ("original_max_position_embeddings", "full_attn_mod", "interpolate_factor")
"""The first applies to scaling only; Phi-4-mini's files have the others without computing them."""


def read_config(fields: Fields) -> ModelConfig:
    common = common_fields(fields, turns_part=True, epsilon=1e-5)
    if kind_of(rotary_parameters(fields)) == "longrope":
        fields.whole("original_max_position_embeddings")  # required, since it overrides the value inside
    for name in WITHOUT_EFFECT:
        fields.get(name)
    windows = windows_of_all(fields, common["n_layers"])
    return ModelConfig(**common, **biases(False), mlp_bias=False, attention_windows=windows)


def write_config(config: ModelConfig) -> dict[str, Any]:
    if config.d_head != config.d_model // config.n_heads:
        raise UnsupportedError("its heads are as wide as the stream, divided")
    said = write_common(config)
    return {**said, "original_max_position_embeddings": config.context_length}


PHI3 = replace(
    LLAMA,
    name="Phi-3",
    model_type="phi3",
    architecture="Phi3ForCausalLM",
    read_config=read_config,
    write_config=write_config,
    weights=partial(weights, fused=True, fused_gate=True),
)
