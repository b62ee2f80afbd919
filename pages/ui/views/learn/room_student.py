"""Draws the forms to join and open a room, and a room for its students.

A page in a room listens to its events, which run a fragment that costs next to nothing; the page runs anew only when
the room has moved.
"""

import contextlib
from collections.abc import Iterator

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.ui.components.room_follower import follow_room
from pages.ui.components.room_membership import keep_membership
from pages.ui.frame import widgets
from pages.ui.frame.state import visitor
from pages.ui.lessons.room import Phase, RoomError
from pages.ui.lessons.rooms import State, all_rooms
from pages.ui.markdown import counted, plain
from pages.ui.session.lesson_answers import StepId
from pages.ui.views.learn import room_membership, room_teacher
from pages.ui.views.learn.room_membership import DRAWN, HEARD, PROBLEM, Membership

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
    following = None
    st.session_state[FORM_SHOWN] = own is None and bool(visitor().room or problem)
    if st.session_state[FORM_SHOWN]:
        with st.container(border=True):
            _join_or_open(step_id)
    elif own and not room_membership.is_reached():  # the page runs again when it is
        if not own.is_teacher:
            _member_line(own)
        follow_room(own.for_events(), "", key="room_away")
    elif own and own.is_teacher:
        room_teacher.panel(own, step_id)
    elif own:
        following = _student(own)
    keep_membership(own.as_text() if own else "", asks=unknown, on_found=room_membership.restore)
    yield
    if own and following:
        with following:  # last: a rerun as a run ends can leave what the run drew last on screen
            _follow(own, st.session_state[DRAWN])


def offer(step_id: StepId | None) -> None:
    """The form that joins or opens a room, folded; nothing in a room, or where the form is on screen already."""
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


def _student(own: Membership) -> DeltaGenerator:
    """Returns the container of what follows the room."""
    following = _member_line(own)
    following.caption(_status(st.session_state[DRAWN]))
    return following


def _member_line(own: Membership) -> DeltaGenerator:
    """Which room it is, and the way out; returns the container between them."""
    with st.container(horizontal=True, vertical_alignment="center", key="room_member"):
        st.markdown(f":material/groups: Room **{own.code}**", width="content")
        between = st.empty()
        widgets.button("Leave the room", room_membership.leave, key="room_leave", type="tertiary")
    return between


@st.fragment
def _follow(own: Membership, drawn: State) -> None:
    """Say where the room is, and run the page anew when it has moved."""
    try:
        version = room_membership.version(own)
        now = all_rooms().state(own.code, own.key)
    except RoomError:
        st.rerun()
    if not version or not now.looks_like(drawn):  # "" of a room that this page has lost its place in
        st.rerun()
    with st.container(gap=None):
        st.caption(_status(now))
        left = room_teacher.seconds_left(now.deadline)
        follow_room(own.for_events(), version, seconds_left=left, key="room_follows")
    with contextlib.suppress(RoomError):  # which the next run will say
        all_rooms().note_drawn(own.code, own.key, now)


def _status(state: State) -> str:
    """How far the room is, in a sentence or two."""
    if not state.teacher_here:
        return (
            "The teacher isn't connected at the moment. The room continues when the teacher is back; "
            "leave it to go on by yourself."
        )
    if state.step_id is None:
        return "Look around. When your teacher opens a step, this page follows."
    status = {
        Phase.FIRST: "First vote: each on their own.",
        Phase.SECOND: "Discuss it with your neighbours, then answer again.",
        Phase.REVEALED: "The answer is revealed.",
    }[state.phase]
    if state.shown and state.phase is not Phase.REVEALED:
        return "The votes are shown. Who hasn't answered still can."
    return status + room_teacher.time_left(state.deadline)
