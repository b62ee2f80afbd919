"""Formats answers as text, for the page, votes, handouts and files."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pages.ui.lessons.expressions import ExpressionError
from pages.ui.lessons.lesson import Lesson
from pages.ui.lessons.measured_values import MeasuredValues
from pages.ui.lessons.questions import Question
from pages.ui.markdown import passage, unmarked
from pages.ui.session.lesson_answers import Answer, StepId
from pages.ui.views.learn import visitor_lessons


@dataclass(frozen=True)
class Wording:
    """Words the answers to one question. link: the parameters of the view that the question is about."""

    question: Question
    link: Mapping[str, str]
    values: MeasuredValues

    def question_text(self) -> str:
        """The question's text, or its source where a number in it can't be measured."""
        try:
            return unmarked(self.question.text.filled(self.values, passage))
        except ExpressionError:
            return self.question.text.text

    def right(self) -> Any:
        """The right answer, as `Question.right_of` gives it; None where it can't be measured."""
        try:
            return self.question.right_of(self.values)
        except ExpressionError:
            return None

    def correct(self) -> Answer | None:
        """One right answer; None where it can't be measured."""
        right = self.right()
        return None if right is None else self.question.an_answer(right)

    def text(self, answer: Answer) -> str:
        """An answer for use in a sentence; a number stays one where there are no words for it."""
        try:
            fits = self.question.fits(answer)  # which a vote in another version of the lesson needn't
            return unmarked(self.question.in_words(answer, self.link, self.values)) if fits else str(answer)
        except ExpressionError:
            return str(answer)

    def bare(self, answer: Answer) -> str:
        """The answer without quotation marks, for a table."""
        return self.text(answer).strip("“”")


def wording_of(lesson: Lesson, number: int) -> Wording | None:
    """The wording of a step's question; None where the step asks nothing."""
    if number >= len(lesson.steps) or not (question := lesson.steps[number].question):
        return None
    view = lesson.view_at(number)
    return Wording(question, view.parameters if view else {}, MeasuredValues(lesson.steps[number].measures))


def wording_at(step_id: StepId) -> tuple[list[str], Wording] | None:
    """The lesson's title, the step's number and title, and its wording; None if there is no such step."""
    lesson = visitor_lessons.lesson(step_id.lesson)
    if lesson is None or (wording := wording_of(lesson, step_id.step)) is None:
        return None
    return [lesson.title, str(step_id.step + 1), lesson.steps[step_id.step].title], wording
