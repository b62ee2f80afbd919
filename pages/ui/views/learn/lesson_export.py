"""Exports a lesson as one HTML file that works without a server."""

from pages.ui.frame import widgets
from pages.ui.lessons.lesson import Lesson
from pages.ui.lessons.own_lessons import file_stem
from pages.ui.session.visitor_share import visitor_share
from pages.ui.views.learn import site_lessons
from transformer.frontend.html_page import in_words
from transformer.jobs import FairThreads

_one_at_a_time = FairThreads(1, "lesson file")
"""A class that presses at once doesn't need thirty files in memory."""
HELP = (
    "An HTML file that works offline: texts, questions with their answers, and live views with their models. What is "
    "answered in it can be saved as a table."
)


def offer(lesson: Lesson, key: str) -> None:
    """The button that downloads a lesson, which is made at the click."""
    share = visitor_share()
    widgets.download_button(
        f"This lesson as one file ({in_words(site_lessons.file_bytes(lesson))})",
        lambda: _one_at_a_time.submit(share, lambda: site_lessons.lesson_file(lesson).encode()).result(),
        f"{file_stem(lesson)}-lesson.html",
        "text/html",
        key=key,
        icon="html",
        type="tertiary",
        help=site_lessons.too_large(lesson) or HELP,
    )
