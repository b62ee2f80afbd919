"""Offers a lesson on paper and as a file. What is right is measured when they are made, as it is in the lesson."""

from pages.ui.frame import widgets
from pages.ui.lessons.lesson import Lesson
from pages.ui.lessons.own_lessons import file_stem
from pages.ui.session.visitor_share import visitor_share
from pages.ui.views.learn.site_lessons import file_bytes, handout, lesson_file, too_large
from transformer.frontend.html_page import in_words
from transformer.jobs import FairThreads

_one_at_a_time = FairThreads(1, "lesson file")
"""Thirty students may press at once; only one file is made at a time, to save memory."""
PAPER = "To print: a part for each question, to be folded, and the answers on pages of their own."
FILE = (
    "An HTML file that works offline: texts, questions with their answers, and live views with their models. What is "
    "answered in it can be saved as a table."
)


def offer(lesson: Lesson, key: str = "save_handout") -> None:
    """Show the buttons that download a lesson as a handout and as one file. Each is made at the click."""
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
