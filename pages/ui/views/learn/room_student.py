"""Draws the forms to join and open a room, and a room for its students.

The browser draws the room and its step by itself (`components/room`). The page runs anew when the class goes to
another step, and when a reveal opens a view.
"""

import contextlib
from collections.abc import Iterator

import streamlit as st

from pages.ui.components.room import room_part
from pages.ui.components.room_follower import follow_room
from pages.ui.components.room_membership import keep_membership
from pages.ui.frame import widgets
from pages.ui.host.exchange import page_state
from pages.ui.lessons.room import Phase
from pages.ui.lessons.rooms import all_rooms, tidy
from pages.ui.markdown import counted, plain
from pages.ui.session import visitor_training
from pages.ui.session.lesson_answers import StepId
from pages.ui.views.learn import room_membership, room_teacher
from pages.ui.views.learn.document import step_document
from pages.ui.views.learn.opened_step import OpenedStep, opened_step
from pages.ui.views.learn.room_membership import DRAWN, ENTRY, HEARD, JOINING, PROBLEM, Membership

FORM_SHOWN = "room_form_shown"
"""Key of the session: whether this run has drawn the form that joins or opens a room."""


@contextlib.contextmanager
def around(step_id: StepId | None) -> Iterator[None]:
    """Draw the visitor's room above what is drawn within. step_id: the step on screen, None for the list of lessons."""
    own = room_membership.membership()
    if own is not None:
        st.session_state[HEARD] = True
    unknown = not st.session_state.get(HEARD)  # until it is told: a run that is cut short may not have asked
    problem = st.session_state.pop(PROBLEM, "")
    if problem:
        st.warning(plain(problem), icon=":material/meeting_room:")
    st.session_state[FORM_SHOWN] = own is None and bool(page_state().room or problem)
    if st.session_state[FORM_SHOWN]:
        with st.container(border=True):
            _join_or_open(step_id)
    elif own and not own.is_teacher:
        _draw(own, "line", opened_step())
    elif own and not room_membership.is_reached():  # the page runs again when it is
        follow_room(own.code, own.key, "", key="room_away")
    elif own:
        room_teacher.panel(own, step_id)
    keep_membership(
        own.as_text() if own else "",
        asks=unknown,
        link=tidy(page_state().room),
        joins=st.session_state.get(JOINING),
        on_found=room_membership.restore,
    )
    yield


def draws(entered: OpenedStep) -> bool:
    """Whether the browser draws this step without Python: the one to which the teacher leads the class."""
    return room_membership.led_step() == entered.step_id


def step(entered: OpenedStep) -> None:
    """Draw that step."""
    if own := room_membership.membership():
        _draw(own, "step", entered)


def _draw(own: Membership, part: str, entered: OpenedStep | None) -> None:
    """Draw a part of the room; a step may be on screen."""
    state, response = st.session_state.get(DRAWN), entered and entered.response
    place = entered and (entered.step_id.lesson, entered.step_id.step)
    is_revealed = state is not None and state.phase is Phase.REVEALED
    has_trained = visitor_training.training_record().job is not None
    with st.container(key="room_member" if part == "line" else "room_step"):
        room_part(
            own.code,
            own.key,
            st.session_state[ENTRY],
            part=part,
            room=state
            and {
                "step": state.step_id and (state.step_id.lesson, state.step_id.step),
                "lesson": state.lesson,
                "is_revealed": is_revealed,
            },
            step=place,
            answer=response and response.last,
            document=step_document(entered.lesson, entered.step_id.step)
            if part == "step" and entered and is_revealed and has_trained
            else None,
            opens=entered is not None and (entered.step.view is not None or entered.step is entered.lesson.steps[-1]),
            on_lost=room_membership.lose,
            on_left=lambda _: room_membership.forget(),
        )


def offer(step_id: StepId | None) -> None:
    """Show the folded form that joins or opens a room, unless the visitor is in one or the form is on screen."""
    if room_membership.membership() is None and not st.session_state[FORM_SHOWN]:
        with st.popover("Room for a class", type="tertiary", icon=":material/groups:", key="room_ways_in"):
            _join_or_open(step_id)


def _join_or_open(step_id: StepId | None) -> None:
    st.markdown("In a room, a class votes on the same question and sees the result.")
    widgets.short_form(
        "Join a room with its code", "room", "Join", room_membership.join, key="room_join", placeholder="Code"
    )
    widgets.button("Open a room", room_membership.open_room, step_id, key="room_open", icon="co_present")
    st.caption(
        f"For teachers: a room takes {counted(all_rooms().size, 'student')}. You lead from step to step. Votes are "
        "anonymous, and hidden until you show them."
    )
