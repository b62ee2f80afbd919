"""Formats answers as text, for the page, votes, handouts and files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pages.ui.lessons import lesson_files
from pages.ui.lessons.expressions import ExpressionError, in_words
from pages.ui.lessons.lesson import Lesson
from pages.ui.lessons.measure_setup import Setup
from pages.ui.lessons.measured_values import MeasuredValues
from pages.ui.lessons.questions import Answer, Question, verdict
from pages.ui.markdown import code, passage, plain, unmarked
from pages.ui.models.lesson_answers import StepId
from pages.ui.views.learn import attention_cells


@dataclass(frozen=True)
class Wording:
    """What puts the answers to one question into words. link: the parameters of the view that it is asked of."""

    question: Question
    link: Mapping[str, str]
    values: MeasuredValues

    def asked(self) -> str:
        """The question, as a text; as its file has it, where what it tells can't be measured."""
        try:
            return unmarked(self.question.text.filled(self.values, passage))
        except ExpressionError:
            return self.question.text.text

    def correct(self) -> Answer | None:
        """An answer that is right; None where that can't be measured."""
        some: Answer = list(range(len(self.question.options))) if self.question.kind == "order" else 0
        try:
            return verdict(self.question, self.values, some).correct
        except ExpressionError:
            return None

    def markdown(self, answer: Answer) -> str:
        """An answer as it is said in a sentence. Raises ExpressionError where it names what can't be measured."""
        question = self.question
        match question.kind:
            case "choose":
                return f"“{question.options[answer].filled(self.values, passage)}”"
            case "number":
                shown = in_words(float(answer), "%" if question.unit == "%" else "", str)
                return shown if question.unit in ("", "%") else f"{shown} {plain(question.unit)}"
            case "order":
                texts = self.options()
                return " → ".join(plain(texts[number]) for number in answer)
            case "token":
                setup = Setup.of(self.link, {})
                if answer < len(setup.read):
                    return f"{code(setup.label(setup.read[answer]))} at position {answer}"
                return f"position {answer}"
        picture = attention_cells.picture(question, self.link)
        return picture.said(answer) if picture else f"query {answer[0]}, key {answer[1]}"

    def text(self, answer: Answer) -> str:
        """The same without Markdown; what can't be put into words stays a number."""
        try:
            return unmarked(self.markdown(answer))
        except (ExpressionError, IndexError, TypeError):  # a browser or a link may have sent anything
            return str(answer)

    def bare(self, answer: Answer) -> str:
        """The same without quotation marks, as a table has it."""
        return self.text(answer).strip("“”")

    def options(self) -> list[str]:
        """The options as texts."""
        return [option.filled(self.values, str).replace("`", "") for option in self.question.options]


def wording_of(lesson: Lesson, number: int) -> Wording | None:
    """Of a step by its number; None where it asks nothing."""
    if number >= len(lesson.steps) or not (question := lesson.steps[number].question):
        return None
    view = lesson.view_at(number)
    return Wording(question, view.parameters if view else {}, MeasuredValues(lesson.steps[number].measures))


def wording_at(place: StepId) -> tuple[list[str], Wording] | None:
    """Lesson's title, step's number and title, and its answers in words; None for a step that there isn't."""
    lesson = lesson_files.lesson(place.lesson)
    if lesson is None or (said := wording_of(lesson, place.step)) is None:
        return None
    return [lesson.title, str(place.step + 1), lesson.steps[place.step].title], said
