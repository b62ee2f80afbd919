"""Keeps a visitor's membership of a room, as teacher or student; `room_student` and `room_teacher` draw it.

Rooms themselves are in `lessons/rooms.py`. Students join and vote by the API, `room_api`, from the browser.
"""

import contextlib
import json
import secrets
from collections.abc import Callable, Iterator
from typing import NamedTuple, Self

import streamlit as st
from pydantic import TypeAdapter, ValidationError

from pages.ui.components.room_membership import Found
from pages.ui.frame.state import notices
from pages.ui.host.exchange import change, page_state
from pages.ui.lessons.own_lessons import name_of
from pages.ui.lessons.room import MemberVotes, NoRoomError, NotInRoomError, Phase, RoomError, RoomsAwayError, State
from pages.ui.lessons.rooms import ENDED, all_rooms, tidy
from pages.ui.session.lesson_answers import StepId
from pages.ui.session.session_store import session_record

MEMBERSHIP, ENTRY, HEARD = "room_membership", "room_entry", "room_membership_heard"
"""Keys of the session: the membership, what tells this stay in the room from another one, and whether the tab has told
of a membership."""
DRAWN, JOINING = "room_drawn", "room_joining"
"""The state of the room that this run draws; the code of the room that the tab is to join, after a number that tells
this wish from another one."""
LEADING, OPEN_VOTES, COUNTED, PROBLEM = "room_leading", "room_votes_open", "room_counted", "room_problem"
"""Whether the class, which is nowhere yet, follows to the first step that the teacher opens; the step whose votes are
shown before it is revealed, what was counted of them, and what went wrong."""
SHOWS_CODE, SCROLLS, BEFORE, VOTES = "room_shows_code", "room_scrolls", "room_before", "room_votes"
"""Whether address and QR code are shown large, how often the teacher's page was scrolled to the votes, the room's state
before, and what the room has last had of a member's votes."""


class Membership(NamedTuple):
    """A visitor's membership of a room. key: the teacher's, or a student's."""

    code: str
    key: str
    is_teacher: bool

    def as_text(self) -> str:
        """The membership as a tab stores it."""
        return json.dumps(self)

    @classmethod
    def from_text(cls, text: str) -> Self | None:
        """Read what a tab has stored; None if it isn't a membership."""
        try:
            return TypeAdapter(cls).validate_json(text, strict=True)
        except ValidationError:
            return None


def membership() -> Membership | None:
    """This visitor's membership; None outside a room."""
    return st.session_state.get(MEMBERSHIP)


def version(own: Membership) -> str:
    """Of what a room shows this member. Asked for before what is drawn, so that nothing drawn is older. RoomError."""
    return all_rooms().versions(own.code).of(own.key) or ""


def is_teacher() -> bool:
    """Whether this visitor is the teacher of a room."""
    own = membership()
    return own is not None and own.is_teacher


def is_reached() -> bool:
    """Whether this run could read the visitor's room."""
    return DRAWN in st.session_state


def led_step() -> StepId | None:
    """The step to which a teacher leads this visitor; None for the teacher, outside a room, or in a free class."""
    state = _last_state()
    return state.step_id if state and not is_teacher() else None


def phase(step_id: StepId) -> Phase | None:
    """How far a room has come with the question of a step; None where the visitor alone decides when it is revealed.

    Nothing is revealed before its vote is kept: while the room can't be reached, all is as it was last.
    """
    own, state = membership(), _last_state()
    if own is None:
        return None
    if state and state.step_id == step_id:
        return state.phase
    if not own.is_teacher:
        return None if is_reached() or votes().get(step_id, MemberVotes()).given else Phase.FIRST
    if state is None:  # a new session, and the room can't be reached
        return Phase.FIRST
    with contextlib.suppress(RoomError):  # a teacher looks at a step where the class isn't, or is no longer
        current_phase = all_rooms().tally(own.code, own.key, step_id).phase
        return current_phase if current_phase is Phase.REVEALED else None
    return None


def votes() -> dict[StepId, MemberVotes]:
    """This member's votes by step, as the room last had them; none for the teacher, or outside a room."""
    return st.session_state.get(VOTES, {})


def lesson_name() -> str:
    """The name of the teacher's own lesson that the room has; "" for none, and outside a room."""
    state = _last_state()
    return state.lesson if state else ""


def lesson_text() -> str:
    """The text of that lesson; "" if the room can't be read."""
    own = membership()
    with contextlib.suppress(RoomError):  # which the next run will say
        return all_rooms().lesson(own.code, own.key) if own else ""
    return ""


def has_class(step_id: StepId | None) -> bool:
    """Whether this visitor is a teacher whose class is at this step."""
    state = _last_state()
    return is_teacher() and state is not None and state.step_id is not None and state.step_id == step_id


