"""One visitor's choices in their session: read from the URL, written to it, and shared by all pages.

Streamlit drops a widget's state when its page is left, so the choices live in an object of our own, to whose fields
widgets are tied (`widgets.py`). The URL is read when the session begins and when the visitor goes back or forward in
the browser's history, and is written after each run. It is written in the browser: written from here, each page
would leave two entries in the history, and going back would take two steps.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Collection
from urllib.parse import parse_qsl, urlencode, urlsplit

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from pages.ui.components.address import address
from pages.ui.models.session_store import session_record
from pages.ui.shell import link as links
from pages.ui.shell import looked
from pages.ui.shell.choices import Visitor, fields


def visitor() -> Visitor:
    """This session's visitor; made from the URL when the session begins."""
    if "visitor" not in st.session_state:
        parameters = st.query_params.to_dict()
        st.session_state["visitor"] = links.from_query(parameters)
        st.session_state["visitor"].own_text = session_record().own_text
        arrives()
        st.session_state["begins"] = "model" not in parameters
        st.session_state["brought"] = "model" in parameters
        st.session_state["came_by_link"] = bool(parameters)
    return st.session_state["visitor"]


def begin_run(page: str) -> Visitor:
    """Begin a run of a page; if the visitor has gone back or forward, with what the page's URL says."""
    current = visitor()
    parameters = st.query_params.to_dict()
    if went_through_history() and "model" in parameters:  # a URL without it was left before it was written
        _return_to(current, links.from_query(parameters))
    looked.read(current, parameters)
    if st.session_state.get("page") != page:
        forget_fragments()
        turning_to()
    st.session_state["page"] = page
    return current


def end_run() -> None:
    """End a run of a page that has drawn all it has to draw."""
    st.session_state["completed_runs"] = completed_runs() + 1
    st.session_state["brought"] = False
    st.session_state["begins"] = False


def forget_fragments() -> None:
    """Forget the fragments that this run of a page hasn't drawn; to be called where another page begins, and before
    `st.stop()`.

    Streamlit does so at the end of every other run. A fragment that it remembers can still be asked for, by a component
    that is about to go or by Streamlit's own clock, and is then drawn into a page that has no place for it, which the
    browser doesn't survive; asked for while another page runs, it leaves that page empty, since the browser is told
    that it is back on the page before. What is asked of a fragment that is forgotten, Streamlit throws away.
    """
    context = get_script_run_ctx()
    if context is not None:
        context.fragment_storage.clear(context.shared.new_fragment_ids.snapshot())


def turn_to(page: str) -> None:
    """Called back by a button beside an instrument that leads to a page of its own: what it returns can be lost.

    A press that comes in one message with an event of the instrument, Streamlit takes for the instrument's fragment:
    the button is called back, but not drawn. The next run of its page finds the wish by `turning_to`.
    """
    st.session_state["turning_to"] = page


def is_turning() -> bool:
    """Whether such a button has been pressed, and its page hasn't seen it."""
    return "turning_to" in st.session_state


def turning_to(among: Collection[str] | None = None) -> str | None:
    """The page that such a button leads to, if it is among these; once, None after that."""
    page = st.session_state.get("turning_to")
    return None if among is not None and page not in among else st.session_state.pop("turning_to", None)


def completed_runs() -> int:
    """How many runs of a page this session has seen to their end; one that another click cut short doesn't count."""
    return st.session_state.get("completed_runs", 0)


def went_through_history() -> bool:
    """Whether this run was asked for by the browser's buttons *Back* and *Forward*."""
    context = get_script_run_ctx()
    return context is not None and context.is_history_navigation


def arrived() -> bool:
    """Whether the visitor's text is that of a link which hasn't been taken over yet."""
    return st.session_state.get("arrived", False)


def brought_view() -> bool:
    """Whether a link has just brought a whole view, and not only the name of a lesson; True once."""
    return st.session_state.pop("brought", False)


def taken_over() -> None:
    """The link's text is on screen now."""
    st.session_state["arrived"] = False
    st.session_state["brought_texts"] = brought_texts() + 1


def brought_texts() -> int:
    """How often a text was brought, by a link or a lesson: the tab then shows that one instead of its own."""
    return st.session_state.get("brought_texts", 0)


def _return_to(current: Visitor, found: Visitor) -> None:
    """Bring back a state of before. A text that its link had no room for stays as it is."""
    given = {"own_text"}
    missing = set(links.left_out(current)) - set(links.to_query(found))
    if found.model == current.model:
        given |= missing & {"batch", "prompt", "other_prompt", "changes"}
        if "prompt" in missing or found.prompt == current.prompt:
            given |= missing & {"written", "branches"}
    for name in set(fields()) - given:
        setattr(current, name, getattr(found, name))
    current.notices = found.notices
    arrives()
    st.session_state["brought"] = True


def arrives() -> None:
    """A link has brought a text, and changes of its own model."""
    st.session_state["arrived"] = True
    st.session_state["changed_model"] = visitor().model


def write_address() -> None:
    """Bring the address bar up to date; called at the end of each run."""
    parameters, told = links.to_query(visitor()), looked.changed(visitor())
    query = urlencode({name: value for name, value in parameters.items() if name not in links.LOOKED})
    place = (st.session_state["page"], completed_runs() if went_through_history() else 0, query)
    before, at = st.session_state.get("written_address", (None, 0.0))
    if place != before or told:
        before, at = st.session_state["written_address"] = place, time.time()
    path = urlsplit(st.context.url or "").path
    address(before[-1], at, told=told, path=path, key="address", begins=st.session_state["begins"], on_return=_take_up)


def _take_up(query: str) -> None:
    """Take up what a tab showed before its session was lost: its next page was asked for without parameters."""
    with contextlib.suppress(ValueError):
        parameters = dict(parse_qsl(query, keep_blank_values=True, max_num_fields=100))
        _return_to(visitor(), links.from_query(parameters))


def link() -> str:
    """The address that opens this page in this state on any server that runs the app."""
    parts = (st.context.url or "").split("?")[0], urlencode(links.to_query(visitor()))
    return "?".join(parts)


def within(name: str, choices: int, what: str) -> int:
    """A field that counts something of the model's, such as layers; beyond the last one, the last, with a notice."""
    current = visitor()
    value = getattr(current, name)
    if value >= choices:
        current.notices.append(f"There is no {what} {value} here; the last one, {choices - 1}, is shown.")
        setattr(current, name, choices - 1)
    return getattr(current, name)
