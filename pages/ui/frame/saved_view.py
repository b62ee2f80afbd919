"""Saves the visitor's view while a lesson shows its own, and restores it afterwards.

A step of a lesson sets the fields that make up the view, and the visitor may change them. Opening another page restores
the saved view, unless the visitor keeps the lesson's; that page then links back to both.
"""

import dataclasses
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from pages.ui.frame import selection_sync, state, widgets
from pages.ui.frame import url_parameters as links
from pages.ui.frame.visitor_choices import Visitor, fields
from pages.ui.host.exchange import dials_of, exchange
from pages.ui.session.lesson_answers import StepId
from pages.ui.session.session_store import session_record

LESSONS_PAGE = "Learn"
NOT_IN_VIEW = frozenset({"lesson", "lesson_step", "answers", "own_text"})
SESSION_KEYS = ("changes_of_other_models", "changed_model")
"""Keys of the session that belong to the view, too."""


@dataclass
class SavedView:
    """What the visitor had, and the step that is shown instead. on_other_page: whether another page shows it, too."""

    visitor: Visitor
    step_id: StepId
    session_entries: dict[str, Any] = field(default_factory=dict)
    on_other_page: bool = False


def saved_view() -> SavedView | None:
    """The visitor's saved view; None while no lesson's view is shown."""
    return st.session_state.get("saved_view")


def restore_outside_lessons(page: str) -> None:
    """Restore the visitor's view when they leave the lessons; called as a run begins, before its URL is read."""
    current, saved = state.visitor(), saved_view()
    if page == LESSONS_PAGE:
        if saved and not state.is_leaving_page():
            saved.on_other_page = False
        elif state.returns(page) and (name := st.query_params.get("lesson")):
            _save(current, StepId(name, -1))  # the URL is about to take its place
    elif saved and not saved.on_other_page:
        restore_view()
    elif not saved:
        session_record().saved_visitor = None


def show_lesson_view(step_id: StepId, view: Visitor | None) -> None:
    """Save the visitor's view and show a step's. view: None if a link has just set it."""
    current, saved = state.visitor(), saved_view()
    if saved is None:
        saved = _save(Visitor() if view is None else current, step_id)
    saved.step_id = step_id
    if view is not None:
        _copy_view(current, view)
        _clear_session_keys()
        state.mark_restored()


def keep_own_view() -> None:
    """Save the view as the tab had it: of what Python draws nothing of, the session knew less."""
    before, exchange().before = exchange().before, None
    if before and (saved := saved_view()):
        dials = dials_of(links.everything(saved.visitor))
        saved.visitor = links.from_query({**before, **dials})
        session_record().saved_visitor = saved.visitor


def restore_view() -> None:
    """Restore the view from before the lesson."""
    saved = saved_view()
    if saved is None:
        return
    del st.session_state["saved_view"]
    exchange().asks_before = False
    session_record().saved_visitor = None
    _clear_session_keys()
    _copy_view(state.visitor(), saved.visitor)
    st.session_state.update(saved.session_entries)
    state.mark_restored()


def open_page(page: str) -> None:
    """Open another page, with the lesson's view if there is one."""
    if saved := saved_view():
        saved.on_other_page = True
    state.open_page(page)


def show_back_links() -> None:
    """Link back to the lesson and to the visitor's view, on a page that shows a lesson's view."""
    saved = saved_view()
    if saved is None or not saved.on_other_page:
        return
    with st.container(horizontal=True, vertical_alignment="center", key="ways_back"):
        st.markdown(":material/school: This view comes from a lesson. Yours is saved.", width="content")
        st.page_link("Learn.py", label="Back to the lesson", icon=":material/arrow_back:")
        widgets.button("Back to my view", restore_view, key="give_back", type="tertiary")


def _save(current: Visitor, step_id: StepId) -> SavedView:
    visitor = session_record().saved_visitor or dataclasses.replace(current, notices=[])
    saved = SavedView(visitor, step_id, {key: st.session_state[key] for key in SESSION_KEYS if key in st.session_state})
    _clear_session_keys()
    exchange().asks_before = True
    st.session_state["saved_view"] = saved
    session_record().saved_visitor = visitor
    return saved


def _copy_view(current: Visitor, other: Visitor) -> None:
    for name in set(fields()) - NOT_IN_VIEW:
        setattr(current, name, getattr(other, name))
    selection_sync.send_all()


def _clear_session_keys() -> None:
    for name in SESSION_KEYS:
        st.session_state.pop(name, None)
