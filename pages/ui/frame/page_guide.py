"""Shows the tour, the glossary and presentation mode in the frame of every page."""

import os

import streamlit as st

from pages.ui.components.guide import guide
from pages.ui.frame import state, widgets
from pages.ui.host.exchange import change
from pages.ui.session.session_store import session_record

VARIABLE, OFF = "HEADSUP_START", "off"
"""Set to this, a server doesn't offer the tour by itself: for classes and for tests."""


def show() -> None:
    """Have it at hand on the page."""
    guide(
        tour_requests=st.session_state.get("tour_requests", 0),
        on_present=lambda is_large: st.session_state.update(presenting=is_large),
    )


def offers_tour() -> bool:
    """Whether the tour is offered: where a visit begins on Generate, and not over the view of a link."""
    is_here = st.session_state["page"] == "Generate"
    is_wanted = os.environ.get(VARIABLE, "").lower() != OFF and not st.session_state["came_by_link"]
    return st.session_state.setdefault("tour_offered", is_here and is_wanted) and is_here


def offer_first_lesson() -> None:
    """Draw a button below the page Generate that opens the first lesson, until a lesson has been opened."""
    is_here = st.session_state["page"] == "Generate" and not st.context.is_embedded
    if is_here and session_record().answers.is_empty:
        widgets.button("Start with lesson 1", _open_first_lesson, key="first_lesson", type="tertiary")


def offer_tour() -> None:
    """Draw a button that starts the tour on the page Generate."""
    widgets.button("Show me around", _start_tour, key="offer_start", type="tertiary", icon="explore")


def _open_first_lesson() -> None:
    from pages.ui.lessons import lesson_files

    if lessons := lesson_files.available_lessons():
        change(lesson=lessons[0].name, lesson_step=0)
        state.open_page("Learn")


def _start_tour() -> None:
    st.session_state["tour_requests"] = st.session_state.get("tour_requests", 0) + 1
    state.open_page("Generate")


def is_presenting() -> bool:
    """Whether the page is in presentation mode. That is part of no view: neither links nor lessons change it."""
    return st.session_state.get("presenting", False)
