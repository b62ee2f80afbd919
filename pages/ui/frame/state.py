"""Keeps one visitor's choices in the session, reads them from the URL and writes them to it.

Widgets are bound to the fields of a `Visitor` (`widgets.py`). The URL is read when the session begins, and when the
visitor goes back or forward in the browser's history or follows a link within the app. After each run the browser
writes it, replacing the entry of the history. `st.query_params` would add an entry for each change; a widget that is
bound to the URL replaces it, too, but adds an entry when a page without that widget is opened, and *Back* would need
two steps.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st

from pages.ui.frame import url_parameters as links
from pages.ui.frame.visitor_choices import Visitor
from pages.ui.host.exchange import exchange
from pages.ui.host.page_state import PARAMETERS
from pages.ui.session.session_store import session_record


def visitor() -> Visitor:
    """This session's visitor: the page state, with what Python has changed in it since the run began."""
    if "visitor" not in st.session_state:
        texts = exchange().texts
        current = st.session_state["visitor"] = links.from_query(texts)
        current.own_text = session_record().own_text
        st.session_state["synced"] = links.everything(current)
        mark_restored()
        st.session_state["view_from_link"] = "model" in st.query_params
        st.session_state["came_by_link"] = bool(st.query_params)
    return st.session_state["visitor"]


def begin_run(page: str) -> Visitor:
    """Begin a run of a page: tell the exchange what Python has changed, and take up what the tab has."""
    current = visitor()
    tell_changes(page)
    own = exchange(page)
    reading, sent = st.session_state.get("taken_up", (own.reading, own.sent))
    st.session_state["taken_up"] = own.reading, own.sent
    st.session_state["has_returned"] = own.reading != reading
    if own.reading != reading or own.sent != sent:
        _take_up(current, links.from_query(own.texts))
        st.session_state["synced"] = links.everything(current)
    if st.session_state.get("page") != page:
        st.session_state.pop("next_page", None)
    st.session_state["page"] = page
    return current


def tell_changes(page: str) -> None:
    """Tell the exchange what Python has changed in the page state since it was told, or had it from the tab."""
    current = visitor()
    now = links.everything(current)
    before = st.session_state.setdefault("synced", now)
    made = {name for name in PARAMETERS if now.get(name) != before.get(name)} | st.session_state.pop("reset", set())
    if st.session_state.pop("opens_view", False):
        exchange(page).open(now)
        st.session_state["taken_up"] = exchange(page).reading, exchange(page).sent
    elif made:
        exchange(page).change({name: getattr(current, name) for name in made})
    st.session_state["synced"] = now


@contextmanager
def kept_from_tab() -> Iterator[None]:
    """Change what this run draws, and not the tab's page state: the tab may hold another layer by the next run."""
    before = links.everything(visitor())
    yield
    now = links.everything(visitor())
    st.session_state["synced"] |= {name: now.get(name) for name in PARAMETERS if now.get(name) != before.get(name)}


def has_untold_changes() -> bool:
    """Whether Python has changed the page state, or opens a page, since the run told the tab: as a fragment may."""
    return is_leaving_page() or links.everything(visitor()) != st.session_state["synced"]


def _take_up(current: Visitor, told: Visitor) -> None:
    for name in PARAMETERS:
        setattr(current, name, getattr(told, name))
    if has_returned():
        current.notices = told.notices
    mark_restored()
    st.session_state["opens_view"] = False
    st.session_state["view_from_link"] = has_returned()


def next_page() -> str | None:
    """The page that is to be opened, once."""
    return st.session_state.pop("next_page", None)


def returns(page: str) -> bool:
    """Whether the run that begins has its view from the address, as after *Back* or by a link within the app."""
    return st.session_state.get("page") not in (None, page) and "model" in st.query_params


def has_returned() -> bool:
    """Whether this run has had its view from the URL."""
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


def is_text_restored() -> bool:
    """Whether the text comes from a link or a lesson and isn't on screen yet."""
    return st.session_state.get("text_restored", False)


def link_restored_view() -> bool:
    """Whether a link has just set a whole view, rather than the name of a lesson alone; True once."""
    return st.session_state.pop("view_from_link", False)


def confirm_restored_text() -> None:
    """Note that the restored text is on screen."""
    st.session_state["text_restored"] = False


def mark_restored() -> None:
    """Note that a link or a lesson has set the view: text, selection and changes."""
    st.session_state["text_restored"] = True
    st.session_state["changed_model"] = visitor().model
