"""What a tab is in a room: kept in the browser for as long as the tab is there, whatever becomes of the connection."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from pages.ui.components.events import told
from pages.ui.components.sources import script

LONGEST = 200
_mount = st.components.v2.component("headsup_seat", js=script(__file__, "seat.js"))


def seat(value: str, *, asks: bool, on_found: Callable[[str], None]) -> None:
    """Let the tab keep a seat, or tell the one it has.

    value: what to keep; "" for nothing. asks: the session is new and doesn't know; nothing is kept, and on_found is
    called before another run with what the tab has; "" for nothing.
    """

    def found() -> None:
        kept = checked_seat(told("room_seat_kept", "found"))
        if kept is not None:
            on_found(kept)

    _mount(key="room_seat_kept", data={"seat": value, "asks": asks}, on_found_change=found)


def checked_seat(value: Any) -> str | None:
    """What a `found` event holds, or None: browsers can send anything."""
    return value if isinstance(value, str) and len(value) <= LONGEST else None
