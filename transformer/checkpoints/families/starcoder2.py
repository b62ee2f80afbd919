"""StarCoder2 (Lozhkov et al. 2024): Llama's attention with sliding windows, GPT-2's norms and feed-forward layers."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from ...config import ModelConfig
from .family import Fields, UnsupportedError
from .llama import LLAMA, biases, common_fields, weights
from .mistral import write_config as write_mistral


def read_config(fields: Fields) -> ModelConfig:
    common, has_bias = common_fields(fields), fields.flag("use_bias", True)
    for name, value in {"norm_type": "layer_norm", "mlp_type": "default", "scale_attn_weights": True}.items():
        fields.expect(name, value)
    for name in ("activation_function", "layer_norm_epsilon"):  # repeat other fields
        fields.get(name)
    common |= {
        "norm_kind": "layer",
        "layer_norm_eps": fields.number("norm_epsilon", 1e-5),
        "mlp_gate": False,
        "activation": fields.activation("hidden_act", "gelu_pytorch_tanh"),
        "tie_embeddings": fields.flag("tie_word_embeddings", True),
    }
    windows = fields.windows(common["n_layers"])
    return ModelConfig(**common, **biases(has_bias), mlp_bias=has_bias, attention_windows=windows)


def write_config(config: ModelConfig) -> dict[str, Any]:
    if config.attention_bias != config.mlp_bias:
        raise UnsupportedError("it has all biases or none")
    said = write_mistral(config)
    return {**said, "norm_epsilon": said.pop("rms_norm_eps"), "use_bias": config.mlp_bias}


STARCODER2 = replace(
    LLAMA,
    name="StarCoder2",
    model_type="starcoder2",
    architecture="Starcoder2ForCausalLM",
    read_config=read_config,
    write_config=write_config,
    weights=partial(weights, norm_bias=True, up="c_fc", down="c_proj"),
)
