"""Draws a question and the input for its answer."""

import contextlib
from collections.abc import Iterator
from typing import Any

import streamlit as st

from pages.ui.components import answer_inputs
from pages.ui.frame import widgets
from pages.ui.frame.widgets import Binding
from pages.ui.lessons.expressions import ExpressionError
from pages.ui.lessons.measured_values import MeasuredValues
from pages.ui.lessons.questions import Answer, Question, fits, verdict
from pages.ui.lessons.room import Phase
from pages.ui.markdown import passage, plain
from pages.ui.session.lesson_answers import Response
from pages.ui.session.session_store import session_record
from pages.ui.views.learn import room_membership, room_teacher
from pages.ui.views.learn.answer_wording import Wording
from pages.ui.views.learn.answered_question import numbered_tokens, show_given, show_revealed
from pages.ui.views.learn.opened_step import OpenedStep


def ask(question: Question, entered: OpenedStep, values: MeasuredValues) -> None:
    """Draw the question: its options or, once it is answered, what became of them; for a teacher the votes."""
    wording = Wording(question, entered.view.parameters if entered.view else {}, values)
    with st.container(key="lesson_asked"):
        with _catching_problems(), st.container(border=True, key="lesson_question"):
            st.markdown(f"**{question.text.filled(values, passage)}**")
            if entered.is_open:
                _take_in(wording, entered, entered.response)
            elif response := entered.response:
                show_given(wording, entered, response)
            else:
                show_revealed(wording)
            room_teacher.count(entered.step_id)
        room_teacher.controls(entered.step_id)
        _show_votes(wording, entered)


@st.fragment
def _take_in(wording: Wording, entered: OpenedStep, response: Response | None) -> None:
    """A choice reruns this fragment alone; an answer reruns the page."""
    if entered.response is not response or not entered.is_open:
        st.rerun()
    with _catching_problems():
        answer = _answer_with(wording, entered, response)
        if not room_membership.is_teacher():
            _offer(entered, answer, response)


@contextlib.contextmanager
def _catching_problems() -> Iterator[None]:
    """A question of which something can't be computed says so, where it stands."""
    try:
        yield
    except ExpressionError as error:
        st.warning(plain(f"This question can't be asked here: {error}."))


def _show_votes(wording: Wording, entered: OpenedStep) -> None:
    """For the teacher of a room: how it has voted."""

    def is_right(answer: Answer) -> bool:
        try:
            return verdict(wording.question, wording.values, answer).right
        except ExpressionError:  # which is said where the question stands
            return False

    room_teacher.show_tally(entered.step_id, wording, is_right if entered.is_revealed else None)


def _offer(entered: OpenedStep, answer: Answer | None, response: Response | None) -> None:
    """The buttons that take an answer."""
    with st.container(horizontal=True):
        changing = room_membership.is_changing(entered.step_id)
        label, act = "Answer" if response is None else "Answer again", _change if changing else _take
        widgets.button(label, act, entered, answer, key="lesson_answer", type="primary", disabled=answer is None)
        if changing:
            widgets.button("Keep my answer", room_membership.changed, key="lesson_keep")
        elif response is not None:
            widgets.button("Keep my answer", _take, entered, response.first, key="lesson_keep_first")
        elif room_membership.phase(entered.step_id) is None:  # in a room, the teacher starts the discussion
            widgets.button(
                "Discuss first",
                _take,
                entered,
                answer,
                True,
                key="lesson_discuss",
                disabled=answer is None,
                help="Keep this answer, discuss it, then answer again.",
            )
    if response is not None and not changing:
        st.caption("Your first answer is kept. Compare reasons with somebody, then answer again.")


def _take(entered: OpenedStep, answer: Answer, discuss: bool = False) -> None:
    if fits(entered.step.question, answer):
        if entered.response is None:  # what may be there answers another question: the file was changed meanwhile
            session_record().answers.responses.pop(entered.step_id, None)
        session_record().answers.give(entered.step_id, answer, discuss=discuss)
        room_membership.vote(entered.step_id, answer)


