"""Synchronises the selection (layer, head, token, open views) between browser and server.

A click that only changes the selection stays in the browser and runs no page. The server has the selection that the
browser last sent, and sends its own changes (those of a lesson's step, say) at the end of a run. A page whose content
depends on the selection requests it; the browser then sends it whenever it differs.
"""

from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from pages.ui.components.events import Texts, parsed
from pages.ui.frame import url_parameters as links
from pages.ui.frame.visitor_choices import Visitor

BROWSER_STATE = "browser_selection"
"""Key of the session: the browser's selection as far as known; None to send it everything."""
_UNKNOWN_VALUE = "\0"
_DEFAULTS = Visitor()


def mark_known(current: Visitor) -> None:
    """Note that the browser holds this selection."""
    st.session_state[BROWSER_STATE] = links.selection_in_query(current)


def send_all() -> None:
    """Send the browser the whole selection at the end of this run."""
    st.session_state[BROWSER_STATE] = None


def reset(current: Visitor, *names: str) -> None:
    """Reset fields of the selection, here and in the browser."""
    for name in names:
        setattr(current, name, getattr(_DEFAULTS, name))
    if (known := st.session_state.get(BROWSER_STATE)) is not None:
        st.session_state[BROWSER_STATE] = {**known, **dict.fromkeys(names, _UNKNOWN_VALUE)}


def request() -> None:
    """Request the selection: this run draws something that depends on it."""
    st.session_state["selection_requested"] = True


def listener(current: Visitor, is_said: bool) -> Callable[[Mapping[str, Any]], None] | None:
    """A callback for an instrument's selection; None if the page doesn't depend on it."""

    def hear(wish: Mapping[str, Any]) -> None:
        if (held := parsed(Texts, wish)) is not None:
            update_from_browser(current, held)

    return hear if is_said else None


def update_from_browser(current: Visitor, held: Mapping[str, str]) -> None:
    """Take over the browser's selection. held: URL parameters; invalid ones become the defaults."""
    chosen = links.from_query({name: held[name] for name in links.SELECTION_FIELDS if name in held})
    for name in links.SELECTION_FIELDS:
        setattr(current, name, getattr(chosen, name))
    mark_known(current)


def changes_to_send(current: Visitor) -> tuple[dict[str, str | None], dict[str, str]]:
    """The changes to send (None for a default), and the selection that the browser then holds."""
    now, before = links.selection_in_query(current), st.session_state.get(BROWSER_STATE)
    st.session_state[BROWSER_STATE] = now
    if before is None:
        return {name: now.get(name) for name in links.SELECTION_FIELDS}, now
    return {name: now.get(name) for name in links.SELECTION_FIELDS if now.get(name) != before.get(name)}, now
