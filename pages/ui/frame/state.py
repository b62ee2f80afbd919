"""Keeps what a session knows of its runs: the page that is open, the one to be opened, and what the visitor is told."""

import streamlit as st

from pages.ui.host.exchange import exchange, page_state


def begin_run(page: str) -> None:
    """Begin a run of a page with what the tab or the address has."""
    own, is_first = exchange(page), "page" not in st.session_state
    if is_first:
        st.session_state["came_by_link"] = bool(st.query_params)
    st.session_state["has_returned"] = own.is_new and not is_first
    if own.is_new:
        own.is_new = False
        st.session_state["notices"] = [*page_state().notices]
        st.session_state["view_from_link"] = not is_first or "model" in st.query_params
    if st.session_state.get("page") != page:
        st.session_state.pop("next_page", None)
    st.session_state["page"] = page


def notices() -> list[str]:
    """What the shell tells the visitor until they have read it, a sentence each."""
    return st.session_state.setdefault("notices", [])


def next_page() -> str | None:
    """The page that is to be opened, once."""
    return st.session_state.pop("next_page", None)


def returns(page: str) -> bool:
    """Whether the run that begins has its view from the address, as after *Back* or by a link within the app."""
    return st.session_state.get("page") not in (None, page) and "model" in st.query_params


def has_returned() -> bool:
    """Whether this run has a whole view that the session didn't know: after *Back*, or after a server has restarted."""
    return st.session_state.get("has_returned", False)


def end_run() -> None:
    """End a run of a page that has drawn all it has to draw."""
    st.session_state["completed_runs"] = completed_runs() + 1
    st.session_state["view_from_link"] = False


def open_page(page: str) -> None:
    """Open another page, by its title, once this run has been drawn.

    The browser follows the page's link. `st.switch_page` would add an address without parameters to the history, so
    that *Back* took two steps.
    """
    st.session_state["next_page"] = page


def is_leaving_page() -> bool:
    """Whether this run is about to open another page."""
    return "next_page" in st.session_state


def completed_runs() -> int:
    """How many runs this session has completed; interrupted ones don't count."""
    return st.session_state.get("completed_runs", 0)


def link_restored_view() -> bool:
    """Whether a link has just set a whole view, rather than the name of a lesson alone; True once."""
    return st.session_state.pop("view_from_link", False)
