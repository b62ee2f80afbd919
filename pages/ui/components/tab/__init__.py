"""Writes the browser's address bar without adding to its history, and restores a tab's view."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from pages.ui.components import events
from pages.ui.components.sources import script

LONGEST_PARAMETER, MAX_PARAMETERS = 100_000, 100
_mount = st.components.v2.component("headsup_tab", js=script(__file__, "tab.js"))


def tab(
    query: str,
    at: float,
    *,
    kept: Mapping[str, str],
    told: Mapping[str, str | None],
    knows: Mapping[str, str],
    wants: bool,
    leave: str | None,
    path: str,
    begins: bool,
    key: str,
    on_return: Callable[[str, dict[str, str]], None],
    on_held: Callable[[dict[str, str]], None],
) -> None:
    """Put parameters into the address bar.

    query: encoded, without what the browser writes by itself. at: when they were; what is older than the last is
    ignored. kept: parameters that the address has no room for, which the tab keeps over a reload.
    told: what is to be looked at now, None for what is as at first; knows: all that is looked at, as far as the server
    knows; wants: on_held is to be called with what the tab holds, if that is something else.
    leave: the title of another page, which is then opened by its link.
    path: of the page that they are about; while the bar holds another, to which the visitor has just gone back, nothing
    is written. begins: the session is new; if the tab knows of more than the session's address says, since its server
    was restarted, or of what the address had no room for, nothing is written, and on_return is called with that.
    """

    def returned() -> None:
        found = checked(events.event_value(key, "before"))
        if found is not None:
            on_return(*found)

    def held() -> None:
        found = texts_of(events.event_value(key, "held"))
        if found is not None:
            on_held(found)

    data = {
        "query": query,
        "at": at,
        "kept": dict(kept),
        "told": dict(told),
        "knows": dict(knows),
        "wants": wants,
        "leave": leave,
        "path": path,
        "begins": begins,
    }
    _mount(key=key, data=data, on_before_change=returned, on_held_change=held)


def checked(value: Any) -> tuple[str, dict[str, str]] | None:
    """Query and other parameters of a `before` event, or None: browsers can send anything."""
    if not isinstance(value, Mapping):
        return None
    query, others = value.get("query"), texts_of(value.get("others"))
    is_text = isinstance(query, str) and len(query) <= LONGEST_PARAMETER
    return (query, others) if is_text and others is not None else None


def texts_of(value: Any) -> dict[str, str] | None:
    """Parameters that a browser tells, or None: it can send anything."""
    if not isinstance(value, Mapping) or len(value) > MAX_PARAMETERS:
        return None
    texts = [*value, *value.values()]
    fits = all(isinstance(text, str) and len(text) <= LONGEST_PARAMETER for text in texts)
    return dict(value) if fits else None
