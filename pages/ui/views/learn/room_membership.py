"""Keeps a visitor's membership of a room, as teacher or student; `room_student` and `room_teacher` draw it.

Rooms themselves are in `lessons/rooms.py`.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from typing import NamedTuple

import streamlit as st

from pages.ui.frame.state import visitor
from pages.ui.lessons.questions import Answer
from pages.ui.lessons.rooms import Phase, RoomError, Rooms, State, tidy
from pages.ui.models.lesson_answers import StepId

FOLLOW_EVERY = 0.65
"""Seconds between two polls of a page to its room."""
MEMBERSHIP, ASKED, DRAWN, LEFT = "room_membership", "room_membership_asked", "room_drawn", "room_left"
"""Keys of the session: the membership, whether the tab was asked for it, the state of the room that this run draws, and
the key that a member had in the room that was left last."""
LEADING, OPEN_VOTES, COUNTED, PROBLEM = "room_leading", "room_votes_open", "room_counted", "room_problem"
"""Whether the teacher leads, the step whose votes are shown before it is revealed, what was counted of them, and what
went wrong."""
CHANGING, SHOWS_CODE, SCROLLS = "room_changing", "room_shows_code", "room_scrolls"
"""The question and phase whose answer a member changes, whether address and QR code are shown large, and how often the
teacher's page was scrolled to the votes."""


class Membership(NamedTuple):
    """Of a visitor in a room. key: the teacher's, or a student's."""

    code: str
    key: str
    is_teacher: bool

    def as_text(self) -> str:
        """As a browser's tab stores it."""
        return json.dumps(self)

    @classmethod
    def from_text(cls, text: str) -> Membership | None:
        """From what a tab has stored; None if that is anything else."""
        try:
            code, key, is_teacher = json.loads(text)
        except (ValueError, TypeError):
            return None
        if isinstance(code, str) and isinstance(key, str) and isinstance(is_teacher, bool):
            return cls(code, key, is_teacher)
        return None


@st.cache_resource(show_spinner=False)
def all_rooms() -> Rooms:
    """The rooms of this server."""
    return Rooms()


def membership() -> Membership | None:
    """This visitor's; None outside a room."""
    return st.session_state.get(MEMBERSHIP)


def is_teacher() -> bool:
    """Whether this visitor is the teacher of a room."""
    own = membership()
    return own is not None and own.is_teacher


def led_step() -> StepId | None:
    """The step to which a teacher has led this visitor; None for the teacher, outside a room, and without a lead."""
    state: State | None = st.session_state.get(DRAWN)
    return state.step_id if state and not is_teacher() else None


def phase(step_id: StepId) -> Phase | None:
    """How far a room has come with the question of a step; None where the visitor alone decides when it is revealed."""
    state: State | None = st.session_state.get(DRAWN)
    return state.phase if state and state.step_id == step_id else None


def vote(step_id: StepId, answer: Answer) -> bool:
    """Send an answer to the room; a later one replaces the first. Returns whether the room took it."""
    own = membership()
    if own is None or own.is_teacher:
        return False
    with catching_problems():
        all_rooms().vote(own.code, own.key, step_id, as_text(answer))
        return True
    return False


def awaits_vote(step_id: StepId) -> bool:
    """Whether the room is at the question of a step, and this member has still to vote in its phase."""
    own, now = membership(), phase(step_id)
    if own is None or own.is_teacher or now is None:
        return False
    with contextlib.suppress(RoomError):  # which the next run will say
        return all_rooms().awaits(own.code, own.key, step_id, now)
    return False


def can_change(step_id: StepId) -> bool:
    """Whether this member may still change the answer to a question: until its votes are shown."""
    state: State | None = st.session_state.get(DRAWN)
    asked = state is not None and state.step_id == step_id and not is_teacher()
    return asked and state.phase is not Phase.REVEALED and not state.shown


def change(step_id: StepId) -> None:
    """Open an answer that was given, to be changed; the vote counts until there is another."""
    st.session_state[CHANGING] = (step_id, phase(step_id))


def is_changing(step_id: StepId) -> bool:
    """Whether an answer is open to be changed."""
    return st.session_state.get(CHANGING) == (step_id, phase(step_id)) and can_change(step_id)


def changed() -> None:
    """An answer was changed, or left as it is."""
    st.session_state.pop(CHANGING, None)


