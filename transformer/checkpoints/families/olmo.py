"""OLMo 1, 2 and 3 (Groeneveld et al. 2024; OLMo Team 2024, 2025).

The first has norms without gains, and may clip queries, keys and values; the others have norms after each sublayer,
before its output is added, and over all heads' queries and keys; the third has windows in three layers of four.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from ...config import ModelConfig
from .family import Fields, UnsupportedError
from .llama import LLAMA, biases, common_fields, weights, write_common, written_windows
from .rope_scaling import kind_of, rotary_parameters, written_by_kind

EPSILON = 1e-5
"""Fixed in OLMo 1's norms, the default in the others'."""


def read_first(fields: Fields) -> ModelConfig:
    """Our configuration from the config.json of an OLMo 1."""
    clip = None if fields.get("clip_qkv") is None else fields.number("clip_qkv", 1.0)
    common = {**common_fields(fields), "norm_kind": "layer", "layer_norm_eps": EPSILON}
    return ModelConfig(**common, **biases(fields.flag("attention_bias", False)), mlp_bias=False, qkv_clip=clip)


def read_second(fields: Fields) -> ModelConfig:
    """Our configuration from the config.json of an OLMo 2."""
    return ModelConfig(**_of_later(fields, 10_000.0))


def _of_later(fields: Fields, base: float) -> dict[str, Any]:
    return {
        **common_fields(fields, epsilon=EPSILON, base=base),
        **biases(fields.flag("attention_bias", False)),
        "mlp_bias": False,
        "norm": "res-post",
        "qk_norm": "all",
    }


def read_third(fields: Fields) -> ModelConfig:
    """Our configuration from the config.json of an OLMo 3, which scales rotary positions only without a window."""
    found = _of_later(fields, 500_000.0)
    windows = fields.windows(found["n_layers"], lambda layer: (layer + 1) % 4 != 0, 4096)
    near = rotary_parameters(fields, "sliding_attention")
    if kind_of(near) != "default":
        raise UnsupportedError("it scales rotary positions in its sliding_attention layers")
    local = Fields({"rope_theta": near.get("rope_theta", fields.get("rope_theta"))}).number("rope_theta", 500_000.0)
    is_plain = local == found["rotary_base"] and not found["rotary_factors"] and found["rotary_scale"] == 1
    own = local if windows and not is_plain else None
    return ModelConfig(**found, attention_windows=windows, window_rotary_base=own)


def write_first(config: ModelConfig) -> dict[str, Any]:
    """The config.json of an OLMo 1 from our configuration."""
    said = {**write_common(config), "attention_bias": config.attention_bias, "clip_qkv": config.qkv_clip}
    del said["rms_norm_eps"]
    return said


def write_second(config: ModelConfig) -> dict[str, Any]:
    """The config.json of an OLMo 2 from our configuration."""
    return {**write_common(config), "attention_bias": config.attention_bias}


def write_third(config: ModelConfig) -> dict[str, Any]:
    """The config.json of an OLMo 3 from our configuration."""
    said = {**write_second(config), **written_windows(config), "rope_parameters": written_by_kind(config)}
    return {**said, "sliding_window": said["sliding_window"] or 1}


OLMO = replace(
    LLAMA,
    name="OLMo",
    model_type="olmo",
    architecture="OlmoForCausalLM",
    read_config=read_first,
    write_config=write_first,
    weights=partial(weights, norms={"ln1": None, "ln2": None}, final=None),
)
OLMO2 = replace(
    LLAMA,
    name="OLMo 2",
    model_type="olmo2",
    architecture="Olmo2ForCausalLM",
    read_config=read_second,
    write_config=write_second,
    weights=partial(
        weights,
        norms={"ln1_post": "post_attention_layernorm", "ln2_post": "post_feedforward_layernorm"},
        head_gains="as it is",
    ),
)
OLMO3 = replace(
    OLMO2,
    name="OLMo 3",
    model_type="olmo3",
    architecture="Olmo3ForCausalLM",
    read_config=read_third,
    write_config=write_third,
)
