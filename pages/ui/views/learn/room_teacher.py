"""Draws a room for its teacher: code, students, votes, and controls."""

import math
from collections import Counter
from collections.abc import Callable
from urllib.parse import urlencode, urlsplit

import pandas as pd
import segno
import streamlit as st

from pages.ui.components.copy_button import copy_button
from pages.ui.components.room_follower import follow_room
from pages.ui.components.room_membership import private_link
from pages.ui.components.votes import Bar, Line, votes
from pages.ui.frame import widgets
from pages.ui.lessons.questions import Choose, Number
from pages.ui.lessons.room import Phase, RoomError, State, Tally, answer_of, as_text
from pages.ui.lessons.rooms import all_rooms
from pages.ui.markdown import counted, plain
from pages.ui.session.lesson_answers import Answer, StepId
from pages.ui.tables import as_csv
from pages.ui.views.learn import room_membership, visitor_lessons
from pages.ui.views.learn.answer_wording import Wording, wording_at
from pages.ui.views.learn.opened_step import go_to
from pages.ui.views.learn.room_membership import COUNTED, DRAWN, OPEN_VOTES, SCROLLS, SHOWS_CODE, Membership

MAX_BARS = 12
"""Bars of one vote; the remaining answers share one more."""
MORE_TIME = 60.0
"""Seconds added by a press."""
LOCAL = ("localhost", "127.0.0.1", "::1")
"""Hosts that only the computer itself can reach, and no phone."""
COLUMNS = ("lesson", "step", "title", "question", "vote", "answer", "count")


def panel(own: Membership, step_id: StepId | None) -> None:
    """Show the room's code and address, the number of students, and the controls of the whole room."""
    state: State = st.session_state[DRAWN]
    with st.container(border=True, key="room_teacher"):
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            shows = st.session_state.get(SHOWS_CODE, False)
            _count_members(own)
            label = "Hide the QR code" if shows else "Show the QR code"
            widgets.button(label, st.session_state.update, {SHOWS_CODE: not shows}, key="room_code", icon="qr_code_2")
            if state.step_id != step_id:
                _bring_together(state.step_id, step_id)
            if state.step_id is not None:
                widgets.button(
                    "Let students navigate freely",
                    room_membership.move,
                    None,
                    key="room_free",
                    icon="lock_open",
                    help="Students open any step, and see answers at once.",
                )
            _private_link(own)
            with st.popover("End the room", type="tertiary", icon=":material/logout:", key="room_ending"):
                st.markdown("End the room for everybody? Its votes are deleted.")
                widgets.button("End the room", room_membership.end, key="room_end", type="primary")
        if shows:
            _address_and_code(own)


def _bring_together(its: StepId | None, own: StepId | None) -> None:
    """Where teacher and class are at different steps, say where the class is and offer to bring them together."""
    if its and (lesson := visitor_lessons.lesson(its.lesson)) and its.step < len(lesson.steps):
        title = plain(lesson.steps[its.step].title)
        st.markdown(f"The class stays at **{title}**, step {its.step + 1} of {plain(lesson.title)}.", width="content")
        widgets.button("Back to the class", go_to, its, key="room_back", type="primary")
    if own:
        label = "Bring the class here" if its else "Lead from here"
        widgets.button(label, room_membership.move, own, key="room_lead", icon="co_present")


def count(step_id: StepId) -> None:
    """Show how many of the class have answered."""
    own = room_membership.membership()
    if own and room_membership.is_reached() and room_membership.has_class(step_id):
        _count_votes(own, step_id)


def controls(step_id: StepId) -> None:
    """Show the buttons that reveal votes and answer."""
    state: State | None = st.session_state.get(DRAWN)
    if state is None or not room_membership.has_class(step_id) or state.phase is Phase.REVEALED:
        return
    shown = st.session_state.get(OPEN_VOTES) == step_id
    with st.container(horizontal=True, vertical_alignment="center", key="room_controls"):
        widgets.button(
            "Hide the votes" if shown else "Show the votes",
            _open_votes,
            None if shown else step_id,
            key="room_show_votes",
            icon="bar_chart",
            type="secondary" if shown else "primary",
        )
        if state.phase is Phase.FIRST:
            widgets.button("Discuss and vote again", _advance, step_id, Phase.SECOND, key="room_again", icon="forum")
        emphasis = "primary" if shown else "secondary"
        widgets.button("Reveal", _advance, step_id, Phase.REVEALED, key="room_reveal", icon="visibility", type=emphasis)
        widgets.button(
            "Add a minute" if state.deadline else "Start a minute",
            room_membership.act,
            lambda own: all_rooms().give_time(own.code, own.key, step_id, MORE_TIME),
            key="room_time",
            icon="timer",
            type="tertiary",
        )


