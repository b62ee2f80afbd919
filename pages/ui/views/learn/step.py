"""Draws a step of a lesson beside the live view."""

from collections.abc import Callable
from functools import partial

import streamlit as st

from pages.ui.components.lesson_step import PARTS, lesson_step
from pages.ui.frame import widgets
from pages.ui.frame.page import Session
from pages.ui.frame.saved_view import open_page
from pages.ui.host.shell import step_view
from pages.ui.lessons.room import Phase
from pages.ui.markdown import counted, plain
from pages.ui.models import library
from pages.ui.session.lesson_answers import StepId
from pages.ui.session.session_store import session_record
from pages.ui.views.learn import handout, lesson_list, opened_step, room_membership, room_student, room_teacher
from pages.ui.views.learn.answer_wording import wording_of
from pages.ui.views.learn.document import step_document, without_answer
from pages.ui.views.learn.opened_step import OpenedStep, go_to, leave, show_again, take
from pages.ui.views.page_contents import CONTENTS, NEEDS_NO_TEXT

VIEW = "lesson_view"
"""Key of the session: the container of the live view, which the run draws last."""


def show() -> None:
    """Draw the open step, if any, except for its live view."""
    if (entered := opened_step.opened_step()) is None:
        return
    with room_student.around(entered.step_id), st.container(key="lesson_step"):
        _show(entered)
        if entered.step.view:
            st.session_state[VIEW] = st.container(key="lesson_live")


def show_view(session: Session) -> None:
    """Draw its live view, or a placeholder until the view may be shown."""
    entered = opened_step.opened_step()
    if entered is None or not entered.step.view:
        return
    with st.session_state[VIEW]:
        if entered.shows_view:
            _live_view(session, entered, entered.step.view.page)
        else:
            with st.container(key="lesson_view_later"):
                page = _view_name(session, entered.step.view.page)
                st.caption(f"{page} opens here, with the answer.")


def _show(entered: OpenedStep) -> None:
    with st.container(key="lesson_text"):
        st.progress((entered.step_id.step + 1) / len(entered.lesson.steps))
        if room_membership.is_teacher():
            _show_to_class(entered)
        elif room_student.draws(entered):
            room_student.step(entered)
        else:
            _drawer(entered)(*PARTS)
        if entered.is_revealed and entered.step is entered.lesson.steps[-1]:
            _sum_up(entered)
        _move(entered)


def _show_to_class(entered: OpenedStep) -> None:
    """Draw the step with the votes of the class between question and explanation."""
    drawer = _drawer(entered)
    drawer("words")
    with st.container(key="lesson_asked"):
        with st.container(key="lesson_question"):
            drawer("question")
            room_teacher.count(entered.step_id)
        room_teacher.controls(entered.step_id)
        if wording := wording_of(entered.lesson, entered.step_id.step):
            right = wording.right() if entered.is_revealed else None
            tells = None if right is None else partial(wording.question.is_right, right)
            room_teacher.show_tally(entered.step_id, wording, tells)
    drawer("found")


def _drawer(entered: OpenedStep) -> Callable[..., None]:
    """A function that draws parts of the step's document, as far as this visitor may see them."""
    phase, response = room_membership.phase(entered.step_id), entered.response
    document = step_document(entered.lesson, entered.step_id.step)
    if phase not in (None, Phase.REVEALED):
        document = without_answer(document)
    elif phase is None and document["question"] and document["question"]["isComing"]:
        document["reveal"] = ""  # it would tell what the visitor's own training is about to show
    state = {
        "id": f"{entered.step_id.lesson}/{entered.step_id.step}",
        "answered": response
        and {"first": response.first, "second": response.second, "discussing": response.discussing},
        "phase": None if phase is None else phase.name.lower(),
        "canChange": False,
        "isTeacher": room_membership.is_teacher(),
    }
    return lambda *parts: lesson_step(document, state, shows=parts, take=take, key=f"lesson_step_{parts[0]}")


