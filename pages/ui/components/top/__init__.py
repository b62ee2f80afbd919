"""Scrolls a page to its top when something else is opened on it."""

from __future__ import annotations

import streamlit as st

from pages.ui.components.sources import script

_mount = st.components.v2.component("headsup_top", js=script(__file__, "top.js"))


def begin_at_top(opened: str) -> None:
    """Scroll to the top if something else was open in this tab before. opened: names what is open now."""
    _mount(key="page_top", data={"opened": opened})