def refresh() -> None:
    """Read the room's state; called as a run of the page begins."""
    if before := st.session_state.pop(DRAWN, None):
        st.session_state[BEFORE] = before
    own = membership()
    st.session_state.pop(COUNTED, None)
    if own is None:
        return
    try:
        if own.is_teacher:
            st.session_state[DRAWN] = all_rooms().led(own.code, own.key)
        else:
            state, here = all_rooms().state(own.code, own.key), page_state()
            now = (state.step_id, before and before.step_id, StepId(here.lesson, here.lesson_step))
            steps = filter(None, now) if VOTES in st.session_state else ()
            st.session_state[VOTES] = votes() | all_rooms().votes_of(own.code, own.key, *steps)
            st.session_state[DRAWN] = state
    except RoomsAwayError as error:
        if own.is_teacher:  # a student's browser says it
            st.session_state[PROBLEM] = str(error)
        return
    except NotInRoomError:  # the browser joins again
        return
    except NoRoomError:
        forget()
        notices().append(f"Room {own.code} has ended. You can go on by yourself.")
        return
    if (other := tidy(page_state().room)) not in ("", own.code):
        first = "end" if own.is_teacher else "leave"
        notices().append(f"You are in room {own.code}. To join room {other}, {first} this one first.")
    change(room=None)


def lead_to(step_id: StepId) -> None:
    """Move a room that was nowhere yet to the first step that its teacher opens; later ones wait for `lead_on`."""
    own, state = membership(), st.session_state.get(DRAWN)
    if own and own.is_teacher and state and state.step_id is None and st.session_state.get(LEADING):
        move(step_id)
        with contextlib.suppress(RoomError):  # which the next run will say
            st.session_state[DRAWN] = all_rooms().led(own.code, own.key)


def lead_on(step_id: StepId, following: StepId) -> None:
    """Take the class from one step to the following one, if that is where it is."""
    if has_class(step_id):
        move(following)


def restore(found: Found) -> None:
    """Adopt the membership that the tab has stored, or got by joining a room."""
    st.session_state[HEARD] = True
    st.session_state.pop(JOINING, None)
    if found.problem:
        st.session_state[PROBLEM] = found.problem
    if membership() is None and (told := Membership.from_text(found.membership)):
        with catching_problems():
            _take_up(told)


def open_room(step_id: StepId | None) -> None:
    """Open a room as its teacher."""
    with catching_problems():
        code, key = all_rooms().open(step_id)
        st.session_state[MEMBERSHIP], st.session_state[LEADING] = Membership(code, key, is_teacher=True), True
        st.session_state[SHOWS_CODE] = True
        change(room=None)
        _carry_lesson(step_id)


def join() -> None:
    """Have the tab join the room whose code was typed."""
    st.session_state[JOINING] = (secrets.token_hex(4), tidy(page_state().room) or "?")


def lose(problem: str) -> None:
    """Leave the room that the browser couldn't return to. problem: why; "" if the room has ended."""
    if own := membership():
        forget()
        if problem:
            st.session_state[PROBLEM] = problem
        else:
            notices().append(f"Room {own.code} has ended. You can go on by yourself.")


def forget() -> None:
    """End the membership in this session."""
    for name in (MEMBERSHIP, DRAWN, LEADING, OPEN_VOTES, COUNTED, SHOWS_CODE, BEFORE, VOTES, JOINING):
        st.session_state.pop(name, None)


def act(what: Callable[[Membership], None]) -> None:
    """Act as the teacher; that a room has ended meanwhile is shown by the run that follows."""
    if own := membership():
        with contextlib.suppress(RoomError):
            what(own)


def move(step_id: StepId | None) -> None:
    """Lead the room to a step; None lets students navigate freely."""
    st.session_state.pop(LEADING, None)
    st.session_state[SHOWS_CODE] = False
    _carry_lesson(step_id)
    act(lambda own: all_rooms().move(own.code, own.key, step_id))


def end() -> None:
    """End the room for everybody."""
    act(lambda own: all_rooms().end(own.code, own.key))
    forget()


@contextlib.contextmanager
def catching_problems() -> Iterator[None]:
    """Show a room's refusal in the next run."""
    try:
        yield
    except RoomError as error:
        st.session_state[PROBLEM] = str(error)


def _carry_lesson(step_id: StepId | None) -> None:
    """Have the room hold the lesson of a step to which the teacher is about to lead, if that is the teacher's own."""
    text = session_record().lesson_text
    if step_id and text and step_id.lesson == name_of(text) != lesson_name():
        act(lambda own: all_rooms().carry(own.code, own.key, text))


def _take_up(own: Membership) -> None:
    """Become what a tab says that it is. While rooms can't be reached it is believed: it shows nothing until then.

    Raises: NoRoomError, which doesn't tell whether there is a room with that code.
    """
    with contextlib.suppress(RoomsAwayError):
        try:
            if not own.is_teacher:
                all_rooms().state(own.code, own.key)
            elif (step_id := all_rooms().led(own.code, own.key).step_id) and not page_state().lesson:
                # Who comes by the private link goes where the class is.
                change(lesson=step_id.lesson, lesson_step=step_id.step)
        except NoRoomError:
            raise NoRoomError(ENDED) from None
    st.session_state[MEMBERSHIP], st.session_state[ENTRY] = own, secrets.token_hex(4)


def _last_state() -> State | None:
    """The room as this run knows it, or, while it can't be reached, as it was last; None outside a room."""
    return (st.session_state.get(DRAWN) or st.session_state.get(BEFORE)) if membership() else None
