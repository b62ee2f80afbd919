"""Mistral (Jiang et al. 2023) and Ministral: Llama with sliding windows, in every layer or in some.

The third Ministral multiplies queries by more the further on they stand, by 1 as far as it read in training.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...config import ModelConfig
from .family import LAYER_KINDS, Fields, UnsupportedError
from .llama import LLAMA, biases, common_fields, write_common, written_windows
from .rope_scaling import original_context, rotary_parameters

FURTHER_ON = "llama_4_scaling_beta"
"""The factor on the logarithm of a position, measured in training contexts."""
ALSO = (FURTHER_ON, "max_position_embeddings")


def read_first(fields: Fields) -> ModelConfig:
    """Our configuration from the config.json of a Mistral."""
    common = common_fields(fields)
    windows = windows_of_all(fields, common["n_layers"], 4096)
    return ModelConfig(**common, **biases(False), mlp_bias=False, attention_windows=windows)


def windows_of_all(fields: Fields, layers: int, width: int | None = None) -> tuple[int, ...]:
    """Each layer's window in a family without layer_types. width: as in `Fields.windows`."""
    windows, kinds = fields.windows(layers, width=width), fields.layer_kinds(layers) or []
    plain = fields.get("sliding_window", None if fields.says("sliding_window") else width) is None
    if LAYER_KINDS[0] in kinds and not plain:
        raise UnsupportedError("its layer_types name full_attention, and models of its type have windows in all layers")
    return windows


def read_kinds(fields: Fields) -> ModelConfig:
    """Our configuration from the config.json of a Ministral."""
    common = common_fields(fields)
    windows = fields.windows(common["n_layers"], width=4096)
    return ModelConfig(**common, **biases(False), mlp_bias=False, attention_windows=windows)


def read_third(fields: Fields) -> ModelConfig:
    """Our configuration from the config.json of a Ministral 3."""
    if not fields.get("rope_parameters") and not fields.get("rope_scaling"):
        raise UnsupportedError("it lacks rope_parameters")
    common = common_fields(fields, head_width=128, epsilon=1e-5, also=ALSO)
    said = Fields(rotary_parameters(fields, also=ALSO))
    if said.get(FURTHER_ON):
        common["context_length"] = min(common["context_length"], original_context(said, fields))
    windows = windows_of_all(fields, common["n_layers"])
    return ModelConfig(**common, **biases(False), mlp_bias=False, attention_windows=windows)


def write_config(config: ModelConfig) -> dict[str, Any]:
    """config.json from our configuration. A Mistral's windows are in all layers or in none."""
    said = written_windows(config)
    if len(set(said.pop("layer_types"))) > 1:
        raise UnsupportedError("its layers have windows all or none")
    return {**write_common(config), **said}


def write_kinds(config: ModelConfig) -> dict[str, Any]:
    """A Ministral's config.json from our configuration."""
    said = written_windows(config)
    return {**write_common(config), **said, "sliding_window": said["sliding_window"] or 1}


def write_third(config: ModelConfig) -> dict[str, Any]:
    """A Ministral 3's config.json from our configuration."""
    said = write_config(config)
    said["rope_parameters"] |= {FURTHER_ON: 0.0, "original_max_position_embeddings": config.context_length}
    return said


def _notes_on_third(fields: Fields) -> list[str]:
    if not rotary_parameters(fields, also=ALSO).get(FURTHER_ON):
        return []
    return ["It reads as far as in training; further on its queries would be multiplied by more than 1."]


MISTRAL = replace(
    LLAMA,
    name="Mistral",
    model_type="mistral",
    architecture="MistralForCausalLM",
    read_config=read_first,
    write_config=write_config,
)
MINISTRAL = replace(
    MISTRAL,
    name="Ministral",
    model_type="ministral",
    architecture="MinistralForCausalLM",
    read_config=read_kinds,
    write_config=write_kinds,
)
MINISTRAL3 = replace(
    MISTRAL,
    name="Ministral 3",
    model_type="ministral3",
    architecture="Ministral3ForCausalLM",
    read_config=read_third,
    write_config=write_third,
    notes=_notes_on_third,
)
