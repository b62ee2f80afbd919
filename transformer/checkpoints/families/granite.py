"""Granite (Granite Team 2024): Llama with four multipliers, which are folded into the weights."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...config import ModelConfig
from .family import Fields, Weight
from .llama import LLAMA, Factors, weights
from .llama import read_config as read_llama
from .llama import write_config as write_llama
from .rope_scaling import notes_on_rotation


def read_config(fields: Fields) -> ModelConfig:
    _factors(fields)
    return read_llama(fields)


def _factors(fields: Fields) -> Factors:
    return Factors(
        embeddings=fields.number("embedding_multiplier", 1.0),
        added=fields.number("residual_multiplier", 1.0),
        scores=fields.number("attention_multiplier", 1.0),
        logits=1 / fields.number("logits_scaling", 1.0),
    )


def write_config(config: ModelConfig) -> dict[str, Any]:
    neutral = dict.fromkeys(("embedding_multiplier", "residual_multiplier", "logits_scaling"), 1.0)
    return {**write_llama(config), **neutral, "attention_multiplier": config.d_head**-0.5}


def weights_with_factors(config: ModelConfig, fields: Fields) -> list[Weight]:
    return weights(config, fields, factors=_factors(fields))


GRANITE = replace(
    LLAMA,
    name="Granite",
    model_type="granite",
    architecture="GraniteForCausalLM",
    read_config=read_config,
    write_config=write_config,
    weights=weights_with_factors,
    notes=lambda fields: [*notes_on_rotation(fields), "Its multipliers are part of the weights."],
)
