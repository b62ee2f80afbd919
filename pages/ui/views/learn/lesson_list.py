"""The list of lessons: what each is about, which are done, and the visitor's answers."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

import streamlit as st

from pages.ui.frame import page_guide, widgets
from pages.ui.frame.page import Session
from pages.ui.frame.widgets import Tie
from pages.ui.lessons import lesson_files
from pages.ui.lessons.lesson import Lesson
from pages.ui.lessons.lesson_files import Unreadable
from pages.ui.markdown import counted, plain
from pages.ui.models.lesson_answers import Answers, Given, StepPlace
from pages.ui.models.session_store import session_record
from pages.ui.tables import as_text
from pages.ui.views.learn import glossary_page, room_student, teachers_page
from pages.ui.views.learn.answer_wording import Wording, wording_of
from pages.ui.views.learn.opened_step import go_to

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
    """The list, and below it the pages for teachers."""
    own, found = session_record().answers, lesson_files.shelf()
    with room_student.around(None):
        _show(own, found)
    with st.container(horizontal=True):
        teachers_page.offer()
        glossary_page.offer()
        page_guide.offer_start()
    if not own.is_empty:
        _results(own, [each for each in found if isinstance(each, Lesson)])


def _show(own: Answers, found: list[Lesson | Unreadable]) -> None:
    if not found:
        st.info("There are no lessons here: their folder, pages/ui/lessons, holds no file that ends in .md.")
    following = _next(own)
    with st.container(horizontal=True, vertical_alignment="center"):
        _go_on(following, own)
        room_student.offer(None)
    for each in found:
        if isinstance(each, Unreadable):
            st.warning(plain(f"One lesson can't be used. {each.problem}"), icon=":material/broken_image:")
    numbers = {lesson.name: number for number, lesson in enumerate(lesson_files.counted(), 1)}
    with st.container(key="lessons"):
        for each in found:
            if isinstance(each, Lesson):
                _card(each, numbers.get(each.name), own, is_next=bool(following) and following.lesson == each.name)


def after(lesson: Lesson) -> Lesson | None:
    """The lesson of the course that follows one; None after the last."""
    course = lesson_files.counted()
    names = [each.name for each in course]
    place = names.index(lesson.name) if lesson.name in names else -1
    return course[place + 1] if 0 <= place < len(course) - 1 else None


def _next(own: Answers) -> StepPlace | None:
    """The step to go on with: where the visitor was, or in the lesson that follows; None after the last."""
    last = lesson_files.lesson(own.last.lesson) if own.last else None
    if last is None:
        lessons = lesson_files.counted()
        return StepPlace(lessons[0].name, 0) if lessons else None
    if not _is_done(last, own):
        return own.last if last.name in own.opened else _first_open(last, own)
    following = after(last)
    return _first_open(following, own) if following else None


def _go_on(place: StepPlace | None, own: Answers) -> None:
    """The main button, and how much of the course is done."""
    lessons = lesson_files.counted()
    names = [lesson.name for lesson in lessons]
    if place and place.lesson in names:
        number = names.index(place.lesson) + 1
        verb = "Continue" if place.lesson in own.opened else "Start with" if own.last is None else "Continue with"
        step = f", step {place.step + 1}" if place.step else ""
        st.button(
            f"{verb} lesson {number}{step}",
            key="learn_go_on",
            type="primary",
            icon=":material/play_arrow:",
            on_click=go_to,
            args=(place,),
        )
    if lessons:
        done = sum(_is_done(lesson, own) for lesson in lessons)
        minutes = sum(lesson.minutes for lesson in lessons)
        st.caption(f"{done} of {counted(len(lessons), 'lesson')} done, {minutes} minutes in all.", width="content")


def _card(lesson: Lesson, number: int | None, own: Answers, *, is_next: bool) -> None:
    """number: its place in the course; None where its model is missing."""
    with st.container(border=True, gap="small", key=f"lesson_card_{'next_' if is_next else ''}{lesson.name}"):
        title = plain(lesson.title) if number is None else f"{number}. {plain(lesson.title)}"
        st.markdown(f"**{title}**  \n{plain(lesson.asks or '. '.join(lesson.aims))}")
        if number is None:
            missing = plain(lesson_files.missing_model(lesson))
            st.caption(f"It needs the model “{missing}”, which isn't here. {lesson.get}")
            return
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
            facts = [":blue-badge[Next]" if is_next else "", f"{lesson.minutes} minutes", _progress(lesson, own)]
            st.markdown(f":small[{' · '.join(filter(None, facts))}]", width="content")
            done = _is_done(lesson, own)
            st.button(
                "Review" if done else "Continue" if lesson.name in own.opened else "Start",
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
        return ":green-badge[:material/check_circle: Done]"
    if lesson.name not in own.opened:
        return ""
    questions = sum(step.question is not None for step in lesson.steps)
    return f"{own.answered(lesson.name)} of {counted(questions, 'question')} answered"


def _is_done(lesson: Lesson, own: Answers) -> bool:
    questions = [number for number, step in enumerate(lesson.steps) if step.question]
    return own.is_done(lesson.name, len(lesson.steps), questions)


def _results(own: Answers, lessons: list[Lesson]) -> None:
    """What the visitor can do with their answers: share, forget, download."""
    with st.expander("My answers"):
        st.caption("They are kept while this tab is open. Only you can see them.")

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
            "Download my results",
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
        if (lesson := lessons.get(place.lesson)) and (said := wording_of(lesson, place.step)):
            yield [
                lesson.title,
                str(place.step + 1),
                lesson.steps[place.step].title,
                said.asked(),
                given.at,
                *_in_words(said, given),
            ]


def _in_words(said: Wording, given: Given) -> list[str]:
    right = [*("yes" if each else "no" for each in given.right or ()), "", ""]
    second = "" if given.second is None else said.bare(given.second)
    return [said.bare(given.first), right[0], second, right[1]]
