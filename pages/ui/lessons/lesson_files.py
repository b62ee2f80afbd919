"""Finds and reads the lessons in their folder, and says what is wrong with those that can't be used."""

import os
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from pages.ui.lessons.lesson import LONGEST_FILE, Lesson, LessonError, read_lesson
from pages.ui.models import library

FOLDER = Path(os.environ.get("HEADSUP_LESSONS") or Path(__file__).parent)
MAX_LESSONS = 100


@dataclass(frozen=True)
class Unreadable:
    """A lesson that can't be used, and why, in a sentence."""

    name: str
    problem: str


def all_lessons() -> list[Lesson | Unreadable]:
    """All lessons in the order of their files' names."""
    lessons = [_read(path, _stamp(path)) for path in _files()]
    return [without_missing_models(lesson) if isinstance(lesson, Lesson) else lesson for lesson in lessons]


def lesson(name: str) -> Lesson | None:
    """The lesson of this name, if there is one that can be used."""
    path = next((path for path in _files() if path.stem == name), None)
    read = path and _read(path, _stamp(path))
    return without_missing_models(read) if isinstance(read, Lesson) else None


def missing_model(lesson: Lesson) -> str:
    """The model that a lesson needs and that isn't here; "" if nothing is missing."""
    return lesson.needs if lesson.needs and lesson.needs not in library.usable() else ""


def available_lessons() -> list[Lesson]:
    """The lessons of the course: those that can be taken."""
    return [lesson for lesson in all_lessons() if isinstance(lesson, Lesson) and not missing_model(lesson)]


def _files() -> list[Path]:
    try:
        return sorted(FOLDER.glob("*.md"))[:MAX_LESSONS]
    except OSError:
        return []


def without_missing_models(lesson: Lesson) -> Lesson:
    """A lesson without the steps whose view needs a model that isn't here; one that needs it as a whole stays whole."""
    here = {entry.name for entry in library.catalogue() if not entry.problem}
    steps = tuple(step for step in lesson.steps if not (step.view and step.view.needs) or step.view.needs in here)
    return lesson if len(steps) in (0, len(lesson.steps)) else replace(lesson, steps=steps)


@lru_cache(maxsize=MAX_LESSONS)
def _read(path: Path, stamp: tuple[int, int]) -> Lesson | Unreadable:
    try:
        if stamp[1] > 4 * LONGEST_FILE:
            raise LessonError(f"{path.name} is too large; a lesson has at most {LONGEST_FILE:,} characters.")
        return read_lesson(path.stem, path.read_text(encoding="utf-8-sig"))
    except LessonError as error:
        return Unreadable(path.stem, str(error))
    except (OSError, UnicodeDecodeError):
        return Unreadable(path.stem, f"{path.name} can't be read; it should be a text in UTF-8.")


def _stamp(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except OSError:
        return 0, 0
    return status.st_mtime_ns, status.st_size
