"""Offers a lesson on paper and as a file. What is right is measured when they are made, as it is in the lesson."""

from typing import Any

from pages.ui.frame import widgets
from pages.ui.lessons.expressions import ExpressionError
from pages.ui.lessons.lesson import Lesson, View
from pages.ui.lessons.measure_setup import Setup
from pages.ui.lessons.own_lessons import file_stem
from pages.ui.printable_html import STYLE
from pages.ui.views.learn import lesson_export
from pages.ui.views.learn.document import lesson_document
from pages.ui.views.learn.still_view import attention_picture
from transformer.frontend.site import handout_page


def offer(lesson: Lesson, key: str = "save_handout") -> None:
    """The buttons that download a lesson as a handout, and as a file of its own, which are made at the click."""
    widgets.download_button(
        "Download the handout",
        lambda: handout(lesson).encode(),
        f"{file_stem(lesson)}.html",
        "text/html",
        key=key,
        icon="print",
        type="tertiary",
        help="To print: a part for each question, to be folded, and the answers on pages of their own.",
    )
    lesson_export.offer(lesson, f"{key}_live")


def handout(lesson: Lesson) -> str:
    """A lesson as one HTML page, which needs no network and prints well."""
    return handout_page(lesson.title, handout_document(lesson), STYLE)


def handout_document(lesson: Lesson) -> dict[str, Any]:
    """What a handout is drawn of."""
    return lesson_document(lesson, _view)


def _view(view: View) -> dict[str, Any]:
    """With the head that a view of the page Attention shows, if it is small enough."""
    shown = {"page": view.page, "opened": view.opened, "picture": ""}
    link = view.parameters
    if view.page != "Attention" or not {"layer", "head"} <= link.keys():
        return shown
    try:
        picture = attention_picture(link, Setup.of(link, {}), int(link["layer"]), int(link["head"]))
    except (ExpressionError, ValueError, IndexError):
        return shown  # a page shows what is wrong with such a view; on paper it is left out
    return shown | {"picture": picture}
