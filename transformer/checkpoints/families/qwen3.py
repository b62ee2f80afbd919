"""Qwen3 (Yang et al. 2025): Llama with norms on queries and keys, and optional sliding windows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...config import ModelConfig
from .family import Fields
from .llama import LLAMA, biases, common_fields, write_common
from .qwen2 import windows, written_sliding


def read_config(fields: Fields) -> ModelConfig:
    common = common_fields(fields, head_width=128)
    return ModelConfig(
        **common,
        **biases(fields.flag("attention_bias", False)),
        mlp_bias=False,
        qk_norm="head",
        attention_windows=windows(fields, common["n_layers"]),
    )


def write_config(config: ModelConfig) -> dict[str, Any]:
    return {**write_common(config), **written_sliding(config), "attention_bias": config.attention_bias}


QWEN3 = replace(
    LLAMA,
    name="Qwen3",
    model_type="qwen3",
    architecture="Qwen3ForCausalLM",
    read_config=read_config,
    write_config=write_config,
)
