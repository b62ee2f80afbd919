"""Maps the architectures of GGUF files to families: fields to config.json's, tensors to the family's layout.

Tensors have the names of the package `gguf`. llama.cpp's converter lays some tensors out differently from the family's
own files: queries, keys and values in a row, transposed maps, gains with 1 added.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from gguf import MODEL_ARCH_NAMES, TensorNameMap, get_tensor_name_map

from ..config import ModelConfig
from .families import FAMILIES
from .families.family import Family, Fields, Weight

Shapes = Mapping[str, tuple[int, ...]]
Told = dict[str, Any]
"""A file's fields, without the architecture's name; reading one removes it."""
_SIZES = {
    "hidden_size": "embedding_length",
    "num_hidden_layers": "block_count",
    "num_attention_heads": "attention.head_count",
    "max_position_embeddings": "context_length",
}
"""The names in a file, by their names in config.json."""
_LLAMA = _SIZES | {
    "num_key_value_heads": "attention.head_count_kv",
    "head_dim": "attention.key_length",
    "intermediate_size": "feed_forward_length",
}
_RMS = _LLAMA | {"rms_norm_eps": "attention.layer_norm_rms_epsilon"}
_EPS = "attention.layer_norm_epsilon"
_GPT2 = {
    "n_embd": "embedding_length",
    "n_layer": "block_count",
    "n_head": "attention.head_count",
    "n_inner": "feed_forward_length",
    "n_positions": "context_length",
    "layer_norm_epsilon": _EPS,
}
_BLOOM = {
    "hidden_size": "embedding_length",
    "n_layer": "block_count",
    "n_head": "attention.head_count",
    "seq_length": "context_length",
    "layer_norm_epsilon": _EPS,
}
_GEMMA2 = {
    "sliding_window": "attention.sliding_window",
    "attn_logit_softcapping": "attn_logit_softcapping",
    "final_logit_softcapping": "final_logit_softcapping",
}
_GRANITE = {
    "attention_multiplier": "attention.scale",
    "embedding_multiplier": "embedding_scale",
    "residual_multiplier": "residual_scale",
    "logits_scaling": "logit_scale",
}


@dataclass(frozen=True)
class Kind:
    """One architecture of GGUF."""

    model_type: str
    """The family's, as in config.json."""
    fields: Mapping[str, str] = field(default_factory=lambda: _RMS)
    """The names in a file, by their names in config.json."""
    more: Callable[[Told, Shapes], dict[str, Any]] = lambda told, shapes: {}
    """Makes the other fields of config.json."""
    turns_neighbours: bool = False
    """Whether the rows of W_Q and W_K are ordered so that neighbouring dimensions are rotated together."""
    is_rotary: bool = True


def _biases(told: Told, shapes: Shapes) -> dict[str, Any]:
    return {"attention_bias": "blk.0.attn_q.bias" in shapes, "mlp_bias": "blk.0.ffn_up.bias" in shapes}


def _granite(told: Told, shapes: Shapes) -> dict[str, Any]:
    plain = {} if "attention.scale" in told else {"attention_multiplier": _head_width(told) ** -0.5}
    return _biases(told, shapes) | plain


def _later_gemma(layers: int) -> Callable[[Told, Shapes], dict[str, Any]]:
    """layers: the number in the largest model, whose scores are divided by √(d_model / heads) instead of √d_head."""

    def more(told: Told, shapes: Shapes) -> dict[str, Any]:
        is_largest = told.get("block_count") == layers
        width = told["embedding_length"] // told["attention.head_count"] if is_largest else _head_width(told)
        return {"query_pre_attn_scalar": width}

    return more


def _falcon(told: Told, shapes: Shapes) -> dict[str, Any]:
    kv_heads = told.pop("attention.head_count_kv", 1)
    found = {"multi_query": kv_heads == 1, "bias": _has_qkv_bias(shapes)}
    if kv_heads == 1:
        return found
    norms = 2 if "blk.0.attn_norm_2.weight" in shapes else 1
    return {**found, "new_decoder_architecture": True, "num_kv_heads": kv_heads, "num_ln_in_parallel_attn": norms}


def _olmo(told: Told, shapes: Shapes) -> dict[str, Any]:
    told.pop(_EPS, None)  # one for all heads
    return {}


def _starcoder(told: Told, shapes: Shapes) -> dict[str, Any]:
    return {"multi_query": told.pop("attention.head_count_kv", 1) == 1}


