"""Cohere's Command R and R7B: attention and feed-forward layer side by side, after one norm.

The second kind rotates queries and keys only in its layers with windows, three of four.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ...config import ModelConfig
from .family import Fields, Weight
from .llama import LLAMA, Factors, biases, common_fields, weights, write_common, written_windows
from .rope_scaling import notes_on_rotation

SAID_AGAIN = (
    *("layer_switch", "order_of_interleaved_layers", "position_embedding_type", "rotary_pct"),
    *("use_embedding_sharing", "use_gated_activation", "use_parallel_block", "use_parallel_embedding"),
)
"""Fields of a Command R7B's files that repeat what every model of its type is."""
ONE_NORM: Mapping[str, str] = {"ln1": "input_layernorm", "ln2": "input_layernorm"}


def read_first(fields: Fields) -> ModelConfig:
    """Our configuration from the config.json of a Command R."""
    qk_norm = "head" if fields.flag("use_qk_norm", False) else "none"
    return ModelConfig(**_of_both(fields, 500_000.0), qk_norm=qk_norm)


def _of_both(fields: Fields, base: float) -> dict[str, Any]:
    fields.number("logit_scale", 0.0625)
    return {
        **common_fields(fields, tied=True, base=base),
        **biases(fields.flag("attention_bias", False)),
        "mlp_bias": False,
        "norm_kind": "layer",
        "layer_norm_eps": fields.number("layer_norm_eps", 1e-5),
        "parallel_residual": True,
        "rotary_pairs": "neighbours",
    }


def read_second(fields: Fields) -> ModelConfig:
    """Our configuration from the config.json of a Command R7B."""
    found = _of_both(fields, 10_000.0)
    for name in SAID_AGAIN:
        fields.get(name)
    every = fields.whole("sliding_window_pattern", 4)
    windows = fields.windows(found["n_layers"], lambda layer: (layer + 1) % every != 0, 4096)
    unrotated = tuple(layer for layer in range(found["n_layers"]) if not (windows and windows[layer]))
    return ModelConfig(**found, attention_windows=windows, unrotated_layers=unrotated)


def write_first(config: ModelConfig) -> dict[str, Any]:
    """The config.json of a Command R from our configuration."""
    return {**_written(config), "use_qk_norm": config.qk_norm == "head"}


def _written(config: ModelConfig) -> dict[str, Any]:
    said = {**write_common(config), "attention_bias": config.attention_bias, "logit_scale": 1.0}
    return {**said, "layer_norm_eps": said.pop("rms_norm_eps")}


def write_second(config: ModelConfig) -> dict[str, Any]:
    """The config.json of a Command R7B from our configuration."""
    said = {**_written(config), **written_windows(config)}
    return {**said, "sliding_window": said["sliding_window"] or 1}


def weights_of_both(config: ModelConfig, fields: Fields) -> list[Weight]:
    factors = Factors(logits=fields.number("logit_scale", 0.0625))
    return weights(config, fields, norms=ONE_NORM, factors=factors, head_gains="in rows")


COHERE = replace(
    LLAMA,
    name="Cohere",
    model_type="cohere",
    architecture="CohereForCausalLM",
    read_config=read_first,
    write_config=write_first,
    weights=weights_of_both,
    notes=lambda fields: [
        *notes_on_rotation(fields),
        "Its one norm a layer is read twice, once for each sublayer; the scale of its logits is part of its last norm.",
    ],
)
COHERE2 = replace(
    COHERE,
    name="Cohere 2",
    model_type="cohere2",
    architecture="Cohere2ForCausalLM",
    read_config=read_second,
    write_config=write_second,
)
