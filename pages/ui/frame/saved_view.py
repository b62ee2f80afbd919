"""A view that a lesson lends: the visitor's own is put away meanwhile, and comes back when the lesson is left.

While a lesson is open its step decides the fields of the visitor that make up the view, and the visitor may turn all of
them. What they had before, their text and its branches included, lies here. It comes back with another page, unless the
visitor takes the lesson's view along to it; then a line on that page leads back to either.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from pages.ui.frame import selection_sync, state
from pages.ui.frame.url_parameters import PARSERS
from pages.ui.frame.visitor_choices import Visitor, fields
from pages.ui.models.lesson_answers import StepPlace
from pages.ui.models.session_store import session_record

LESSONS = "Learn"
"""The page that lends."""
INSTRUMENTS = ("Attention", "Inside")
"""The pages that an instrument can lead to."""
STAYS = frozenset({"lesson", "lesson_step", "answers", "own_text"})
"""Fields that are no part of any view."""
ENTRIES = ("changes_put_away", "changed_model")
"""What the session keeps beside the fields: the text that is written, and the changes of other models."""


@dataclass
class Loan:
    """What is put away, and whose view is lent. along: whether it was taken to another page."""

    own: Visitor
    place: StepPlace
    entries: dict[str, Any] = field(default_factory=dict)
    along: bool = False


def loan() -> Loan | None:
    """What is put away now, if a lesson's view is lent."""
    return st.session_state.get("loan")


def turn_to(page: str) -> None:
    """Called as a page's run begins, before its URL is read: leaving the lessons brings back the visitor's own view."""
    current, found = state.visitor(), loan()
    if page == LESSONS:
        if found and not state.is_turning():
            found.along = False
        elif state.returns(page) and (name := st.query_params.get("lesson")):
            _put_away(current, StepPlace(name, -1))  # the URL is about to take its place
    elif found and not found.along:
        give_back()
    elif not found:
        session_record().put_away = None


def lend(place: StepPlace, view: Visitor | None) -> None:
    """Put a step's view in the place of the visitor's. view: None if a link has just brought one that is the step's."""
    current, found = state.visitor(), loan()
    if found is None:
        found = _put_away(Visitor() if view is None else current, place)
    found.place = place
    if view is not None:
        _become(current, view)
        _forget_entries()
        state.arrives()


def give_back() -> None:
    """Bring back what the visitor had before the lesson."""
    found = loan()
    if found is None:
        return
    del st.session_state["loan"]
    session_record().put_away = None
    _forget_entries()
    _become(state.visitor(), found.own)
    st.session_state.update(found.entries)
    state.arrives()


def take_along() -> None:
    """Let the lesson's view stay as it is on the page that is opened next."""
    if found := loan():
        found.along = True


def turn_along(wish: Mapping[str, Any]) -> None:
    """Called by an instrument that is about to open another page: a lesson's view is taken along to it.

    wish: its page, and the attention and the text that it is to show; it can be anything.
    """
    if wish.get("page") not in INSTRUMENTS:
        return
    current = state.visitor()
    for name in ("attention", "scope"):
        with contextlib.suppress(ValueError):
            setattr(current, name, PARSERS[name](wish.get(name)))
    take_along()
    state.turn_to(wish["page"])


def show_ways_back() -> None:
    """On a page that shows a lesson's view: the way back to the lesson, and to what the visitor had before."""
    found = loan()
    if found is None or not found.along:
        return
    with st.container(horizontal=True, vertical_alignment="center", key="ways_back"):
        st.markdown(":material/school: This is a lesson's view; your own is put away.", width="content")
        st.page_link("Learn.py", label="Back to the lesson", icon=":material/arrow_back:")
        st.button("Back to my own view", key="give_back", type="tertiary", on_click=give_back)


def _put_away(current: Visitor, place: StepPlace) -> Loan:
    own = session_record().put_away or dataclasses.replace(current, notices=[])
    found = Loan(own, place, {name: st.session_state[name] for name in ENTRIES if name in st.session_state})
    _forget_entries()
    st.session_state["loan"] = found
    session_record().put_away = own
    return found


def _become(current: Visitor, other: Visitor) -> None:
    for name in set(fields()) - STAYS:
        setattr(current, name, getattr(other, name))
    selection_sync.tell_all()


def _forget_entries() -> None:
    for name in ENTRIES:
        st.session_state.pop(name, None)
