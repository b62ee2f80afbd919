"""A text while a model writes it, as one instrument: the server computes ahead, the browser shows it at its pace.

There are two components: a view, whose message stays the same, so that later runs send it as a reference, and a feed in
a fragment of its own. The feed brings what was computed since, and tells Python how far the visitor has seen the text,
what the dials say, and what is to be computed or remembered. Neither writing nor exploring runs the page.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import streamlit as st

from pages.ui.components.events import told
from pages.ui.components.sources import reader, script, style
from transformer import Recording

LIMITS: dict[str, tuple[float, float]] = {
    "temperature": (0.0, 2.0),
    "top_k": (0, 100),
    "top_p": (0.05, 1.0),
    "seed": (0, 2**31 - 1),
    "tokens": (1, 500),
}
"""The numbers that dials go from and to; whole ones where both ends are."""
ACTS: dict[str, tuple[str, ...]] = {
    "rest": (),
    "write": ("goal",),
    "stop": (),
    "clear": (),
    "undo": (),
    "pick": ("place", "token"),
    "branch": ("to",),
    "rows": ("first", "last"),
    "logits": ("place",),
    "compare": ("with",),
    "inside": ("place", "token"),
    "again": (),
}
"""What the browser can ask for, and the whole numbers that go with it."""
LARGEST = 2**53
"""Whole numbers up to this one are exact in a browser."""

_view = st.components.v2.component(
    "headsup_writing",
    html=reader(__file__)("writing.html"),
    css=style(__file__, instruments=["tip.css", "save.css", "writing/writing.css"]),
    js=script(__file__, "writing.js"),
)
_RUNS = itertools.count(int(1000 * time.time()))
"""Each run of a page has a number, so that its message differs from the last: the browser then hears of it. Nor has an
earlier server given the same."""
_feed = st.components.v2.component("headsup_writing_feed", js=script(__file__, "writing_feed.js"))


@dataclass(frozen=True)
class Extent:
    """What can be chosen: the attentions that there are to choose among, how many layers and heads, and the paces."""

    attentions: tuple[str, ...]
    layers: int
    heads: int
    paces: tuple[str, ...]


@dataclass(frozen=True)
class Event:
    """What the browser tells. Places count the tokens of the decoder's text."""

    act: str
    branch: int
    seen: int
    """The length of the text that was revealed."""
    have: int
    """The length that has come, what is ahead included."""
    controls: dict[str, Any]
    """Those of the dials that say something that can be chosen."""
    step: int | None
    """The place that is looked at; None follows the newest."""
    asked: dict[str, int]
    """The numbers that go with the act, as in `ACTS`."""


def writing(
    *,
    key: str,
    name: str,
    title: str,
    extent: Extent,
    choices: Mapping[str, Any],
    serial: int,
    take: Callable[[Event], None],
    answer: Callable[[], Recording],
    after: Callable[[], None],
    patient: bool = False,
) -> None:
    """Show a text.

    name: of model, prompt and source; what is told of another is not taken. title: what saved files are called.
    choices: what the view offers. serial: grows when the dials of the next message replace those in the browser.
    take: called with each event, before the run that it causes, which is a run of a fragment. answer: what the
    browser gets in this run; after: called at its end. patient: ask for nothing in the first moments, when the page
    itself may have something to ask.
    """
    about = {"id": name, "name": key, "title": title, "serial": serial, "run": next(_RUNS), "patient": patient}
    with st.container(gap=None):
        _view(key=f"{key}-view", data={"name": key})
        st.fragment(_answer)({**about, "choices": {**choices, "limits": LIMITS}}, extent, take, answer, after)


def _answer(
    about: dict[str, Any],
    extent: Extent,
    take: Callable[[Event], None],
    answer: Callable[[], Recording],
    after: Callable[[], None],
) -> None:
    """The feed, which is all that runs when the browser tells something."""
    key = about["name"]

    def tell() -> None:
        value = told(key, "tell")
        count = value.get("count") if isinstance(value, Mapping) else None
        if not _is_whole(count):
            return
        heard = st.session_state.get(f"{key}-heard", 0)
        # Said to have arrived whether or not it could be used: else it would be told again and again.
        st.session_state[f"{key}-heard"] = max(heard, count)
        # What is told once more had its answer lost. It is done again, which changes nothing: the branch that a visitor
        # left by it is no longer the current one.
        event = checked_event(value, extent) if count >= heard and value.get("id") == about["id"] else None
        if event is not None:
            take(event)

    found = answer()
    # Numbered, too: the browser doesn't hear of a message that is the same as the last, and may have missed that one.
    heard = {"heard": st.session_state.get(f"{key}-heard", 0), "sent": next(_RUNS)}
    message = Recording(found.tensors, {**found.metadata, **about, **heard})
    _feed(key=key, data=message.to_bytes(), on_tell_change=tell)
    after()


def checked_event(value: Any, extent: Extent) -> Event | None:
    """What a `tell` event says; None for what no browser of ours sends.

    What is asked for without the numbers that it needs is taken as nothing but a rest.
    """
    if not isinstance(value, Mapping):
        return None
    branch, seen, have = (value.get(name) for name in ("branch", "seen", "have"))
    if not (_is_whole(branch) and _is_whole(seen) and _is_whole(have)):
        return None
    act, step = value.get("act"), value.get("step")
    asked = {name: value.get(name) for name in ACTS.get(act, ())} if isinstance(act, str) else {}
    if not (isinstance(act, str) and act in ACTS and all(map(_is_whole, asked.values()))):
        act, asked = "rest", {}
    controls = checked_controls(value.get("controls"), extent)
    return Event(act, branch, seen, have, controls, step if _is_whole(step) else None, asked)


def checked_controls(value: Any, extent: Extent) -> dict[str, Any]:
    """Of what the dials say, that which can be chosen."""
    if not isinstance(value, Mapping):
        return {}
    found: dict[str, Any] = {}
    for name, (low, high) in LIMITS.items():
        number, kind = value.get(name), type(low)
        # A browser has one kind of number: 1.0 arrives as 1.
        is_number = type(number) is int or (kind is float and type(number) is float and math.isfinite(number))
        if is_number and low <= number <= high:
            found[name] = kind(number)
    for name, count in (("layer", extent.layers), ("head", extent.heads)):
        if _is_whole(value.get(name)) and value[name] < count:
            found[name] = value[name]
    for name, among in (("pace", extent.paces), ("attention", extent.attentions)):
        if isinstance(value.get(name), str) and value[name] in among:
            found[name] = value[name]
    return found


def _is_whole(value: Any) -> bool:
    return type(value) is int and 0 <= value < LARGEST
