"""The browser's tab: its address bar, which is written without an entry in the history, and what it keeps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from pages.ui.components.events import told
from pages.ui.components.sources import script

LONGEST_PARAMETER, MOST_PARAMETERS = 100_000, 100
_mount = st.components.v2.component("headsup_tab", js=script(__file__, "tab.js"))


def tab(
    query: str, at: float, *, kept: Mapping[str, str], looked: list[str], path: str, key: str, begins: bool,
    on_return: Callable[[str, dict[str, str]], None],
) -> None:  # fmt: skip
    """Put parameters into the address bar.

    query: encoded. at: when they were; what is older than the last is ignored. kept: parameters that the address has no
    room for, which the tab keeps over a reload. looked: names of those that the browser writes by itself. path: of the
    page that they are about; while the bar holds another, to which the visitor has just gone back, nothing is written.
    begins: the session is new; if the tab knows of more than the session's address says, since its server was
    restarted, or of what the address had no room for, nothing is written, and on_return is called with that.
    """

    def returned() -> None:
        before = checked(told(key, "before"))
        if before is not None:
            on_return(*before)

    data = {"query": query, "at": at, "kept": kept, "looked": looked, "path": path, "begins": begins}
    _mount(key=key, data=data, on_before_change=returned)


def checked(value: Any) -> tuple[str, dict[str, str]] | None:
    """Query and kept parameters of a `before` event, or None: browsers can send anything."""
    if not isinstance(value, Mapping):
        return None
    query, kept = value.get("query"), value.get("kept")
    if not isinstance(kept, Mapping) or len(kept) > MOST_PARAMETERS:
        return None
    texts = [query, *kept, *kept.values()]
    if not all(isinstance(text, str) and len(text) <= LONGEST_PARAMETER for text in texts):
        return None
    return query, dict(kept)
