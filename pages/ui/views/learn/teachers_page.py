"""Draws the page for teachers: a lesson plan, notes, and the check of their own lessons."""

from html import escape
from pathlib import Path

import streamlit as st

from pages.ui.frame import widgets
from pages.ui.lessons import lesson_files, measure_reference
from pages.ui.lessons.lesson import Lesson
from pages.ui.lessons.own_lessons import name_of
from pages.ui.markdown import plain
from pages.ui.printable_html import as_html, document, inline
from pages.ui.session.lesson_answers import StepId
from pages.ui.session.visitor_share import visitor_share
from pages.ui.upload_limits import has_lapsed
from pages.ui.views.learn import handout, lesson_upload, visitor_lessons
from pages.ui.views.learn.lesson_upload import Checked
from pages.ui.views.learn.opened_step import go_to, leave

GUIDE = Path(__file__).with_name("for_teachers.md")
FORMAT = Path(__file__).with_name("lesson_format.md")
CHECKED = "lesson_checked"
"""Key of the session: the uploaded file that was checked last, by its token, and what was found."""
MOST_FINDINGS = 30
TITLE = "For teachers"


def show() -> None:
    lessons = [lesson for lesson in lesson_files.all_lessons() if isinstance(lesson, Lesson)]
    with st.container(horizontal=True):
        widgets.button("All lessons", leave, key="teachers_back", icon="list", type="tertiary")
        widgets.download_button(
            "Download this page to print",
            lambda: sheet(lessons).encode(),
            "for-teachers.html",
            "text/html",
            key="save_sheet",
            icon="print",
            type="tertiary",
        )
    with st.container(key="teachers_guide"):
        st.markdown(GUIDE.read_text(encoding="utf-8"))
    st.header("Lesson by lesson", anchor=False)
    for lesson in lessons:
        _lesson(lesson)
    st.header("Your own lessons", anchor=False)
    _own_lesson()
    with st.expander("How to write a lesson", icon=":material/edit_note:", key="teachers_format"):
        st.markdown(FORMAT.read_text(encoding="utf-8"))
        st.markdown(f"### Measures\n{measure_reference.measures()}")


def _own_lesson() -> None:
    """Check an uploaded lesson, and open it in this session alone."""
    uploaded = st.file_uploader("Upload a lesson", type="md", max_upload_size=1, key="check_lesson")
    st.caption("It is checked, and then opened for you and your rooms alone, until you close this tab.")
    token, checked = st.session_state.get(CHECKED, ("", Checked("")))
    if uploaded is None and not has_lapsed(token):
        return
    if uploaded is not None and token != uploaded.file_id:
        with st.spinner("Running the models …"):
            checked = lesson_upload.checked(uploaded.getvalue(), visitor_share())
        st.session_state[CHECKED] = uploaded.file_id, checked
    if checked.problem:
        st.error(plain(checked.problem))
    elif checked.findings:
        lines = [f"- {plain(str(finding))}" for finding in checked.findings[:MOST_FINDINGS]]
        if (more := len(checked.findings) - MOST_FINDINGS) > 0:
            lines.append(f"- and {more} more.")
        st.warning("\n".join(lines), icon=":material/rule:")
    else:
        st.success("No problems found.", icon=":material/check:")
    if checked.opens:
        label = "Open it all the same" if checked.findings else "Open the lesson"
        widgets.button(label, _open_own, checked.text, key="open_own_lesson", icon="play_arrow", type="primary")


def _open_own(text: str) -> None:
    visitor_lessons.add(text)
    go_to(StepId(name_of(text), 0))


def sheet(lessons: list[Lesson]) -> str:
    """Make one HTML page of everything here, to print."""
    parts = [f"<h1>{TITLE}</h1>", as_html(GUIDE.read_text(encoding="utf-8"))]
    for lesson in lessons:
        aims = "".join(f"<li>{inline(aim)}</li>" for aim in lesson.aims)
        needs = f", needs the model {escape(lesson.needs)}" if lesson.needs else ""
        parts += [
            f"<section class='together'><h2>{inline(lesson.title)}</h2>",
            f"<p class='faint'>{lesson.minutes} minutes, {len(lesson.steps)} steps{needs}</p><ul>{aims}</ul>",
            f"{as_html(lesson.teacher.strip())}{_steps(lesson)}</section>",
        ]
    return document(TITLE, "\n".join(parts))


def _lesson(lesson: Lesson) -> None:
    with st.expander(f"{lesson.title} · {lesson.minutes} minutes"):
        if missing := lesson_files.missing_model(lesson):
            st.caption(f"It needs the model “{plain(missing)}”, which isn't here. {lesson.get}")
        st.markdown("\n".join(f"- {aim}" for aim in lesson.aims))
        st.markdown(lesson.teacher)
        st.markdown("**Steps.** " + " · ".join(plain(step.title) for step in lesson.steps))
        if not missing:
            with st.container(horizontal=True):
                widgets.button("Open", go_to, StepId(lesson.name, 0), key=f"teach_{lesson.name}", icon="play_arrow")
                handout.offer(lesson, f"handout_{lesson.name}")


def _steps(lesson: Lesson) -> str:
    rows = "".join(f"<li>{inline(step.title)}</li>" for step in lesson.steps)
    return f"<p><strong>Steps.</strong></p><ol>{rows}</ol>"
