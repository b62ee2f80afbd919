"""The tables of embeddings in families of encoder–decoders."""

from __future__ import annotations

from dataclasses import replace

from ...config import ModelConfig
from .family import Fields, UnsupportedError, Weight, unembedding

SIDES = ("encoder", "decoder")
NO_TOKENS = dict.fromkeys(
    f"{name}_token_id" for name in ("bos", "eos", "pad", "decoder_start", "forced_bos", "forced_eos")
)
"""Null ids for tokens that we don't have, so that the family's own defaults don't apply."""
SHARED, OWN = "shared.weight", tuple(f"{side}.embed_tokens.weight" for side in SIDES)


def refuse_one_stack(fields: Fields) -> None:
    """Raise UnsupportedError for a model of one stack."""
    if not fields.flag("is_encoder_decoder", True) or fields.flag("is_decoder", False):
        raise UnsupportedError("it is a model of one stack; of this family, an encoder with a decoder can be read")


def depth(config: ModelConfig, side: str) -> int:
    """The number of layers of one side."""
    return config.n_encoder_layers if side == "encoder" else config.n_layers


def tables(config: ModelConfig) -> list[Weight]:
    """The embeddings: one table for both sides, or one for each."""
    if config.has_one_table:
        return [Weight("embed.weight", (SHARED,), instead=(*OWN, "lm_head.weight"))]
    return [Weight(f"{side}.embed.weight", (own,), instead=(SHARED,)) for side, own in zip(SIDES, OWN, strict=True)]


def unembedding_of_pair(config: ModelConfig) -> list[Weight]:
    """W_U if it isn't tied; files that leave it out mean the shared table, or the decoder's."""
    without_bias = unembedding(replace(config, unembed_bias=False))
    return [replace(weight, instead=(SHARED, OWN[1])) for weight in without_bias]
