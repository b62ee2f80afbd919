"""A room on the page Learn: opened or joined, led from step to step, voted in, and what its teacher sees of the votes.

What rooms are is in `lessons/rooms.py`. A page asks its room what has changed twice in three seconds, in a fragment
that costs next to nothing, and is drawn anew only when the room has moved. A page outside a room never asks.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from typing import NamedTuple

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.ui.components.seat import seat as keep_seat
from pages.ui.components.votes import Bar, votes
from pages.ui.frame import widgets
from pages.ui.frame.state import visitor
from pages.ui.lessons.questions import Answer
from pages.ui.lessons.rooms import Phase, RoomError, Rooms, State, Tally, tidy
from pages.ui.markdown import plain
from pages.ui.models.answers import StepPlace

FOLLOW_EVERY = 0.65
"""Seconds between two questions of a page to its room."""
MOST_BARS = 12
"""Of one vote; what is left of many different answers is one more."""
SEAT, ASKED, DRAWN, LEFT = "room_seat", "room_seat_asked", "room_drawn", "room_left"
"""Keys of the session: the seat, whether the tab was asked for it, the state of the room that this run draws, and the
key that a member had in the room that was left last."""
LEADING, OPEN_VOTES, COUNTED, PROBLEM = "room_leading", "room_votes_open", "room_counted", "room_problem"
"""Whether the teacher leads, the step whose votes are shown before it is revealed, what was counted of them, and what
went wrong."""


class Seat(NamedTuple):
    """What a visitor is in a room. key: the teacher's, or a member's."""

    code: str
    key: str
    leads: bool

    def as_text(self) -> str:
        """As a browser's tab keeps it."""
        return json.dumps(self)

    @classmethod
    def from_text(cls, text: str) -> Seat | None:
        """From what a tab has kept; None if that is anything else."""
        try:
            code, key, leads = json.loads(text)
        except (ValueError, TypeError):
            return None
        if isinstance(code, str) and isinstance(key, str) and isinstance(leads, bool):
            return cls(code, key, leads)
        return None


@st.cache_resource(show_spinner=False)
def all_rooms() -> Rooms:
    """The rooms of this server."""
    return Rooms()


def seat() -> Seat | None:
    """What this visitor is in a room; None outside one."""
    return st.session_state.get(SEAT)


def leads() -> bool:
    """Whether this visitor is the teacher of a room."""
    own = seat()
    return own is not None and own.leads


def led() -> StepPlace | None:
    """The step to which a teacher has led this visitor; None for the teacher, outside a room, and in one let go."""
    state: State | None = st.session_state.get(DRAWN)
    return state.place if state and not leads() else None


def phase(place: StepPlace) -> Phase | None:
    """How far a room has come with the question of a step; None where the visitor alone decides when it is revealed."""
    state: State | None = st.session_state.get(DRAWN)
    return state.phase if state and state.place == place else None


def vote(place: StepPlace, answer: Answer) -> None:
    """Tell the room an answer; a later one to the same question takes the place of the first."""
    own = seat()
    if own is None or own.leads:
        return
    with _telling_problems():
        all_rooms().vote(own.code, own.key, place, _as_text(answer))


def awaits_vote(place: StepPlace) -> bool:
    """Whether the room is at the question of a step, and this member has still to vote in its phase."""
    own, now = seat(), phase(place)
    if own is None or own.leads or now is None:
        return False
    with contextlib.suppress(RoomError):  # which the next run will say
        return all_rooms().awaits(own.code, own.key, place, now)
    return False


def arrive() -> None:
    """Learn what the room looks like now; called as a run of the page begins."""
    own = seat()
    st.session_state.pop(DRAWN, None)
    st.session_state.pop(COUNTED, None)
    if own is None:
        return
    try:
        if own.leads:
            st.session_state[DRAWN] = all_rooms().led(own.code, own.key)
        else:
            code, key = all_rooms().join(own.code, own.key)
            st.session_state[SEAT] = own._replace(code=code, key=key)
            st.session_state[DRAWN] = all_rooms().state(code, key)
    except RoomError as error:
        _leave()
        st.session_state[PROBLEM] = str(error)
        return
    if (other := tidy(visitor().room)) not in ("", own.code):
        first = "end" if own.leads else "leave"
        visitor().notices.append(f"You are in room {own.code}. To join room {other}, {first} this one first.")
    visitor().room = ""


