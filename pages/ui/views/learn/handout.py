"""Offers a lesson on paper and as a file. What is right is measured when they are made, as it is in the lesson."""

from typing import Any

from pages.ui.frame import widgets
from pages.ui.lessons.expressions import ExpressionError
from pages.ui.lessons.lesson import Lesson, View
from pages.ui.lessons.measure_setup import Setup
from pages.ui.lessons.own_lessons import file_stem
from pages.ui.printable_html import STYLE
from pages.ui.session.visitor_share import visitor_share
from pages.ui.views.learn.document import lesson_document
from pages.ui.views.learn.site_lessons import file_bytes, lesson_file, too_large
from pages.ui.views.learn.still_view import attention_picture
from transformer.frontend.html_page import in_words
from transformer.frontend.site import handout_page
from transformer.jobs import FairThreads

_one_at_a_time = FairThreads(1, "lesson file")
"""A class that presses at once doesn't need thirty files in memory."""
PAPER = "To print: a part for each question, to be folded, and the answers on pages of their own."
FILE = (
    "An HTML file that works offline: texts, questions with their answers, and live views with their models. What is "
    "answered in it can be saved as a table."
)


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
        help=PAPER,
    )
    share = visitor_share()
    widgets.download_button(
        f"This lesson as one file ({in_words(file_bytes(lesson))})",
        lambda: _one_at_a_time.submit(share, lambda: lesson_file(lesson).encode()).result(),
        f"{file_stem(lesson)}-lesson.html",
        "text/html",
        key=f"{key}_live",
        icon="html",
        type="tertiary",
        help=too_large(lesson) or FILE,
    )


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
