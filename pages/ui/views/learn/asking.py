"""The question of a step: what answers it, and what becomes of the answer."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import streamlit as st

from pages.ui.components import answering
from pages.ui.frame import widgets
from pages.ui.frame.widgets import Tie
from pages.ui.lessons.claims import Values
from pages.ui.lessons.expressions import ExpressionError
from pages.ui.lessons.questions import Answer, Question, Verdict, fits, verdict
from pages.ui.lessons.rooms import Phase
from pages.ui.lessons.scenes import NotYet, Scene
from pages.ui.markdown import passage, plain
from pages.ui.models.answers import Given
from pages.ui.models.session_store import session_record
from pages.ui.views.learn import cells, leading, room
from pages.ui.views.learn.entering import Entered
from pages.ui.views.learn.said import Said

MOST_TOKENS = 120
"""Of a prompt of which one is to be clicked."""
SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


def ask(entered: Entered, values: Values) -> None:
    """Draw the question: with what answers it, or with the answer that was given; for a teacher the votes."""
    question = entered.step.question
    given = entered.given
    with st.container(key="lesson_asked"):
        _ask(question, entered, values, given)
        _show_votes(question, entered, values)


def _ask(question: Question, entered: Entered, values: Values, given: Given | None) -> None:
    with _telling_problems(), st.container(border=True, key="lesson_question"):
        st.markdown(f"**{question.text.filled(values, passage)}**")
        if entered.is_open:
            _take_in(question, entered, values, given)
        elif given is None:
            _unanswered(question, entered, values)
        else:
            _answered(question, entered, values, given)
        leading.controls(entered.place)


@st.fragment
def _take_in(question: Question, entered: Entered, values: Values, given: Given | None) -> None:
    """What is put in draws this part of the page anew; an answer, all of it."""
    if entered.given is not given or not entered.is_open:
        st.rerun()
    with _telling_problems():
        answer = _answer_with(question, entered, values, given)
        if not room.leads():
            _offer(entered, answer, given)


@contextlib.contextmanager
def _telling_problems() -> Iterator[None]:
    """A question of which something can't be computed says so, where it stands."""
    try:
        yield
    except ExpressionError as error:
        st.warning(plain(f"This question can't be asked here: {error}."))


def _show_votes(question: Question, entered: Entered, values: Values) -> None:
    """For the teacher of a room: how it has voted."""

    def is_right(answer: Answer) -> bool:
        try:
            return verdict(question, values, answer).right
        except ExpressionError:  # which is said where the question stands
            return False

    leading.tally(entered.place, question, _said(entered, values), is_right if entered.is_revealed else None)


def _offer(entered: Entered, answer: Answer | None, given: Given | None) -> None:
    """The buttons that take an answer."""
    with st.container(horizontal=True):
        changing = room.is_changing(entered.place)
        st.button(
            "Answer" if given is None else "Answer again",
            key="lesson_answer",
            type="primary",
            disabled=answer is None,
            on_click=_change if changing else _take,
            args=(entered, answer),
        )
        if changing:
            st.button("Keep my answer", key="lesson_keep", on_click=room.changed)
        elif given is not None:
            st.button("Keep my answer", key="lesson_stay", on_click=_take, args=(entered, given.first))
        elif room.phase(entered.place) is None:  # in a room, its teacher says when it is talked over
            st.button(
                "Answer, and talk it over first",
                key="lesson_discuss",
                disabled=answer is None,
                on_click=_take,
                args=(entered, answer, True),
            )
    if given is not None and not changing:
        st.caption("Your first answer is kept. Tell somebody why you gave it, hear theirs, and answer again.")


def _take(entered: Entered, answer: Answer, discuss: bool = False) -> None:
    if fits(entered.step.question, answer):
        if entered.given is None:  # what may be there answers another question: the file was changed meanwhile
            session_record().answers.given.pop(entered.place, None)
        session_record().answers.give(entered.place, answer, discuss=discuss)
        room.vote(entered.place, answer)


