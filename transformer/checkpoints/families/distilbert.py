"""DistilBERT (Sanh et al. 2019): BERT with half of its layers and no segments."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from ...config import ModelConfig
from .bert import BERT, EPSILON, common_fields, weights, write_common
from .family import THEIR_ACTIVATIONS, Fields

IN_LAYER = {
    "attn.qkv": ("attention.q_lin", "attention.k_lin", "attention.v_lin"),
    "attn.out": ("attention.out_lin",),
    "ln1": ("sa_layer_norm",),
    "mlp.up": ("ffn.lin1",),
    "mlp.down": ("ffn.lin2",),
    "ln2": ("output_layer_norm",),
}
HEAD = {"head.dense": "vocab_transform", "head.ln": "vocab_layer_norm"}


def read_config(fields: Fields) -> ModelConfig:
    fields.flag("sinusoidal_pos_embds", False)  # the files store the sinusoidal table as well
    fields.get("tie_weights_")
    return ModelConfig(
        **common_fields(fields),
        n_layers=fields.layers("n_layers"),
        n_heads=fields.whole("n_heads"),
        d_model=fields.whole("dim"),
        d_ff=fields.whole("hidden_dim", 3072),
        activation=fields.activation("activation", "gelu"),
        layer_norm_eps=EPSILON,
    )


def write_config(config: ModelConfig) -> dict[str, Any]:
    return {
        **write_common(config),
        "n_layers": config.n_layers,
        "n_heads": config.n_heads,
        "dim": config.d_model,
        "hidden_dim": config.d_ff,
        "activation": THEIR_ACTIVATIONS[config.activation],
    }


DISTILBERT = replace(
    BERT,
    name="DistilBERT",
    model_type="distilbert",
    architecture="DistilBertForMaskedLM",
    prefix="distilbert.",
    ignored=r"embeddings\.position_ids",
    read_config=read_config,
    write_config=write_config,
    weights=partial(
        weights,
        layers="transformer.layer",
        in_layer=IN_LAYER,
        head=HEAD,
        decoder="vocab_projector",
        tied_bias="vocab_projector.bias",
    ),
    head=("vocab_",),
    also=(),
    either=(),
)
