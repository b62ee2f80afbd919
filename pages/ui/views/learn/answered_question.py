"""Draws an answered question: the visitor's answer and the correct one."""

from __future__ import annotations

import streamlit as st

from pages.ui.components import answering
from pages.ui.lessons.expressions import ExpressionError
from pages.ui.lessons.measure_setup import NotMeasurableYet, Setup
from pages.ui.lessons.measured_values import MeasuredValues
from pages.ui.lessons.questions import Answer, Question, Verdict, verdict
from pages.ui.markdown import passage, plain
from pages.ui.models.lesson_answers import Response
from pages.ui.models.session_store import session_record
from pages.ui.views.learn import attention_cells, room_membership
from pages.ui.views.learn.answer_wording import Wording
from pages.ui.views.learn.opened_step import OpenedStep

MAX_TOKENS = 120
"""Of a prompt of which one is to be clicked."""
SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


def show_given(question: Question, entered: OpenedStep, values: MeasuredValues, response: Response) -> None:
    """What was answered, and once it may be seen what is right."""
    said = answers_in_words(entered, values).markdown(response.first)
    if response.second is not None:
        said = f"{said}, then {answers_in_words(entered, values).markdown(response.second)}"
    if not entered.is_revealed:
        _show_options(question, entered, values, response)
        st.markdown(f":material/how_to_vote: Your answer: {said}. The right one is shown when your teacher reveals it.")
        if room_membership.can_change(entered.step_id):
            st.button(
                "Change my answer",
                key="lesson_change",
                type="tertiary",
                icon=":material/edit:",
                on_click=room_membership.change,
                args=(entered.step_id,),
            )
        if response.second is None and room_membership.phase(entered.step_id) is None:
            st.button(
                "Answer again",
                key="lesson_again",
                type="tertiary",
                on_click=session_record().answers.discuss,
                args=(entered.step_id,),
            )
        return
    try:
        found = verdict(question, values, response.last)
        first = verdict(question, values, response.first)
    except NotMeasurableYet as error:
        _show_options(question, entered, values, response)
        _not_yet(f"Your answer: {said}. ", error)
        return
    except ExpressionError as error:
        st.warning(plain(f"Your answer: {said}. The correct one can't be computed: {error}."))
        return
    response.right = (first.right,) if response.second is None else (first.right, found.right)
    _show_options(question, entered, values, response, found)
    if found.right and question.kind != "number":
        st.success(f"Correct: {said}.", icon=":material/check:")
    elif found.right:
        st.success(f"Your answer: {said}. {_correct(entered, values, found)}, close enough.", icon=":material/check:")
    elif question.kind == "order":
        st.info(f"Your answer: {said}. The correct order is above.", icon=":material/lightbulb:")
    else:
        st.info(f"Your answer: {said}. {_correct(entered, values, found)}.", icon=":material/lightbulb:")


def show_revealed(question: Question, entered: OpenedStep, values: MeasuredValues) -> None:
    """What is right, for a visitor who hasn't answered when it is revealed."""
    anything = {"number": question.low, "cell": [0, 0], "order": list(range(len(question.options)))}
    try:
        found = verdict(question, values, anything.get(question.kind, 0))
    except NotMeasurableYet as error:
        _show_options(question, entered, values)
        _not_yet("", error)
        return
    _show_options(question, entered, values, found=found)
    st.info(f"{_correct(entered, values, found)}.", icon=":material/lightbulb:")


def _not_yet(said: str, error: NotMeasurableYet) -> None:
    st.info(f"{said}The correct one isn't known yet: {plain(str(error))}.", icon=":material/hourglass_empty:")
    st.button("Check again", key="lesson_look", icon=":material/refresh:")


def _show_options(
    question: Question,
    entered: OpenedStep,
    values: MeasuredValues,
    response: Response | None = None,
    found: Verdict | None = None,
) -> None:
    """What could be answered, with the visitor's choice and, once it is known, the correct one marked."""
    correct = found and found.correct
    if question.kind == "choose":
        _mark_options(question, values, response, correct)
    elif question.kind == "token":
        _mark_tokens(entered, response, correct)
    elif found:
        _show_picture(question, entered, values, response and response.last, found)


def _mark_options(
    question: Question, values: MeasuredValues, response: Response | None, correct: Answer | None
) -> None:
    lines = []
    for number, option in enumerate(question.options):
        badges = []
        if response and response.second is None and number == response.first:
            badges = [":blue-badge[Your answer]"]
        elif response and response.second is not None:
            first_and_second = (("first", response.first), ("second", response.second))
            badges = [f":blue-badge[Your {which} answer]" for which, answer in first_and_second if number == answer]
        icon = "radio_button_checked" if badges else "radio_button_unchecked"
        if correct is not None and number == correct:
            icon = "check_circle"
            badges.append(":green-badge[Correct]")
        lines.append(" ".join([f":material/{icon}:", option.filled(values, passage), *badges]))
    st.markdown("  \n".join(lines))


def _mark_tokens(entered: OpenedStep, response: Response | None, correct: Answer | None) -> None:
    """The tokens of the prompt, the chosen one and the correct one with a background."""
    marks = {response.last: "blue"} if response else {}
    marks |= {} if correct is None else {correct: "green"}
    shown = [
        f":{marks[place]}-background[{label}]" if place in marks else label
        for place, label in enumerate(numbered_tokens(entered))
    ]
    legend = [":blue-badge[Your answer]" if response else "", ":green-badge[Correct]" if correct is not None else ""]
    st.markdown(" ".join([*shown, "  \n", *legend]))


def _show_picture(
    question: Question, entered: OpenedStep, values: MeasuredValues, answer: Answer | None, found: Verdict
) -> None:
    if question.kind == "order":
        st.caption("In the correct order")
        answering.order(
            items=answers_in_words(entered, values).options(),
            order=found.correct,
            label="In the correct order",
            fixed=True,
            take=lambda order: None,
            key="lesson_order_right",
        )
    if question.kind == "cell" and (picture := picture_of(question, entered)):
        answering.cells(
            **picture._asdict(),
            chosen=answer and picture.within(answer),
            right=picture.within(found.correct),
            fixed=True,
            take=lambda cell: None,
            key="lesson_cells_right",
        )


def _correct(entered: OpenedStep, values: MeasuredValues, found: Verdict) -> str:
    """What is right, as the beginning of a sentence."""
    return f"Correct: {answers_in_words(entered, values).markdown(found.correct)}"


def numbered_tokens(entered: OpenedStep) -> list[str]:
    """The tokens of the prompt with their positions, as Markdown."""
    setup = _setup(entered)
    labels = setup.tokenizer.labels(setup.read[:MAX_TOKENS])
    return [f"{plain(label)}{str(place).translate(SUBSCRIPTS)}" for place, label in enumerate(labels)]


def picture_of(question: Question, entered: OpenedStep) -> attention_cells.Picture | None:
    """The head whose cells are asked for."""
    return attention_cells.picture(question, entered.view.parameters if entered.view else {})


def _setup(entered: OpenedStep) -> Setup:
    return Setup.of(entered.view.parameters if entered.view else {}, {})


def answers_in_words(entered: OpenedStep, values: MeasuredValues) -> Wording:
    """What puts the answers to a step's question into words."""
    return Wording(entered.step.question, entered.view.parameters if entered.view else {}, values)
