"""Draws the list of lessons, and the visitor's results."""

from collections.abc import Iterator
from typing import Any

import pandas as pd
import streamlit as st

from pages.ui.components.lesson_list import lesson_list
from pages.ui.frame import page_guide, widgets
from pages.ui.frame.page import Session
from pages.ui.frame.widgets import Binding
from pages.ui.lessons import lesson_files
from pages.ui.lessons.lesson import Lesson
from pages.ui.lessons.lesson_files import Unreadable
from pages.ui.lessons.room import Phase
from pages.ui.markdown import counted, plain
from pages.ui.printable_html import inline
from pages.ui.session.lesson_answers import Answers, Response, StepId
from pages.ui.session.session_store import session_record
from pages.ui.tables import as_csv
from pages.ui.views.learn import room_membership, room_student, teachers_page, visitor_lessons
from pages.ui.views.learn.answer_wording import Wording, wording_of
from pages.ui.views.learn.opened_step import GLOSSARY, TEACHERS, awaited_step, go_to

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
    """Show the list, and below it the links to the pages for teachers."""
    own, lessons = session_record().answers, lesson_files.all_lessons()
    with room_student.around(None):
        _show(own, lessons)
    with st.container(horizontal=True):
        teachers, terms = StepId(TEACHERS, 0), StepId(GLOSSARY, 0)
        widgets.button(teachers_page.TITLE, go_to, teachers, key="for_teachers", icon="co_present", type="tertiary")
        widgets.button("Glossary", go_to, terms, key="to_glossary", icon="menu_book", type="tertiary")
        page_guide.offer_tour()
    if not own.is_empty:
        course = [lesson for lesson in lessons if isinstance(lesson, Lesson)]
        _results(own, [*visitor_lessons.uploaded_lessons(), *course])


def _show(own: Answers, lessons: list[Lesson | Unreadable]) -> None:
    if not lessons:
        st.info("There are no lessons here: their folder, pages/ui/lessons, holds no file that ends in .md.")
    following = _next(own)
    with st.container(horizontal=True, vertical_alignment="center"):
        _go_on(following, own)
        room_student.offer(None)
    for lesson in lessons:
        if isinstance(lesson, Unreadable):
            st.warning(plain(f"A lesson can't be used. {lesson.problem}"), icon=":material/broken_image:")
    numbers = {lesson.name: number for number, lesson in enumerate(lesson_files.available_lessons(), 1)}
    if awaited_step():
        st.info(
            "The lesson in this link was uploaded, and is shown to its teacher and in a room alone: join the room, or "
            "upload the lesson again on *For teachers*. It is kept while its teacher's tab is open.",
            icon=":material/upload_file:",
        )
    own_cards = [_uploaded_card(lesson, own) for lesson in visitor_lessons.uploaded_lessons()]
    cards = [
        _card(lesson, numbers.get(lesson.name), own) | {"isNext": bool(following) and following.lesson == lesson.name}
        for lesson in lessons
        if isinstance(lesson, Lesson)
    ]
    lesson_list([*own_cards, *cards], open_lesson=lambda name: _open(name, own), remove=visitor_lessons.remove)


def _open(name: str, own: Answers) -> None:
    if lesson := visitor_lessons.lesson(name):
        go_to(_first_open(lesson, own))


def after(lesson: Lesson) -> Lesson | None:
    """The next lesson of the course; None after the last."""
    course = lesson_files.available_lessons()
    names = [other.name for other in course]
    step_id = names.index(lesson.name) if lesson.name in names else -1
    return course[step_id + 1] if 0 <= step_id < len(course) - 1 else None


def _next(own: Answers) -> StepId | None:
    """The step to continue with: the visitor's last, or one of the next lesson; None after the last lesson."""
    last = lesson_files.lesson(own.last.lesson) if own.last else None
    if last is None:
        lessons = lesson_files.available_lessons()
        return StepId(lessons[0].name, 0) if lessons else None
    if not _is_done(last, own):
        return own.last if last.name in own.opened else _first_open(last, own)
    following = after(last)
    return _first_open(following, own) if following else None


