"""Shows a step of a lesson as its document says, and takes its answers."""

from collections.abc import Callable, Collection, Mapping
from typing import Any

from pydantic import BaseModel

from pages.ui.components.assets import custom_component
from pages.ui.components.events import listening

PARTS = ("words", "question", "found")
_mount = custom_component(__file__, "lessons/lessons.css")


class Given(BaseModel):
    """What was answered to the question of a step. id: the step's. second: after a discussion; None for the same."""

    id: str
    first: int | float | list[int]
    second: int | float | list[int] | None
    discussing: bool


def lesson_step(
    step: Mapping[str, Any],
    state: Mapping[str, Any],
    *,
    key: str,
    take: Callable[[Given], None],
    shows: Collection[str] = PARTS,
) -> None:
    """Show a step's document to a visitor.

    state: as `transformer/frontend/lessons/step.js` describes it. take: called with what was answered, which is
    untrusted. shows: which parts of it.
    """
    _mount(
        data={"key": key, "step": step, "state": state, "shows": list(shows)},
        **listening(key, answered=(Given, take), checked=(bool, lambda _: None)),
    )