def _bloom(told: Told, shapes: Shapes) -> dict[str, Any]:
    for name in ("attention.head_count_kv", "feed_forward_length"):
        told.pop(name, None)  # implied by the others
    return {}


def _stablelm(told: Told, shapes: Shapes) -> dict[str, Any]:
    told.pop("use_parallel_residual", None)  # the converter writes it for other models, too
    return {
        "use_parallel_residual": "blk.0.ffn_norm.weight" not in shapes,
        "use_qkv_bias": "blk.0.attn_q.bias" in shapes,
        "qk_layernorm": "blk.0.attn_q_norm.weight" in shapes,
    }


def _neox(told: Told, shapes: Shapes) -> dict[str, Any]:
    return {"use_parallel_residual": told.pop("use_parallel_residual", True), "attention_bias": _has_qkv_bias(shapes)}


def _has_qkv_bias(shapes: Shapes) -> bool:
    return "blk.0.attn_qkv.bias" in shapes


def _head_width(told: Told) -> int:
    return told.get("attention.key_length") or told["embedding_length"] // told["attention.head_count"]


KINDS = {
    "llama": Kind("llama", more=_biases, turns_neighbours=True),
    "qwen2": Kind("qwen2"),
    "qwen3": Kind("qwen3"),
    "smollm3": Kind("smollm3", turns_neighbours=True),
    "granite": Kind("granite", _RMS | _GRANITE, _granite, turns_neighbours=True),
    "gemma": Kind("gemma"),
    "gemma2": Kind("gemma2", _RMS | _GEMMA2, _later_gemma(46)),
    "gemma3": Kind("gemma3_text", _RMS | _GEMMA2, _later_gemma(62)),
    "phi3": Kind("phi3", _RMS | {"sliding_window": "attention.sliding_window"}),
    "olmo": Kind("olmo", _LLAMA | {"clip_qkv": "attention.clamp_kqv"}, _olmo, turns_neighbours=True),
    "olmo2": Kind("olmo2"),
    "phi2": Kind("phi", _LLAMA | {"layer_norm_eps": _EPS}),
    "stablelm": Kind("stablelm", _LLAMA | {"layer_norm_eps": _EPS}, _stablelm),
    "starcoder2": Kind(
        "starcoder2", _LLAMA | {"norm_epsilon": _EPS}, lambda told, shapes: {"use_bias": "blk.0.attn_q.bias" in shapes}
    ),
    "gptneox": Kind("gpt_neox", _SIZES | {"layer_norm_eps": _EPS, "intermediate_size": "feed_forward_length"}, _neox),
    "falcon": Kind("falcon", _SIZES | {"layer_norm_epsilon": _EPS, "ffn_hidden_size": "feed_forward_length"}, _falcon),
    "gpt2": Kind("gpt2", _GPT2, is_rotary=False),
    "starcoder": Kind("gpt_bigcode", _GPT2, _starcoder, is_rotary=False),
    "bloom": Kind("bloom", _BLOOM, _bloom, is_rotary=False),
}
"""By the field general.architecture."""
_ARCHITECTURES = {name: architecture for architecture, name in MODEL_ARCH_NAMES.items()}
_NORM_OF_HEAD = re.compile(r"(.+)\.norms\.\d+\.weight")


def family_of(architecture: str) -> Family:
    """The family, with the names and layouts of tensors in a GGUF file."""
    family = FAMILIES[KINDS[architecture].model_type]

    def weights(config: ModelConfig, fields: Fields) -> list[Weight]:
        names = get_tensor_name_map(_ARCHITECTURES[architecture], config.n_layers)
        return [_stored(weight, family, names) for weight in family.weights(config, fields)]

    return replace(family, prefix="", ignored=r"rope_(freqs|factors_long|factors_short)\.weight", weights=weights)


def _stored(weight: Weight, family: Family, names: TensorNameMap) -> Weight:
    """Where one of our parameters is in a GGUF file."""
    if not weight.theirs:
        return weight
    if found := _NORM_OF_HEAD.fullmatch(weight.theirs[0]):  # there, each head's gain is a row
        return replace(weight, theirs=(_named(f"{found[1]}.weight", family, names),), layout="in rows")
    layout = "as it is" if weight.layout in ("by group", "transposed") else weight.layout
    return replace(
        weight, theirs=tuple(_named(name, family, names) for name in weight.theirs), layout=layout, shift=0.0
    )


def _named(name: str, family: Family, names: TensorNameMap) -> str:
    suffixes = (".weight", ".bias")
    found = names.get_name(family.prefix + name, suffixes) or names.get_name(name, suffixes)
    return found or name