def take_along(place: StepPlace) -> None:
    """Bring the room to the step that its teacher has opened, unless it was let go."""
    state: State | None = st.session_state.get(DRAWN)
    if leads() and state and state.place != place and st.session_state.get(LEADING, state.place is not None):
        _move(place)
        with contextlib.suppress(RoomError):  # which the next run will say
            st.session_state[DRAWN] = all_rooms().led(*seat()[:2])


@contextlib.contextmanager
def around(place: StepPlace | None, *, asks: bool = False) -> Iterator[None]:
    """Draw the visitor's room, or the ways into one, and then what is drawn within.

    place: the step on screen, None for the list of lessons. asks: whether the step has a question.
    """
    own = seat()
    unknown = own is None and not st.session_state.get(ASKED)
    st.session_state[ASKED] = True
    if problem := st.session_state.pop(PROBLEM, ""):
        st.warning(plain(problem), icon=":material/meeting_room:")
    following = None
    if own is None:
        _ways_in(place)
    elif own.leads:
        _teacher(own, place, asks)
    else:
        following = _member(own)
    keep_seat(own.as_text() if own else "", asks=unknown, on_found=_take_seat)
    yield
    if following:
        with following:  # only now: a question that comes as a run ends can take along what the run drew last
            _follow(own, st.session_state[DRAWN])


def tally(place: StepPlace, label: Callable[[Answer], str], right: Callable[[Answer], bool] | None) -> None:
    """For the teacher: how the room has voted on a step, once that is revealed, or when it is asked for.

    label: what an answer is called, as a text. right: tells right answers from wrong ones; None before that is known.
    """
    own = seat()
    if own is None or not own.leads:
        return
    try:
        found = all_rooms().tally(own.code, own.key, place)
    except RoomError:  # which the next run will say
        return
    st.session_state[COUNTED] = found
    if found.phase is not Phase.REVEALED and st.session_state.get(OPEN_VOTES) != place:
        return
    both = found.first + found.second
    answers = [answer for answer, _ in both.most_common(MOST_BARS)]
    rest = [answer for answer in both if answer not in answers]
    rounds = [("Votes", found.first)]
    if found.phase is Phase.SECOND or found.second:
        rounds = [("Before the discussion", found.first), ("After it", found.second)]
    votes(key="room_votes", rounds=[
        (title, [
            *(Bar(label(_answer(text)), count[text], right is not None and right(_answer(text))) for text in answers),
            *([Bar("other answers", sum(count[text] for text in rest), right=False)] if rest else []),
        ])
        for title, count in rounds
    ])  # fmt: skip
    if right is not None and found.pairs:
        st.caption(_turned(found, lambda text: right(_answer(text))))


def _as_text(answer: Answer) -> str:
    """An answer as a room counts it: equal answers are equal texts."""
    return json.dumps(answer, separators=(",", ":"))


def _answer(text: str) -> Answer:
    return json.loads(text)


def _turned(found: Tally, right: Callable[[str], bool]) -> str:
    better, worse = found.turned(right)
    return (f"Of {len(found.pairs)} who voted twice, {better} went from a wrong answer to the right one, and {worse} "
            "the other way.")  # fmt: skip


def _take_seat(kept: str) -> None:
    if seat() is None and (found := Seat.from_text(kept)):
        st.session_state[SEAT] = found


@contextlib.contextmanager
def _telling_problems() -> Iterator[None]:
    """What a room refuses is said by the run that follows."""
    try:
        yield
    except RoomError as error:
        st.session_state[PROBLEM] = str(error)


def _leave() -> None:
    for name in (SEAT, DRAWN, LEADING, OPEN_VOTES, COUNTED):
        st.session_state.pop(name, None)


# Outside a room


def _ways_in(place: StepPlace | None) -> None:
    with st.expander("A class answers together", icon=":material/groups:", expanded=bool(visitor().room)):
        open_side, join_side = st.columns(2, gap="large")
        with open_side:
            st.markdown(
                "**Open a room** and show its code. You lead everybody from step to step; what they predict is "
                "counted, without names, and hidden until you reveal it."
            )
            st.button(
                "Open a room", icon=":material/co_present:", on_click=_open, args=(place,), key="room_open"
            )
        with join_side:
            typed = widgets.text_input("Or join one with its code", "room", placeholder="Five letters")
            st.button(
                "Join", icon=":material/login:", on_click=_join, key="room_join", disabled=not tidy(typed)
            )


def _open(place: StepPlace | None) -> None:
    with _telling_problems():
        code, key = all_rooms().open(place)
        st.session_state[SEAT], st.session_state[LEADING] = Seat(code, key, leads=True), True
        visitor().room = ""


