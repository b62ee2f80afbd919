"""Keeps typed but unapplied input in the tab over a reload or a restart of the server."""

from __future__ import annotations

import secrets

import streamlit as st
from streamlit.components.v2 import component

from pages.ui.components.assets import script

_mount = component("headsup_input_drafts", js=script(__file__, "input_drafts.js"))


def keep_input_drafts(unread_prompt: str | None = None) -> None:
    """Called once in each run of a page. The browser hears of it when a session begins.

    unread_prompt: what was applied and can't be read, so that no address holds it; the tab keeps that, too.
    """
    session = st.session_state.setdefault("typed_session", secrets.token_hex(4))
    _mount(key="typed", data={"session": session, "unread_prompt": unread_prompt})