def _go_on(step_id: StepId | None, own: Answers) -> None:
    """Show the main button, and how much of the course is done."""
    lessons = lesson_files.available_lessons()
    names = [lesson.name for lesson in lessons]
    if step_id and step_id.lesson in names:
        number = names.index(step_id.lesson) + 1
        verb = "Continue" if step_id.lesson in own.opened else "Start with" if own.last is None else "Continue with"
        step = f", step {step_id.step + 1}" if step_id.step else ""
        widgets.button(
            f"{verb} lesson {number}{step}", go_to, step_id, key="learn_go_on", icon="play_arrow", type="primary"
        )
    if lessons:
        done = sum(_is_done(lesson, own) for lesson in lessons)
        minutes = sum(lesson.minutes for lesson in lessons)
        st.caption(f"{done} of {counted(len(lessons), 'lesson')} done, {minutes} minutes in all.", width="content")


def _card(lesson: Lesson, number: int | None, own: Answers) -> dict[str, Any]:
    """Describe a lesson for the list. number: its place in the course; None where its model is missing."""
    card = {
        "name": lesson.name,
        "title": inline(lesson.title if number is None else f"{number}. {lesson.title}"),
        "asks": inline(lesson.asks or ". ".join(lesson.aims)),
        "minutes": lesson.minutes,
        "aims": [inline(aim) for aim in lesson.aims],
        "questions": len(lesson.questions),
        "answered": own.answered(lesson.name),
        "isBegun": lesson.name in own.opened,
        "isDone": _is_done(lesson, own),
    }
    if missing := lesson_files.missing_model(lesson):
        card["missing"] = inline(f"It needs the model “{plain(missing)}”, which isn't here. {lesson.get}")
    return card


def _uploaded_card(lesson: Lesson, own: Answers) -> dict[str, Any]:
    is_of_room = visitor_lessons.is_of_room(lesson)
    whose = "Your teacher's own lesson" if is_of_room else "Your own lesson: only you and your rooms can see it"
    return _card(lesson, None, own) | {"whose": whose, "isRemovable": not is_of_room}


def _first_open(lesson: Lesson, own: Answers) -> StepId:
    """The first step without an answer; the first of all once the lesson is done."""
    step_ids = [StepId(lesson.name, number) for number in range(len(lesson.steps))]
    return next(
        (
            step_id
            for step_id, step in zip(step_ids, lesson.steps, strict=True)
            if step_id.step not in own.opened.get(lesson.name, ()) or (step.question and step_id not in own.responses)
        ),
        step_ids[0],
    )


def _is_done(lesson: Lesson, own: Answers) -> bool:
    return own.is_done(lesson.name, len(lesson.steps), lesson.questions)


def _results(own: Answers, lessons: list[Lesson]) -> None:
    """Let the visitor share, forget and download their answers."""
    with st.expander("My answers"):
        st.caption("Kept while this tab is open. Only you can see them.")
        share = Binding("share_answers", value=own.is_shared, take=lambda on: setattr(own, "is_shared", on))
        widgets.checkbox("Put my answers into the link", share)
        begun = [lesson for lesson in lessons if lesson.name in own.opened]
        with st.container(horizontal=True):
            for lesson in begun:
                label = f"Forget: {plain(lesson.title)}"
                widgets.button(
                    label, own.clear, lesson.name, key=f"forget_{lesson.name}", icon="delete", type="tertiary"
                )
        widgets.download_button(
            "Download my results",
            lambda: results_csv(own, lessons),
            "headsup-results.csv",
            "text/csv",
            key="save_results",
        )


def results_csv(own: Answers, lessons: list[Lesson]) -> bytes:
    """Make a CSV of all answers, one row each."""
    rows = _rows(own, {lesson.name: lesson for lesson in lessons})
    return as_csv(pd.DataFrame(rows, columns=COLUMNS))


def _rows(own: Answers, lessons: dict[str, Lesson]) -> Iterator[list[str]]:
    for step_id, response in sorted(own.responses.items(), key=lambda item: (item[0].lesson, item[0].step)):
        if (lesson := lessons.get(step_id.lesson)) and (wording := wording_of(lesson, step_id.step)):
            yield [
                lesson.title,
                str(step_id.step + 1),
                lesson.steps[step_id.step].title,
                wording.question_text(),
                response.at,
                *_marked(wording, step_id, response),
            ]


def _marked(wording: Wording, step_id: StepId, response: Response) -> Iterator[str]:
    """Both answers in words, each with “yes” or “no” once the right one may be told."""
    right = wording.right() if room_membership.phase(step_id) in (None, Phase.REVEALED) else None
    for answer in (response.first, response.second):
        if answer is None:
            yield from ("", "")
        else:
            marks = "" if right is None else "yes" if wording.question.is_right(right, answer) else "no"
            yield from (wording.bare(answer), marks)
