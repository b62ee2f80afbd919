"""What the browser holds: what is looked at (layer, head, token, what is open), and how a text is written.

A click that only looks at something else runs no page, and the server isn't told. These fields of the visitor are what
the browser last told; what a run makes of them, as a lesson's step does, the browser is told at its end. A page that
draws something of them says that it wants them: then the browser tells where it holds something else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from pages.ui.components.tab import texts_of
from pages.ui.frame import url_parameters as links
from pages.ui.frame.visitor_choices import Visitor

KNOWN = "looked_known"
"""In the session: what the browser holds, as far as is known; None if it is to be told everything."""
_UNKNOWN = "\0"
_AT_FIRST = Visitor()


def knows(current: Visitor) -> None:
    """The browser has just told, or has it from the same address."""
    st.session_state[KNOWN] = links.looked_in_query(current)


def tell_all() -> None:
    """Tell the browser everything at the end of this run, whatever it holds."""
    st.session_state[KNOWN] = None


def forget(current: Visitor, *names: str) -> None:
    """Let these be as at first, whatever the browser holds of them by now: it is told what becomes of them."""
    for name in names:
        setattr(current, name, getattr(_AT_FIRST, name))
    if (known := st.session_state.get(KNOWN)) is not None:
        st.session_state[KNOWN] = {**known, **dict.fromkeys(names, _UNKNOWN)}


def want() -> None:
    """This run of the page draws something of what is looked at."""
    st.session_state["wants_looked"] = True


def listener(current: Visitor, is_said: bool) -> Callable[[Mapping[str, Any]], None] | None:
    """What an instrument tells what is looked at, if the page says something of it."""

    def hear(wish: Mapping[str, Any]) -> None:
        held = texts_of(wish)
        if held is not None:
            take(current, held)

    return hear if is_said else None


def take(current: Visitor, held: Mapping[str, str]) -> None:
    """Take over what the browser holds. held: of links; what says nothing that can be is as at first."""
    found = links.from_query({name: held[name] for name in links.LOOKED if name in held})
    for name in links.LOOKED:
        setattr(current, name, getattr(found, name))
    knows(current)


def changed(current: Visitor) -> tuple[dict[str, str | None], dict[str, str]]:
    """What the browser has to be told, None for what is as at first; and all that it holds then."""
    now, before = links.looked_in_query(current), st.session_state.get(KNOWN)
    st.session_state[KNOWN] = now
    if before is None:
        return {name: now.get(name) for name in links.LOOKED}, now
    return {name: now.get(name) for name in links.LOOKED if now.get(name) != before.get(name)}, now
