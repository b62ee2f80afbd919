"""A room in which a class answers together, as a lesson sees it. There is none yet: everybody is alone."""

from __future__ import annotations

from pages.ui.models.lessons.answers import StepPlace
from pages.ui.models.lessons.questions import Answer
from pages.ui.shell.sidebar import Session


def join_or_open(session: Session) -> None:
    """Draw what opens a room, or what joins one."""


def vote(place: StepPlace, answer: Answer) -> None:
    """Tell the room an answer; a later one to the same question takes the place of the first."""


def led() -> StepPlace | None:
    """Where the teacher has the room; None for those who go at their own pace."""
    return None


def holds_reveal(place: StepPlace) -> bool:
    """Whether the teacher hasn't revealed this question yet."""
    return False


def tally(place: StepPlace) -> None:
    """Draw how the room has answered, on the teacher's screen."""
