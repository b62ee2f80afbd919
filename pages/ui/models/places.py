"""Where a model's attentions are."""

from __future__ import annotations

from collections.abc import Sequence

from transformer import ModelConfig

PLACES = {
    "self": "blocks.{}.attn.",
    "encoder": "encoder.blocks.{}.attn.",
    "decoder": "decoder.blocks.{}.attn.",
    "cross": "decoder.blocks.{}.cross_attn.",
}
"""Where a model's attentions are: a decoder-only model has the first, an encoder–decoder the others."""


def attentions(shape: ModelConfig) -> list[str]:
    """The attentions that a model has, as in `PLACES`."""
    kinds = ["self"] if shape.architecture == "decoder-only" else ["encoder", "decoder", "cross"]
    return [kind for kind in kinds if depth(shape, kind)]


def chosen_attention(shape: ModelConfig, wish: str, among: Sequence[str] = tuple(PLACES)) -> str | None:
    """The attention to show: the wish, if the model has it; else its own or its cross-attention; None without any."""
    found = [kind for kind in attentions(shape) if kind in among]
    return wish if wish in found else next(reversed(found), None)


def depth(shape: ModelConfig, kind: str) -> int:
    """How many layers have an attention of this kind."""
    return shape.n_encoder_layers if kind == "encoder" else shape.n_layers
