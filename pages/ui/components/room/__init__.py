"""Draws a room for a student, in the browser: where it is, its step, and what was revealed.

The script asks the room's API (`views/learn/room_api`), and sends votes there.
"""

from collections.abc import Callable, Mapping
from typing import Annotated, Any

from pydantic import Field

from pages.ui.components.assets import custom_component
from pages.ui.components.events import listening

_mount = custom_component(__file__, "lessons/lessons.css")
_Place = tuple[str, int] | None


def room_part(
    code: str,
    member: str,
    entry: str,
    *,
    part: str,
    room: dict[str, Any] | None,
    step: _Place,
    answer: Any,
    document: Mapping[str, Any] | None,
    opens: bool,
    on_lost: Callable[[str], None],
    on_left: Callable[[bool], None],
) -> None:
    """Draw a part of the room.

    member: the visitor's key. entry: tells this stay in the room from another one. part: "line", above what is on
    screen, or "step". room: where the page that is being drawn has the room: `step`, `lesson` (the room's own),
    `is_revealed`; None where it couldn't be reached. step: the one on screen. answer: the visitor's to its question,
    which counts in the room if nothing does yet; None for none. document: the step's, as `views/learn/document` makes
    it, where the room's API can't measure it. opens: whether the page draws more once it is revealed: then it runs
    again.
    on_lost: called with why this visitor is no longer in the room; "" where it has ended.
    """
    key = f"room_part_{part}"
    data = {
        "key": key,
        "part": part,
        "membership": {"code": code, "key": member, "entry": entry},
        "room": room,
        "step": step,
        "answer": answer,
        "document": document,
        "opens": opens,
    }
    lost = (Annotated[str, Field(max_length=400)], on_lost)
    _mount(data=data, **listening(key, lost=lost, left=(bool, on_left)))
