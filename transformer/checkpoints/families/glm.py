"""GLM-4 (GLM Team 2024): half of each head is rotated, gate and up projection are one matrix.

The later kind, called glm4, has norms after each sublayer too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from ...config import ModelConfig
from .family import Fields
from .llama import LLAMA, common_fields, weights, write_share

SANDWICH: Mapping[str, str] = {
    "ln1": "input_layernorm",
    "ln1_post": "post_self_attn_layernorm",
    "ln2": "post_attention_layernorm",
    "ln2_post": "post_mlp_layernorm",
}


def read_first(fields: Fields) -> ModelConfig:
    return ModelConfig(**_of_both(fields))


def _of_both(fields: Fields) -> dict[str, Any]:
    return {
        **common_fields(fields, head_width=128, turns_part=True, epsilon=1.5625e-7, share=0.5),
        "attention_bias": fields.flag("attention_bias", True),
        "attention_out_bias": False,
        "mlp_bias": False,
        "rotary_pairs": "neighbours",
    }


def read_second(fields: Fields) -> ModelConfig:
    """Our configuration from the config.json of the later kind."""
    return ModelConfig(**_of_both(fields), norm="sandwich")


def write_config(config: ModelConfig) -> dict[str, Any]:
    return {**write_share(config), "attention_bias": config.attention_bias}


GLM = replace(
    LLAMA,
    name="GLM-4",
    model_type="glm",
    architecture="GlmForCausalLM",
    read_config=read_first,
    write_config=write_config,
    weights=partial(weights, fused_gate=True),
)
GLM4 = replace(
    GLM,
    name="GLM-4-0414",
    model_type="glm4",
    architecture="Glm4ForCausalLM",
    read_config=read_second,
    weights=partial(weights, fused_gate=True, norms=SANDWICH),
)
