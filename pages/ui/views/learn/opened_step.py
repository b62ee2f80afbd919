"""Opens the list of lessons or a step, and shows the step's view in place of the visitor's."""

from dataclasses import dataclass, replace

import streamlit as st

from pages.ui.components.lesson_step import Given
from pages.ui.expanders import folded
from pages.ui.frame import saved_view, state
from pages.ui.frame.page import PageOptions
from pages.ui.host.exchange import change, page_state
from pages.ui.host.page_state import PageState
from pages.ui.lessons import lesson_files
from pages.ui.lessons.lesson import Lesson, Step, View
from pages.ui.lessons.own_lessons import is_own
from pages.ui.lessons.room import Phase, answer_of
from pages.ui.models import library
from pages.ui.session.lesson_answers import Response, StepId, from_text
from pages.ui.session.session_store import session_record
from pages.ui.views.learn import room_membership, visitor_lessons

AWAITED = "lesson_awaited"
"""Key of the session: see `awaited_step`."""
LIST = "Short lessons: predict what a model does, then see what it really does."
TEACHERS, GLOSSARY = "for-teachers", "glossary"
"""The page's other contents, as links name them."""
SUBTITLES = {
    "": LIST,
    TEACHERS: "A plan for a class, notes and handouts for each lesson, and how to write your own.",
    GLOSSARY: "The technical terms of these pages, with the papers that they come from.",
}
"""The sentence below the title of the list and of each of these."""
LOCKED = ("model", "prompt", "changes", "other_prompt", "other_model")
"""The parameters that are locked until a question is answered: changing them would give the answer away."""


@dataclass(frozen=True)
class OpenedStep:
    """The open step. view: what it shows; a step without a view has the last one before it."""

    lesson: Lesson
    step: Step
    step_id: StepId
    view: View | None

    @property
    def response(self) -> Response | None:
        """What was answered to its question; None for nothing, or nothing that could be an answer to it.

        Teachers' own answers are hidden: the class would see them projected.
        """
        if room_membership.has_class(self.step_id):
            return None
        response = session_record().answers.responses.get(self.step_id)
        return response if response and _fits(self.step, response) else None

    @property
    def is_open(self) -> bool:
        """Whether its question can still be answered: it has no answer yet, or one that is being discussed."""
        response = self.response
        unanswered = self.step.question is not None and (response is None or response.discussing)
        return unanswered and room_membership.phase(self.step_id) is not Phase.REVEALED

    @property
    def is_revealed(self) -> bool:
        """Whether the answer may be shown: it was given, and in a room the teacher has revealed it."""
        return not self.is_open and (
            not self.step.question or room_membership.phase(self.step_id) in (None, Phase.REVEALED)
        )

    @property
    def shows_view(self) -> bool:
        """Whether its live view may be shown."""
        return self.step.view is not None and (self.step.view.opened == "before" or self.is_revealed)


def opened_step() -> OpenedStep | None:
    """The step that this run has opened; None for the list."""
    return st.session_state.get("entered")


def awaited_step() -> StepId | None:
    """The linked step of an uploaded lesson that this visitor can't open, or can't open yet."""
    return st.session_state.get(AWAITED)


def open_requested() -> PageOptions:
    """Open what the visitor, a link, or the teacher of a room asks for; returns how the page opens."""
    brought = state.link_restored_view()
    requested = _here()
    room_membership.refresh()
    _go_to_awaited()
    _take_votes()
    _take_answers()
    opened = st.session_state["entered"] = _requested_step()
    if opened is None:
        saved_view.restore_view()
        return PageOptions(SUBTITLES[page_state().lesson], uses_model=False, is_bare=True)
    room_membership.lead_to(opened.step_id)
    own = session_record().answers
    loan = saved_view.saved_view()
    if loan is None or loan.step_id != opened.step_id:
        saved_view.show_lesson_view(opened.step_id, None if brought else _view_of(opened.view))
    if brought and requested != opened.step_id:  # a view of before the teacher went on
        saved_view.show_lesson_view(opened.step_id, _view_of(opened.view))
    own.open(opened.step_id)
    if opened.is_open and opened.step.view:
        _lock_view(opened.step.view)
    page = opened.view.page if opened.view and opened.shows_view else ""
    uses_model = page not in ("", "Train")
    is_led = room_membership.phase(opened.step_id) is not None
    # Of a room, and an uploaded lesson, the room's link is the one to give away.
    is_elsewhere = room_membership.membership() is not None or is_own(opened.lesson.name)
    is_tried = opened.is_revealed and opened.step.to_try is not None
    is_bare = not uses_model or (is_led and not is_tried)
    return PageOptions(
        f"{opened.lesson.title} · step {opened.step_id.step + 1} of {len(opened.lesson.steps)}, "
        f"about {opened.lesson.minutes} minutes in all",
        view=page,
        folded=folded(page),
        uses_model=uses_model,
        is_bare=is_bare,
        is_fixed=opened.is_open,
        is_linked=not (is_bare and (is_elsewhere or st.context.is_embedded)),
    )


