"""The address bar: brought up to date without an entry in the browser's history."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from pages.ui.components import events
from pages.ui.components.sources import script

_mount = st.components.v2.component("headsup_address", js=script(__file__, "address.js"))


def address(
    query: str, at: float, *, told: Mapping[str, str | None], path: str, key: str, begins: bool,
    on_return: Callable[[str], None],
) -> None:  # fmt: skip
    """Put parameters into the address bar.

    query: encoded, without what is looked at, which the browser writes; told: what is to be looked at now. at: when
    they were; what is older than the last is ignored. path: of the page that they are about; while the bar holds
    another, to which the visitor has just gone back, nothing is written. begins: the session is new and its URL has no
    parameters; if the tab had some in an earlier session, before the server was restarted, say, nothing is written, and
    on_return is called with them, before another run.
    """

    def returned() -> None:
        before = checked_query(events.told(key, "before"))
        if before is not None:
            on_return(before)

    data = {"query": query, "at": at, "told": dict(told), "path": path, "begins": begins}
    _mount(key=key, data=data, on_before_change=returned)


def checked_query(value: Any) -> str | None:
    """The parameters in a `before` event, or None: browsers can send anything."""
    return value if isinstance(value, str) and len(value) <= 100_000 else None
