"""Finds the lessons that a visitor can open: the course, their own by upload, and that of their room."""

import streamlit as st

from pages.ui.lessons import lesson_files
from pages.ui.lessons.lesson import Lesson
from pages.ui.lessons.own_lessons import is_own, name_of, own_lesson
from pages.ui.session.kept_lessons import keep_lesson
from pages.ui.session.session_store import session_record
from pages.ui.views.learn import room_membership

OF_ROOM = "room_lesson_text"
"""Key of the session: the text of the room's lesson, which is asked for once."""


def lesson(name: str) -> Lesson | None:
    """Find a lesson by name, if this visitor can open it."""
    if not is_own(name):
        return lesson_files.lesson(name)
    return next((each for each in uploaded_lessons() if each.name == name), None)


def uploaded_lessons() -> list[Lesson]:
    """The visitor's own lesson, and their room's if that is another one."""
    texts = dict.fromkeys(filter(None, (session_record().lesson_text, _of_room())))
    return [each for text in texts if (each := own_lesson(text))]


def is_of_room(lesson: Lesson) -> bool:
    """Whether the teacher of the room, and not this visitor, uploaded a lesson."""
    return lesson.name != name_of(session_record().lesson_text)


def add(text: str) -> None:
    """Make a checked text the visitor's own lesson, replacing the one before; "" removes it."""
    session_record().lesson_text = text
    keep_lesson(session_record().token, text)


def remove() -> None:
    """Remove the visitor's own lesson. Its answers are forgotten; a room that has it keeps it."""
    record = session_record()
    record.answers.clear(name_of(record.lesson_text))
    add("")


def _of_room() -> str:
    name, held = room_membership.lesson_name(), st.session_state.get(OF_ROOM, "")
    if name and name != name_of(held):
        held = st.session_state[OF_ROOM] = room_membership.lesson_text()
    return held if name else ""
