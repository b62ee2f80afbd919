"""What an instrument in the browser and the visitor agree on: fields of the visitor that both can change."""

from __future__ import annotations

from collections.abc import Iterable

import streamlit as st

from pages.ui.shell.choices import Visitor, fields
from pages.ui.shell.state import completed_runs


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


def elsewhere(current: Visitor, tied: Iterable[str]) -> tuple[object, ...]:
    """All that the visitor has chosen outside of the instrument."""
    return _held(current, (name for name in fields() if name not in set(tied)))


def _held(current: Visitor, names: Iterable[str]) -> tuple[object, ...]:
    return tuple(getattr(current, name) for name in names)
