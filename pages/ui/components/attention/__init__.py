"""Attention as one instrument: everything that only changes what is looked at is answered in the browser.

A view and its feed, as in `fed`.
Dimensions: layer, head, query, key.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import streamlit as st

from pages.ui.components import fed
from pages.ui.components.sources import reader, script, style
from transformer import Recording

STAGES = ("raw", "scaled", "masked", "weights")
RULES = ("mask", "scale")
"""What one head's picture can be redrawn without."""
DIRECTIONS = ("from", "to")
SHARES = ("head", "layer")
MOST_PARTS = 64
"""Parts in one request; the browser asks for fewer."""

Part = tuple[str, int, int] | tuple[str, int, int, int]
"""("head", layer, head) or ("row", layer, head, query)."""
Zoom = tuple[int, int, int, int]
"""Queries from and up to, keys from and up to."""

_view = st.components.v2.component(
    "headsup_attention",
    html=reader(__file__)("attention.html"),
    css=style(__file__, instruments=["tip.css", "save.css", "changing.css", "overview.css", "attention/attention.css"]),
    js=script(__file__, "attention.js"),
)
_feed = st.components.v2.component("headsup_attention_feed", js=script(fed.__file__, "fed_feed.js"))


@dataclass(frozen=True)
class Chosen:
    """What is looked at. Queries and keys are counted from the first that the model reads."""

    layer: int
    head: int
    query: int | None = None
    """None: the last."""
    key: int | None = None
    """None: the one that the query weighs most."""
    stage: str = "weights"
    """The step that is shown where there is room for one."""
    zoom: Zoom | None = None
    """None: the whole text."""
    without: tuple[str, ...] = ()
    order: str = ""
    """The measure that heads are sorted by; empty: by layer and head."""
    direction: str = "from"
    share: str = "head"


@dataclass(frozen=True)
class Extent:
    """How much there is to choose from."""

    layers: int
    heads: int
    queries: int
    keys: int
    measures: tuple[str, ...]


def attention(
    *,
    name: str,
    outline: Recording,
    extent: Extent,
    chosen: Chosen,
    serial: int,
    answer: Callable[[Iterable[Part]], Recording],
    on_choose: Callable[[Chosen], None],
    on_change: Callable[[Any], None],
    after: Callable[[], None],
    key: str,
    patient: bool = False,
) -> None:
    """Show a pass.

    outline: what `recordings.overview` gives, and in its metadata `offsets`, the places of the first query and key in
    the text, `next`, the tokens that queries chose or None, and `title`, what saved files are called, and
    `interventions`, what is changed in the model, [{"code", "words"}]. The rest is as in `fed.show`.
    """
    fed.show(
        _view, _feed, key=key, name=name, whole=Recording(packed(outline), outline.metadata),
        chosen=as_message(chosen), serial=serial, first=[("head", chosen.layer, chosen.head)],
        check_choice=lambda value: checked_choice(value, extent),
        check_parts=lambda value: checked_parts(value, extent),
        answer=answer, on_choose=on_choose, on_change=on_change, after=after, patient=patient,
    )  # fmt: skip


def packed(outline: Recording) -> dict[str, np.ndarray]:
    """An outline's tensors, smaller: of a causal attention's overview only the cells on and below the diagonal.

    Unless the mask was taken away: then there is something above it.
    """
    tensors = dict(outline.tensors)
    cells = tensors["overview"]
    if outline.metadata["causal"] and not any(place["rule"] == "mask" for place in outline.metadata["changed"]):
        tensors["overview"] = cells[..., *np.tril_indices(cells.shape[-1])]
    return tensors


def as_message(chosen: Chosen) -> dict[str, Any]:
    """What the browser gets; its zoom has names."""
    zoom = None if chosen.zoom is None else dict(zip(("top", "bottom", "left", "right"), chosen.zoom, strict=True))
    return {**dataclasses.asdict(chosen), "zoom": zoom}


def checked_choice(value: Any, extent: Extent) -> Chosen | None:
    """What a `chosen` event says, or None unless all of it can be chosen: browsers can send anything."""
    if not isinstance(value, Mapping):
        return None
    zoom, without = value.get("zoom"), value.get("without")
    if zoom is not None:
        zoom = checked_zoom(zoom, extent)
        if zoom is None:
            return None
    if not (isinstance(without, list) and all(rule in RULES for rule in without)):
        return None
    found = Chosen(
        layer=value.get("layer"), head=value.get("head"), query=value.get("query"), key=value.get("key"),
        stage=value.get("stage"), zoom=zoom, without=tuple(sorted(set(without))), order=value.get("order"),
        direction=value.get("direction"), share=value.get("share"),
    )  # fmt: skip
    fits = (
        _is_within(found.layer, extent.layers)
        and _is_within(found.head, extent.heads)
        and (found.query is None or _is_within(found.query, extent.queries))
        and (found.key is None or _is_within(found.key, extent.keys))
        and found.stage in STAGES
        and found.order in ("", *extent.measures)
        and found.direction in DIRECTIONS
        and found.share in SHARES
    )
    return found if fits else None


def checked_zoom(value: Any, extent: Extent) -> Zoom | None:
    """A part of the text that there is, or None."""
    if not isinstance(value, Mapping):
        return None
    top, bottom, left, right = (value.get(side) for side in ("top", "bottom", "left", "right"))
    if not all(type(place) is int for place in (top, bottom, left, right)):
        return None
    fits = 0 <= top < bottom <= extent.queries and 0 <= left < right <= extent.keys
    return (top, bottom, left, right) if fits else None


def checked_parts(value: Any, extent: Extent) -> list[Part]:
    """The parts of a request that there are."""
    limits = {"head": (extent.layers, extent.heads), "row": (extent.layers, extent.heads, extent.queries)}
    found = []
    for part in value[:MOST_PARTS] if isinstance(value, list) else ():
        if isinstance(part, Sequence) and part and isinstance(part[0], str) and part[0] in limits:
            places, counts = part[1:], limits[part[0]]
            if len(places) == len(counts) and all(map(_is_within, places, counts)):
                found.append(tuple(part))
    return found


def _is_within(value: Any, count: int) -> bool:
    return type(value) is int and 0 <= value < count
