"""Makes the document of a lesson: its words as HTML, its questions, and what is right, measured as it is made.

It is JSON that `transformer/frontend/lessons/` draws: in the app, on a static site, and in a file of one lesson.
"""

from collections.abc import Callable
from typing import Any

from pages.ui.lessons.expressions import ExpressionError, Words
from pages.ui.lessons.lesson import Lesson, View
from pages.ui.lessons.measure_setup import NotMeasurableYet
from pages.ui.lessons.measured_values import MeasuredValues, failed_claims
from pages.ui.markdown import passage, plain
from pages.ui.printable_html import as_html, inline
from pages.ui.views.learn.answer_wording import Wording, wording_of


def lesson_document(lesson: Lesson, view: Callable[[View], dict[str, Any]]) -> dict[str, Any]:
    """Make a whole lesson's document. view: makes the document of a step's view."""
    steps = [
        step_document(lesson, number) | {"view": step.view and view(step.view)}
        for number, step in enumerate(lesson.steps)
    ]
    return {
        "name": lesson.name,
        "title": inline(lesson.title),
        "asks": inline(lesson.asks),
        "minutes": lesson.minutes,
        "aims": [inline(aim) for aim in lesson.aims],
        "steps": steps,
    }


def step_document(lesson: Lesson, number: int) -> dict[str, Any]:
    """Make one step's document, without its view. `problems` lists the claims that fail on the models here, as HTML."""
    step = lesson.steps[number]
    values = MeasuredValues(step.measures)
    wording = wording_of(lesson, number)
    return {
        "title": inline(step.title),
        "words": _words(step.words, values),
        "question": wording and _question(wording),
        "reveal": _words(step.reveal, values),
        "toTry": _words(step.to_try, values),
        "problems": inline(plain("; ".join(failed_claims(step, values)))),
    }


def without_answer(step: dict[str, Any]) -> dict[str, Any]:
    """Remove from a step's document what a teacher reveals later."""
    question = step["question"] and step["question"] | {"right": None, "later": ""}
    return step | {"question": question, "reveal": "", "toTry": "", "problems": ""}


def _words(words: Words | None, values: MeasuredValues) -> str:
    """Where words depend on a training that hasn't run, keep the paragraphs that don't."""
    if words is None:
        return ""
    try:
        return as_html(words.filled(values, passage))
    except NotMeasurableYet:
        parts = words.text.split("\n\n")
        return "\n".join(_words(Words.read(part), values) for part in parts) if len(parts) > 1 else ""
    except ExpressionError as error:
        return as_html(plain(f"This text refers to a number that is missing: {error}."))


def _question(wording: Wording) -> dict[str, Any]:
    """Make one question's document, as `lessons/questions.js` describes it. `right`: None if unknown."""
    question, values = wording.question, wording.values
    asked: dict[str, Any] = {"kind": question.kind}
    asked |= {"text": "", "options": [], "picture": None, "right": None, "later": "", "isComing": False, "problem": ""}
    try:
        asked["text"] = inline(question.text.filled(values, passage))
        asked["options"] = [inline(option.filled(values, passage)) for option in question.options]
        asked |= question.drawn(wording.link)
    except ExpressionError as error:
        return asked | {"problem": f"This question can't be asked here: {error}."}
    try:
        asked["right"] = question.right_of(values)
    except NotMeasurableYet as error:
        asked |= {"later": f"The correct one isn't known yet: {error}.", "isComing": True}
    except ExpressionError as error:
        asked["later"] = f"The correct one can't be computed: {error}."
    return asked
