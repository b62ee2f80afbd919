"""A view of a pass and the feed beside it, for what is explored in the browser.

There are two components: a view, whose message is large and stays the same for a text, so that later runs send it as a
reference, and a feed of a few lines, in a fragment of its own. The feed brings the parts of the pass that the view asks
for by the pass's name, and tells Python what is looked at. A click costs no run of the page.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import streamlit as st

from pages.ui.components.events import told
from transformer import Recording

C = TypeVar("C")
"""What is looked at."""
P = TypeVar("P")
"""A part of the pass."""

_RUNS = itertools.count(int(1000 * time.time()))
"""Each run of a page has a number, so that its message differs from the last: the browser then hears of it. Nor has an
earlier server given the same."""


@dataclass(frozen=True)
class _Hearing(Generic[C, P]):
    """What the fragment needs to answer the browser."""

    check_choice: Callable[[Any], C | None]
    check_parts: Callable[[Any], list[P]]
    answer: Callable[[Iterable[P]], Recording]
    on_choose: Callable[[C], None]
    on_change: Callable[[Any], None]
    after: Callable[[], None]


def show(
    view: Callable[..., Any],
    feed: Callable[..., Any],
    *,
    key: str,
    name: str,
    whole: Recording,
    chosen: Mapping[str, Any],
    serial: int,
    first: list[P],
    check_choice: Callable[[Any], C | None],
    check_parts: Callable[[Any], list[P]],
    answer: Callable[[Iterable[P]], Recording],
    on_choose: Callable[[C], None],
    on_change: Callable[[Any], None],
    after: Callable[[], None],
    patient: bool,
) -> None:
    """Show a pass.

    view, feed: the two components. name: of the pass; what is asked for by another name is not answered. whole: what
    the view is sent.
    chosen: what is looked at first, and again whenever `serial` grows. first: the parts that are sent unasked.
    check_choice, check_parts: what can be used of what a browser sends, which can be anything.
    answer: the parts that are asked for. on_choose: called when the visitor has chosen something else to look at;
    on_change: with what a browser wants changed in the model, which can be anything; after: at the end of each run that
    this causes, which is a run of a fragment. patient: ask for nothing in the first moments, when the page itself may
    have something to ask.
    """
    st.session_state[f"{key}-parts"] = first
    about = {"id": name, "name": key, "chosen": chosen, "serial": serial, "run": next(_RUNS), "patient": patient}
    message = Recording(whole.tensors, {**whole.metadata, "id": name, "name": key})
    with st.container(gap=None):
        view(key=f"{key}-view", data=message.to_bytes())
        st.fragment(_answer)(feed, about, _Hearing(check_choice, check_parts, answer, on_choose, on_change, after))


def _answer(feed: Callable[..., Any], about: dict[str, Any], hearing: _Hearing) -> None:
    """The feed, which is all that runs when something else is looked at, or a part is asked for."""
    key = about["name"]

    def chosen_in_browser() -> None:
        report = told(key, "chosen")
        found = hearing.check_choice(report)
        if found is not None:
            hearing.on_choose(found)
        change = report.get("change") if isinstance(report, Mapping) else None
        if isinstance(change, Mapping):
            hearing.on_change(change)
        # Said to have arrived whether or not it could be used: else it would be told again and again.
        count = report.get("count") if isinstance(report, Mapping) else None
        st.session_state[f"{key}-seen"] = count if type(count) is int else 0

    def wanted_in_browser() -> None:
        wanted = told(key, "want")
        if isinstance(wanted, Mapping) and wanted.get("id") == about["id"]:
            st.session_state[f"{key}-parts"] = hearing.check_parts(wanted.get("parts"))

    found = hearing.answer(st.session_state.pop(f"{key}-parts", []))
    message = Recording(found.tensors, {**found.metadata, **about, "seen": st.session_state.get(f"{key}-seen", 0)})
    feed(key=key, data=message.to_bytes(), on_chosen_change=chosen_in_browser, on_want_change=wanted_in_browser)
    hearing.after()
