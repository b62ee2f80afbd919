"""GPT-BigCode (Ben Allal et al. 2023, SantaCoder; StarCoder): GPT-2 whose heads share one of keys and values."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...config import ModelConfig
from .family import Fields, Weight, linear
from .gpt2 import GPT2
from .gpt2 import weights as weights_of_gpt2
from .gpt2 import write_config as write_gpt2


def read_config(fields: Fields) -> ModelConfig:
    found = GPT2.read_config(fields)
    fields.get("num_key_value_heads")  # set by multi_query
    is_shared = fields.flag("multi_query", True)
    activation = fields.activation("activation_function", "gelu_pytorch_tanh")
    return replace(found, n_kv_heads=1 if is_shared else None, activation=activation)


def write_config(config: ModelConfig) -> dict[str, Any]:
    return {**write_gpt2(config), "multi_query": config.kv_heads == 1}


def weights(config: ModelConfig, fields: Fields) -> list[Weight]:
    """Where each parameter is in the files: as in GPT-2, but not transposed."""
    found = [replace(weight, layout="as it is") for weight in weights_of_gpt2(config, fields)]
    if config.kv_heads == 1:
        return found
    by_group = {
        weight.ours: weight
        for layer in range(config.n_layers)
        for weight in linear(f"blocks.{layer}.attn.qkv", f"h.{layer}.attn.c_attn", bias=True, layout="by group")
    }
    return [by_group.get(weight.ours, weight) for weight in found]


GPT_BIGCODE = replace(
    GPT2,
    name="GPT-BigCode",
    model_type="gpt_bigcode",
    architecture="GPTBigCodeForCausalLM",
    read_config=read_config,
    write_config=write_config,
    weights=weights,
)
