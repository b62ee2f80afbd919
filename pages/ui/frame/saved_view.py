"""Saves the visitor's view while a lesson shows its own, and restores it afterwards.

A step of a lesson sets the page state but for the lesson itself, and the visitor may change it. Opening another page
restores the saved view, unless the visitor keeps the lesson's; that page then links back to both.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import streamlit as st

from pages.ui.frame import state, widgets
from pages.ui.host.exchange import dials_of, exchange, page_state
from pages.ui.host.page_state import DEFAULT_MODEL
from pages.ui.session.lesson_answers import StepId
from pages.ui.session.session_store import session_record

LESSONS_PAGE = "Learn"
NOT_IN_VIEW = ("lesson", "lesson_step", "answers")


@dataclass
class SavedView:
    """What the visitor had, as a link has it, and the step that is shown instead.

    on_other_page: whether another page shows the step's view, too.
    """

    view: dict[str, str]
    step_id: StepId
    on_other_page: bool = False


def saved_view() -> SavedView | None:
    """The visitor's saved view; None while no lesson's view is shown."""
    return st.session_state.get("saved_view")


def restore_outside_lessons(page: str) -> None:
    """Restore the visitor's view when they leave the lessons; called as a run begins, before its address is read."""
    saved = saved_view()
    if page == LESSONS_PAGE:
        if saved and not state.is_leaving_page():
            saved.on_other_page = False
        elif state.returns(page) and (name := st.query_params.get("lesson")):
            _save(page_state().texts, StepId(name, -1))  # the address is about to take its place
    elif saved and not saved.on_other_page:
        exchange(page)  # reads the address, which the saved view replaces
        restore_view()
    elif not saved:
        session_record().saved_view = None


def show_lesson_view(step_id: StepId, view: Mapping[str, str] | None) -> None:
    """Save the visitor's view and show a step's, given as a link has it. view: None if a link has just set it."""
    saved = saved_view() or _save({"model": DEFAULT_MODEL} if view is None else page_state().texts, step_id)
    saved.step_id = step_id
    if view is not None:
        _open(view)


def keep_own_view() -> None:
    """Save the view as the tab had it: of what Python draws nothing of, the session knew less."""
    before, exchange().before = exchange().before, None
    if before and (saved := saved_view()):
        saved.view = session_record().saved_view = {**before, **dials_of(saved.view)}


def restore_view() -> None:
    """Restore the view from before the lesson."""
    if saved := saved_view():
        del st.session_state["saved_view"]
        exchange().asks_before = False
        session_record().saved_view = None
        _open(saved.view)


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


def _save(view: dict[str, str], step_id: StepId) -> SavedView:
    saved = st.session_state["saved_view"] = SavedView(session_record().saved_view or view, step_id)
    exchange().asks_before = True
    session_record().saved_view = saved.view
    return saved


def _open(view: Mapping[str, str]) -> None:
    """Have another view, and the same lesson."""
    kept = {name: text for name, text in page_state().texts.items() if name in NOT_IN_VIEW}
    exchange().open({name: text for name, text in view.items() if name not in NOT_IN_VIEW} | kept)