def take(given: Given) -> None:
    """Store a browser's answer, unless there is a final one."""
    lesson, _, number = given.id.rpartition("/")
    step_id = StepId(lesson, int(number) if number.isdecimal() else -1)
    response = Response(given.first, given.second, given.discussing)
    if not _can_be(step_id, response):
        return
    own = session_record().answers
    before = own.responses.get(step_id)
    if before is None or before.discussing or not _can_be(step_id, before):
        own.responses[step_id] = response


def go_to(step_id: StepId) -> None:
    if step_id != _here():
        change(lesson=step_id.lesson, lesson_step=step_id.step)


def leave() -> None:
    """Go back to the list."""
    go_to(StepId("", 0))


def show_again() -> None:
    """Reset the live view to what the step shows."""
    if opened := opened_step():
        saved_view.show_lesson_view(opened.step_id, _view_of(opened.view))


def _here() -> StepId:
    return StepId(page_state().lesson, page_state().lesson_step)


def _view_of(view: View | None) -> dict[str, str]:
    """The link that opens a view; without a view, what is shown. Mistakes in it become notices."""
    if view is None:
        return page_state().texts
    shown = _parsed(view)
    state.notices().extend(shown.notices)
    return shown.texts


def _parsed(view: View) -> PageState:
    """A view with the prompt that it opens on."""
    shown = PageState.of(view.parameters)
    if shown.prompt is None and shown.model in library.usable():
        return replace(shown, prompt=(library.usable()[shown.model].card.examples or [""])[0])
    return shown


def _go_to_awaited() -> None:
    """Open the linked uploaded lesson once the tab has said whose it is."""
    if page_state().lesson:  # the visitor went elsewhere
        st.session_state.pop(AWAITED, None)
    elif (step_id := awaited_step()) and visitor_lessons.lesson(step_id.lesson):
        go_to(st.session_state.pop(AWAITED))


def _requested_step() -> OpenedStep | None:
    if (led := room_membership.led_step()) is not None:
        go_to(led)
    here = _here()
    if here.lesson in SUBTITLES:
        return None
    lesson = visitor_lessons.lesson(here.lesson)
    if lesson is None and is_own(here.lesson):
        st.session_state[AWAITED] = here
    elif lesson is None:
        state.notices().append(f"There is no lesson “{here.lesson[:40]}” here. These are the lessons.")
    elif missing := lesson_files.missing_model(lesson):
        state.notices().append(f"The lesson “{lesson.title}” needs the model “{missing[:40]}”, which isn't here.")
        lesson = None
    if lesson is None:
        leave()
        return None
    last = len(lesson.steps) - 1
    number = min(here.step, last)
    if here.step > last:
        state.notices().append(f"This lesson has {last + 1} steps; the last one is shown.")
        change(lesson_step=last)
    return OpenedStep(lesson, lesson.steps[number], StepId(lesson.name, number), lesson.view_at(number))


def _take_votes() -> None:
    """Copy a student's votes from the room to their answers."""
    own = session_record().answers
    for step_id, votes in room_membership.votes().items():
        if votes.given:
            own.keep_vote(step_id, *map(answer_of, votes.given))


def _lock_view(view: View) -> None:
    """Keep the view as the step shows it until the question is answered."""
    current, shown = page_state(), _parsed(view)
    moved = {name: getattr(shown, name) for name in LOCKED if getattr(current, name) != getattr(shown, name)}
    if not moved or shown.model not in library.usable():
        return
    change(**moved)
    if not moved.keys().isdisjoint({"model", "prompt", "changes"}):
        state.notices().append("Answer first: model, prompt and changes are fixed until then.")


def _take_answers() -> None:
    """Merge the answers of a link, and put the visitor's own into it if they share them."""
    own, given = session_record().answers, page_state().answers
    if given and not own.is_shared:
        linked = from_text(given)
        brought = {step_id: response for step_id, response in linked.items() if _can_be(step_id, response)}
        if any(step_id not in own.responses for step_id in brought):
            state.notices().append("The answers in this link were added where you had none.")
        own.merge(brought)
    if given != (told := own.as_text() if own.is_shared else ""):
        change(answers=told)


def _can_be(step_id: StepId, response: Response) -> bool:
    """Whether the step exists and the response fits its question."""
    lesson = visitor_lessons.lesson(step_id.lesson)
    return lesson is not None and 0 <= step_id.step < len(lesson.steps) and _fits(lesson.steps[step_id.step], response)


def _fits(step: Step, response: Response) -> bool:
    return step.question is not None and all(map(step.question.fits, (response.first, response.last)))
