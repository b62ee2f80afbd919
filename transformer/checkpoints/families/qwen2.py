"""Qwen2 (Yang et al. 2024): Llama with biases on queries, keys and values, and optional sliding windows."""

from __future__ import annotations

from typing import Any

from ...config import ModelConfig
from .family import Family, Fields, UnsupportedError
from .llama import LLAMA, common_fields, weights, write_common


def read_config(fields: Fields) -> ModelConfig:
    """What config.json says, as our configuration."""
    common = common_fields(fields)
    return ModelConfig(
        **common,
        attention_bias=True,
        attention_out_bias=False,
        mlp_bias=False,
        attention_windows=windows(fields, common["n_layers"]),
    )


def windows(fields: Fields, layers: int) -> tuple[int, ...]:
    """What each layer sees: all, but for those above max_window_layers, or those that layer_types names."""
    window, first = fields.whole("sliding_window", 4096), fields.get("max_window_layers", 28)
    kinds = fields.layer_kinds(layers)
    if not fields.flag("use_sliding_window", False):
        if kinds and "sliding_attention" in kinds:
            raise UnsupportedError("its layer_types name sliding_attention, which use_sliding_window turns off")
        return ()
    if not isinstance(first, int):
        raise UnsupportedError(f"its max_window_layers is {str(first)[:60]!r}, where a whole number should be")
    kinds = kinds or ["sliding_attention" if layer >= first else "full_attention" for layer in range(layers)]
    return tuple(window if kind == "sliding_attention" else 0 for kind in kinds)


def write_config(config: ModelConfig) -> dict[str, Any]:
    """What config.json says of our configuration."""
    near = [config.window(layer) for layer in range(config.n_layers)]
    return {
        **write_common(config),
        "use_sliding_window": any(near),
        "sliding_window": max([*near, 1]),
        "layer_types": ["sliding_attention" if window else "full_attention" for window in near],
    }


QWEN2 = Family(
    name="Qwen2",
    model_type="qwen2",
    architecture="Qwen2ForCausalLM",
    prefix=LLAMA.prefix,
    ignored=LLAMA.ignored,
    read_config=read_config,
    write_config=write_config,
    weights=weights,
)
