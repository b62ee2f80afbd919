"""A tab's key, by which the server knows the tab again after it was reloaded; no other tab and no link has it."""

from __future__ import annotations

import streamlit as st

from pages.ui.components.sources import script

COOKIE = "headsup_tab"
_mount = st.components.v2.component("headsup_tab_key", js=script(__file__, "tab_key.js"))


def tab_key(value: str, seconds: int) -> None:
    """Let the browser keep a key for `seconds` after the tab is left. value: "" for nothing to keep."""
    _mount(key="tab_key", data={"key": value, "seconds": seconds})


def key_before_reload() -> str:
    """The key that this tab had before it was reloaded; "" for a tab that is new."""
    found = st.context.cookies.get(COOKIE, "")
    return found if isinstance(found, str) else ""
