"""Stores a visitor's membership of a room for the tab."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streamlit.components.v2 import component

from pages.ui.components.assets import script
from pages.ui.components.events import event_value

LONGEST = 200
KEY = "room_membership_kept"
_mount = component("headsup_room_membership", js=script(__file__, "room_membership.js"))


def keep_membership(value: str, *, asks: bool, on_found: Callable[[str], None]) -> None:
    """Store a membership in the tab, or ask for the one that is stored.

    value: what to store; "" for none. asks: the session is new and doesn't know; nothing is stored, and on_found is
    called before another run with what the tab has; "" for none.
    """

    def restored() -> None:
        kept = checked_membership(event_value(KEY, "found"))
        if kept is not None:
            on_found(kept)

    _mount(key=KEY, data={"membership": value, "asks": asks}, on_found_change=restored)


def checked_membership(value: Any) -> str | None:
    """What a `found` event holds, or None: browsers can send anything."""
    return value if isinstance(value, str) and len(value) <= LONGEST else None
