"""Says which of the values that the browser owns a run draws, and resets some of them."""

import streamlit as st

from pages.ui.frame.visitor_choices import Visitor

_DEFAULTS = Visitor()


def send_all() -> None:
    """Have the browser hold the whole view of this session, as a lesson's step sets it."""
    st.session_state["opens_view"] = True


def reset(current: Visitor, *names: str) -> None:
    """Reset values, here and in the browser, which may have others."""
    for name in names:
        setattr(current, name, getattr(_DEFAULTS, name))
    st.session_state["reset"] = {*st.session_state.get("reset", ()), *names}
