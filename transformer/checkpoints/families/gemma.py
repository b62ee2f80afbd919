"""Gemma 1, 2 and 3 (Gemma Team 2024, 2024, 2025): gains are stored less 1, embeddings multiplied by √d_model.

Gemma 2 has norms before and after each sublayer, caps, and windows in every second layer; Gemma 3 norms on queries and
keys instead of caps, and another base of rotary positions where there are windows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from ...config import ModelConfig
from .family import Fields, UnsupportedError, Weight
from .llama import LLAMA, Factors, biases, common_fields, weights, write_common, written_windows
from .rope_scaling import kind_of, notes_on_rotation, rotary_parameters, written_by_kind

SANDWICH: Mapping[str, str] = {
    "ln1": "input_layernorm",
    "ln1_post": "post_attention_layernorm",
    "ln2": "pre_feedforward_layernorm",
    "ln2_post": "post_feedforward_layernorm",
}


def read_first(fields: Fields) -> ModelConfig:
    """Our configuration from the config.json of a Gemma 1."""
    found = {**common_fields(fields, head_width=256, tied=True), **_of_all(fields)}
    if fields.get("hidden_activation") is None and fields.get("hidden_act", "gelu") == "gelu":
        found["activation"] = "gelu_tanh"  # the first files call it gelu
    else:
        name = "hidden_act" if fields.get("hidden_activation") is None else "hidden_activation"
        found["activation"] = fields.activation(name, "gelu_pytorch_tanh")
    return ModelConfig(**found)


def _of_all(fields: Fields) -> dict[str, Any]:
    fields.refuse("use_bidirectional_attention", "by which tokens see what follows them")
    return {**biases(fields.flag("attention_bias", False)), "mlp_bias": False, "scale_embeddings": True}


def read_second(fields: Fields) -> ModelConfig:
    """Our configuration from the config.json of a Gemma 2."""
    found = {**common_fields(fields, head_width=256, tied=True), **_of_all(fields), **_of_later(fields)}
    windows = fields.windows(found["n_layers"], lambda layer: layer % 2 == 0, 4096)
    return ModelConfig(
        **found,
        score_cap=_cap(fields, "attn_logit_softcapping", 50.0),
        logit_cap=_cap(fields, "final_logit_softcapping", 30.0),
        attention_windows=windows,
    )


def _of_later(fields: Fields) -> dict[str, Any]:
    """The fields of Gemma 2 and 3."""
    fields.get("hidden_act")  # unused
    _scale_of_scores(fields)
    return {"norm": "sandwich", "activation": fields.activation("hidden_activation", "gelu_pytorch_tanh")}


def _cap(fields: Fields, name: str, default: float | None) -> float | None:
    """A cap, or its default if it is missing; null means none."""
    if fields.get(name) is None and (default is None or fields.says(name)):
        return None
    return fields.number(name, default or 1.0)


def read_third(fields: Fields) -> ModelConfig:
    """Our configuration from the config.json of a Gemma 3."""
    common = common_fields(fields, head_width=256, tied=True, base=1_000_000.0)
    found = {**common, **_of_all(fields), **_of_later(fields)}
    fields.refuse("attn_logit_softcapping", "which models of this type don't compute")
    every = fields.whole("sliding_window_pattern", 6)
    windows = fields.windows(found["n_layers"], lambda layer: (layer + 1) % every != 0, 4096)
    near = rotary_parameters(fields, "sliding_attention")
    if kind_of(near) != "default":
        raise UnsupportedError("it scales rotary positions in its sliding_attention layers")
    local = Fields({"rope_theta": near.get("rope_theta", fields.get("rope_local_base_freq"))})
    return ModelConfig(
        **found,
        logit_cap=_cap(fields, "final_logit_softcapping", None),
        qk_norm="head",
        attention_windows=windows,
        window_rotary_base=local.number("rope_theta", 10_000.0) if windows else None,
    )


def write_first(config: ModelConfig) -> dict[str, Any]:
    """The config.json of a Gemma 1 from our configuration."""
    return {**write_common(config), "attention_bias": config.attention_bias}


def write_second(config: ModelConfig) -> dict[str, Any]:
    """The config.json of a Gemma 2 from our configuration."""
    said = write_first(config)
    return {
        **said,
        "hidden_activation": said.pop("hidden_act"),
        "query_pre_attn_scalar": config.d_head,
        "attn_logit_softcapping": config.score_cap,
        "final_logit_softcapping": config.logit_cap,
        **written_windows(config),
        "sliding_window": written_windows(config)["sliding_window"] or 1,
        "use_bidirectional_attention": False,
    }


def write_third(config: ModelConfig) -> dict[str, Any]:
    """The config.json of a Gemma 3 from our configuration."""
    said = write_second(config)
    local = config.window_rotary_base or config.rotary_base
    return {**said, "rope_parameters": written_by_kind(config), "rope_local_base_freq": local}


def _notes(fields: Fields) -> list[str]:
    """The fields of all three."""
    said = "The gains of its norms, which are stored less 1, have it added."
    if fields.says("query_pre_attn_scalar"):
        said += " The scale of its scores is part of the weights."
    return [*notes_on_rotation(fields), said]


def _scale_of_scores(fields: Fields) -> float:
    return fields.number("query_pre_attn_scalar", 256.0) ** -0.5


def weights_of_later(config: ModelConfig, fields: Fields) -> list[Weight]:
    """Where each parameter of a Gemma 2 or 3 stands."""
    factors = Factors(scores=_scale_of_scores(fields))
    return weights(config, fields, norms=SANDWICH, factors=factors, gain_shift=1.0)


GEMMA = replace(
    LLAMA,
    name="Gemma",
    model_type="gemma",
    architecture="GemmaForCausalLM",
    read_config=read_first,
    write_config=write_first,
    weights=partial(weights, gain_shift=1.0),
    notes=_notes,
)
GEMMA2 = replace(
    GEMMA,
    name="Gemma 2",
    model_type="gemma2",
    architecture="Gemma2ForCausalLM",
    read_config=read_second,
    write_config=write_second,
    weights=weights_of_later,
)
GEMMA3 = replace(
    GEMMA,
    name="Gemma 3",
    model_type="gemma3_text",
    architecture="Gemma3ForCausalLM",
    read_config=read_third,
    write_config=write_third,
    weights=weights_of_later,
)
