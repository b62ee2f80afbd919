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
    """What puts the answers to one question into words. link: the parameters of the view that it is asked of."""

    question: Question
    link: Mapping[str, str]
    values: MeasuredValues

    def question_text(self) -> str:
        """The question, as a text; as its file has it, where what it tells can't be measured."""
        try:
            return unmarked(self.question.text.filled(self.values, passage))
        except ExpressionError:
            return self.question.text.text

    def right(self) -> Any:
        """What is right, as `Question.right_of` gives it; None where that can't be measured."""
        try:
            return self.question.right_of(self.values)
        except ExpressionError:
            return None

    def correct(self) -> Answer | None:
        """An answer that is right; None where that can't be measured."""
        right = self.right()
        return None if right is None else self.question.an_answer(right)

    def text(self, answer: Answer) -> str:
        """An answer as it is said in a sentence; what can't be put into words stays a number."""
        try:
            fits = self.question.fits(answer)  # which a vote in another version of the lesson needn't
            return unmarked(self.question.in_words(answer, self.link, self.values)) if fits else str(answer)
        except ExpressionError:
            return str(answer)

    def bare(self, answer: Answer) -> str:
        """The same without quotation marks, as a table has it."""
        return self.text(answer).strip("“”")


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