def refresh() -> None:
    """Read the room's state; called as a run of the page begins."""
    _restore_teacher()
    own = membership()
    st.session_state.pop(DRAWN, None)
    st.session_state.pop(COUNTED, None)
    if own is None:
        return
    try:
        if own.is_teacher:
            st.session_state[DRAWN] = all_rooms().led(own.code, own.key)
        else:
            code, key = all_rooms().join(own.code, own.key)
            st.session_state[MEMBERSHIP] = own._replace(code=code, key=key)
            st.session_state[DRAWN] = all_rooms().state(code, key)
    except RoomError as error:
        forget()
        st.session_state[PROBLEM] = str(error)
        return
    if (other := tidy(visitor().room)) not in ("", own.code):
        first = "end" if own.is_teacher else "leave"
        visitor().notices.append(f"You are in room {own.code}. To join room {other}, {first} this one first.")
    visitor().room = ""


def lead_to(step_id: StepId) -> None:
    """Move the room to the step that its teacher has opened, unless students navigate freely."""
    state: State | None = st.session_state.get(DRAWN)
    if is_teacher() and state and state.step_id != step_id and st.session_state.get(LEADING, state.step_id is not None):
        move(step_id)
        with contextlib.suppress(RoomError):  # which the next run will say
            st.session_state[DRAWN] = all_rooms().led(*membership()[:2])


def restore(kept: str) -> None:
    """Take up the membership that the tab has stored; in a tab without one, follow the link to a room."""
    if membership() is None:
        if found := Membership.from_text(kept):
            st.session_state[MEMBERSHIP] = found
        elif visitor().room:
            join()


def open_room(step_id: StepId | None) -> None:
    """Open a room as its teacher."""
    with catching_problems():
        code, key = all_rooms().open(step_id)
        st.session_state[MEMBERSHIP], st.session_state[LEADING] = Membership(code, key, is_teacher=True), True
        st.session_state[SHOWS_CODE] = True
        visitor().room = ""


def join() -> None:
    """Join the room whose code was typed, or came with the link."""
    with catching_problems():
        code, key = all_rooms().join(visitor().room, st.session_state.get(LEFT))
        st.session_state[MEMBERSHIP], visitor().room = Membership(code, key, is_teacher=False), ""


def forget() -> None:
    """End the membership in this session."""
    for name in (MEMBERSHIP, DRAWN, LEADING, OPEN_VOTES, COUNTED, CHANGING, SHOWS_CODE):
        st.session_state.pop(name, None)


def leave() -> None:
    """Leave the room, as a student."""
    if own := membership():
        all_rooms().leave(own.code, own.key)
        st.session_state[LEFT] = own.key
    forget()


def act(what: Callable[[Membership], None]) -> None:
    """Act as the teacher; that a room has ended meanwhile is shown by the run that follows."""
    if own := membership():
        with contextlib.suppress(RoomError):
            what(own)


def move(step_id: StepId | None) -> None:
    """Lead the room to a step; None lets students navigate freely."""
    st.session_state[LEADING] = step_id is not None
    st.session_state[SHOWS_CODE] = False
    act(lambda own: all_rooms().move(own.code, own.key, step_id))


def end() -> None:
    """End the room for everybody."""
    act(lambda own: all_rooms().end(own.code, own.key))
    forget()


@contextlib.contextmanager
def catching_problems() -> Iterator[None]:
    """What a room refuses is shown by the run that follows."""
    try:
        yield
    except RoomError as error:
        st.session_state[PROBLEM] = str(error)


def as_text(answer: Answer) -> str:
    """An answer as a room counts it: equal answers are equal texts."""
    return json.dumps(answer, separators=(",", ":"))


def answer_of(text: str) -> Answer:
    """The answer that was counted so."""
    return json.loads(text)


def _restore_teacher() -> None:
    """Become the teacher again by the private link that was opened, and go where the room is."""
    current, own = visitor(), membership()
    key, current.room_key = current.room_key, ""
    if not key or (own and own.code != tidy(current.room)):
        return
    code, current.room = tidy(current.room), ""
    with catching_problems():
        step_id = all_rooms().led(code, key).step_id
        st.session_state[MEMBERSHIP] = Membership(code, key, is_teacher=True)
        st.session_state[LEADING] = True
        if step_id:
            current.lesson, current.lesson_step = step_id.lesson, step_id.step
