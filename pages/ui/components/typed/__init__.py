"""Keeps typed but unapplied input in the tab over a reload or a restart of the server."""

from __future__ import annotations

import secrets

import streamlit as st

from pages.ui.components.sources import script

_mount = st.components.v2.component("headsup_typed", js=script(__file__, "typed.js"))


def keep_unsaved_input() -> None:
    """Called once in each run of a page. The browser hears of it when a session begins."""
    _mount(key="typed", data={"session": st.session_state.setdefault("typed_session", secrets.token_hex(4))})
