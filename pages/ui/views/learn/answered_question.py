"""Draws an answered question: the visitor's answer and the correct one."""

import streamlit as st

from pages.ui.components import answer_inputs
from pages.ui.frame import widgets
from pages.ui.lessons.expressions import ExpressionError
from pages.ui.lessons.measure_setup import NotMeasurableYet, Setup
from pages.ui.lessons.questions import Answer, Verdict, verdict
from pages.ui.markdown import passage, plain
from pages.ui.session.lesson_answers import Response
from pages.ui.session.session_store import session_record
from pages.ui.views.learn import room_membership
from pages.ui.views.learn.answer_wording import Wording
from pages.ui.views.learn.opened_step import OpenedStep

MAX_TOKENS = 120
"""Of a prompt of which one is to be clicked."""
SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


def show_given(wording: Wording, entered: OpenedStep, response: Response) -> None:
    """What was answered, and once it may be seen what is right."""
    given, at = wording.markdown(response.first), entered.step_id
    if response.second is not None:
        given = f"{given}, then {wording.markdown(response.second)}"
    if not entered.is_revealed:
        _show_options(wording, response)
        st.markdown(
            f":material/how_to_vote: Your answer: {given}. The right one is shown when your teacher reveals it."
        )
        if room_membership.can_change(at):
            widgets.button(
                "Change my answer", room_membership.change, at, key="lesson_change", icon="edit", type="tertiary"
            )
        if response.second is None and room_membership.phase(at) is None:
            widgets.button("Answer again", session_record().answers.discuss, at, key="lesson_again", type="tertiary")
        return
    try:
        last = verdict(wording.question, wording.values, response.last)
        first = verdict(wording.question, wording.values, response.first)
    except NotMeasurableYet as error:
        _show_options(wording, response)
        _not_yet(f"Your answer: {given}. ", error)
        return
    except ExpressionError as error:
        st.warning(plain(f"Your answer: {given}. The correct one can't be computed: {error}."))
        return
    response.right = (first.right,) if response.second is None else (first.right, last.right)
    _show_options(wording, response, last)
    if last.right and wording.question.kind != "number":
        st.success(f"Correct: {given}.", icon=":material/check:")
    elif last.right:
        st.success(
            f"Your answer: {given}. Correct: {wording.markdown(last.correct)}, close enough.", icon=":material/check:"
        )
    elif wording.question.kind == "order":
        st.info(f"Your answer: {given}. The correct order is above.", icon=":material/lightbulb:")
    else:
        st.info(f"Your answer: {given}. Correct: {wording.markdown(last.correct)}.", icon=":material/lightbulb:")


def show_revealed(wording: Wording) -> None:
    """What is right, for a visitor who hasn't answered when it is revealed."""
    try:
        revealed = verdict(wording.question, wording.values)
    except NotMeasurableYet as error:
        _show_options(wording)
        _not_yet("", error)
        return
    _show_options(wording, outcome=revealed)
    if wording.question.kind != "order":  # which stands there in full
        st.info(f"Correct: {wording.markdown(revealed.correct)}.", icon=":material/lightbulb:")


def _not_yet(given: str, error: NotMeasurableYet) -> None:
    st.info(f"{given}The correct one isn't known yet: {plain(str(error))}.", icon=":material/hourglass_empty:")
    st.button("Check again", key="lesson_look", icon=":material/refresh:")


def _show_options(wording: Wording, response: Response | None = None, outcome: Verdict | None = None) -> None:
    """What could be answered, with the visitor's choice and, once it is known, the correct one marked."""
    correct = outcome and outcome.correct
    if wording.question.kind == "choose":
        _mark_options(wording, response, correct)
    elif wording.question.kind == "token":
        _mark_tokens(wording, response, correct)
    elif outcome:
        _show_picture(wording, response and response.last, outcome)


def _mark_options(wording: Wording, response: Response | None, correct: Answer | None) -> None:
    lines = []
    for number, option in enumerate(wording.question.options):
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
        lines.append(" ".join([f":material/{icon}:", option.filled(wording.values, passage), *badges]))
    st.markdown("  \n".join(lines))


def _mark_tokens(wording: Wording, response: Response | None, correct: Answer | None) -> None:
    """The tokens of the prompt, the chosen one and the correct one with a background."""
    chosen = response and response.last
    marks = {position: color for position, color in ((chosen, "blue"), (correct, "green")) if isinstance(position, int)}
    shown = [
        f":{marks[position]}-background[{label}]" if position in marks else label
        for position, label in enumerate(numbered_tokens(wording.setup))
    ]
    legend = [":blue-badge[Your answer]" if response else "", ":green-badge[Correct]" if correct is not None else ""]
    st.markdown(" ".join([*shown, "  \n", *legend]))


def _show_picture(wording: Wording, answer: Answer | None, outcome: Verdict) -> None:
    match wording.question.kind, outcome.correct:
        case "order", list(order):
            st.caption("In the correct order")
            answer_inputs.sortable_list(
                items=wording.options(),
                order=order,
                label="In the correct order",
                fixed=True,
                take=lambda order: None,
                key="lesson_order_right",
            )
        case "cell", list(cell) if picture := wording.picture:
            answer_inputs.cell_picker(
                **picture._asdict(),
                chosen=picture.within(answer) if isinstance(answer, list) else None,
                right=picture.within(cell),
                fixed=True,
                take=lambda cell: None,
                key="lesson_cells_right",
            )


def numbered_tokens(setup: Setup) -> list[str]:
    """The tokens of the prompt with their positions, as Markdown."""
    labels = setup.tokenizer.labels(setup.read[:MAX_TOKENS])
    return [f"{plain(label)}{str(position).translate(SUBSCRIPTS)}" for position, label in enumerate(labels)]