def _join() -> None:
    with _telling_problems():
        code, key = all_rooms().join(visitor().room, st.session_state.get(LEFT))
        st.session_state[SEAT], visitor().room = Seat(code, key, leads=False), ""


# In a room, as one of many


def _member(own: Seat) -> DeltaGenerator:
    """Returns the place of what follows the room."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f":material/groups: In room **{own.code}**")
        st.button("Leave the room", key="room_leave", type="tertiary", on_click=_walk_out)
    following = st.empty()
    following.caption(_where(st.session_state[DRAWN]))
    return following


def _walk_out() -> None:
    if own := seat():
        all_rooms().leave(own.code, own.key)
        st.session_state[LEFT] = own.key
    _leave()


@st.fragment(run_every=FOLLOW_EVERY)
def _follow(own: Seat, drawn: State) -> None:
    """Say where the room is, and draw the page anew when it has moved."""
    try:
        now = all_rooms().state(own.code, own.key)
    except RoomError:
        st.rerun()
    if now._replace(teacher_here=True) != drawn._replace(teacher_here=True):
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
    return {
        Phase.FIRST: "The teacher leads. Answer for yourself first.",
        Phase.SECOND: "Talk it over with your neighbours, then vote again.",
        Phase.REVEALED: "The answer is revealed.",
    }[state.phase]


# In a room, as its teacher


def _teacher(own: Seat, place: StepPlace | None, asks: bool) -> None:
    state: State = st.session_state[DRAWN]
    with st.container(border=True):
        _count(own, place if asks else None)
        with st.container(horizontal=True, vertical_alignment="center"):
            if place and state.place is None:
                st.button(
                    "Lead from here",
                    key="room_lead",
                    icon=":material/co_present:",
                    on_click=_move,
                    args=(place,),
                )
            elif state.place is not None:
                st.button(
                    "Let them go",
                    key="room_let_go",
                    icon=":material/directions_walk:",
                    on_click=_move,
                    args=(None,),
                    help="Everybody takes the steps as they like, and sees answers at once.",
                )
            if place and asks and state.place == place and state.phase is not Phase.REVEALED:
                if state.phase is Phase.FIRST:
                    st.button("Discuss and vote again", key="room_again", icon=":material/forum:", on_click=_advance,
                              args=(place, Phase.SECOND))  # fmt: skip
                _show_votes_button(place)
                st.button("Reveal", key="room_reveal", type="primary", icon=":material/visibility:",
                          on_click=_advance, args=(place, Phase.REVEALED))  # fmt: skip
            st.button("End the room", key="room_end", type="tertiary", on_click=_end)


def _show_votes_button(place: StepPlace) -> None:
    shown = st.session_state.get(OPEN_VOTES) == place
    st.button("Hide the votes" if shown else "Show the votes", key="room_show_votes", on_click=_open_votes,
              args=(None if shown else place,), help="Before the answer is revealed, a class that sees how it voted "
              "follows the majority.")  # fmt: skip


@st.fragment(run_every=FOLLOW_EVERY)
def _count(own: Seat, place: StepPlace | None) -> None:
    """The room's code, how many are in it, and how many have answered."""
    try:
        found = all_rooms().tally(own.code, own.key, place or StepPlace("", -1))
    except RoomError:
        st.rerun()
    has = "has" if found.voted == 1 else "have"
    answered = f" · **{found.voted}** of {found.here} {has} answered" if place else ""
    st.markdown(
        f"### Room {own.code}\n{found.here} here{answered}. To join: the page *Learn*, *A class answers together*."
    )
    drawn = st.session_state.get(COUNTED)  # None as long as this run of the page is on its way to the votes
    if place and st.session_state.get(OPEN_VOTES) == place and drawn is not None and drawn != found:
        st.rerun()


def _act(act: Callable[[Seat], None]) -> None:
    """Do what the teacher asked for; a room that has ended meanwhile says so in the run that follows."""
    if own := seat():
        with contextlib.suppress(RoomError):
            act(own)


def _move(place: StepPlace | None) -> None:
    st.session_state[LEADING] = place is not None
    _act(lambda own: all_rooms().move(own.code, own.key, place))


def _advance(place: StepPlace, to: Phase) -> None:
    _act(lambda own: all_rooms().advance(own.code, own.key, place, to))


def _open_votes(place: StepPlace | None) -> None:
    st.session_state[OPEN_VOTES] = place


def _end() -> None:
    _act(lambda own: all_rooms().end(own.code, own.key))
    _leave()
