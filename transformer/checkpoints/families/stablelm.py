"""StableLM (Bellagente et al. 2024): Llama with layer norms, a quarter of each head rotated."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...config import ModelConfig
from .family import Fields, Weight
from .llama import LLAMA, PRE_NORMS, common_fields, weights, write_share


def read_config(fields: Fields) -> ModelConfig:
    return ModelConfig(
        **{
            **common_fields(fields, turns_part=True, share=0.25),
            "norm_kind": "layer",
            "layer_norm_eps": fields.number("layer_norm_eps", 1e-5),
        },
        attention_bias=fields.flag("use_qkv_bias", False),
        attention_out_bias=False,
        mlp_bias=False,
        parallel_residual=fields.flag("use_parallel_residual", False),
        qk_norm="head" if fields.flag("qk_layernorm", False) else "none",
    )


def write_config(config: ModelConfig) -> dict[str, Any]:
    said = write_share(config)
    del said["head_dim"]
    return {
        **said,
        "layer_norm_eps": said.pop("rms_norm_eps"),
        "use_qkv_bias": config.attention_bias,
        "use_parallel_residual": config.parallel_residual,
        "qk_layernorm": config.qk_norm == "head",
    }


def weights_of_heads(config: ModelConfig, fields: Fields) -> list[Weight]:
    """Where each parameter is in the files: the norm of each head's queries has a name of its own."""
    norms = {"ln1": "input_layernorm", "ln2": "input_layernorm"} if config.parallel_residual else PRE_NORMS
    found = weights(config, fields, norms=norms, norm_bias=True, qk_norms="{}_layernorm")
    return [_by_head(config, weight) for weight in found]


def _by_head(config: ModelConfig, weight: Weight) -> Weight:
    if not weight.theirs or "_norm.weight" not in weight.ours:
        return weight
    heads = config.n_heads if "q_norm" in weight.ours else config.kv_heads
    name = weight.theirs[0].removesuffix(".weight")
    return Weight(weight.ours, tuple(f"{name}.norms.{head}.weight" for head in range(heads)))


STABLELM = replace(
    LLAMA,
    name="StableLM",
    model_type="stablelm",
    architecture="StableLmForCausalLM",
    read_config=read_config,
    write_config=write_config,
    weights=weights_of_heads,
)
