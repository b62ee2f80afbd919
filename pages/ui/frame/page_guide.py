"""What helps on every page: the tour that a first visit is offered, the glossary, presentation mode."""

from __future__ import annotations

import os
from typing import Any

import streamlit as st

from pages.ui.components.guide import guide
from pages.ui.frame import changes, state

VARIABLE, OFF = "HEADSUP_START", "off"
"""Set to this, a server shows the tour only to those who ask for it: for a class that is led, and for tests."""


def show() -> None:
    """The guide's buttons; called by each run of a page, beside its name."""
    # Decided once: who comes by a link wants to see what it shows, and the tour is about the page Generate.
    begins = st.session_state.setdefault("start_begins", _is_first_view()) and st.session_state["page"] == "Generate"
    asked = st.session_state.get("start_asked", 0)
    guide(begins=begins, asked=asked, changed=changes.coded(), on_present=_present, on_undo=_undo)


def offer_start() -> None:
    """A button that begins the tour on the page Generate, wherever it stands."""
    if st.button("Show me around", key="offer_start", type="tertiary", icon=":material/explore:"):
        st.session_state["start_asked"] = st.session_state.get("start_asked", 0) + 1
        state.turn_to("Generate")


def is_presented() -> bool:
    """Whether the page is shown to a room, in a window that has room for large labels. It is no part of a view: no link
    carries it, and a lesson that brings its own view leaves it alone."""
    return st.session_state.get("presented", False)


def _is_first_view() -> bool:
    is_wanted = os.environ.get(VARIABLE, "").lower() != OFF
    return is_wanted and st.session_state["page"] == "Generate" and not st.session_state["came_by_link"]


def _present(is_large: bool) -> None:
    st.session_state["presented"] = is_large


def _undo(made: Any) -> None:
    if isinstance(made, dict) and isinstance(made.get("codes"), list):
        changes.take_back(str(made.get("model")), made["codes"])