def show_tally(step_id: StepId, wording: Wording, right: Callable[[Answer], bool] | None) -> None:
    """How the room has voted on a step, once that is revealed, or before on request.

    right: tells right answers from wrong ones; None before that is known.
    """
    own = room_membership.membership()
    if own is None or not own.is_teacher:
        return
    try:
        tally = all_rooms().tally(own.code, own.key, step_id)
    except RoomError:  # which the next run will say
        return
    st.session_state[COUNTED] = tally
    if tally.phase is not Phase.REVEALED and st.session_state.get(OPEN_VOTES) != step_id:
        return
    with st.container(key="room_tally", gap="small"):
        _draw_votes(tally, wording, right)


def _draw_votes(tally: Tally, wording: Wording, right: Callable[[Answer], bool] | None) -> None:
    rounds, question = _rounds(tally), wording.question
    scrolls = st.session_state.get(SCROLLS, 0)
    if isinstance(question, Number):
        correct = wording.correct() if right is not None else None
        line = Line(
            question.low,
            question.high,
            wording.text(question.low),
            wording.text(question.high),
            (float(correct), wording.text(correct)) if isinstance(correct, int | float) else None,
        )
        points = [
            (
                title,
                [
                    (float(answer), wording.text(answer), count)
                    for text, count in votes.items()
                    if isinstance(answer := answer_of(text), int | float)
                ],
            )
            for title, votes in rounds
        ]
        votes(key="room_votes", scrolls=scrolls, line=line, points=points)
    else:
        titles = [title for title, _ in rounds]
        votes(key="room_votes", scrolls=scrolls, rounds=titles, bars=_bars(tally, wording, right))
    if right is not None and tally.pairs:
        better, worse = tally.changes(lambda text: right(answer_of(text)))
        st.caption(f"{len(tally.pairs)} voted twice: {better} changed to the correct answer, {worse} away from it.")


def seconds_left(deadline: float | None) -> int:
    """Seconds until the time to answer is over; 0 without a limit."""
    return 0 if deadline is None else math.ceil(all_rooms().left(deadline))


def time_left(deadline: float | None) -> str:
    """The time left to answer, as the end of a line."""
    if deadline is None:
        return ""
    left = seconds_left(deadline)
    return f" **{left // 60}:{left % 60:02}** left." if left else " Time is up."


def votes_csv(own: Membership) -> bytes:
    """Make a CSV of all votes, one row for each answer, in words."""
    rows = []
    for step_id, tally in all_rooms().tallies(own.code, own.key).items():
        if described := wording_at(step_id):
            titles, wording = described
            for vote, counts in (("first", tally.first), ("second", tally.second)):
                for text, count in counts.most_common():
                    answer = wording.bare(answer_of(text))
                    rows.append([*titles, wording.question_text(), vote, answer, count])
    return as_csv(pd.DataFrame(rows, columns=COLUMNS))


def address(**parameters: str) -> str:
    """The address of the page Learn, as browsers see it."""
    page = (st.context.url or "Learn").split("?")[0]
    return f"{page}?{urlencode(parameters)}" if parameters else page


@st.fragment
def _count_members(own: Membership) -> None:
    try:
        version = room_membership.version(own)
        tally = all_rooms().tally(own.code, own.key, StepId("", -1))
    except RoomError:
        st.rerun()
    is_full = " (the room is full)" if tally.here >= all_rooms().size else ""
    with st.container(gap=None, width="content"):
        st.markdown(f"### Room {own.code}\n{counted(tally.here, 'student')}{is_full} · {_short_address()}")
        if tally.behind:
            st.caption(f":material/hourglass_empty: {_behind(tally)}.")
        follow_room(own.code, own.key, version, key="room_counts_members")