def _change(entered: Entered, answer: Answer) -> None:
    """Put another answer in the place of the one that was given, if the room still takes it."""
    if fits(entered.step.question, answer) and room.vote(entered.place, answer):
        second = room.phase(entered.place) is Phase.SECOND
        session_record().answers.change(entered.place, answer, second=second)
    room.changed()


def _answered(question: Question, entered: Entered, values: Values, given: Given) -> None:
    """What was answered, and once it may be told what is right."""
    said = _said(entered, values).markdown(given.first)
    if given.second is not None:
        said = f"{said} at first, then {_said(entered, values).markdown(given.second)}"
    if not entered.is_revealed:
        st.markdown(f":material/how_to_vote: You said {said}. What is right is shown when the room is ready.")
        if room.can_change(entered.place):
            st.button(
                "Change my answer",
                key="lesson_change",
                type="tertiary",
                icon=":material/edit:",
                on_click=room.change,
                args=(entered.place,),
            )
        if given.second is None and room.phase(entered.place) is None:
            st.button(
                "Answer again",
                key="lesson_again",
                type="tertiary",
                on_click=session_record().answers.discuss,
                args=(entered.place,),
            )
        return
    try:
        found = verdict(question, values, given.last)
        first = verdict(question, values, given.first)
    except NotYet as error:
        _not_yet(f"You said {said}. ", error)
        return
    except ExpressionError as error:
        st.warning(plain(f"You said {said}. What is right can't be computed: {error}."))
        return
    given.right = (first.right,) if given.second is None else (first.right, found.right)
    _show_picture(question, entered, values, given.last, found)
    if found.right and question.kind == "number":
        so_it_is = f". {_it_is(question, entered, values, found.correct)}, near enough"
    elif found.right:
        so_it_is = ", and so it is"
    elif question.kind == "order":
        so_it_is = ". The order above is the right one"
    else:
        so_it_is = f". {_it_is(question, entered, values, found.correct)}"
    if found.right:
        st.success(f"You said {said}{so_it_is}.", icon=":material/check:")
    else:
        st.info(f"You said {said}{so_it_is}.", icon=":material/lightbulb:")


def _not_yet(said: str, error: NotYet) -> None:
    st.info(f"{said}What is right is still to be found out: {plain(str(error))}.", icon=":material/hourglass_empty:")
    st.button("Look again", key="lesson_look", icon=":material/refresh:")


def _unanswered(question: Question, entered: Entered, values: Values) -> None:
    """What is right, for those who see it revealed without having answered."""
    anything = {"number": question.low, "cell": [0, 0], "order": list(range(len(question.options)))}
    try:
        found = verdict(question, values, anything.get(question.kind, 0))
    except NotYet as error:
        _not_yet("", error)
        return
    st.info(f"{_it_is(question, entered, values, found.correct)}.", icon=":material/lightbulb:")


def _show_picture(question: Question, entered: Entered, values: Values, answer: Answer, found: Verdict) -> None:
    if question.kind == "order":
        st.caption("In the right order")
        answering.order(
            items=_said(entered, values).options(),
            order=found.correct,
            label="In the right order",
            fixed=True,
            take=lambda order: None,
            key="lesson_order_right",
        )
    if question.kind == "cell" and (picture := _picture(question, entered)):
        answering.cells(
            **picture._asdict(),
            chosen=picture.within(answer),
            right=picture.within(found.correct),
            fixed=True,
            take=lambda cell: None,
            key="lesson_cells_right",
        )


# What answers each kind


def _answer_with(question: Question, entered: Entered, values: Values, given: Given | None) -> Answer | None:
    """What the visitor has put in so far; None for nothing yet."""
    draft = _Draft(entered, question, given)
    match question.kind:
        case "choose":
            texts = [option.filled(values, passage) for option in question.options]
            return widgets.radio_or_none(
                "Your answer", range(len(texts)), draft.tie("choice"), texts.__getitem__, label_visibility="collapsed"
            )
        case "number":
            return _number(question, draft)
        case "token":
            return _token(entered, draft)
        case "cell":
            return _cell(question, entered, draft)
    items = _said(entered, values).options()
    order = draft.value if draft.value is not None else list(range(len(items)))
    answering.order(items=items, order=order, label="Your order", fixed=False, take=draft.take, key="lesson_order")
    return order


