"""A lesson's step on screen: its words, its question, what was found, a change to try, and the live view."""

from __future__ import annotations

import streamlit as st

from pages.ui.frame import borrowed, state
from pages.ui.frame.page import Session
from pages.ui.lessons.claims import Values, unmet
from pages.ui.lessons.expressions import ExpressionError, Words
from pages.ui.lessons.scenes import NotYet
from pages.ui.markdown import passage, plain
from pages.ui.models.answers import StepPlace
from pages.ui.views.bodies import BODIES, NEEDS_NO_TEXT
from pages.ui.views.learn import course, entering, handout, room, room_views
from pages.ui.views.learn.asking import ask
from pages.ui.views.learn.entering import Entered, go_to, leave, show_again


def show() -> None:
    """The step that is open, except for its live view; nothing if none is."""
    if (entered := entering.entered()) is not None:
        with room_views.around(entered.place):
            _show(entered)


def show_view(session: Session) -> None:
    """Its live view."""
    entered = entering.entered()
    if entered.shows_view:
        _live_view(session, entered)


def _show(entered: Entered) -> None:
    step, values = entered.step, Values(entered.step.measures)
    with st.container(key="lesson_text"):
        st.progress((entered.place.step + 1) / len(entered.lesson.steps))
        st.header(plain(step.title), anchor=False)
        _words(step.words, values)
        if step.question:
            ask(entered, values)
        if entered.is_revealed:
            _found(entered, values)
        _move(entered)


def _words(words: Words, values: Values, *, partly: bool = False) -> None:
    """partly: whether of words that wait for a visitor's own training those are told that don't."""
    try:
        st.markdown(words.filled(values, passage))
    except NotYet:  # which is said where the question stands
        if partly:
            for part in words.text.split("\n\n"):
                _words(Words.read(part), values)
    except ExpressionError as error:
        st.warning(plain(f"These words name a number that isn't there: {error}."))


def _found(entered: Entered, values: Values) -> None:
    """What the model does, and what to try with it."""
    step = entered.step
    if step.reveal:
        with st.container(key="lesson_reveal"):
            _words(step.reveal, values, partly=room.phase(entered.place) is not None)
    if problems := unmet(step, values):
        st.warning(
            plain(
                "The model that is here isn't the one this lesson was written for. What it says, and what was "
                f"measured: {'; '.join(problems)}."
            ),
            icon=":material/rule:",
        )
    if step.to_try:
        with st.container(border=True, key="lesson_try"):
            st.markdown(":material/experiment: **Try it**")
            _words(step.to_try, values)


def _move(entered: Entered) -> None:
    """The ways to the steps beside this one, and out of the lesson."""
    lesson, number = entered.place.lesson, entered.place.step
    led = room.led() is not None
    with st.container(horizontal=True, key="lesson_moves"):
        st.button(
            "All lessons", key="learn_list", type="tertiary", icon=":material/list:", on_click=leave, disabled=led
        )
        st.button(
            "Previous",
            key="learn_previous",
            icon=":material/arrow_back:",
            on_click=go_to,
            args=(StepPlace(lesson, number - 1),),
            disabled=led or number == 0,
        )
        last = number == len(entered.lesson.steps) - 1
        following = course.after(entered.lesson) if last else None
        answered = "primary" if entered.is_revealed else "secondary"
        if following:
            st.button(
                f"Next lesson: {plain(following.title)}",
                key="learn_next",
                type=answered,
                icon=":material/arrow_forward:",
                on_click=go_to,
                args=(StepPlace(following.name, 0),),
                disabled=led,
            )
        elif last:
            st.button("Finish", key="learn_next", type=answered, icon=":material/check:", on_click=leave, disabled=led)
        else:
            st.button(
                "Next",
                key="learn_next",
                type=answered,
                icon=":material/arrow_forward:",
                on_click=go_to,
                args=(StepPlace(lesson, number + 1),),
                disabled=led,
            )
        if last:
            handout.offer(entered.lesson)
    if led:
        st.caption("Your teacher leads from step to step.")
    elif entered.is_open and not room.leads():
        st.caption("You can go on without an answer, but the lesson won't count as done.")


def _live_view(session: Session, entered: Entered) -> None:
    """The page that the step shows, as the visitor has it now."""
    page = entered.step.view.page
    with st.container(horizontal=True, vertical_alignment="center", key="lesson_view"):
        turns = (
            "its model, prompt and changes are yours to turn once you have answered"
            if entered.is_open
            else ("whatever you turn here is computed anew")
        )
        st.markdown(f"**{plain(page)}**, live: {turns}.", width="content")
        st.button(
            "Back to the step's view",
            key="lesson_reset",
            type="tertiary",
            icon=":material/restart_alt:",
            on_click=show_again,
        )
        if not entered.is_open:
            st.button(
                f"Open on the page {plain(page)}",
                key="lesson_open",
                type="tertiary",
                icon=":material/open_in_full:",
                on_click=_turn_to,
                args=(page,),
            )
    if session.tokens is not None or page in NEEDS_NO_TEXT:
        BODIES[page](session)


def _turn_to(page: str) -> None:
    borrowed.take_along()
    state.turn_to(page)
