"""The browser's tab: its address bar, which is written without an entry in the history, and what it keeps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from pages.ui.components.events import told as told_by
from pages.ui.components.sources import script

KEY = "tab"
LONGEST_PARAMETER, MOST_PARAMETERS = 100_000, 100
_mount = st.components.v2.component("headsup_tab", js=script(__file__, "tab.js"))


def tab(
    query: str, at: float, *, told: Mapping[str, str | None], kept: Mapping[str, str], shown: Mapping[str, str],
    seen: str, run: float, path: str, begins: bool, on_return: Callable[[str, dict[str, str]], None],
    on_look: Callable[[dict[str, str]], None],
) -> None:  # fmt: skip
    """Put parameters into the address bar, once in each run of a page.

    query: encoded, without what is looked at, which the browser writes; told: what is to be looked at now. at: when
    they were; what is older than the last is ignored. kept: parameters that the address has no room for, which the tab
    keeps over a reload. run: when this run was. path: of the page that they are about; while the bar holds another, to
    which the visitor has just gone back, nothing is written.

    begins: the session is new; if the tab knows of more than the session's address says, since its server was
    restarted, or of what the address had no room for, nothing is written, and on_return is called with that. shown:
    what this run takes to be looked at, seen: the parameters that it was asked for with. If Streamlit has told those
    of a while ago, on_look is called with what is looked at now. Another run follows either.
    """

    def returned() -> None:
        before = told_by(KEY, "before")
        query = before.get("query") if isinstance(before, Mapping) else None
        kept = checked(before.get("kept")) if isinstance(before, Mapping) else None
        if kept is not None and isinstance(query, str) and len(query) <= LONGEST_PARAMETER:
            on_return(query, kept)

    def looks() -> None:
        if (values := checked(told_by(KEY, "look"))) is not None:
            on_look(values)

    data = {"query": query, "at": at, "told": dict(told), "kept": kept, "shown": shown, "seen": seen, "run": run,
            "path": path, "begins": begins}  # fmt: skip
    _mount(key=KEY, data=data, on_before_change=returned, on_look_change=looks)


def checked(value: Any) -> dict[str, str] | None:
    """The parameters that a browser tells of, or None: it can send anything."""
    if not isinstance(value, Mapping) or len(value) > MOST_PARAMETERS:
        return None
    texts = [*value, *value.values()]
    return dict(value) if all(isinstance(text, str) and len(text) <= LONGEST_PARAMETER for text in texts) else None
