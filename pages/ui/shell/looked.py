"""What is looked at: layer, head, token, what is open. The browser holds it, in the address bar, where Python reads it.

A click that only looks at something else runs no page. So at the beginning of a run these fields are what the bar says,
but for those that something in Python has decided since the last run, such as a button. What the bar doesn't say, the
browser is told at the run's end.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

import streamlit as st

from pages.ui.shell import link as links
from pages.ui.shell.choices import Visitor

HEARD_WITHIN = 1.5
"""Seconds within which the bar says what the browser was told."""
_UNKNOWN = dict.fromkeys(links.LOOKED, "\0")
"""What the browser holds, where nothing is known of it."""


def read(current: Visitor, parameters: Mapping[str, str]) -> None:
    """Take over what the bar says. parameters: those of the page; without a model they are of one that comes to be."""
    bar = {name: parameters[name] for name in links.LOOKED if name in parameters}
    held: Mapping[str, str | None] | None = st.session_state.get("looked_held")
    if held is None:  # the session begins, with what the bar says
        held = bar
    elif "model" in parameters:
        now, found = links.looked_in_query(current), links.from_query(bar)
        told, at = st.session_state.get("looked_told", ({}, 0.0))
        is_fresh = time.monotonic() - at < HEARD_WITHIN
        on_its_way = {name: value for name, value in told.items() if is_fresh and value != bar.get(name)}
        unheld = {name: now[name] for name in links.left_out(current) if name not in bar and name in now}
        for name in links.LOOKED:
            if now.get(name) == held.get(name) and name not in on_its_way and name not in unheld:
                setattr(current, name, getattr(found, name))
        held = {**bar, **on_its_way, **unheld}  # the address has no room for the last
    st.session_state["looked_held"] = held


def decide_all() -> None:
    """All of these fields are of another view now, whatever the browser looks at."""
    st.session_state["looked_held"] = _UNKNOWN


def changed(current: Visitor) -> dict[str, str | None]:
    """What the browser has to be told, once: the fields that it doesn't hold yet, None for the default."""
    now, held = links.looked_in_query(current), st.session_state.get("looked_held", {})
    found = {name: now.get(name) for name in links.LOOKED if now.get(name) != held.get(name)}
    if found:
        st.session_state["looked_told"] = found, time.monotonic()
        st.session_state["looked_held"] = now
    return found
