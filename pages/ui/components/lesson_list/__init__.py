"""Shows the lessons as cards."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pages.ui.components.assets import custom_component
from pages.ui.components.events import listening

_mount = custom_component(__file__, "lessons/lessons.css")


def lesson_list(
    cards: Sequence[Mapping[str, Any]], *, open_lesson: Callable[[str], None], remove: Callable[[], None]
) -> None:
    """Show lessons.

    cards: as `transformer/frontend/lessons/lesson_list.js` describes them. open_lesson: called with the name of the
    lesson that is chosen, which is untrusted. remove: called to remove the visitor's own lesson.
    """
    key = "lesson_list"
    _mount(
        data={"key": key, "cards": list(cards)},
        **listening(key, opened=(str, open_lesson), removed=(bool, lambda _: remove())),
    )
