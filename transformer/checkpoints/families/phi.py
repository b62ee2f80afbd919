"""Phi-1.5 and Phi-2 (Li et al. 2023): its sublayers stand side by side after one norm, with biases everywhere."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from ...config import ModelConfig
from .family import Fields
from .llama import LLAMA, biases, common_fields, weights, write_share


def read_config(fields: Fields) -> ModelConfig:
    return ModelConfig(
        **{
            **common_fields(fields, turns_part=True, share=0.5),
            "norm_kind": "layer",
            "layer_norm_eps": fields.number("layer_norm_eps", 1e-5),
            "mlp_gate": False,
            "activation": fields.activation("hidden_act", "gelu_new"),
        },
        **biases(True),
        unembed_bias=True,
        parallel_residual=True,
        qk_norm="head" if fields.flag("qk_layernorm", False) else "none",
    )


def write_config(config: ModelConfig) -> dict[str, Any]:
    said = write_share(config)
    del said["head_dim"]
    return {**said, "layer_norm_eps": said.pop("rms_norm_eps"), "qk_layernorm": config.qk_norm == "head"}


PHI = replace(
    LLAMA,
    name="Phi",
    model_type="phi",
    architecture="PhiForCausalLM",
    read_config=read_config,
    write_config=write_config,
    weights=partial(
        weights,
        norms={"ln1": "input_layernorm", "ln2": "input_layernorm"},
        final="final_layernorm",
        norm_bias=True,
        head_norm_bias=True,
        qk_norms="{}_layernorm",
        out="dense",
        up="fc1",
        down="fc2",
    ),
)
