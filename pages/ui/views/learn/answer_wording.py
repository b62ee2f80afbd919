"""Formats answers as text, for the page, votes, handouts and files."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pages.ui.lessons.expressions import ExpressionError, in_words
from pages.ui.lessons.lesson import Lesson
from pages.ui.lessons.measure_setup import Setup
from pages.ui.lessons.measured_values import MeasuredValues
from pages.ui.lessons.questions import Answer, Question, answer_of, right_of
from pages.ui.markdown import code, passage, plain, unmarked
from pages.ui.session.lesson_answers import StepId
from pages.ui.views.learn import attention_cells, visitor_lessons


@dataclass(frozen=True)
class Wording:
    """What puts the answers to one question into words. link: the parameters of the view that it is asked of."""

    question: Question
    link: Mapping[str, str]
    values: MeasuredValues

    @property
    def setup(self) -> Setup:
        """What it is asked of."""
        return Setup.of(self.link, {})

    @property
    def picture(self) -> attention_cells.Picture | None:
        """The head whose cells are asked for; None in a model without attention."""
        return attention_cells.picture(self.question, self.link)

    def question_text(self) -> str:
        """The question, as a text; as its file has it, where what it tells can't be measured."""
        try:
            return unmarked(self.question.text.filled(self.values, passage))
        except ExpressionError:
            return self.question.text.text

    def right(self) -> Any:
        """What is right, from `right_of`; None where that can't be measured."""
        try:
            return right_of(self.question, self.values)
        except ExpressionError:
            return None

    def correct(self) -> Answer | None:
        """An answer that is right; None where that can't be measured."""
        right = self.right()
        return None if right is None else answer_of(self.question, right)

    def markdown(self, answer: Answer) -> str:
        """An answer as it is said in a sentence. Raises ExpressionError where it names what can't be measured."""
        question = self.question
        match question.kind, answer:
            case "choose", int():
                return f"“{question.options[answer].filled(self.values, passage)}”"
            case "number", int() | float():
                shown = in_words(float(answer), "%" if question.unit == "%" else "", str)
                return shown if question.unit in ("", "%") else f"{shown} {plain(question.unit)}"
            case "order", list():
                texts = self.options()
                return " → ".join(plain(texts[number]) for number in answer)
            case "token", int():
                if answer < len(read := self.setup.read):
                    return f"{code(self.setup.label(read[answer]))} at position {answer}"
                return f"position {answer}"
            case "cell", [query, key]:
                return picture.in_words((query, key)) if (picture := self.picture) else f"query {query}, key {key}"
        return str(answer)  # a browser or a link may have sent anything

    def text(self, answer: Answer) -> str:
        """The same without Markdown; what can't be put into words stays a number."""
        try:
            return unmarked(self.markdown(answer))
        except (ExpressionError, IndexError):
            return str(answer)

    def bare(self, answer: Answer) -> str:
        """The same without quotation marks, as a table has it."""
        return self.text(answer).strip("“”")

    def options(self) -> list[str]:
        return [option.filled(self.values, str).replace("`", "") for option in self.question.options]


def wording_of(lesson: Lesson, number: int) -> Wording | None:
    """Of a step by its number; None where it asks nothing."""
    if number >= len(lesson.steps) or not (question := lesson.steps[number].question):
        return None
    view = lesson.view_at(number)
    return Wording(question, view.parameters if view else {}, MeasuredValues(lesson.steps[number].measures))


def wording_at(step_id: StepId) -> tuple[list[str], Wording] | None:
    """Lesson's title, step's number and title, and its answers in words; None for a step that there isn't."""
    lesson = visitor_lessons.lesson(step_id.lesson)
    if lesson is None or (wording := wording_of(lesson, step_id.step)) is None:
        return None
    return [lesson.title, str(step_id.step + 1), lesson.steps[step_id.step].title], wording
