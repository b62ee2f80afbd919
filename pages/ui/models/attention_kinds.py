"""Lists the kinds of attention that a model has (self, encoder, decoder, cross), and chooses one to show."""

from collections.abc import Sequence

from transformer import ModelCard, ModelConfig, attention_modules

KINDS = {
    "encoder": "Encoder: the source attends to itself",
    "decoder": "Decoder: the text attends to itself",
    "cross": "Cross: the text attends to the source",
}
"""The attentions of an encoder–decoder."""


def kinds_of(shape: ModelConfig) -> list[str]:
    return list(attention_modules(shape))


def shown_kind(shape: ModelConfig, wish: str, among: Sequence[str] | None = None) -> str | None:
    """The kind to show: the wish, if the model has it; else its own or its cross-attention; None without any.

    among: the kinds a page can show, if not all.
    """
    kinds = [kind for kind in kinds_of(shape) if among is None or kind in among]
    return wish if wish in kinds else next(reversed(kinds), None)


def layer_count(shape: ModelConfig, kind: str) -> int:
    """How many layers have an attention of this kind."""
    return len(attention_modules(shape).get(kind, ()))


def first_layer_and_head(shape: ModelConfig, card: ModelCard, kind: str) -> tuple[int, int]:
    """The layer and head to show first of an attention: what the card says, as far as the model has it; else the first.

    Where the card says nothing, cross-attention opens on its last layer, where a translator's words align.
    """
    opening, layers = card.opening, layer_count(shape, kind)
    if opening is None:
        return layers - 1 if kind == "cross" else 0, 0
    if opening["attention"] != kind:
        return 0, 0
    layer, head = opening["layer"], opening["head"]
    return layer if layer < layers else 0, head if head < shape.n_heads else 0
