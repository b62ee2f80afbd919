"""Llama (Touvron et al. 2023; also SmolLM, SmolLM2, TinyLlama), and what the families that followed it share."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...config import ModelConfig
from .family import (
    THEIR_ACTIVATIONS,
    Family,
    Fields,
    Layout,
    UnsupportedError,
    Weight,
    linear,
    norm,
    read_sizes,
    unembedding,
    write_sizes,
)
from .rope_scaling import notes_on_rotation, rotary_fields, written_rotation


def read_config(fields: Fields) -> ModelConfig:
    if "sliding_attention" in (fields.layer_kinds(fields.layers("num_hidden_layers")) or ()):
        raise UnsupportedError("its layer_types name sliding_attention, which no Llama has")
    return ModelConfig(
        **common_fields(fields), **biases(fields.flag("attention_bias", False)), mlp_bias=fields.flag("mlp_bias", False)
    )


def common_fields(
    fields: Fields,
    *,
    head_width: int | None = None,
    turns_part: bool = False,
    tied: bool = False,
    epsilon: float = 1e-6,
    **rotation: Any,
) -> dict[str, Any]:
    """The fields that Llama and its kin share.

    head_width: the default of head_dim; None for d_model / heads. turns_part: whether only a part of each head may be
    rotated. tied, epsilon: the defaults of tie_word_embeddings and rms_norm_eps.
    rotation: as in `rotary_fields`.
    """
    sizes = read_sizes(fields)
    heads, width = sizes["n_heads"], sizes["d_model"]
    own_width = fields.get("head_dim", head_width)
    if own_width is not None:
        own_width = fields.whole("head_dim", head_width)
    turned = rotary_fields(fields, own_width or max(width // heads, 1), **rotation)
    if turned["rotary_dims"] and not turns_part:
        raise UnsupportedError("it turns a part of each head, where all of it is known")
    return {
        **sizes,
        "n_kv_heads": fields.whole("num_key_value_heads", heads),
        "head_width": own_width,
        "norm_kind": "rms",
        "mlp_gate": True,
        "layer_norm_eps": fields.number("rms_norm_eps", epsilon),
        "rotary_pairs": "halves",
        "activation": fields.activation("hidden_act", "silu"),
        "tie_embeddings": fields.flag("tie_word_embeddings", tied),
        **turned,
    }


def biases(of_all: bool) -> dict[str, Any]:
    """The biases of queries, keys, values and W_O."""
    return {"attention_bias": of_all, "attention_out_bias": of_all}


def write_config(config: ModelConfig) -> dict[str, Any]:
    return {**write_common(config), "attention_bias": config.attention_bias, "mlp_bias": config.mlp_bias}


def write_common(config: ModelConfig) -> dict[str, Any]:
    """The shared fields of Llama and its kin, from our configuration."""
    return {
        **write_sizes(config),
        "num_key_value_heads": config.kv_heads,
        "head_dim": config.d_head,
        "rms_norm_eps": config.layer_norm_eps,
        "rope_theta": config.rotary_base,
        "rope_parameters": written_rotation(config),
        "hidden_act": THEIR_ACTIVATIONS[config.activation],
        "tie_word_embeddings": config.tie_embeddings,
        "bos_token_id": None,
        "eos_token_id": None,
        "pad_token_id": None,
    }


def write_share(config: ModelConfig) -> dict[str, Any]:
    """The same in a family that may rotate only a part of each head."""
    said, share = write_common(config), config.rotated_dims / config.d_head
    said["rope_parameters"]["partial_rotary_factor"] = share
    return {**said, "partial_rotary_factor": share}


def written_windows(config: ModelConfig) -> dict[str, Any]:
    """The fields for our windows, if all have one width."""
    near = [config.window(layer) for layer in range(config.n_layers)]
    kinds = ["sliding_attention" if window else "full_attention" for window in near]
    return {"sliding_window": max(near, default=0) or None, "layer_types": kinds}


@dataclass(frozen=True)
class Factors:
    """A family's multipliers, which are folded into the weights."""

    embeddings: float = 1.0
    added: float = 1.0
    """On each sublayer's output."""
    scores: float | None = None
    """On q · k; None for 1 / √d_head, as ours."""
    logits: float = 1.0

    def of_queries(self, config: ModelConfig) -> float:
        """The factor on queries that makes 1 / √d_head right."""
        return 1.0 if self.scores is None else self.scores * math.sqrt(config.d_head)


