"""Scrolls a page to its top when something else is opened on it."""

from __future__ import annotations

from streamlit.components.v2 import component

from pages.ui.components.assets import script

_mount = component("headsup_scroll_to_top", js=script(__file__, "scroll_to_top.js"))


def scroll_to_top(opened: str) -> None:
    """Scroll to the top if something else was open in this tab before. opened: names what is open now."""
    _mount(key="page_top", data={"opened": opened})
