"""Names and reads lessons that visitors upload. Who may open one, `views/learn/visitor_lessons` says.

A lesson's name is a digest of its text: equal texts are one lesson, and a changed text is another, with other votes.
"""

import re
from functools import lru_cache
from hashlib import blake2b

from pages.ui.lessons import lesson_files
from pages.ui.lessons.lesson import Lesson, LessonError, read_lesson
from transformer.api.file_names import slug

PREFIX = "own-lesson-"
NAME = re.compile(f"{PREFIX}[0-9a-f]{{32}}")
REMEMBERED = 64
"""Lessons that are read once for all who open them."""


def is_own(name: str) -> bool:
    """Whether a lesson's name is that of an uploaded one."""
    return NAME.fullmatch(name) is not None


def name_of(text: str) -> str:
    """The name of an uploaded lesson."""
    return f"{PREFIX}{blake2b(text.encode(), digest_size=16).hexdigest()}"


def file_stem(lesson: Lesson) -> str:
    """What a file that is made of a lesson is called: an uploaded one's by its title, others' by their names."""
    return slug(lesson.title) if is_own(lesson.name) else lesson.name


def own_lesson(text: str) -> Lesson | None:
    """The lesson of an uploaded text, which was checked before; None for a text that is none."""
    read = _read(text) if text else None
    return read and lesson_files.without_missing_models(read)


@lru_cache(maxsize=REMEMBERED)
def _read(text: str) -> Lesson | None:
    try:
        return read_lesson(name_of(text), text)
    except LessonError:
        return None