def _change(entered: OpenedStep, answer: Answer) -> None:
    """Put another answer in the place of the one that was given, if the room still takes it."""
    if fits(entered.step.question, answer) and room_membership.vote(entered.step_id, answer):
        second = room_membership.phase(entered.step_id) is Phase.SECOND
        session_record().answers.change(entered.step_id, answer, second=second)
    room_membership.changed()


def _answer_with(wording: Wording, entered: OpenedStep, response: Response | None) -> Answer | None:
    """What the visitor has put in so far; None for nothing yet."""
    question = wording.question
    draft = _Draft(entered, question, response)
    match question.kind:
        case "choose":
            said = [option.filled(wording.values, passage) for option in question.options]
            return widgets.radio_or_none(
                "Your answer", range(len(said)), draft.binding("choice"), said.__getitem__, label_visibility="collapsed"
            )
        case "number":
            return _number(question, draft)
        case "token":
            return _token(wording, draft)
        case "cell":
            return _cell(wording, draft)
    items = wording.options()
    order = draft.value if isinstance(draft.value, list) else list(range(len(items)))
    fixed = room_membership.is_teacher()
    answer_inputs.sortable_list(
        items=items, order=order, label="Your order", fixed=fixed, take=draft.take, key="lesson_order"
    )
    return order


class _Draft:
    """What is put in and not yet answered; another question has another one."""

    def __init__(self, entered: OpenedStep, question: Question, response: Response | None) -> None:
        self.question = question
        self.key = (entered.step_id, response is None)
        held = st.session_state.get("lesson_draft", (None, None, None))
        begun = None if response is None else response.first
        is_held = held[0] == self.key
        self.value: Answer | None = held[1] if is_held else begun
        self.shown: float | None = held[2] if is_held else None
        """As a slider has it: for a number that differs by a hair it would be drawn anew, and lose the focus."""

    def take(self, value: Any, *, shown: float | None = None) -> None:
        """Hold what the visitor has put in."""
        if fits(self.question, value):
            st.session_state["lesson_draft"] = (self.key, value, shown)

    def binding(self, name: str) -> Binding:
        """What binds a widget to the draft; −1 stands for nothing yet."""
        return Binding(f"lesson_{name}", value=-1 if self.value is None else self.value, take=self.take)


def _number(question: Question, draft: _Draft) -> float | None:
    """A slider that nobody has moved is no answer: its middle would count as one."""
    scale = 100.0 if question.unit == "%" else 1.0
    low, high, step = question.low * scale, question.high * scale, question.step * scale

    def within(value: float) -> float:
        return min(max(value / scale, question.low), question.high)

    middle = low + round((high - low) / 2 / step) * step
    begun = draft.value * scale if isinstance(draft.value, int | float) else middle
    binding = Binding(
        "lesson_number",
        value=begun if draft.shown is None else draft.shown,
        take=lambda value: draft.take(within(value), shown=value),
    )
    unit = "%%" if question.unit == "%" else f" {question.unit.replace('%', '%%')}" if question.unit else ""
    digits = max(0, min(6, len(f"{step:.6f}".rstrip("0").partition(".")[2])))
    value = widgets.slider(
        "Your answer", low, high, binding, step=step, format=f"%.{digits}f{unit}", label_visibility="collapsed"
    )
    if draft.value is None and value == begun:
        if not room_membership.is_teacher():
            st.caption("Move the slider to answer.")
        return None
    return within(value)


def _token(wording: Wording, draft: _Draft) -> int | None:
    labels = numbered_tokens(wording.setup)
    return widgets.pills_or_none(
        "Choose a token. The small number is its position.",
        range(len(labels)),
        draft.binding("token"),
        labels.__getitem__,
    )


def _cell(wording: Wording, draft: _Draft) -> list[int] | None:
    head = wording.picture
    if head is None:
        return None
    begin, chosen = head.begin, draft.value if isinstance(draft.value, list) else None

    def take(cell: list[int]) -> None:
        draft.take([cell[0] + begin[0], cell[1] + begin[1]])

    answer_inputs.cell_picker(
        **head._asdict(), chosen=chosen and head.within(chosen), right=None, fixed=False, take=take, key="lesson_cells"
    )
    return chosen
