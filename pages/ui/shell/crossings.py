"""From a place on one page to the same place on another: what the visitor's fields have to hold for it to open there.

Places count the tokens of the whole text. offset: the place of the first token that the model reads of it; what is
before that has no numbers, which a notice says.
"""

from __future__ import annotations

from pages.ui.components.inside import Place
from pages.ui.shell.choices import Visitor
from transformer import ModelConfig, attention_modules

TO_INSIDE = ("inside", "place", "source_place", "cell", "heads", "moment")
"""The fields that the ways to the page Inside set."""
TO_ATTENTION = ("scope", "attention", "layer", "head", "query", "key", "zoom", "stage", "share")
"""The fields that the way to the page Attention sets."""


def to_logit(current: Visitor, place: int, token: int, offset: int) -> None:
    """To what speaks for a token at a place of the text: a logit, which is computed one place before it."""
    current.inside, current.moment = "logits", None
    _look_at(current, place - 1, offset)
    current.cell = None if place - 1 < offset else (place - 1 - offset, token)


def to_weight(
    current: Visitor, config: ModelConfig, kind: str, cell: tuple[int, int, int, int], offset: int
) -> None:
    """To one weight in the whole pass. kind: as in `attention_modules`; cell: layer, head, query, key."""
    layer, head, query, key = cell
    current.inside, current.moment = f"{attention_modules(config)[kind][layer]}.hook_pattern", None
    current.heads, current.head = "one", head
    if kind == "encoder":
        current.source_place = query
    else:
        _look_at(current, query, offset)
    if kind == "cross":
        current.source_place = key
    row, column = query - _begin(kind, "query", offset), key - _begin(kind, "key", offset)
    current.cell = None if min(row, column) < 0 else (head, row, column)


def to_attention(current: Visitor, config: ModelConfig, place: Place, offset: int, prompt: int) -> None:
    """To a head and a cell of it; the places of `place` count from the offset. prompt: how many tokens it has."""
    kind, layer = next(
        (kind, modules.index(place.module))
        for kind, modules in attention_modules(config).items()
        if place.module in modules
    )
    current.layer, current.zoom, current.stage, current.share = layer, None, place.stage, "head"
    if kind != "self":
        current.attention = kind
    if place.head is not None:
        current.head = place.head
    current.query = place.query + _begin(kind, "query", offset)
    current.key = None if place.key is None else place.key + _begin(kind, "key", offset)
    if kind == "self" and max(current.query, current.key or 0) >= prompt:
        current.scope = "all"


def _begin(kind: str, which: str, offset: int) -> int:
    """The place of an attention's first query or key; a source is always read from its beginning."""
    return 0 if kind == "encoder" or (kind == "cross" and which == "key") else offset


def _look_at(current: Visitor, place: int, offset: int) -> None:
    current.place = place if place >= offset else None
    if place < offset:
        current.notices.append(
            f"The model reads this text from place {offset} on, so nothing was computed at place {place}; the newest "
            "token is shown."
        )
