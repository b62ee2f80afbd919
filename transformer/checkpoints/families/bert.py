"""BERT (Devlin et al. 2019): an encoder with norms on the stream, segments, and a head that fills masked words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...config import ModelConfig
from .family import THEIR_ACTIVATIONS, Family, Fields, UnsupportedError, Weight, linear, unembedding, write_sizes

IN_LAYER = {
    "attn.qkv": ("attention.self.query", "attention.self.key", "attention.self.value"),
    "attn.out": ("attention.output.dense",),
    "ln1": ("attention.output.LayerNorm",),
    "mlp.up": ("intermediate.dense",),
    "mlp.down": ("output.dense",),
    "ln2": ("output.LayerNorm",),
}
HEAD = {"head.dense": "cls.predictions.transform.dense", "head.ln": "cls.predictions.transform.LayerNorm"}
EPSILON = 1e-12
OF_OTHER_TASKS = (
    *("directionality", "finetuning_task", "pooler_fc_size", "pooler_num_attention_heads", "pooler_num_fc_layers"),
    *("pooler_size_per_head", "pooler_type"),
)


def read_config(fields: Fields) -> ModelConfig:
    fields.refuse("is_decoder", "by which tokens see none that follow them")
    fields.refuse("add_cross_attention", "which is for a decoder beside an encoder")
    fields.expect("position_embedding_type", "absolute")
    for name in OF_OTHER_TASKS:
        fields.get(name)
    return ModelConfig(
        **common_fields(fields),
        n_layers=fields.layers("num_hidden_layers"),
        n_heads=fields.whole("num_attention_heads"),
        d_model=fields.whole("hidden_size"),
        d_ff=fields.whole("intermediate_size", 3072),
        activation=fields.activation("hidden_act", "gelu"),
        layer_norm_eps=fields.number("layer_norm_eps", EPSILON),
        n_segments=fields.whole("type_vocab_size", 2),
    )


def common_fields(fields: Fields) -> dict[str, Any]:
    """The fields that BERT and its kin share."""
    return {
        "architecture": "encoder-only",
        "vocab_size": fields.whole("vocab_size"),
        "context_length": fields.whole("max_position_embeddings", 512),
        "positions": "learned",
        "norm": "post",
        "embed_norm": True,
        "masked_word_head": True,
        "unembed_bias": True,
        "tie_embeddings": fields.flag("tie_word_embeddings", True),
    }


def write_config(config: ModelConfig) -> dict[str, Any]:
    return {
        **write_common(config),
        **write_sizes(config),
        "type_vocab_size": config.n_segments,
        "hidden_act": THEIR_ACTIVATIONS[config.activation],
        "layer_norm_eps": config.layer_norm_eps,
    }


def write_common(config: ModelConfig) -> dict[str, Any]:
    """The shared fields of BERT and its kin, from our configuration."""
    if config.norm != "post":
        raise UnsupportedError("its norms come after each sublayer, on the stream")
    if not config.embed_norm or not config.masked_word_head:
        raise UnsupportedError("it has a norm on its embeddings, and a head before its unembedding")
    return {
        "vocab_size": config.vocab_size,
        "max_position_embeddings": config.context_length,
        "tie_word_embeddings": config.tie_embeddings,
        **dict.fromkeys(("bos_token_id", "eos_token_id")),
        "pad_token_id": config.pad_token_id,
    }


def weights(
    config: ModelConfig,
    fields: Fields,
    *,
    layers: str = "encoder.layer",
    in_layer: Mapping[str, tuple[str, ...]] = IN_LAYER,
    head: Mapping[str, str] = HEAD,
    decoder: str = "cls.predictions.decoder",
    tied_bias: str = "cls.predictions.bias",
    skipped: int = 0,
) -> list[Weight]:
    """Where each parameter is in the files.

    tied_bias: the name of the unembedding's bias if its weight is the table of embeddings. skipped: unused first rows
    of the table of positions.
    """
    found = [
        Weight("embed.weight", ("embeddings.word_embeddings.weight",)),
        Weight("pos_embed.weight", ("embeddings.position_embeddings.weight",), skipped=skipped),
    ]
    if config.n_segments:
        found.append(Weight("segment_embed.weight", ("embeddings.token_type_embeddings.weight",)))
    found += linear("ln_embed", "embeddings.LayerNorm", bias=True)
    for layer in range(config.n_layers):
        for ours, theirs in in_layer.items():
            found += linear(f"blocks.{layer}.{ours}", *(f"{layers}.{layer}.{each}" for each in theirs), bias=True)
    for ours, theirs in head.items():
        found += linear(ours, theirs, bias=True)
    if config.tie_embeddings:
        return [*found, Weight("unembed.bias", (tied_bias,))]
    return [*found, *unembedding(config, decoder, bias=True)]


BERT = Family(
    name="BERT",
    model_type="bert",
    architecture="BertForMaskedLM",
    prefix="bert.",
    ignored=r"embeddings\.(position|token_type)_ids|pooler\..*|cls\.seq_relationship\..*|cls\.predictions\.(decoder\.)?bias",
    read_config=read_config,
    write_config=write_config,
    weights=weights,
    shape="encoder-only",
    head=("cls.",),
    also=("BertForPreTraining",),
    former={"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"},
    either=(("cls.predictions.decoder.bias", "cls.predictions.bias"),),
)
