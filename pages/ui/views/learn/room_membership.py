"""Keeps a visitor's membership of a room, as teacher or student; `room_student` and `room_teacher` draw it.

Rooms themselves are in `lessons/rooms.py`.
"""

import contextlib
import functools
import json
import secrets
from collections.abc import Callable, Iterator
from hashlib import blake2b
from typing import NamedTuple, Self

import streamlit as st
from pydantic import TypeAdapter, ValidationError

from pages.ui.frame.state import visitor
from pages.ui.lessons.own_lessons import name_of
from pages.ui.lessons.questions import Answer
from pages.ui.lessons.room import NoRoomError, Phase, RoomError, RoomsAwayError
from pages.ui.lessons.room_attempts import Attempts
from pages.ui.lessons.rooms import KEY, State, all_rooms, tidy
from pages.ui.session.lesson_answers import Response, StepId
from pages.ui.session.session_store import session_record
from pages.ui.session.shared_redis import buckets
from transformer.api.limits import COOKIE, counted_address

MEMBERSHIP, HEARD, DRAWN, BROWSER = "room_membership", "room_membership_heard", "room_drawn", "room_browser"
"""Keys of the session: the membership, whether the tab has told it, the state of the room that this run draws, and
what all tabs of the browser have in common."""
LEADING, OPEN_VOTES, COUNTED, PROBLEM = "room_leading", "room_votes_open", "room_counted", "room_problem"
"""Whether the class, which is nowhere yet, follows to the first step that the teacher opens; the step whose votes are
shown before it is revealed, what was counted of them, and what went wrong."""
CHANGING, SHOWS_CODE, SCROLLS, STRANGER = "room_changing", "room_shows_code", "room_scrolls", "room_stranger"
"""The question and phase whose answer a member changes, whether address and QR code are shown large, how often the
teacher's page was scrolled to the votes, and what tells a visitor without a cookie apart."""
UNSENT, BEFORE, RECALLED = "room_votes_unsent", "room_before", "room_votes_recalled"
"""What a member has answered while the room couldn't be reached, by step with the phase; the room's state before; the
key of the member whose votes this session has from the room."""
AWAY = (
    "Your room can't be reached at the moment. What you answer is sent when it is back, if voting is still open. The "
    "right answer is shown when your teacher reveals it."
)


class Membership(NamedTuple):
    """Of a visitor in a room. key: the teacher's, or a student's."""

    code: str
    key: str
    is_teacher: bool

    def as_text(self) -> str:
        """As a browser's tab stores it."""
        return json.dumps(self)

    @classmethod
    def from_text(cls, text: str) -> Self | None:
        """From what a tab has stored; None if that is anything else."""
        try:
            return TypeAdapter(cls).validate_json(text, strict=True)
        except ValidationError:
            return None

    def for_events(self) -> str:
        """As a stream of the room's events is asked for."""
        return f"{self.code} {self.key}"


@functools.cache
def attempts() -> Attempts:
    """The wrong codes that were tried, and the joins, on this server or on all that share its Redis."""
    return Attempts(buckets())


def membership() -> Membership | None:
    """This visitor's; None outside a room."""
    return st.session_state.get(MEMBERSHIP)


def version(own: Membership) -> str:
    """Of what a room shows this member. Asked for before what is drawn, so that nothing drawn is older. RoomError."""
    return all_rooms().versions(own.code).of(own.key) or ""


def is_teacher() -> bool:
    """Whether this visitor is the teacher of a room."""
    own = membership()
    return own is not None and own.is_teacher


def is_reached() -> bool:
    """Whether this run knows the visitor's room as it is."""
    return DRAWN in st.session_state


def led_step() -> StepId | None:
    """The step to which a teacher has led this visitor; None for the teacher, outside a room, and without a lead."""
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
    if step_id in (unsent := st.session_state.get(UNSENT, {})):
        return unsent[step_id][0]
    if state is None:  # a new session, and the room can't be reached
        return Phase.FIRST
    if own.is_teacher:  # who looks at a step where the class isn't, or is no longer
        with contextlib.suppress(RoomError):  # which the next run will say
            current_phase = all_rooms().tally(own.code, own.key, step_id).phase
            return current_phase if current_phase is Phase.REVEALED else None
    return None


def lesson_name() -> str:
    """The name of the teacher's own lesson that the room has; "" for none, and outside a room."""
    state = _last_state()
    return state.lesson if state else ""


def lesson_text() -> str:
    """The text of that lesson; "" where it can't be asked for."""
    own = membership()
    with contextlib.suppress(RoomError):  # which the next run will say
        return all_rooms().lesson(own.code, own.key) if own else ""
    return ""


def has_class(step_id: StepId | None) -> bool:
    """Whether this visitor is a teacher whose class is at a step."""
    state = _last_state()
    return is_teacher() and state is not None and state.step_id is not None and state.step_id == step_id


def vote(step_id: StepId, answer: Answer) -> bool:
    """Send an answer to the room; a later one replaces the first. Returns whether the room takes it, now or later."""
    own = membership()
    if own is None or own.is_teacher:
        return False
    with catching_problems():
        try:
            all_rooms().vote(own.code, own.key, step_id, as_text(answer))
        except RoomsAwayError:
            unsent = st.session_state.setdefault(UNSENT, {})
            unsent[step_id] = phase(step_id) or Phase.FIRST, as_text(answer)
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
    state = _last_state()
    if state is None or state.step_id != step_id or is_teacher():
        return False
    return state.phase is not Phase.REVEALED and not state.shown


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
            code, key = _enter(own.code, own.key)
            st.session_state[MEMBERSHIP] = own._replace(code=code, key=key)
            _recall_votes(code, key)
            _send_unsent(code, key)
            st.session_state[DRAWN] = all_rooms().state(code, key)
    except RoomsAwayError as error:
        st.session_state[PROBLEM] = str(error) if own.is_teacher else AWAY
        return
    except NoRoomError:
        forget()
        visitor().notices.append(f"Room {own.code} has ended. You can go on by yourself.")
        return
    except RoomError as error:
        forget()
        st.session_state[PROBLEM] = str(error)
        return
    if (other := tidy(visitor().room)) not in ("", own.code):
        first = "end" if own.is_teacher else "leave"
        visitor().notices.append(f"You are in room {own.code}. To join room {other}, {first} this one first.")
    visitor().room = ""


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