@st.fragment
def _count_votes(own: Membership, step_id: StepId) -> None:
    """Say how many have answered, how many haven't, and how much time is left."""
    try:
        version = room_membership.version(own)
        tally, state = all_rooms().tally(own.code, own.key, step_id), all_rooms().led(own.code, own.key)
    except RoomError:
        st.rerun()
    has = "has" if tally.voted == 1 else "have"
    thinking = tally.here - tally.voted if tally.phase is not Phase.REVEALED else 0
    still = f", {thinking} still thinking" if thinking else ""
    behind = f" ({_behind(tally)})" if tally.behind else ""
    with st.container(gap=None):
        st.markdown(f"**{tally.voted}** of {tally.here} {has} answered{still}{behind}.{time_left(state.deadline)}")
        follow_room(own.code, own.key, version, seconds_left=seconds_left(state.deadline), key="room_counts_votes")
    drawn = st.session_state.get(COUNTED)  # None as long as this run of the page is on its way to the votes
    if st.session_state.get(OPEN_VOTES) == step_id and drawn is not None and drawn != tally:
        st.rerun()


def _behind(tally: Tally) -> str:
    """Say how many pages haven't yet drawn the teacher's last change."""
    return f"{counted(tally.behind, 'page')} {'is' if tally.behind == 1 else 'are'} behind"


def _short_address() -> str:
    """The page's address as it is typed by hand, without its scheme."""
    link = address()
    return plain(link.partition("://")[2] or link)


def _address_and_code(own: Membership) -> None:
    link = address(room=own.code)
    picture = segno.make(link, error="m", micro=False).svg_data_uri(border=3, dark="#000", light="#fff")  # in any theme
    with st.container(horizontal=True, vertical_alignment="center", gap="large", key="room_address"):
        st.html(f'<img class="qr" alt="QR code of the address" src="{picture}">', width="content")
        with st.container(width="stretch"):
            st.markdown(f"Scan the QR code, or open\n## {_short_address()}\nand join with the code\n## {own.code}")
            st.caption(f"This room takes {counted(all_rooms().size, 'student')}.")
            if urlsplit(link).hostname in LOCAL:
                st.caption(
                    ":material/warning: This address works on this computer only. For phones, open the app by the "
                    "computer's name or IP address."
                )
            copy_button("Copy link to embed", f"{link}&embed=true", key="room_link_to_embed")


def _private_link(own: Membership) -> None:
    """Offer the private link as a button that copies it: the class may see this screen."""
    with st.popover("Private link, votes", icon=":material/key:", key="room_keep"):
        st.markdown("Your private link brings you back if this tab is closed. Paste it where only you can see it.")
        copy_button("Copy private link", private_link(address(), own.code, own.key), key="room_private_link")
        widgets.download_button(
            "Download the votes", lambda: votes_csv(own), f"room-{own.code}.csv", "text/csv", key="room_save"
        )


def _advance(step_id: StepId, to: Phase) -> None:
    if to is Phase.SECOND:
        st.session_state[OPEN_VOTES] = None
    _scroll_to_votes()
    room_membership.act(lambda own: all_rooms().advance(own.code, own.key, step_id, to))


def _open_votes(step_id: StepId | None) -> None:
    st.session_state[OPEN_VOTES] = step_id
    if step_id:
        _scroll_to_votes()
        room_membership.act(lambda own: all_rooms().show(own.code, own.key, step_id))


def _scroll_to_votes() -> None:
    st.session_state[SCROLLS] = st.session_state.get(SCROLLS, 0) + 1


def _rounds(tally: Tally) -> list[tuple[str, Counter[str]]]:
    if tally.phase is Phase.SECOND or tally.second:
        return [("First vote", tally.first), ("Second vote", tally.second)]
    return [("Votes", tally.first)]


def _bars(tally: Tally, wording: Wording, right: Callable[[Answer], bool] | None) -> list[Bar]:
    """A bar for each option of a choice; of other questions for each answer given, the most frequent first."""
    both = tally.first + tally.second
    given = [answer for answer, _ in both.most_common()]
    if isinstance(wording.question, Choose):
        given = [as_text(number) for number in range(len(wording.question.options))]
    answers, rest = given[:MAX_BARS], given[MAX_BARS:]
    counts = [votes for _, votes in _rounds(tally)]
    bars = [
        Bar(
            wording.bare(answer_of(text)),
            [votes[text] for votes in counts],
            right is not None and right(answer_of(text)),
        )
        for text in answers
    ]
    if rest:
        bars.append(Bar("other answers", [sum(votes[text] for text in rest) for votes in counts], right=False))
    return bars
