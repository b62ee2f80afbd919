"""What an instrument in the browser and the visitor agree on: fields of the visitor that both can change."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import streamlit as st

from pages.ui.shell import link as links
from pages.ui.shell.choices import Visitor, fields
from pages.ui.shell.state import completed_runs, is_turning, write_address


def told(key: str, current: Visitor, tied: Iterable[str]) -> None:
    """Remember that the browser has just said what these fields hold."""
    st.session_state[f"{key}_told"] = _held(current, tied)


def serial(key: str, current: Visitor, tied: Iterable[str]) -> int:
    """Grows whenever these fields hold something else than the browser said last, or the page was away."""
    held = _held(current, tied)
    number, run = st.session_state.get(f"{key}_serial", (0, -1))
    if run < completed_runs() - 1 or st.session_state.get(f"{key}_told") != held:
        number += 1
        st.session_state[f"{key}_told"] = held
    st.session_state[f"{key}_serial"] = number, completed_runs()
    return number


def follower(
    current: Visitor, tied: Iterable[str], address: str, at_most_every: Callable[[], float] = lambda: 0.0
) -> Callable[[], None]:
    """What ends each run of the instrument's fragment: the address bar follows, and, if it has to, the page.

    address: the key of the component that writes the address. at_most_every: as in `write_address`.
    """
    others = [name for name in fields() if name not in set(tied)]
    before, missing = _held(current, others), links.left_out(current)

    def follow() -> None:
        # What another widget tells in the same moment comes in one message with an event of the instrument, and
        # Streamlit takes both for the fragment's: the widget's callback has been called, but its page isn't drawn.
        # And a text that has outgrown the link while it was written is said to have, which the page does.
        if is_turning() or _held(current, others) != before or links.left_out(current) != missing:
            st.rerun()
        write_address(address, at_most_every=at_most_every())

    return follow


def _held(current: Visitor, names: Iterable[str]) -> tuple[object, ...]:
    return tuple(getattr(current, name) for name in names)
