"""A room as its teacher sees it: a way in for the class, who is there and still thinking, votes, and the end."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable
from urllib.parse import urlencode, urlsplit

import segno
import streamlit as st

from pages.ui.components.votes import Bar, Line, votes
from pages.ui.lessons.questions import Answer, Question
from pages.ui.lessons.rooms import Phase, RoomError, State, Tally
from pages.ui.markdown import plain
from pages.ui.models.answers import StepPlace
from pages.ui.tables import as_text
from pages.ui.views.learn import room
from pages.ui.views.learn.room import COUNTED, DRAWN, OPEN_VOTES, SHOWS_CODE, TURNS, Seat, all_rooms
from pages.ui.views.learn.said import Said, said_at

MOST_BARS = 12
"""Of one vote; what is left of many different answers is one more."""
MORE_TIME = 60.0
"""Seconds that a press gives."""
LOCAL = ("localhost", "127.0.0.1", "::1")
"""Names by which a computer calls itself, and which mean nothing to a phone."""
COLUMNS = ("lesson", "step", "title", "question", "vote", "answer", "count")


def panel(own: Seat, place: StepPlace | None) -> None:
    """The room's code and address, who is in it, and what is done with the room as a whole."""
    state: State = st.session_state[DRAWN]
    with st.container(border=True, key="room_teacher"):
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            shows = st.session_state.get(SHOWS_CODE, False)
            _count_members(own, with_address=not shows)
            st.button(
                "Hide the QR code" if shows else "QR code",
                key="room_code",
                icon=":material/qr_code_2:",
                on_click=_show_code,
                args=(not shows,),
            )
            if place and state.place is None:
                st.button(
                    "Lead from here", key="room_lead", icon=":material/co_present:", on_click=room.move, args=(place,)
                )
            elif state.place is not None:
                st.button(
                    "Let them go",
                    key="room_let_go",
                    icon=":material/directions_walk:",
                    on_click=room.move,
                    args=(None,),
                    help="Everybody takes the steps as they like, and sees answers at once.",
                )
            _keep_or_end(own)
        if shows:
            _way_in(own)


def controls(place: StepPlace) -> None:
    """Below a question, where others have what sends an answer: who still thinks, and what shows votes and answer."""
    own = room.seat()
    state: State | None = st.session_state.get(DRAWN)
    if not own or not own.leads or not state or state.place != place:
        return
    _count_votes(own, place)
    if state.phase is Phase.REVEALED:
        return
    shown = st.session_state.get(OPEN_VOTES) == place
    with st.container(horizontal=True, vertical_alignment="center", key="room_controls"):
        st.button(
            "Reveal",
            key="room_reveal",
            type="primary",
            icon=":material/visibility:",
            on_click=_advance,
            args=(place, Phase.REVEALED),
        )
        st.button(
            "Hide the votes" if shown else "Show the votes",
            key="room_show_votes",
            icon=":material/bar_chart:",
            on_click=_open_votes,
            args=(None if shown else place,),
        )
        if state.phase is Phase.FIRST:
            st.button(
                "Discuss and vote again",
                key="room_again",
                icon=":material/forum:",
                on_click=_advance,
                args=(place, Phase.SECOND),
            )
        st.button(
            "One minute more" if state.deadline else "One minute",
            key="room_time",
            icon=":material/timer:",
            type="tertiary",
            on_click=_give_time,
            args=(place,),
        )


def tally(place: StepPlace, question: Question, said: Said, right: Callable[[Answer], bool] | None) -> None:
    """How the room has voted on a step, once that is revealed, or when it is asked for.

    said: puts an answer into words. right: tells right answers from wrong ones; None before that is known.
    """
    own = room.seat()
    if own is None or not own.leads:
        return
    try:
        found = all_rooms().tally(own.code, own.key, place)
    except RoomError:  # which the next run will say
        return
    st.session_state[COUNTED] = found
    if found.phase is not Phase.REVEALED and st.session_state.get(OPEN_VOTES) != place:
        return
    rounds = _rounds(found)
    turns = st.session_state.get(TURNS, 0)
    if question.kind == "number":
        correct = said.correct() if right is not None else None
        line = Line(
            question.low,
            question.high,
            said.text(question.low),
            said.text(question.high),
            None if correct is None else (float(correct), said.text(correct)),
        )
        points = [
            (
                title,
                [
                    (float(room.answer_of(text)), said.text(room.answer_of(text)), count)
                    for text, count in votes.items()
                ],
            )
            for title, votes in rounds
        ]
        votes(key="room_votes", turns=turns, line=line, points=points)
    else:
        votes(key="room_votes", turns=turns, rounds=_bars(found, rounds, said, right))
    if right is not None and found.pairs:
        better, worse = found.turned(lambda text: right(room.answer_of(text)))
        st.caption(
            f"Of {len(found.pairs)} who voted twice, {better} went from a wrong answer to the right one, and "
            f"{worse} the other way."
        )


def time_left(deadline: float | None) -> str:
    """What there is to think, as the end of a line."""
    if deadline is None:
        return ""
    left = math.ceil(all_rooms().left(deadline))
    return f" **{left // 60}:{left % 60:02}** left." if left else " Time is up."


