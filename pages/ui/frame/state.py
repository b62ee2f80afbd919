"""One visitor's choices in their session: read from the URL, written to it, and shared by all pages.

The choices live in an object of our own, to whose fields widgets are tied (`widgets.py`). The URL is read when the
session begins, and when the visitor goes back or forward in the browser's history or follows a link within the app. It
is written after each run, in the browser, which replaces the entry of the history. What Python writes, through
`st.query_params`, a widget's state or its binding, Streamlit adds to the history, an entry a parameter: going back
would take several steps, through views that there never were.
"""

from __future__ import annotations

import contextlib
import secrets
import time
from urllib.parse import parse_qsl, urlencode, urlsplit

import streamlit as st

from pages.ui.components.tab import tab
from pages.ui.frame import selection_sync
from pages.ui.frame import url_parameters as links
from pages.ui.frame.visitor_choices import FIRST_MODEL, Visitor, fields
from pages.ui.models.session_store import session_record

MOST_KNOWN = 50
"""Addresses that the page that is open is known to have had. A run can be asked for before the last is written, and in
a tab that was opened by a link Streamlit tells that link's parameters, whatever was written since, until another page
is opened."""


def visitor() -> Visitor:
    """This session's visitor; made from the URL when the session begins."""
    if "visitor" not in st.session_state:
        parameters = st.query_params.to_dict()
        st.session_state["visitor"] = links.from_query(parameters or {"model": FIRST_MODEL})
        selection_sync.knows(st.session_state["visitor"])
        st.session_state["visitor"].own_text = session_record().own_text
        arrives()
        st.session_state["begins"] = True
        st.session_state["brought"] = "model" in parameters
        st.session_state["came_by_link"] = bool(parameters)
    return st.session_state["visitor"]


def begin_run(page: str) -> Visitor:
    """Begin a run of a page; if the visitor has gone back or forward, with what the page's URL says."""
    current, parameters = visitor(), st.query_params.to_dict()
    has_returned = st.session_state["returned"] = returns(page)
    if has_returned:
        _return_to(current, links.from_query(parameters))
    if has_returned or st.session_state.get("page") != page:
        st.session_state.pop("turning_to", None)
        st.session_state["known_addresses"] = []
    if parameters != _written():
        st.session_state.pop("written_address", None)  # so that the bar is written, whatever it holds now
    _know(parameters)
    st.session_state["page"] = page
    return current


def returns(page: str) -> bool:
    """Whether the run that begins has its view from the URL: after *Back* and *Forward*, or by a link within the app.

    A link of the navigation has no parameters. So it does if the URL has some as another page opens, or some that this
    page hasn't written.
    """
    parameters = _own(st.query_params.to_dict())
    if "model" not in parameters or "page" not in st.session_state:  # one without was left before it was written
        return False
    return st.session_state["page"] != page or parameters not in st.session_state["known_addresses"]


def has_returned() -> bool:
    """Whether this run has had its view from the URL."""
    return st.session_state.get("returned", False)


def end_run() -> None:
    """End a run of a page that has drawn all it has to draw."""
    st.session_state["completed_runs"] = completed_runs() + 1
    st.session_state["brought"] = False
    st.session_state["begins"] = False


def turn_to(page: str) -> None:
    """Leave for another page, by its title, once this run has been drawn.

    The browser does so by the page's link. `st.switch_page` would leave an address without parameters in the history,
    so that *Back* took two steps, the first of them to nothing that was ever looked at.
    """
    st.session_state["turning_to"] = page


def is_turning() -> bool:
    """Whether this run is about to be left for another page."""
    return "turning_to" in st.session_state


def completed_runs() -> int:
    """How many runs of a page this session has seen to their end; one that another click cut short doesn't count."""
    return st.session_state.get("completed_runs", 0)


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


def session_id() -> str:
    """Tells this session apart from the one that the same tab may have had before."""
    return st.session_state.setdefault("session_id", secrets.token_hex(4))


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
    selection_sync.knows(found)
    st.session_state["brought"] = True


def arrives() -> None:
    """A link or a lesson has brought a view: a text, what is looked at, and changes of its own model."""
    st.session_state["arrived"] = True
    selection_sync.tell_all()
    st.session_state["changed_model"] = visitor().model


def write_address(key: str = "tab") -> None:
    """Bring the address bar up to date; called at the end of each run: a page's, or, with its own key, a part's."""
    current, begins = visitor(), st.session_state["begins"]
    parameters, left_out = _own(links.to_query(current)), _own(links.left_out_parameters(current))
    told, knows = selection_sync.changed(current)
    place = (st.session_state["page"], parameters, left_out)
    before, at = st.session_state.get("written_address", (None, 0.0))
    leave = st.session_state.pop("turning_to", None)
    if place != before or told or leave:
        before, at = st.session_state["written_address"] = place, time.time()
        _know(parameters)
    path = urlsplit(st.context.url or "").path
    wants = st.session_state.pop("wants_looked", False)
    tab(
        urlencode(parameters),
        at,
        kept=left_out,
        told=told,
        knows=knows,
        wants=wants,
        leave=leave,
        path=path,
        begins=begins,
        key=key,
        on_return=_take_up,
        on_held=lambda held: selection_sync.take(current, held),
    )


def _written() -> dict[str, str] | None:
    """The parameters that the address bar was last told to hold."""
    place, _ = st.session_state.get("written_address", (None, 0.0))
    return place and place[1]


def _know(parameters: dict[str, str]) -> None:
    """Note that the page that is open has these in its address."""
    known = st.session_state["known_addresses"]
    if _own(parameters) not in known:
        st.session_state["known_addresses"] = [*known[:1], *known[1:][2 - MOST_KNOWN :], _own(parameters)]


def _own(parameters: dict[str, str]) -> dict[str, str]:
    """The parameters that Python writes."""
    return {name: value for name, value in parameters.items() if name not in links.LOOKED}


def _take_up(query: str, others: dict[str, str]) -> None:
    """Take up what the tab knows of a view: of one whose session was lost, or what an address had no room for.

    others: what it holds beside the address, and what the address had no room for.
    """
    with contextlib.suppress(ValueError):
        parameters = dict(parse_qsl(query, keep_blank_values=True, max_num_fields=100))
        _return_to(visitor(), links.from_query(parameters | others))


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
