"""The list of lessons: what each is about, how far the visitor has come, and what they answered."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

import streamlit as st

from pages.ui.frame import guiding, widgets
from pages.ui.frame.page import Session
from pages.ui.frame.widgets import Tie
from pages.ui.lessons import shelf
from pages.ui.lessons.lesson import Lesson
from pages.ui.lessons.shelf import Unreadable
from pages.ui.markdown import counted, plain
from pages.ui.models.answers import Answers, Given, StepPlace
from pages.ui.models.session_store import session_record
from pages.ui.tables import as_text
from pages.ui.views.learn import glossary, room_views, teacher
from pages.ui.views.learn.entering import go_to
from pages.ui.views.learn.said import Said, said_of

COLUMNS = ("lesson", "step", "title", "question", "answered at", "first answer", "first is right", "second answer",
           "second is right")  # fmt: skip


def show(session: Session) -> None:
    """The list."""
    with room_views.around(None):
        _show()


def _show() -> None:
    own, found = session_record().answers, shelf.shelf()
    if not found:
        st.info("There are no lessons here: their folder, pages/ui/lessons, holds no file that ends in .md.")
    _go_on(own)
    number = 0
    with st.container(key="lessons", gap="small"):
        for each in found:
            if isinstance(each, Unreadable):
                st.warning(plain(f"One lesson can't be used. {each.problem}"), icon=":material/broken_image:")
                continue
            missing = shelf.missing_model(each)
            number += not missing
            _entry(each, "–" if missing else str(number), missing, own)
    with st.container(horizontal=True):
        guiding.offer_start()
        glossary.offer()
        teacher.offer()
    if not own.is_empty:
        _results(own, [each for each in found if isinstance(each, Lesson)])


def _go_on(own: Answers) -> None:
    """The way back to where the visitor was; the way in for a new one."""
    lessons = shelf.counted()
    if own.last and (lesson := shelf.lesson(own.last.lesson)) and not _is_done(lesson, own):
        st.button(f"Go on where you were: {plain(lesson.title)}, step {own.last.step + 1}", key="learn_go_on",
                  type="primary", icon=":material/play_arrow:", on_click=go_to, args=(own.last,))  # fmt: skip
    elif lessons and own.is_empty:
        st.button("Begin with the first lesson", key="learn_begin", type="primary", icon=":material/play_arrow:",
                  on_click=go_to, args=(StepPlace(lessons[0].name, 0),))  # fmt: skip
    if lessons:
        done = sum(_is_done(lesson, own) for lesson in lessons)
        minutes = sum(lesson.minutes for lesson in lessons)
        st.caption(f"{counted(len(lessons), 'lesson')}, about {minutes} minutes in all; {done} done.")


def _entry(lesson: Lesson, number: str, missing: str, own: Answers) -> None:
    begun = lesson.name in own.opened
    with st.container(border=True, gap="xsmall"):
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
            st.markdown(f"**{number}. {plain(lesson.title)}** {_progress(lesson, own)}", width="content")
            if not missing:
                st.button("Open" if begun else "Begin", key=f"lesson_{lesson.name}", on_click=go_to,
                          args=(_first_open(lesson, own),), help=f"{lesson.title}")  # fmt: skip
        st.caption(
            f"{lesson.minutes} minutes, {counted(len(lesson.steps), 'step')}. {plain('. '.join(lesson.aims))}."
        )
        if missing:
            st.caption(f"It needs the model “{plain(missing)}”, which isn't here. {lesson.get}")
        elif begun:
            st.button("Forget my answers", key=f"forget_{lesson.name}", type="tertiary", on_click=own.clear,
                      args=(lesson.name,))  # fmt: skip


def _first_open(lesson: Lesson, own: Answers) -> StepPlace:
    """The step to go on with: the first whose question has no answer; the first of all in a lesson that is done."""
    places = [StepPlace(lesson.name, number) for number in range(len(lesson.steps))]
    return next((place for place, step in zip(places, lesson.steps, strict=True)
                 if place.step not in own.opened.get(lesson.name, ()) or (step.question and place not in own.given)),
                places[0])  # fmt: skip


def _progress(lesson: Lesson, own: Answers) -> str:
    if _is_done(lesson, own):
        return ":material/check_circle: done"
    if lesson.name not in own.opened:
        return ""
    questions = sum(step.question is not None for step in lesson.steps)
    return f":material/timelapse: begun, {own.answered(lesson.name)} of {counted(questions, 'question')} answered"


def _is_done(lesson: Lesson, own: Answers) -> bool:
    questions = [number for number, step in enumerate(lesson.steps) if step.question]
    return own.is_done(lesson.name, len(lesson.steps), questions)


def _results(own: Answers, lessons: list[Lesson]) -> None:
    """What the visitor can do with their answers, which are theirs alone."""
    with st.expander("My answers"):
        st.caption("They are kept while this tab is open, and nobody else sees them.")

        def share(on: bool) -> None:
            own.is_shared = on

        widgets.checkbox(
            "Put my answers into the link", Tie("share_answers", value=own.is_shared, take=share)
        )
        st.download_button("Save my results", results_csv(own, lessons).encode("utf-8-sig"), "headsup-results.csv",
                           "text/csv", key="save_results", icon=":material/download:", on_click="ignore")  # fmt: skip


def results_csv(own: Answers, lessons: list[Lesson]) -> str:
    """All answers, a row each."""
    written = io.StringIO()
    table = csv.writer(written)
    table.writerow(COLUMNS)
    table.writerows(map(as_text, row) for row in _rows(own, {lesson.name: lesson for lesson in lessons}))
    return written.getvalue()


def _rows(own: Answers, lessons: dict[str, Lesson]) -> Iterator[list[str]]:
    for place, given in sorted(own.given.items(), key=lambda item: (item[0].lesson, item[0].step)):
        if (lesson := lessons.get(place.lesson)) and (said := said_of(lesson, place.step)):
            yield [lesson.title, str(place.step + 1), lesson.steps[place.step].title, said.asked(), given.at,
                   *_told(said, given)]  # fmt: skip


def _told(said: Said, given: Given) -> list[str]:
    right = [*("yes" if each else "no" for each in given.right or ()), "", ""]
    second = "" if given.second is None else said.bare(given.second)
    return [said.bare(given.first), right[0], second, right[1]]