def _sum_up(entered: OpenedStep) -> None:
    """Show the lesson's aims, and a button to its first skipped question."""
    lesson = entered.lesson
    skipped = session_record().answers.unanswered(lesson.name, lesson.questions)
    with st.container(border=bool(lesson.aims), gap="small", key="lesson_end"):
        if lesson.aims:
            aims = "".join(f"\n- {plain(aim[0].lower() + aim[1:])}" for aim in lesson.aims)
            st.markdown(f":material/flag: **You can now**\n{aims}")
        if skipped and room_membership.led_step() is None:
            with st.container(horizontal=True, vertical_alignment="center"):
                verb = "is" if len(skipped) == 1 else "are"
                st.markdown(f"{counted(len(skipped), 'question')} {verb} still open.", width="content")
                widgets.button(
                    f"Go to step {skipped[0] + 1}",
                    go_to,
                    StepId(lesson.name, skipped[0]),
                    key="lesson_skipped",
                    icon="arrow_back",
                    type="tertiary",
                )


def _move(entered: OpenedStep) -> None:
    """Show the buttons that lead to other steps and out of the lesson."""
    lesson, number = entered.step_id.lesson, entered.step_id.step
    led = room_membership.led_step() is not None
    with st.container(horizontal=True, key="lesson_moves"):
        widgets.button("All lessons", leave, key="learn_list", icon="list", type="tertiary", disabled=led)
        before = StepId(lesson, number - 1)
        widgets.button("Previous", go_to, before, key="learn_previous", icon="arrow_back", disabled=led or number == 0)
        last = number == len(entered.lesson.steps) - 1
        following = lesson_list.after(entered.lesson) if last else None
        leads = room_membership.has_class(entered.step_id)
        label, icon, to, more = "Next step" if leads else "Next", "arrow_forward", StepId(lesson, number + 1), None
        if following:
            label, to, more = "Next lesson", StepId(following.name, 0), plain(following.title)
        elif last:
            label, icon, to = "Finish", "check", None
        widgets.button(
            label,
            _go_on,
            entered.step_id,
            to,
            key="learn_next",
            icon=icon,
            type="primary" if entered.is_revealed else "secondary",
            help=more,
            disabled=led,
        )
        if last:
            handout.offer(entered.lesson)
        room_student.offer(entered.step_id)
    if led:
        st.caption("Your teacher goes from step to step.")
    elif leads and to:
        st.caption(f"*{label}* takes the class along. Going back or to another lesson doesn't.")
    elif entered.is_open and not room_membership.is_teacher():
        st.caption("You can continue without an answer, but the lesson won't count as done.")


def _go_on(step_id: StepId, following: StepId | None) -> None:
    """Go to the next step, as a teacher with the class. following: None for the list."""
    if following is None:
        leave()
    else:
        go_to(following)
        room_membership.lead_on(step_id, following)


def _live_view(session: Session, entered: OpenedStep, page: str) -> None:
    """Draw the page that the step shows, as the visitor has changed it."""
    with st.container(horizontal=True, vertical_alignment="center", key="lesson_view"):
        is_fixed = entered.is_open and page != "Train"
        later = " Model, prompt and changes are fixed until you answer." if is_fixed else ""
        st.markdown(f"{_view_name(session, page)}.{later}", width="content")
        widgets.button("Reset the view", show_again, key="lesson_reset", icon="restart_alt", type="tertiary")
        if not entered.is_open:
            widgets.button(
                f"Open in {plain(page)}", open_page, page, key="lesson_open", icon="open_in_full", type="tertiary"
            )
    if page != "Train":
        step_view()
    if page in CONTENTS and (session.tokens is not None or page in NEEDS_NO_TEXT):
        CONTENTS[page](session)


def _view_name(session: Session, page: str) -> str:
    """Name the page that the step shows, and its model."""
    model = "" if page == "Train" else f" with the model *{plain(library.model(session.name).card.title)}*"
    return f"**{plain(page)}**{model}"
