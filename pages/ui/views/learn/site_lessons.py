"""Makes of the lessons what a static site shows: HTML, and what is right, measured when the site is written."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

from pages.ui.lessons import lesson_files
from pages.ui.lessons.expressions import ExpressionError, Words
from pages.ui.lessons.lesson import Lesson
from pages.ui.lessons.measured_values import MeasuredValues
from pages.ui.markdown import passage
from pages.ui.models import library
from pages.ui.printable_html import as_html, inline
from pages.ui.views.learn.answer_wording import Wording, wording_of
from transformer import load_checkpoint
from transformer.checkpoints.folder import list_checkpoints
from transformer.commands import SHIPPED
from transformer.frontend.live_model import weights_of
from transformer.frontend.site import described, lesson_page, models_of, write_site

LATER = "<p>This is measured on a model that is trained in the app.</p>"


def lessons(names: set[str] | None = None) -> list[dict[str, Any]]:
    """All lessons that shipped models can be asked for, or those of these names. ValueError for an unknown name."""
    there = [lesson for lesson in lesson_files.available_lessons() if not lesson.needs]
    if names and (unknown := sorted(names - {lesson.name for lesson in there})):
        listed = ", ".join(lesson.name for lesson in there)
        raise ValueError(f"There is no lesson {unknown[0]!r} for a file; there are {listed}.")
    return [as_data(lesson) for lesson in there if not names or lesson.name in names]


def write_whole_site(folder: Path) -> tuple[int, int]:
    """Write the site with all shipped models and the course; returns how many lessons, and the site's bytes."""
    course = lessons()
    names = [entry.name for entry in list_checkpoints(SHIPPED) if entry.problem is None]
    read = [(SHIPPED / name, load_checkpoint(SHIPPED / name)) for name in names]
    return len(course), write_site(folder, [(path, each, each.card) for path, each in read], course)


def lesson_file(name: str) -> str:
    """A lesson as one HTML file. ValueError for one that isn't there or would be too large."""
    [lesson] = lessons({name})
    models = {}
    for model in models_of(lesson):
        checkpoint = load_checkpoint(SHIPPED / model)
        about = described(SHIPPED / model, checkpoint, checkpoint.card)
        models[model] = (about, weights_of(checkpoint.model))
    return lesson_page(lesson, models)


def as_data(lesson: Lesson) -> dict[str, Any]:
    """One lesson, as transformer/frontend/site/learn.js reads it."""
    steps = []
    for number, step in enumerate(lesson.steps):
        values = MeasuredValues(step.measures)
        wording = wording_of(lesson, number)
        view = step.view
        steps.append(
            {
                "title": inline(step.title),
                "words": _words(step.words, values),
                "question": _question(wording) if wording else None,
                "reveal": _words(step.reveal, values),
                "toTry": _words(step.to_try, values),
                "view": view and {"page": view.page, "link": view.link.removeprefix("?"), "opened": view.opened},
            }
        )
    return {
        "name": lesson.name,
        "title": inline(lesson.title),
        "asks": inline(lesson.asks),
        "minutes": lesson.minutes,
        "aims": [inline(aim) for aim in lesson.aims],
        "steps": steps,
    }


def _words(words: Words | None, values: MeasuredValues) -> str:
    if words is None:
        return ""
    try:
        return as_html(words.filled(values, passage))
    except ExpressionError:
        return LATER


def _question(wording: Wording) -> dict[str, Any] | None:
    """None where what is right can't be measured yet."""
    question, values = wording.question, wording.values
    correct = wording.correct()
    if correct is None:
        return None
    options: Any = [inline(option.filled(values, passage)) for option in question.options]
    right: Any = correct
    match question.kind:
        case "token":
            labels = library.tokenizer(wording.setup.name).labels(wording.setup.read)
            options = [f"<code>{escape(label)}</code>" for label in labels]
            positions = question.right[0].value(values)
            right = positions if isinstance(positions, list) else [positions]
        case "cell" if picture := wording.picture:
            shown = zip(("query", "key"), (picture.queries, picture.keys), picture.begin, strict=True)
            options = {
                name: [[f"{begin + at}: {label}", begin + at] for at, label in enumerate(labels)]
                for name, labels, begin in shown
            }
        case "order" if isinstance(correct, list):
            right = [correct.index(option) for option in range(len(options))]
            measured = question.right[0].value(values) if question.right else None
            if isinstance(measured, list) and not all(isinstance(value, str) for value in measured):
                sign = -1 if question.descending else 1
                right = [sign * value for value in measured]  # of equal ones either may come first
    return {
        "kind": question.kind,
        "text": inline(question.text.filled(values, passage)),
        "options": options,
        "right": right,
        "correct": inline(wording.markdown(correct)),
        **{name: getattr(question, name) for name in ("low", "high", "step", "near", "unit")},
    }
