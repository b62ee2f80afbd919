"""Makes what a static site, a file of one lesson and a handout show of lessons, and measures what is right."""

import contextlib
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

from pages.ui.host.page_state import PageState
from pages.ui.lessons import lesson_files
from pages.ui.lessons.expressions import ExpressionError
from pages.ui.lessons.lesson import Lesson, View
from pages.ui.lessons.measure_setup import DEFAULT_MODEL, Setup
from pages.ui.lessons.recorded_training import instead_of_a_visitor_s
from pages.ui.models import library
from pages.ui.printable_html import STYLE, inline
from pages.ui.views.learn.document import lesson_document
from pages.ui.views.learn.still_view import attention_picture, still_view
from transformer import load_checkpoint
from transformer.checkpoints.folder import list_checkpoints
from transformer.commands import SHIPPED
from transformer.frontend.html_page import in_words
from transformer.frontend.site import MOST_OF_FILE, PAGES, WITHOUT_MODEL, handout_page, lesson_page, write_site
from transformer.training.presets import LADDERS

OF_PAGE, OF_MODEL, PICTURE = 1_060_000, 60_000, 20_000
"""Bytes, about: of a file's scripts, styles and texts; of what is said of a model beside its weights; of a picture."""
NOTHING_TRAINED = (
    "<p>Nothing can be trained on this page. Say what you expect, and see what came of trainings that were recorded; "
    "train your own in the app.</p>"
)


def write_whole_site(folder: Path) -> tuple[int, int]:
    """Write the site with all shipped models and the course; returns how many lessons can be taken there, and the
    site's bytes."""
    names = [entry.name for entry in list_checkpoints(SHIPPED) if entry.problem is None]
    course = [on_site(lesson, names) for lesson in lesson_files.all_lessons() if isinstance(lesson, Lesson)]
    size = write_site(folder, {name: load_checkpoint(SHIPPED / name) for name in names}, course)
    return sum(bool(lesson["steps"]) for lesson in course), size


def on_site(lesson: Lesson, models: Collection[str]) -> dict[str, Any]:
    """A lesson on a site of some models: of another one, which is too large for a site, with still pictures; and where
    the one that it needs isn't here, nothing of it can be measured: without its steps."""
    if missing := lesson_files.missing_model(lesson):
        note = f"It needs the model “{missing}”, which isn't on this site. Take it in the app. {lesson.get}"
        return site_document(replace(lesson, steps=())) | {"note": inline(note.strip())}
    data = site_document(lesson, models=models)
    if lesson.needs and lesson.needs not in models:
        data["note"] = (
            f"This lesson shows pictures: its model “{lesson.needs}” isn't on this site. In the app it is live."
        )
    return data


def lesson_named(name: str) -> Lesson:
    """Find a lesson that can be taken here. Raises: ValueError for another name."""
    there = {lesson.name: lesson for lesson in lesson_files.available_lessons()}
    if name not in there:
        raise ValueError(f"There is no lesson {name!r} for a file; there are {', '.join(there)}.")
    return there[name]


def lesson_file(lesson: Lesson) -> str:
    """A lesson as one HTML file: live with its models, or, where these would make it too large, with still pictures."""
    if too_large(lesson) is None:
        data = site_document(lesson)
        views = [step.view for step in lesson.steps if step.view and is_live(step.view)]
        models = {name: library.model(name) for name in sorted({name for view in views for name in _models_of(view)})}
        with contextlib.suppress(ValueError):  # its weights may not be of half the precision
            return lesson_page(data, models)
    return lesson_page(site_document(lesson, is_live=False) | {"note": too_large(lesson) or ""}, {})


def file_bytes(lesson: Lesson) -> int:
    """Estimate the size of `lesson_file` without making it."""
    if too_large(lesson) is None:
        return OF_PAGE + _models_bytes(lesson)
    return OF_PAGE + sum(PICTURE for step in lesson.steps if step.view)


def too_large(lesson: Lesson) -> str | None:
    """Say why a file can't hold a lesson's models; None if it can."""
    size = OF_PAGE + _models_bytes(lesson)
    if size <= MOST_OF_FILE:
        return None
    return (
        f"With its models this lesson would take {in_words(size)}, and a file should take at most "
        f"{in_words(MOST_OF_FILE)}: it shows pictures, and computes nothing new."
    )


def _models_bytes(lesson: Lesson) -> int:
    """Estimate the bytes of the models in a lesson's live views."""
    shown = {name for step in lesson.steps if step.view and is_live(step.view) for name in _models_of(step.view)}
    cards = [library.usable()[name].card for name in shown]
    return sum(OF_MODEL + card.parameters * 2 * 4 // 3 for card in cards)


def _models_of(view: View) -> set[str]:
    """The models that a view shows."""
    if view.page in WITHOUT_MODEL:
        return set()
    link, names = PageState.of(view.parameters), {view.parameters.get("model", DEFAULT_MODEL)}
    if view.page == "What if" and link.question == "ladder":
        names |= library.rungs(LADDERS[link.ladder]).keys()
    if view.page == "What if" and link.question == "comparison" and link.other_model:
        names.add(link.other_model)
    return names


def is_live(view: View) -> bool:
    """Whether a page without a server can compute this view; else it shows a picture."""
    return view.page in PAGES and _models_of(view) <= library.usable().keys()


def site_document(lesson: Lesson, *, is_live: bool = True, models: Collection[str] | None = None) -> dict[str, Any]:
    """The document of a lesson for a page without a server. is_live: whether its views may compute. models: those that
    are there for it; None for all."""
    with instead_of_a_visitor_s():
        document = lesson_document(
            lesson, lambda view: _view(view, is_live and (models is None or _models_of(view) <= {*models}))
        )
    for step in document["steps"]:
        if step["view"] and step["view"]["page"] == "Train":
            step["words"] += NOTHING_TRAINED
    return document


def _view(view: View, may_be_live: bool) -> dict[str, Any]:
    """picture: of a view that isn't computed, as HTML."""
    picture = None if view.page in WITHOUT_MODEL or (may_be_live and is_live(view)) else still_view(view)
    opened = "after" if view.page == "Train" else view.opened  # what came of a training tells the answer
    link = view.link.removeprefix("?")
    shown = {"page": view.page, "link": link, "opened": opened}
    return shown | {"picture": picture, "onPaper": _printed(view)}


def handout(lesson: Lesson) -> str:
    """A lesson as one HTML page, which needs no network and prints well."""
    return handout_page(lesson.title, handout_document(lesson), STYLE)


def handout_document(lesson: Lesson) -> dict[str, Any]:
    """Make the document that `handout.js` prints."""
    return lesson_document(lesson, _on_paper)


def _on_paper(view: View) -> dict[str, Any]:
    return {"page": view.page, "opened": view.opened, "onPaper": _printed(view)}


def _printed(view: View) -> str:
    """Draw the head of a view of the page Attention, if it is small enough."""
    link = view.parameters
    if view.page == "Attention" and {"layer", "head"} <= link.keys():
        with contextlib.suppress(
            ExpressionError, ValueError, IndexError
        ):  # a page shows what is wrong with such a view
            return attention_picture(link, Setup.of(link, {}), int(link["layer"]), int(link["head"]))
    return ""
