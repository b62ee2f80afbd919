"""The visitor's room around a page of lessons: the ways into one, and what one of its members sees of it.

A page asks its room what has changed twice in three seconds, in a fragment that costs next to nothing, and is drawn
anew only when the room has moved. A page outside a room never asks.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.ui.components.seat import seat as keep_seat
from pages.ui.frame import widgets
from pages.ui.frame.state import visitor
from pages.ui.lessons.rooms import Phase, RoomError, State
from pages.ui.markdown import plain
from pages.ui.models.answers import StepPlace
from pages.ui.views.learn import leading, room
from pages.ui.views.learn.room import ASKED, DRAWN, PROBLEM, Seat, all_rooms


@contextlib.contextmanager
def around(place: StepPlace | None) -> Iterator[None]:
    """Draw the visitor's room and what is drawn within; below that, outside a room, the ways into one.

    place: the step on screen, None for the list of lessons.
    """
    own = room.seat()
    unknown = own is None and not st.session_state.get(ASKED)
    st.session_state[ASKED] = True
    problem = st.session_state.pop(PROBLEM, "")
    if problem:
        st.warning(plain(problem), icon=":material/meeting_room:")
    following = None
    asks_first = own is None and bool(visitor().room or problem)
    if asks_first:
        _ways_in(place, expanded=True)
    elif own and own.leads:
        leading.panel(own, place)
    elif own:
        following = _member(own)
    keep_seat(own.as_text() if own else "", asks=unknown, on_found=room.take_seat)
    yield
    if own is None and not asks_first:
        _ways_in(place, expanded=False)
    if following:
        with following:  # only now: a question that comes as a run ends can take along what the run drew last
            _follow(own, st.session_state[DRAWN])


def _ways_in(place: StepPlace | None, *, expanded: bool) -> None:
    with st.expander("A class answers together: open a room, or join one", icon=":material/groups:", expanded=expanded):
        join_side, open_side = st.columns(2, gap="large")
        with join_side:
            widgets.short_form(
                "Join a room with its code", "room", "Join", room.join, key="room_join", placeholder="Five letters"
            )
        with open_side:
            st.button(
                "Open a room", icon=":material/co_present:", on_click=room.open_room, args=(place,), key="room_open"
            )
            st.caption("You lead, from step to step. Votes are counted without names, and hidden until you show them.")


def _member(own: Seat) -> DeltaGenerator:
    """Returns the place of what follows the room."""
    with st.container(horizontal=True, vertical_alignment="center", key="room_member"):
        st.markdown(f":material/groups: Room **{own.code}**", width="content")
        following = st.empty()
        following.caption(_where(st.session_state[DRAWN]))
        st.button("Leave the room", key="room_leave", type="tertiary", on_click=room.walk_out)
    return following


@st.fragment(run_every=room.FOLLOW_EVERY)
def _follow(own: Seat, drawn: State) -> None:
    """Say where the room is, and draw the page anew when it has moved."""
    try:
        now = all_rooms().state(own.code, own.key)
    except RoomError:
        st.rerun()
    if not now.looks_like(drawn):
        st.rerun()
    st.caption(_where(now))


def _where(state: State) -> str:
    """How far the room is, in a sentence or two."""
    if not state.teacher_here:
        return (
            "The teacher is on another page, or not connected, at the moment. Stay here, and the room goes on when the "
            "teacher is back; or leave the room and go on by yourself."
        )
    if state.place is None:
        return (
            "The teacher isn't leading at the moment: take the steps as you like. When the teacher leads to a step, "
            "your page goes there, too."
        )
    said = {
        Phase.FIRST: "The teacher leads. Answer for yourself first.",
        Phase.SECOND: "Talk it over with your neighbours, then vote again.",
        Phase.REVEALED: "The answer is revealed.",
    }[state.phase]
    return said + leading.time_left(state.deadline)
