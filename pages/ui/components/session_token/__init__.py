"""The token of what a visitor has made, kept in their browser's tab: no other tab, no link and no cookie has it."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from pages.ui.components.events import told
from pages.ui.components.sources import script

LONGEST = 2_000
KEY = "session_token"
_mount = st.components.v2.component("headsup_session_token", js=script(__file__, "session_token.js"))


def session_token(value: str, *, session: str, heard: bool, on_found: Callable[[str], None]) -> None:
    """Let the tab keep a value. If it has another, it tells that first, once, and keeps it until that was heard.

    session: differs between any two sessions. heard: whether on_found was called. on_found: called before another run,
    with what the tab has kept since a session before.
    """

    def found() -> None:
        kept = told(KEY, "found")
        if isinstance(kept, str) and len(kept) <= LONGEST:  # browsers can send anything
            on_found(kept)

    _mount(key=KEY, data={"value": value, "session": session, "heard": heard}, on_found_change=found)
