"""Keeps typed but unapplied input in the tab over a reload or a restart of the server."""

import secrets

import streamlit as st

from pages.ui.components.assets import custom_component

_mount = custom_component(__file__)


def keep_input_drafts() -> None:
    """Called once in each run of a page. The browser hears of it when a session begins."""
    session = st.session_state.setdefault("typed_session", secrets.token_hex(4))
    _mount(key="typed", data={"session": session})
