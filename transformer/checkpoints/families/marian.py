"""Marian (Junczys-Dowmunt et al. 2018) and Pegasus (Zhang et al. 2020): as BART and mBART, with fixed positions.

Their table of positions has the sines first, then the cosines, and files may leave it out; ours is a learned one with
the same rows. There is no norm on the embeddings.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from torch import Tensor

from ...config import ModelConfig
from ...model.positions import sinusoidal_encoding
from .bart import BART, MBART, common_fields, write_common
from .bart import weights as weights_of_bart
from .family import Fields, UnsupportedError, Weight


def read_config(fields: Fields) -> ModelConfig:
    """Our configuration from Marian's config.json."""
    found = common_fields(fields, norm="post", is_fixed=True)
    vocab, shared = found["vocab_size"], fields.flag("share_encoder_decoder_embeddings", True)
    if (other := fields.whole("decoder_vocab_size", vocab)) != vocab:
        raise UnsupportedError(
            f"its source has {vocab:,} tokens and its target {other:,}; here they have one vocabulary"
        )
    if not shared:
        found |= {"tie_embeddings": False, "share_embeddings": False}
    return ModelConfig(**found)


def read_pegasus(fields: Fields) -> ModelConfig:
    """The same from Pegasus's."""
    return ModelConfig(**common_fields(fields, norm="pre", is_fixed=True))


def write_config(config: ModelConfig) -> dict[str, Any]:
    """Marian's config.json from our configuration."""
    return {**write_pegasus(config), "share_encoder_decoder_embeddings": config.has_one_table}


def write_pegasus(config: ModelConfig) -> dict[str, Any]:
    """Pegasus's from our configuration."""
    if config.embed_norm:
        raise UnsupportedError("it has no norm on its embeddings")
    return write_common(config)


def weights(config: ModelConfig, fields: Fields) -> list[Weight]:
    return weights_of_bart(config, fields, skipped=0, missing=fixed_positions)


def fixed_positions(shape: tuple[int, ...]) -> Tensor:
    """The table of Vaswani et al. 2017, §3.5, in another order: all sines, then all cosines."""
    pos, width = shape
    table = sinusoidal_encoding(pos, width)
    return table.unflatten(1, (-1, 2)).transpose(1, 2).flatten(1)


MARIAN = replace(
    BART,
    name="Marian",
    model_type="marian",
    architecture="MarianMTModel",
    read_config=read_config,
    write_config=write_config,
    weights=weights,
)
PEGASUS = replace(
    MBART,
    name="Pegasus",
    model_type="pegasus",
    architecture="PegasusForConditionalGeneration",
    read_config=read_pegasus,
    write_config=write_pegasus,
    weights=weights,
)
