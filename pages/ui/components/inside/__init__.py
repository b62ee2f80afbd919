"""A whole forward pass as one instrument: everything that only changes what is looked at is answered in the browser.

A view and its feed, as in `fed`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import streamlit as st

from pages.ui.components import fed
from pages.ui.components.attention import STAGES
from pages.ui.components.sources import reader, script, style
from transformer import Recording

MOST_PARTS = 64
"""Parts in one request; the browser asks for fewer."""
MOST_CELLS = 2_000_000
"""Cells of all parts of one request, which are 8 MB. What is asked for beyond that isn't sent; it may be asked for
again."""
WHOLE_UP_TO = 100_000
"""Cells up to which a tensor that has heads is sent whole."""
BY_ROW = 500_000
"""Cells from which on a tensor over the vocabulary is sent row by row: of a position, or of a token."""
LATEST = 1e6
"""The last moment that Play can be at."""
FOLDS = ("lens", "who", "checks", "circuits")
"""What can be unfolded below the picture."""
FARTHEST = 10**6
"""What the distance and the cell of a circuit are below; the browser knows how much of it there is."""

Part = (tuple[str] | tuple[str, str] | tuple[str, str, int] | tuple[str, int] | tuple[str, int, int]
        | tuple[str, str, str, int])  # fmt: skip
"""("tensor", name), ("slice", name, head), ("row", name, place), ("lens", pos),
("who", pos, token), ("checks",) or ("circuit", kind, attention, head)."""

STYLES = ("tip.css", "save.css", "changing.css", "inside/inside.css", "inside/tensors.css", "inside/circuits.css")

_view = st.components.v2.component(
    "headsup_inside",
    html=reader(__file__)("inside.html"),
    css=style(__file__, instruments=STYLES),
    js=script(__file__, "inside.js"),
)
_feed = st.components.v2.component("headsup_inside_feed", js=script(fed.__file__, "fed_feed.js"))


@dataclass(frozen=True)
class Chosen:
    """What is looked at. Tokens are counted from the first that the model reads."""

    open: str = ""
    """A tensor or a module, "blocks.1.attn" for example; empty: the whole model."""
    token: int | None = None
    """In the text of the stack that writes; None: the newest."""
    source: int | None = None
    """In the text that an encoder reads; None: none of them."""
    head: int | None = None
    """None: all of a layer, or their mean."""
    cell: tuple[int, ...] | None = None
    """A place in the tensor that is open."""
    moment: float | None = None
    """Where Play stands; None: it isn't being played."""
    folds: tuple[str, ...] = ()
    """What is unfolded below the picture, of `FOLDS`."""
    candidate: int | None = None
    """The token of the vocabulary that is asked about there; None: the likeliest next one."""
    circuit: tuple[str | int, ...] | None = None
    """A circuit: its kind, attention, head, the distance from query to key, and perhaps row and column of a cell; None:
    of what is looked at above."""


@dataclass(frozen=True)
class Place:
    """What the page Attention can show: a head of an attention, and one of its cells."""

    module: str
    """The attention, "blocks.1.attn" for example."""
    head: int | None
    """None: whichever was looked at last."""
    query: int
    key: int | None
    """None: the one that the query weighs most."""
    stage: str
    """The step from q · k to the weights that is looked at."""


