"""Qwen2 (Yang et al. 2024): Llama with biases on queries, keys and values, and optional sliding windows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...config import ModelConfig
from .family import Fields, UnsupportedError
from .llama import LLAMA, common_fields, write_common, written_windows


def read_config(fields: Fields) -> ModelConfig:
    common = common_fields(fields)
    return ModelConfig(
        **common,
        attention_bias=True,
        attention_out_bias=False,
        mlp_bias=False,
        attention_windows=windows(fields, common["n_layers"]),
    )


def windows(fields: Fields, layers: int) -> tuple[int, ...]:
    """Each layer's window: only layers above max_window_layers, or those that layer_types names, have one."""
    first, kinds = fields.get("max_window_layers", 28), fields.layer_kinds(layers)
    fields.whole("sliding_window", 4096)
    if not fields.flag("use_sliding_window", False):
        if kinds and "sliding_attention" in kinds:
            raise UnsupportedError("its layer_types name sliding_attention, which use_sliding_window turns off")
        return ()
    if not isinstance(first, int):
        raise UnsupportedError(f"its max_window_layers is {str(first)[:60]!r}, where a whole number should be")
    return fields.windows(layers, lambda layer: layer >= first, 4096)


def write_config(config: ModelConfig) -> dict[str, Any]:
    return {**write_common(config), **written_sliding(config)}


def written_sliding(config: ModelConfig) -> dict[str, Any]:
    """The fields for our windows, in a family with a switch for them."""
    said = written_windows(config)
    window = said["sliding_window"]
    return {**said, "use_sliding_window": window is not None, "sliding_window": window or 1}


QWEN2 = replace(
    LLAMA,
    name="Qwen2",
    model_type="qwen2",
    architecture="Qwen2ForCausalLM",
    read_config=read_config,
    write_config=write_config,
)