def restore(found: str) -> None:
    """Take up the membership that the tab has stored; in a tab without one, follow the link to a room.

    found: what tells the browser apart, a space, and the membership.
    """
    st.session_state[HEARD] = True
    browser, _, kept = found.partition(" ")
    if KEY.fullmatch(browser):
        st.session_state[BROWSER] = browser
    else:  # browsers can send anything
        kept = found
    if membership() is None:
        if restored := Membership.from_text(kept):
            with catching_problems(), _trying_a_code():
                _take_up(restored)
        elif visitor().room:
            join()


def open_room(step_id: StepId | None) -> None:
    """Open a room as its teacher."""
    with catching_problems():
        code, key = all_rooms().open(step_id)
        st.session_state[MEMBERSHIP], st.session_state[LEADING] = Membership(code, key, is_teacher=True), True
        st.session_state[SHOWS_CODE] = True
        visitor().room = ""
        _carry_lesson(step_id)


def join() -> None:
    """Join the room whose code was typed, or came with the link."""
    with catching_problems(), _trying_a_code():
        code, key = _enter(visitor().room, _own_key(visitor().room))
        st.session_state[MEMBERSHIP], visitor().room = Membership(code, key, is_teacher=False), ""


def forget() -> None:
    """End the membership in this session."""
    for name in (MEMBERSHIP, DRAWN, LEADING, OPEN_VOTES, COUNTED, CHANGING, SHOWS_CODE, UNSENT, BEFORE):
        st.session_state.pop(name, None)


def leave() -> None:
    """Leave the room, as a student."""
    if own := membership():
        with catching_problems():
            all_rooms().leave(own.code, own.key)
    forget()


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


def _carry_lesson(step_id: StepId | None) -> None:
    """Have the room hold the lesson of a step to which the teacher is about to lead, if that is the teacher's own."""
    text = session_record().lesson_text
    if step_id and text and step_id.lesson == name_of(text) != lesson_name():
        act(lambda own: all_rooms().carry(own.code, own.key, text))


def _take_up(own: Membership) -> None:
    """Become what a tab says that it was. While rooms can't be reached it is believed: it shows nothing until then."""
    with contextlib.suppress(RoomsAwayError):
        if own.is_teacher:
            step_id = all_rooms().led(own.code, own.key).step_id
            if step_id and not visitor().lesson:  # who comes by the private link goes where the class is
                visitor().lesson, visitor().lesson_step = step_id.lesson, step_id.step
        else:
            code, key = _enter(own.code, own.key)
            own = own._replace(code=code, key=key)
    st.session_state[MEMBERSHIP] = own


def _last_state() -> State | None:
    """The room as this run knows it, or, while it can't be reached, as it was last; None outside a room."""
    return (st.session_state.get(DRAWN) or st.session_state.get(BEFORE)) if membership() else None


def _own_key(code: str) -> str:
    """The key that this browser has as a student of a room: another in each room, so that votes of two rooms can't be
    told to be of the same browser."""
    browser = st.session_state.get(BROWSER) or _who()[0]
    return blake2b(f"{tidy(code)} {browser}".encode(), digest_size=16).hexdigest()


def _enter(code: str, key: str) -> tuple[str, str]:
    """Join a room; whoever wasn't in it is counted. Raises: RoomError."""
    rooms = all_rooms()
    return rooms.join(code, key, lambda: attempts().join(*_who(), tidy(code), rooms.size))


def _who() -> tuple[str, str | None]:
    """What tells this visitor apart, and the address, as limits count them."""
    who = st.context.cookies.get(COOKIE) or st.session_state.setdefault(STRANGER, secrets.token_hex(8))
    address = st.context.ip_address or "127.0.0.1"
    return who, counted_address(address, st.context.headers.get_all("X-Forwarded-For"))


def _send_unsent(code: str, key: str) -> None:
    """Send what was answered while the room couldn't be reached. Raises: RoomsAwayError."""
    unsent: dict[StepId, tuple[Phase, str]] = st.session_state.get(UNSENT, {})
    for step_id, (answered_in, answer) in list(unsent.items()):
        try:
            all_rooms().vote(code, key, step_id, answer, answered_in)
            visitor().notices.append("Your room is back, and what you answered meanwhile counts in it.")
        except RoomsAwayError:
            raise
        except RoomError:
            visitor().notices.append("Your room is back. Voting on what you answered meanwhile is closed.")
        del unsent[step_id]


def _recall_votes(code: str, key: str) -> None:
    """Take over what the room has of a member whose answers were lost with another session. Raises: RoomsAwayError."""
    if st.session_state.get(RECALLED) != key:
        votes = all_rooms().votes_of(code, key)
        answers = {
            step_id: Response(answer_of(first), answer_of(second[0]) if second else None)
            for step_id, (first, *second) in votes.items()
        }
        session_record().answers.merge(answers)
        st.session_state[RECALLED] = key


@contextlib.contextmanager
def _trying_a_code() -> Iterator[None]:
    """Within, a code is tried: too many wrong ones are refused."""
    who = _who()
    attempts().check(*who)
    try:
        yield
    except NoRoomError:
        attempts().add_wrong(*who)
        raise
