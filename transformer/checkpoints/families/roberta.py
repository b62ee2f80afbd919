"""RoBERTa (Liu et al. 2019): BERT with one segment, whose positions are counted from behind the padding's id on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...config import ModelConfig
from . import bert
from .family import Fields, UnsupportedError, Weight

HEAD = {"head.dense": "lm_head.dense", "head.ln": "lm_head.layer_norm"}


def read_config(fields: Fields) -> ModelConfig:
    config = bert.read_config(fields)
    if config.activation != "gelu":
        raise UnsupportedError("its head has gelu, whatever hidden_act says, and here both are one")
    pad, rows = _padding(fields), config.context_length
    if rows <= pad + 1:
        raise UnsupportedError(f"its {rows} max_position_embeddings leave none after those up to its padding's, {pad}")
    return replace(config, context_length=rows - pad - 1, pad_token_id=pad)


def _padding(fields: Fields) -> int:
    """The id of padding, from which positions are counted."""
    pad = fields.get("pad_token_id", 1)
    if isinstance(pad, bool) or not isinstance(pad, int) or not 0 <= pad < fields.whole("vocab_size"):
        raise UnsupportedError(f"its pad_token_id is {pad!r}, where a token's id should be")
    return pad


def write_config(config: ModelConfig) -> dict[str, Any]:
    said = bert.write_config(config)
    if config.pad_token_id is None:
        raise UnsupportedError("its positions are counted from its padding's id on, and this model has no padding")
    return {**said, "max_position_embeddings": config.context_length + config.pad_token_id + 1}


def weights(config: ModelConfig, fields: Fields) -> list[Weight]:
    names = {"head": HEAD, "decoder": "lm_head.decoder", "tied_bias": "lm_head.bias"}
    return bert.weights(config, fields, **names, skipped=_padding(fields) + 1)


def notes(fields: Fields) -> list[str]:
    return ["Its padding is hidden wherever it stands, whether an attention mask says so or not."]


ROBERTA = replace(
    bert.BERT,
    name="RoBERTa",
    model_type="roberta",
    architecture="RobertaForMaskedLM",
    prefix="roberta.",
    ignored=r"embeddings\.(position|token_type)_ids|pooler\..*|lm_head\.(decoder\.)?bias",
    read_config=read_config,
    write_config=write_config,
    weights=weights,
    notes=notes,
    head=("lm_head.",),
    also=(),
    either=(("lm_head.decoder.bias", "lm_head.bias"),),
)
