"""SmolLM3 (Bakouch et al. 2025): Llama in which every fourth layer knows no positions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...config import ModelConfig
from .family import Fields, UnsupportedError
from .llama import LLAMA, biases, common_fields, write_common
from .qwen2 import written_sliding


def read_config(fields: Fields) -> ModelConfig:
    common = common_fields(fields, tied=True, base=2_000_000.0)
    fields.get("max_window_layers")  # left over from Qwen2 in the files, and unused
    layers, every = common["n_layers"], fields.whole("no_rope_layer_interval", 4)
    rotated = fields.get("no_rope_layers") or [int((layer + 1) % every != 0) for layer in range(layers)]
    if not isinstance(rotated, list) or len(rotated) != layers or not {*map(str, rotated)} <= {"0", "1"}:
        raise UnsupportedError("its no_rope_layers don't say 0 or 1 for each layer")
    windows = fields.windows(layers, lambda layer: not rotated[layer])
    if not fields.flag("use_sliding_window", False):
        if windows and fields.says("layer_types"):
            raise UnsupportedError("its layer_types name sliding_attention, which use_sliding_window turns off")
        windows = ()
    return ModelConfig(
        **common,
        **biases(fields.flag("attention_bias", False)),
        mlp_bias=fields.flag("mlp_bias", False),
        unrotated_layers=tuple(layer for layer in range(layers) if not rotated[layer]),
        attention_windows=windows,
    )


def write_config(config: ModelConfig) -> dict[str, Any]:
    return {
        **write_common(config),
        **written_sliding(config),
        "attention_bias": config.attention_bias,
        "mlp_bias": config.mlp_bias,
        "no_rope_layers": [int(config.is_rotated(layer)) for layer in range(config.n_layers)],
    }


SMOLLM3 = replace(
    LLAMA,
    name="SmolLM3",
    model_type="smollm3",
    architecture="SmolLM3ForCausalLM",
    read_config=read_config,
    write_config=write_config,
)