def _number(question: Question, draft: _Draft) -> float | None:
    """A slider that nobody has moved is no answer: its middle would count as one."""
    scale = 100.0 if question.unit == "%" else 1.0
    low, high, step = question.low * scale, question.high * scale, question.step * scale

    def within(value: float) -> float:
        return min(max(value / scale, question.low), question.high)

    middle = low + round((high - low) / 2 / step) * step
    begun = middle if draft.value is None else draft.value * scale
    tie = Tie(
        "lesson_number",
        value=begun if draft.shown is None else draft.shown,
        take=lambda value: draft.take(within(value), shown=value),
    )
    unit = "%%" if question.unit == "%" else f" {question.unit.replace('%', '%%')}" if question.unit else ""
    digits = max(0, min(6, len(f"{step:.6f}".rstrip("0").partition(".")[2])))
    found = widgets.slider(
        "Your answer", low, high, tie, step=step, format=f"%.{digits}f{unit}", label_visibility="collapsed"
    )
    if draft.value is None and found == begun:
        if not room.leads():
            st.caption("Move the slider to answer.")
        return None
    return within(found)


def _token(entered: Entered, draft: _Draft) -> int | None:
    scene = _scene(entered)
    labels = scene.tokenizer.labels(scene.read[:MOST_TOKENS])
    return widgets.pills_or_none(
        "Choose a token; the small number is its place.",
        range(len(labels)),
        draft.tie("token"),
        lambda place: f"{plain(labels[place])}{str(place).translate(SUBSCRIPTS)}",
    )


def _cell(question: Question, entered: Entered, draft: _Draft) -> list[int] | None:
    picture = _picture(question, entered)
    if picture is None:
        return None
    begin, chosen = picture.begin, draft.value

    def take(cell: list[int]) -> None:
        draft.take([cell[0] + begin[0], cell[1] + begin[1]])

    answering.cells(
        **picture._asdict(),
        chosen=chosen and picture.within(chosen),
        right=None,
        fixed=False,
        take=take,
        key="lesson_cells",
    )
    return chosen


def _picture(question: Question, entered: Entered) -> cells.Picture | None:
    return cells.picture(question, entered.view.parameters if entered.view else {})


def _scene(entered: Entered) -> Scene:
    return Scene.of(entered.view.parameters if entered.view else {}, {})


def _said(entered: Entered, values: Values) -> Said:
    return Said(entered.step.question, entered.view.parameters if entered.view else {}, values)


def _it_is(question: Question, entered: Entered, values: Values, correct: Answer) -> str:
    """What is right, as the beginning of a sentence."""
    said = _said(entered, values).markdown(correct)
    return f"In fact {said}" if question.kind == "cell" else f"It is {said}"


class _Draft:
    """What is put in and not yet answered; another question has another one."""

    def __init__(self, entered: Entered, question: Question, given: Given | None) -> None:
        self.question = question
        self.key = (entered.place, given is None)
        held = st.session_state.get("lesson_draft", (None, None, None))
        begun = None if given is None else given.first
        is_held = held[0] == self.key
        self.value: Answer | None = held[1] if is_held else begun
        self.shown: float | None = held[2] if is_held else None
        """As a slider has it: told a number that differs by a hair, it is drawn anew, and loses the focus."""

    def take(self, value: Any, *, shown: float | None = None) -> None:
        """Hold what the visitor has put in."""
        if fits(self.question, value):
            st.session_state["lesson_draft"] = (self.key, value, shown)

    def tie(self, name: str) -> Tie:
        """What ties a widget to the draft; −1 stands for nothing yet."""
        return Tie(f"lesson_{name}", value=-1 if self.value is None else self.value, take=self.take)
