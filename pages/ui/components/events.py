"""Reads the events that components send from the browser."""

from __future__ import annotations

from typing import Any

import streamlit as st


def event_value(key: str, event: str) -> Any:
    """The value of an event in this run; None if there is none.

    Nor is there one if the component has gone with its page before its event came to be read: a callback that failed
    on that would take the next page with it.
    """
    component = st.session_state.get(key)
    return component.get(event) if component else None
