"""A text while a model writes it: tinted tokens, candidates, attention and a timeline, without a flicker."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from pages.ui.components.events import told
from pages.ui.components.numbers import short
from pages.ui.components.sources import reader, script, style
from pages.ui.figures.palette import sequential_stops

_read = reader(__file__)

# Streamlit sends a component's whole source with every update. So there are two: the view, which is large, but whose
# message never changes and is therefore sent again only as a reference, and a feed of a few lines with the data.
_view = st.components.v2.component(
    "headsup_live_text",
    html=_read("live_text.html"),
    css=style(__file__, "live_text.css", instruments=["tip.css"]),
    js=script(__file__, "live_text.js"),
)
_feed = st.components.v2.component("headsup_live_text_feed", js=script(__file__, "live_text_feed.js"))


@dataclass(frozen=True)
class StripToken:
    """One token of the text.

    `probability`, `rank` (1: the likeliest) and `entropy` (nats) are the model's own, None where it made no
    prediction. `written`: by the model, not part of the prompt. `picked`: chosen by the visitor instead of sampled.
    """

    label: str
    text: str
    id: int
    probability: float | None
    rank: int | None
    entropy: float | None
    written: bool
    picked: bool = False


@dataclass(frozen=True)
class Candidate:
    """A token that could stand at the selected place.

    `probability` is the model's own, `sampling_probability` that after temperature, top-k and top-p (0: cut off).
    """

    label: str
    id: int
    probability: float
    sampling_probability: float
    chosen: bool


def live_text(
    *,
    tokens: Sequence[StripToken],
    selected: int,
    weights: Sequence[float] | None,
    query: int | None,
    candidates: Sequence[Candidate],
    candidates_title: str,
    status: str,
    live: bool,
    layer_head: str,
    key: str,
    weights_start: int = 0,
    candidates_index: int | None = None,
    on_select: Callable[[int], None] | None = None,
    on_pick: Callable[[int, int], None] | None = None,
) -> Any:
    """Show a text token by token; call it again with the same `key`, and the page changes without a flicker.

    tokens: the whole text, prompt first.
    selected: the index of the token that is inspected; `len(tokens)` for the next one, not written yet.
    weights: the attention from token `query` to the tokens `weights_start`, `weights_start + 1`, …; None or empty if
        there is none. layer_head: whose attention it is, such as "layer 2, head 3".
    candidates: the likeliest tokens for `candidates_index` (default: `selected`); the first ten are shown.
    status: one line, read aloud when writing starts and ends.
    live: a text is being written; the candidates can't be clicked.

    Two events, each for one run only (`result.select`, `result.pick`, None otherwise) and as a callback that runs
    before the script, or before the fragment if called in one. `on_select(index)`: a written token was clicked or
    reached with keys or timeline. `on_pick(index, id)`: write this token at `index` instead and go on from there.
    The selection belongs to the caller: keep it and pass it back as `selected`.
    """
    data = build_payload(
        tokens=tokens,
        selected=selected,
        weights=weights,
        weights_start=weights_start,
        query=query,
        candidates=candidates,
        candidates_index=selected if candidates_index is None else candidates_index,
        candidates_title=candidates_title,
        status=status,
        live=live,
        layer_head=layer_head,
    )

    # Triggers, not state: a state callback stays silent when somebody returns to the token clicked before, although
    # `selected` has moved on meanwhile.
    def selected_in_browser() -> None:
        index = checked_select(told(key, "select"), data)
        if on_select is not None and index is not None:
            on_select(index)

    def picked_in_browser() -> None:
        pick = checked_pick(told(key, "pick"), data)
        if on_pick is not None and pick is not None:
            on_pick(*pick)

    with st.container(gap=None):
        _view(key=f"{key}-view", data={"name": key})
        return _feed(
            key=key,
            data={"name": key, **data},
            on_select_change=selected_in_browser,
            on_pick_change=picked_in_browser,
        )


def build_payload(
    *,
    tokens: Sequence[StripToken],
    selected: int,
    weights: Sequence[float] | None,
    weights_start: int,
    query: int | None,
    candidates: Sequence[Candidate],
    candidates_index: int,
    candidates_title: str,
    status: str,
    live: bool,
    layer_head: str,
) -> dict[str, Any]:
    """What the browser gets: parallel lists, a table of the distinct tokens, numbers with five significant digits."""
    if not 0 <= selected <= len(tokens):
        raise ValueError(
            f"selected is {selected}; there are {len(tokens)} tokens, so 0 to {len(tokens)} would do"
        )
    table: dict[tuple[str, str, int], int] = {}
    kind = [table.setdefault((_shown(token), token.label, token.id), len(table)) for token in tokens]
    shortlist = candidates[:10]
    return {
        "kinds": {
            "shown": [shown for shown, _, _ in table],
            "label": [label for _, label, _ in table],
            "id": [token_id for _, _, token_id in table],
        },
        "kind": kind,
        "flags": "".join("p" if not token.written else "h" if token.picked else "w" for token in tokens),
        "probability": [short(token.probability) for token in tokens],
        "rank": [token.rank for token in tokens],
        "entropy": [short(token.entropy) for token in tokens],
        "selected": selected,
        "query": query,
        "weights": None if weights is None else [short(weight) or 0 for weight in weights],
        "weights_start": weights_start,
        "where": layer_head,
        "candidates": {
            "index": candidates_index,
            "title": candidates_title,
            "label": [candidate.label for candidate in shortlist],
            "id": [candidate.id for candidate in shortlist],
            "probability": [short(candidate.probability) for candidate in shortlist],
            "sampling": [short(candidate.sampling_probability) for candidate in shortlist],
            "chosen": next((row for row, candidate in enumerate(shortlist) if candidate.chosen), None),
        },
        "status": status,
        "live": live,
        "stops": sequential_stops(),
    }


def checked_select(value: Any, data: dict[str, Any]) -> int | None:
    """The index in a `select` event, or None unless it is that of a written token: browsers can send anything."""
    if type(value) is int and 0 <= value < len(data["flags"]) and data["flags"][value] != "p":
        return value
    return None


def checked_pick(value: Any, data: dict[str, Any]) -> tuple[int, int] | None:
    """(index, id) in a `pick` event, or None unless it is a candidate that was offered."""
    if not isinstance(value, dict):
        return None
    index, token_id = value.get("index"), value.get("id")
    offered = data["candidates"]
    if (
        type(index) is int
        and type(token_id) is int
        and index == offered["index"]
        and token_id in offered["id"]
    ):
        return index, token_id
    return None


def _shown(token: StripToken) -> str:
    """The raw text where it can be seen or is white space that the page lays out, else the printable label."""
    text = token.text
    return (
        text
        if text and all(character.isprintable() or character in " \n\t" for character in text)
        else token.label
    )
