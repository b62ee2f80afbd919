"""Stores the token of a visitor's session record for the tab."""

from collections.abc import Callable
from typing import Any

from pages.ui.components.assets import custom_component
from pages.ui.components.events import listening, session_id

LONGEST = 2_000
KEY = "session_token"
_mount = custom_component(__file__)


def session_token(value: str, *, heard: bool, on_found: Callable[[str], None]) -> None:
    """Let the tab keep a value. If it has that of another session, it tells it first, and keeps it until it was heard.

    value: a token and what else is kept with it, separated by spaces; "" for nothing. heard: whether on_found was
    called. on_found: called before another run, with what the tab has kept since a session before; "" for what it
    can't have kept.
    """

    def restored(kept: Any) -> None:
        on_found(kept if isinstance(kept, str) and len(kept) <= LONGEST else "")  # browsers can send anything

    data = {"key": KEY, "value": value, "heard": heard, "session": session_id()}
    _mount(data=data, **listening(KEY, found=(Any, restored)))
