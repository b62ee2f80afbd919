"""The address bar: brought up to date without an entry in the browser's history."""

from __future__ import annotations

import streamlit as st

from pages.ui.components.sources import reader

_mount = st.components.v2.component("headsup_address", js=reader(__file__)("address.js"))


def address(query: str, at: float, *, key: str) -> None:
    """Put parameters into the address bar. query: encoded. at: when they were; older ones than the last are ignored."""
    _mount(key=key, data={"query": query, "at": at})
