"""Makes of lessons what a static site and a file of one lesson show: HTML, and what is right, measured on making it."""

import contextlib
from collections.abc import Callable, Collection
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

from pages.ui.frame import url_parameters as links
from pages.ui.lessons import lesson_files
from pages.ui.lessons.expressions import ExpressionError, Words
from pages.ui.lessons.lesson import Lesson, View
from pages.ui.lessons.measure_setup import DEFAULT_MODEL
from pages.ui.lessons.measured_values import MeasuredValues
from pages.ui.lessons.recorded_training import instead_of_a_visitor_s
from pages.ui.markdown import passage
from pages.ui.models import library
from pages.ui.printable_html import as_html, inline
from pages.ui.views.learn.answer_wording import Wording, wording_of
from pages.ui.views.learn.still_view import effects_map, still_view
from transformer import load_checkpoint
from transformer.checkpoints.folder import list_checkpoints
from transformer.commands import SHIPPED
from transformer.frontend.html_page import in_words
from transformer.frontend.live_model import weights_of
from transformer.frontend.site import MOST_OF_FILE, PAGES, WITHOUT_MODEL, described, lesson_page, models_of, write_site

OF_PAGE, OF_MODEL, PICTURE = 690_000, 60_000, 20_000
"""Bytes, about: of a file's scripts, styles and texts; of what is said of a model beside its weights; of a picture."""
NOTHING_TRAINED = (
    "<p>Nothing can be trained on this page. Say what you expect, and see what came of trainings that were recorded; "
    "train your own in the app.</p>"
)
LATER = "<p>This is measured on a model that is trained in the app.</p>"


def write_whole_site(folder: Path) -> tuple[int, int]:
    """Write the site with all shipped models and the course; returns how many lessons can be taken there, and the
    site's bytes."""
    names = [entry.name for entry in list_checkpoints(SHIPPED) if entry.problem is None]
    course = [on_site(lesson, names) for lesson in lesson_files.all_lessons() if isinstance(lesson, Lesson)]
    read = [(SHIPPED / name, load_checkpoint(SHIPPED / name)) for name in names]
    size = write_site(folder, [(path, each, each.card) for path, each in read], course)
    return sum(bool(lesson["steps"]) for lesson in course), size


def on_site(lesson: Lesson, models: Collection[str]) -> dict[str, Any]:
    """A lesson on a site of some models: of another one, which is too large for a site, with still pictures; and where
    the one that it needs isn't here, nothing of it can be measured: without its steps."""
    if missing := lesson_files.missing_model(lesson):
        note = f"It needs the model “{missing}”, which isn't on this site. Take it in the app. {lesson.get}"
        return as_data(replace(lesson, steps=())) | {"note": inline(note.strip())}
    data = as_data(lesson, models=models)
    if lesson.needs and lesson.needs not in models:
        data["note"] = (
            f"This lesson shows pictures: its model “{lesson.needs}” isn't on this site. In the app it is live."
        )
    return data


def lesson_named(name: str) -> Lesson:
    """A lesson that can be taken here. Raises: ValueError for another name."""
    there = {lesson.name: lesson for lesson in lesson_files.available_lessons()}
    if name not in there:
        raise ValueError(f"There is no lesson {name!r} for a file; there are {', '.join(there)}.")
    return there[name]


def lesson_file(lesson: Lesson) -> str:
    """A lesson as one HTML file: live with its models, or, where these would make it too large, with still pictures."""
    if too_large(lesson) is None:
        data = as_data(lesson)
        models = {name: library.model(name) for name in models_of(data)}
        held = {name: (described(each, each.card), weights_of(each.model)) for name, each in models.items()}
        with contextlib.suppress(ValueError):  # its weights may not be of half the precision
            return lesson_page(data, held)
    return lesson_page(as_data(lesson, is_live=False) | {"note": too_large(lesson) or ""}, {})


def file_bytes(lesson: Lesson) -> int:
    """What `lesson_file` takes, about, without making it."""
    if too_large(lesson) is None:
        return OF_PAGE + _models_bytes(lesson)
    return OF_PAGE + sum(PICTURE for step in lesson.steps if step.view)


def too_large(lesson: Lesson) -> str | None:
    """Why a file can't hold a lesson's models; None where it can."""
    size = OF_PAGE + _models_bytes(lesson)
    if size <= MOST_OF_FILE:
        return None
    return (
        f"With its models this lesson would take {in_words(size)}, and a file should take at most "
        f"{in_words(MOST_OF_FILE)}: it shows pictures, and computes nothing new."
    )


def _models_bytes(lesson: Lesson) -> int:
    """Of the models that a lesson's live views show."""
    views = [step.view for step in lesson.steps if step.view and step.view.page not in WITHOUT_MODEL]
    shown = {_model_of(view) for view in views if is_live(view)}
    cards = [library.usable()[name].card for name in shown if name in library.usable()]
    return sum(OF_MODEL + card.parameters * 2 * 4 // 3 for card in cards)


def _model_of(view: View) -> str:
    return view.parameters.get("model", DEFAULT_MODEL)


def is_live(view: View) -> bool:
    """Whether a page without a server computes a view, and doesn't only show a picture of it."""
    if view.page in WITHOUT_MODEL:
        return True
    entry, link = library.usable().get(_model_of(view)), links.from_query(view.parameters)
    config = entry and entry.config
    if config is None:
        return False
    if view.page == "What if":
        is_compared = link.question == "comparison" and link.beside == "prompts"
        return config.is_causal and (link.question == "ablation" or is_compared)
    return config.architecture == "decoder-only" if view.page == "Masks" else view.page in PAGES


def as_data(lesson: Lesson, *, is_live: bool = True, models: Collection[str] | None = None) -> dict[str, Any]:
    """One lesson, as transformer/frontend/site/learn.js reads it. is_live: whether its views may compute. models: those
    that are there for it; None for all."""
    with instead_of_a_visitor_s():
        return _data(lesson, lambda view: is_live and (models is None or _model_of(view) in models))


def _data(lesson: Lesson, may_be_live: Callable[[View], bool]) -> dict[str, Any]:
    steps = []
    for number, step in enumerate(lesson.steps):
        values = MeasuredValues(step.measures)
        wording = wording_of(lesson, number)
        steps.append(
            {
                "title": inline(step.title),
                "words": _words(step.words, values) + (NOTHING_TRAINED if _trains(step.view) else ""),
                "question": _question(wording) if wording else None,
                "reveal": _words(step.reveal, values),
                "toTry": _words(step.to_try, values),
                "view": step.view and _view(step.view, may_be_live(step.view)),
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


def _view(view: View, may_be_live: bool) -> dict[str, Any]:
    """picture: of a view that isn't computed, as HTML. below: what a view that is computed has below it."""
    picture = None if may_be_live and is_live(view) else still_view(view)
    opened = "after" if _trains(view) else view.opened  # what came of a training tells the answer
    below = ""
    chosen = links.from_query(view.parameters)
    if picture is None and view.page == "What if" and chosen.question == "ablation" and not chosen.changes:
        below = effects_map(view)
    link = view.link.removeprefix("?")
    return {"page": view.page, "link": link, "opened": opened, "picture": picture, "below": below}


def _trains(view: View | None) -> bool:
    return view is not None and view.page == "Train"


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
