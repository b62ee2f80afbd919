"""Shows expanders whose content is computed when they are opened."""

from collections.abc import Callable

import streamlit as st

from pages.ui.frame.state import visitor
from pages.ui.frame.visitor_choices import Visitor


def lazy_expander(title: str, name: str, show: Callable[[], None], *, holds: tuple[str, ...] = ()) -> None:
    """A folded part of a page. It opens by itself when a choice that it holds isn't as at first: a link names it.

    name: no other one of the app has it. show: draws the part. holds: fields of the visitor's that are chosen in it.
    """
    key, seen = f"fold_{name}", f"seen_of_{name}"
    first, current = Visitor(), visitor()
    is_named = any(getattr(current, field) != getattr(first, field) for field in holds)
    if is_named and (key not in st.session_state or not st.session_state.get(seen)):
        st.session_state[key] = True
    st.session_state[seen] = is_named
    drawer(title, key, show)


def drawer(title: str, key: str, show: Callable[[], None], *, icon: str | None = None) -> None:
    """A folded part of a page that is drawn only while it is open: what nobody sees takes a browser as long."""
    opened = st.expander(title, key=key, icon=icon, on_change="rerun")
    if opened.open:
        with opened:
            show()