PRE_NORMS: Mapping[str, str | None] = {"ln1": "input_layernorm", "ln2": "post_attention_layernorm"}
"""Our norms of a block, and their names in the files."""


def weights(
    config: ModelConfig,
    fields: Fields,
    *,
    norms: Mapping[str, str | None] = PRE_NORMS,
    final: str | None = "norm",
    factors: Factors = Factors(),
    gain_shift: float = 0.0,
    fused: bool = False,
    fused_gate: bool = False,
    head_gains: Layout = "repeated",
    out: str = "o_proj",
    qk_norms: str = "{}_norm",
    norm_bias: bool = False,
    head_norm_bias: bool = False,
    up: str = "up_proj",
    down: str = "down_proj",
) -> list[Weight]:
    """Where each parameter is in the files.

    gain_shift: subtracted from stored gains. fused: whether queries, keys and values are one matrix; fused_gate:
    whether gate and up projection are. head_gains: the layout of the gains of norms on queries and keys.
    """
    logits = factors.logits / (factors.embeddings if config.tie_embeddings else 1.0)
    found = [Weight("embed.weight", ("embed_tokens.weight",), scale=factors.embeddings)]
    queries = factors.of_queries(config)
    parts = ("qkv_proj",) if fused else ("q_proj", "k_proj", "v_proj")
    for layer in range(config.n_layers):
        ours, theirs = f"blocks.{layer}.", f"layers.{layer}."
        attention = f"{theirs}self_attn."
        for own, other in norms.items():
            found += norm(config, ours + own, other and theirs + other, bias=norm_bias, shift=gain_shift)
        if config.qk_norm != "none":
            for each, scale in (("q", queries), ("k", 1.0)):
                name = f"{attention}{qk_norms.format(each)}"
                own = f"{ours}attn.{each}_norm"
                found += norm(config, own, name, scale=scale, shift=gain_shift, layout=head_gains, bias=head_norm_bias)
        of_rows = queries if config.qk_norm == "none" else 1.0
        names = [attention + part for part in parts]
        found += linear(f"{ours}attn.qkv", *names, bias=config.attention_bias, query_scale=of_rows)
        found += linear(f"{ours}attn.out", attention + out, bias=config.has_out_bias, scale=factors.added)
        if fused_gate:
            found.append(Weight(f"{ours}mlp.gate.weight", (f"{theirs}mlp.gate_up_proj.weight",), "first half"))
            found.append(Weight(f"{ours}mlp.up.weight", (f"{theirs}mlp.gate_up_proj.weight",), "second half"))
        else:
            if config.mlp_gate:
                found += linear(f"{ours}mlp.gate", f"{theirs}mlp.gate_proj", bias=config.mlp_bias)
            found += linear(f"{ours}mlp.up", f"{theirs}mlp.{up}", bias=config.mlp_bias)
        found += linear(f"{ours}mlp.down", f"{theirs}mlp.{down}", bias=config.mlp_bias, scale=factors.added)
    found += norm(config, "ln_final", final, bias=norm_bias, scale=logits, shift=gain_shift)
    return [*found, *unembedding(config, bias=config.unembed_bias)]


LLAMA = Family(
    name="Llama",
    model_type="llama",
    architecture="LlamaForCausalLM",
    prefix="model.",
    ignored=r"(layers\.\d+\.self_attn\.)?rotary_emb\.inv_freq",
    read_config=read_config,
    write_config=write_config,
    weights=weights,
    notes=notes_on_rotation,
)
