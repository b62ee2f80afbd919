"""Stores a visitor's membership of a room for the tab."""

from collections.abc import Callable
from typing import Annotated

from pydantic import Field

from pages.ui.components.assets import custom_component
from pages.ui.components.events import listening

LONGEST = 200
KEY = "room_membership_kept"
_mount = custom_component(__file__)


def keep_membership(value: str, *, asks: bool, on_found: Callable[[str], None]) -> None:
    """Store a membership in the tab, or ask for the one that is stored.

    value: what to store; "" for none. asks: the session is new and doesn't know; nothing is stored, and on_found is
    called before another run with what the tab has; "" for none.
    """
    listeners = listening(KEY, found=(Annotated[str, Field(max_length=LONGEST)], on_found))
    _mount(data={"key": KEY, "membership": value, "asks": asks}, **listeners)