@dataclass(frozen=True)
class Extent:
    """How much there is to choose from."""

    tokens: int
    sources: int
    heads: int
    vocabulary: int
    tensors: Mapping[str, Mapping[str, int]]
    """The sizes of each tensor's dimensions, by name."""
    circuits: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The kinds of circuits that the heads of each attention have."""

    @cached_property
    def places(self) -> frozenset[str]:
        """What can be open: the model, its tensors, and every module that has any."""
        names = {""}
        for name in self.tensors:
            parts = name.split(".")
            names |= {".".join(parts[:end]) for end in range(1, len(parts) + 1)}
        return frozenset(names)


def inside(
    *,
    name: str,
    outline: Recording,
    extent: Extent,
    chosen: Chosen,
    serial: int,
    answer: Callable[[Iterable[Part]], Recording],
    on_choose: Callable[[Chosen], None],
    on_turn: Callable[[Place], None],
    on_change: Callable[[Any], None],
    after: Callable[[], None],
    key: str,
    patient: bool = False,
) -> None:
    """Show a pass.

    outline: what `insides.outline` gives, and in its metadata `offset`, the place of the first token in the text, and
    `title`, what saved files are called. on_turn: called with what the page Attention is to show. The rest is as in
    `fed.show`.
    """

    def turn(value: Any) -> None:
        place = checked_place(value, extent)
        if place is not None:
            on_turn(place)

    first = [("tensor", chosen.open)] if chosen.open in extent.tensors else []
    fed.show(
        _view, _feed, key=key, name=name, whole=outline, chosen=dataclasses.asdict(chosen), serial=serial,
        first=checked_parts(first, extent),
        check_choice=lambda value: checked_choice(value, extent),
        check_parts=lambda value: checked_parts(value, extent),
        answer=answer, on_choose=on_choose, on_turn=turn, on_change=on_change, after=after, patient=patient,
    )  # fmt: skip


def checked_choice(value: Any, extent: Extent) -> Chosen | None:
    """What a `chosen` event says, or None unless all of it can be chosen: browsers can send anything."""
    if not isinstance(value, Mapping) or not {field.name for field in dataclasses.fields(Chosen)} <= value.keys():
        return None
    parts = {field.name: value[field.name] for field in dataclasses.fields(Chosen)}
    parts = {name: tuple(part) if isinstance(part, list) else part for name, part in parts.items()}
    if type(parts["moment"]) is int:
        parts["moment"] = float(parts["moment"])
    found = Chosen(**parts)
    return found if fits(found, extent) else None


def fits(chosen: Chosen, extent: Extent) -> bool:
    """Whether all of a choice is there, whatever its fields hold."""
    counts = ((chosen.token, extent.tokens), (chosen.source, extent.sources), (chosen.head, extent.heads),
              (chosen.candidate, extent.vocabulary))  # fmt: skip
    return (
        isinstance(chosen.open, str)
        and chosen.open in extent.places
        and all(place is None or _is_within(place, count) for place, count in counts)
        and (chosen.cell is None or is_cell(chosen.cell, chosen.open, extent))
        and (chosen.moment is None or (type(chosen.moment) is float and 0 <= chosen.moment <= LATEST))
        and isinstance(chosen.folds, tuple)
        and list(chosen.folds) == [fold for fold in FOLDS if fold in chosen.folds]
        and (chosen.circuit is None or is_circuit(chosen.circuit, extent))
    )


def is_cell(cell: Any, name: str, extent: Extent) -> bool:
    """Whether a tensor has this cell."""
    sizes = tuple(extent.tensors.get(name, {}).values())
    return isinstance(cell, tuple) and 0 < len(cell) == len(sizes) and all(map(_is_within, cell, sizes))


def is_circuit(circuit: Any, extent: Extent) -> bool:
    """Whether a model has this circuit, and its matrix may have this cell."""
    match circuit:
        case (str(kind), str(attention), head, *places) if kind in extent.circuits.get(attention, ()):
            return _is_within(head, extent.heads) and len(places) in (1, 3) and all(
                _is_within(place, FARTHEST) for place in places
            )  # fmt: skip
    return False


def checked_place(value: Any, extent: Extent) -> Place | None:
    """What a `turn` says, or None unless all of it is there."""
    if not isinstance(value, Mapping) or not isinstance(value.get("module"), str):
        return None
    found = Place(*(value.get(field.name) for field in dataclasses.fields(Place)))
    sizes = extent.tensors.get(f"{found.module}.hook_pattern", {})
    fits = (
        (found.head is None or _is_within(found.head, sizes.get("head", 0)))
        and _is_within(found.query, sizes.get("query", 0))
        and (found.key is None or _is_within(found.key, sizes.get("key", 0)))
        and found.stage in STAGES
    )
    return found if fits else None


def checked_parts(value: Any, extent: Extent) -> list[Part]:
    """The parts of a request that there are, as far as they can be sent in one answer; the first in any case."""
    found: list[Part] = []
    cells = 0
    for part in value[:MOST_PARTS] if isinstance(value, list) else ():
        size = _cells_of(part, extent)
        if size is None or (found and cells + size > MOST_CELLS):
            continue
        cells += size
        found.append(tuple(part))
    return found


def _cells_of(part: Any, extent: Extent) -> int | None:
    """How many numbers a part has; None if there is no such part."""
    if not (isinstance(part, Sequence) and part and isinstance(part[0], str)):
        return None
    match tuple(part):
        case ("tensor", str(name)) if name in extent.tensors:
            sizes = extent.tensors[name]
            cells = math.prod(sizes.values())
            return None if cells > _most_whole(sizes) else cells
        case ("row", str(name), place) if name in extent.tensors:
            sizes = extent.tensors[name]
            rows, *others = sizes.values()
            cells = math.prod(sizes.values())
            is_there = "vocab" in sizes and cells > BY_ROW and _is_within(place, rows)
            return math.prod(others) if is_there else None
        case ("lens", pos) if _is_within(pos, extent.tokens):
            return 0
        case ("slice", str(name), head) if _is_within(head, extent.tensors.get(name, {}).get("head", 0)):
            sizes = extent.tensors[name]
            return math.prod(sizes.values()) // sizes["head"]
        case ("who", pos, token) if _is_within(pos, extent.tokens) and _is_within(token, extent.vocabulary):
            return 0
        case ("checks",):
            return 0
        case ("circuit", str(kind), str(attention), head) if kind in extent.circuits.get(attention, ()):
            return 0 if _is_within(head, extent.heads) else None
    return None


def _most_whole(sizes: Mapping[str, int]) -> float:
    """Cells up to which a tensor of these dimensions is sent whole."""
    return WHOLE_UP_TO if "head" in sizes else BY_ROW if "vocab" in sizes else math.inf


def _is_within(value: Any, count: int) -> bool:
    return type(value) is int and 0 <= value < count
