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

COLUMNS = (
    "lesson",
    "step",
    "title",
    "question",
    "answered at",
    "first answer",
    "first is right",
    "second answer",
    "second is right",
)


def show(session: Session) -> None:
    """The list, and below it what a class and its teacher need."""
    own, found = session_record().answers, shelf.shelf()
    with room_views.around(None):
        _show(own, found)
    with st.container(horizontal=True):
        teacher.offer()
        glossary.offer()
        guiding.offer_start()
    if not own.is_empty:
        _results(own, [each for each in found if isinstance(each, Lesson)])


def _show(own: Answers, found: list[Lesson | Unreadable]) -> None:
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


def after(lesson: Lesson) -> Lesson | None:
    """The lesson of the course that follows one; None after the last."""
    course = shelf.counted()
    names = [each.name for each in course]
    place = names.index(lesson.name) if lesson.name in names else -1
    return course[place + 1] if 0 <= place < len(course) - 1 else None


def _go_on(own: Answers) -> None:
    """The way in for a new visitor; the way back to where another was, or on to the next lesson."""
    lessons = shelf.counted()
    last = shelf.lesson(own.last.lesson) if own.last else None
    with st.container(horizontal=True, vertical_alignment="center"):
        if last and not _is_done(last, own):
            st.button(
                f"Go on: {plain(last.title)}, step {own.last.step + 1}",
                key="learn_go_on",
                type="primary",
                icon=":material/play_arrow:",
                on_click=go_to,
                args=(own.last,),
            )
        elif last and (following := after(last)):
            st.button(
                f"Next lesson: {plain(following.title)}",
                key="learn_go_on",
                type="primary",
                icon=":material/play_arrow:",
                on_click=go_to,
                args=(_first_open(following, own),),
            )
        elif lessons and own.is_empty:
            st.button(
                "Begin with the first lesson",
                key="learn_begin",
                type="primary",
                icon=":material/play_arrow:",
                on_click=go_to,
                args=(StepPlace(lessons[0].name, 0),),
            )
        if lessons:
            done = sum(_is_done(lesson, own) for lesson in lessons)
            minutes = sum(lesson.minutes for lesson in lessons)
            st.caption(f"{counted(len(lessons), 'lesson')}, {minutes} minutes in all; {done} done.")


def _entry(lesson: Lesson, number: str, missing: str, own: Answers) -> None:
    with st.container(
        border=True, horizontal=True, vertical_alignment="center", gap="small", key=f"lesson_card_{lesson.name}"
    ):
        said = plain(lesson.asks or ". ".join(lesson.aims))
        facts = [f"{lesson.minutes} minutes", _progress(lesson, own)]
        if missing:
            facts = [f"It needs the model “{plain(missing)}”, which isn't here. {lesson.get}"]
        st.markdown(f"**{number}. {plain(lesson.title)}**  \n{said}  \n:small[{' · '.join(filter(None, facts))}]")
        if not missing:
            begun = lesson.name in own.opened
            st.button(
                "Open" if begun else "Begin",
                key=f"lesson_{lesson.name}",
                on_click=go_to,
                args=(_first_open(lesson, own),),
                help="You will be able to:\n" + "\n".join(f"- {aim}" for aim in lesson.aims),
            )


def _first_open(lesson: Lesson, own: Answers) -> StepPlace:
    """The step to go on with: the first whose question has no answer; the first of all in a lesson that is done."""
    places = [StepPlace(lesson.name, number) for number in range(len(lesson.steps))]
    return next(
        (
            place
            for place, step in zip(places, lesson.steps, strict=True)
            if place.step not in own.opened.get(lesson.name, ()) or (step.question and place not in own.given)
        ),
        places[0],
    )


def _progress(lesson: Lesson, own: Answers) -> str:
    if _is_done(lesson, own):
        return ":material/check_circle: done"
    if lesson.name not in own.opened:
        return ""
    questions = sum(step.question is not None for step in lesson.steps)
    return f":material/timelapse: {own.answered(lesson.name)} of {counted(questions, 'question')} answered"


def _is_done(lesson: Lesson, own: Answers) -> bool:
    questions = [number for number, step in enumerate(lesson.steps) if step.question]
    return own.is_done(lesson.name, len(lesson.steps), questions)


def _results(own: Answers, lessons: list[Lesson]) -> None:
    """What the visitor can do with their answers, which are theirs alone."""
    with st.expander("My answers"):
        st.caption("They are kept while this tab is open, and nobody else sees them.")

        def share(on: bool) -> None:
            own.is_shared = on

        widgets.checkbox("Put my answers into the link", Tie("share_answers", value=own.is_shared, take=share))
        begun = [lesson for lesson in lessons if lesson.name in own.opened]
        with st.container(horizontal=True):
            for lesson in begun:
                st.button(
                    f"Forget: {plain(lesson.title)}",
                    key=f"forget_{lesson.name}",
                    type="tertiary",
                    icon=":material/delete:",
                    on_click=own.clear,
                    args=(lesson.name,),
                )
        st.download_button(
            "Save my results",
            results_csv(own, lessons).encode("utf-8-sig"),
            "headsup-results.csv",
            "text/csv",
            key="save_results",
            icon=":material/download:",
            on_click="ignore",
        )


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
            yield [
                lesson.title,
                str(place.step + 1),
                lesson.steps[place.step].title,
                said.asked(),
                given.at,
                *_told(said, given),
            ]


def _told(said: Said, given: Given) -> list[str]:
    right = [*("yes" if each else "no" for each in given.right or ()), "", ""]
    second = "" if given.second is None else said.bare(given.second)
    return [said.bare(given.first), right[0], second, right[1]]
