"""What is looked at: layer, head, token, what is open. The browser holds it, in the address bar, where Python reads it.

A click that only looks at something else runs no page. So at the beginning of a run these fields are what the bar says,
and what the run makes of them otherwise, as a lesson's step does, the browser is told at its end.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

import streamlit as st

from pages.ui.shell import link as links
from pages.ui.shell.choices import Visitor

HEARD_WITHIN = 1.5
"""Seconds within which the bar says what the browser was told."""


def read(current: Visitor, parameters: Mapping[str, str]) -> None:
    """Take over what the bar says. parameters: those of the page; without a model they are of one that comes to be."""
    told, at = st.session_state.get("looked_told", ({}, 0.0))
    if "model" in parameters:
        found = links.from_query({name: parameters[name] for name in links.LOOKED if name in parameters})
        is_fresh = time.monotonic() - at < HEARD_WITHIN
        left_out = links.left_out(current)
        for name in links.LOOKED:
            if name in left_out and name not in parameters:
                continue  # the address has no room for it
            if not (is_fresh and name in told and told[name] != parameters.get(name)):
                setattr(current, name, getattr(found, name))
    st.session_state["looked_before"] = links.looked_in_query(current)


def changed(current: Visitor) -> dict[str, str | None]:
    """What the browser has to be told: the fields that this run has made something else of, None for the default."""
    now, before = links.looked_in_query(current), st.session_state.get("looked_before", {})
    found = {name: now.get(name) for name in links.LOOKED if now.get(name) != before.get(name)}
    if found:
        st.session_state["looked_told"] = found, time.monotonic()
    return found