def votes_csv(own: Seat) -> str:
    """How the room has voted on every step, a row an answer, in words."""
    written = io.StringIO()
    table = csv.writer(written)
    table.writerow(COLUMNS)
    for place, found in all_rooms().tallies(own.code, own.key).items():
        if (told := said_at(place)) is None:
            continue
        titles, said = told
        for vote, counts in (("first", found.first), ("second", found.second)):
            for text, count in counts.most_common():
                row = [*titles, said.asked(), vote, said.bare(room.answer_of(text)), str(count)]
                table.writerow(map(as_text, row))
    return written.getvalue()


def address(**parameters: str) -> str:
    """The address of the page Learn, as a browser has it."""
    return f"{(st.context.url or 'Learn').split('?')[0]}?{urlencode(parameters)}"


def qr_code(text: str) -> str:
    """A text as a picture that a phone's camera reads, dark on light in any theme: SVG, as the address of an image."""
    return segno.make(text, error="m", micro=False).svg_data_uri(border=3, dark="#000", light="#fff")


@st.fragment(run_every=room.FOLLOW_EVERY)
def _count_members(own: Seat, *, with_address: bool) -> None:
    try:
        found = all_rooms().tally(own.code, own.key, StepPlace("", -1))
    except RoomError:
        st.rerun()
    st.markdown(f"### Room {own.code}\n{found.here} here{f' · {_short_address(own)}' if with_address else ''}")


@st.fragment(run_every=room.FOLLOW_EVERY)
def _count_votes(own: Seat, place: StepPlace) -> None:
    """How many have answered, how many still think, and for how long they may."""
    try:
        found, state = all_rooms().tally(own.code, own.key, place), all_rooms().led(own.code, own.key)
    except RoomError:
        st.rerun()
    has = "has" if found.voted == 1 else "have"
    thinking = found.here - found.voted if found.phase is not Phase.REVEALED else 0
    still = f" · {thinking} still thinking" if thinking else ""
    st.markdown(f"**{found.voted}** of {found.here} {has} answered{still}.{time_left(state.deadline)}")
    drawn = st.session_state.get(COUNTED)  # None as long as this run of the page is on its way to the votes
    if st.session_state.get(OPEN_VOTES) == place and drawn is not None and drawn != found:
        st.rerun()


def _short_address(own: Seat) -> str:
    link = address(room=own.code)
    return plain(link.partition("://")[2] or link)


def _way_in(own: Seat) -> None:
    link = address(room=own.code)
    with st.container(horizontal=True, vertical_alignment="center", gap="large", key="room_way_in"):
        st.html(f'<img class="qr" alt="QR code of the address" src="{qr_code(link)}">', width="content")
        with st.container(width="stretch"):
            st.markdown(f"Point a phone's camera at it, or open\n## {_short_address(own)}")
            st.caption(f"Or open *Learn* here, and join with the code **{own.code}**.")
            if urlsplit(link).hostname in LOCAL:
                st.caption(
                    ":material/warning: This address works on this computer alone. Open the app by the "
                    "computer's name or number in the network; then phones find it, too."
                )


def _keep_or_end(own: Seat) -> None:
    with st.popover(
        "Keep", icon=":material/key:", key="room_keep", help="A link by which you come back, and the votes as a file."
    ):
        st.markdown("**Your private link.** It brings you back as the teacher, votes and all. Show it to nobody.")
        st.code(address(room=own.code, room_key=own.key), language=None, wrap_lines=True)
        st.download_button(
            "Save the votes",
            lambda: _file(own),
            f"room-{own.code}.csv",
            "text/csv",
            key="room_save",
            icon=":material/download:",
            on_click="ignore",
        )
    with st.popover("End the room", type="tertiary", key="room_ending"):
        st.markdown("It ends for everybody, and its votes are gone.")
        st.button("End it", key="room_end", type="primary", on_click=room.end)


def _file(own: Seat) -> bytes:
    return votes_csv(own).encode("utf-8-sig")


def _show_code(shows: bool) -> None:
    st.session_state[SHOWS_CODE] = shows


def _advance(place: StepPlace, to: Phase) -> None:
    _turn()
    room.act(lambda own: all_rooms().advance(own.code, own.key, place, to))


def _open_votes(place: StepPlace | None) -> None:
    st.session_state[OPEN_VOTES] = place
    if place:
        _turn()
        room.act(lambda own: all_rooms().show(own.code, own.key, place))


def _give_time(place: StepPlace) -> None:
    room.act(lambda own: all_rooms().give_time(own.code, own.key, place, MORE_TIME))


def _turn() -> None:
    """What is asked for comes into sight."""
    st.session_state[TURNS] = st.session_state.get(TURNS, 0) + 1


def _rounds(found: Tally) -> list[tuple[str, dict[str, int]]]:
    if found.phase is Phase.SECOND or found.second:
        return [("Before the discussion", found.first), ("After it", found.second)]
    return [("Votes", found.first)]


def _bars(
    found: Tally, rounds: list[tuple[str, dict[str, int]]], said: Said, right: Callable[[Answer], bool] | None
) -> list[tuple[str, list[Bar]]]:
    both = found.first + found.second
    answers = [answer for answer, _ in both.most_common(MOST_BARS)]
    rest = [answer for answer in both if answer not in answers]
    return [
        (
            title,
            [
                *(
                    Bar(said.text(room.answer_of(text)), count[text], right is not None and right(room.answer_of(text)))
                    for text in answers
                ),
                *([Bar("other answers", sum(count[text] for text in rest), right=False)] if rest else []),
            ],
        )
        for title, count in rounds
    ]
