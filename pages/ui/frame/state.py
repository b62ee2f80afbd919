"""Keeps one visitor's choices in the session, reads them from the URL and writes them to it.

Widgets are bound to the fields of a `Visitor` (`widgets.py`). The URL is read when the session begins, and when the
visitor goes back or forward in the browser's history or follows a link within the app. After each run the browser
writes it, replacing the entry of the history. `st.query_params` would add an entry for each change; a widget that is
bound to the URL replaces it, too, but adds an entry when a page without that widget is opened, and *Back* would need
two steps.
"""

import contextlib
import dataclasses
import time
from urllib.parse import parse_qsl, urlencode, urlsplit

import streamlit as st

from pages.ui.components.address_bar import address_bar
from pages.ui.frame import selection_sync
from pages.ui.frame import url_parameters as links
from pages.ui.frame.visitor_choices import Visitor, fields
from pages.ui.host.page_state import FIRST_MODEL
from pages.ui.session.session_store import session_record

MAX_KNOWN_ADDRESSES = 50
"""Addresses that the page that is open is known to have had. A run can be asked for before the last is written, and in
a tab that was opened by a link Streamlit tells that link's parameters, whatever was written since, until another page
is opened."""


def visitor() -> Visitor:
    """This session's visitor; made from the URL when the session begins."""
    if "visitor" not in st.session_state:
        parameters = st.query_params.to_dict()
        st.session_state["visitor"] = links.from_query(parameters or {"model": FIRST_MODEL})
        selection_sync.mark_known(st.session_state["visitor"])
        st.session_state["visitor"].own_text = session_record().own_text
        mark_restored()
        st.session_state["begins"] = True
        st.session_state["view_from_link"] = "model" in parameters
        st.session_state["came_by_link"] = bool(parameters)
    return st.session_state["visitor"]


def begin_run(page: str) -> Visitor:
    """Begin a run of a page; if the visitor has gone back or forward, with what the page's URL says."""
    current, parameters = visitor(), st.query_params.to_dict()
    has_returned = st.session_state["has_returned"] = returns(page)
    if has_returned:
        _return_to(current, links.from_query(parameters))
    if has_returned or st.session_state.get("page") != page:
        st.session_state.pop("next_page", None)
        st.session_state["known_addresses"] = []
    written, _ = st.session_state.get("written_address", (None, 0.0))
    if parameters != (written and written[1]):
        st.session_state.pop("written_address", None)  # so that the bar is written, whatever it holds now
    _remember_address(parameters)
    st.session_state["page"] = page
    return current


def returns(page: str) -> bool:
    """Whether the run that begins has its view from the URL: after *Back* and *Forward*, or by a link within the app.

    A link of the navigation has no parameters. So it does if the URL has some as another page opens, or some that this
    page hasn't written.
    """
    parameters = _server_parameters(st.query_params.to_dict())
    if "model" not in parameters or "page" not in st.session_state:  # one without was left before it was written
        return False
    return st.session_state["page"] != page or parameters not in st.session_state["known_addresses"]


def has_returned() -> bool:
    """Whether this run has had its view from the URL."""
    return st.session_state.get("has_returned", False)


def end_run() -> None:
    """End a run of a page that has drawn all it has to draw."""
    st.session_state["completed_runs"] = completed_runs() + 1
    st.session_state["view_from_link"] = False
    st.session_state["begins"] = False


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
    st.session_state["restored_texts"] = restored_texts() + 1


def restored_texts() -> int:
    """How often a link or a lesson has set the text; the tab then shows that text instead of its own."""
    return st.session_state.get("restored_texts", 0)


def _return_to(current: Visitor, earlier: Visitor) -> None:
    """Restore an earlier view. Texts too long for its link stay as they are."""
    given = {"own_text"}
    missing = set(links.left_out(current)) - set(links.to_query(earlier))
    if earlier.model == current.model:
        given |= missing & {"batch", "prompt", "other_prompt", "changes"}
        if "prompt" in missing or earlier.prompt == current.prompt:
            given |= missing & {"written", "branches"}
    for name in set(fields()) - given:
        setattr(current, name, getattr(earlier, name))
    current.notices = earlier.notices
    mark_restored()
    selection_sync.mark_known(earlier)
    st.session_state["view_from_link"] = True


def mark_restored() -> None:
    """Note that a link or a lesson has set the view: text, selection and changes."""
    st.session_state["text_restored"] = True
    selection_sync.send_all()
    st.session_state["changed_model"] = visitor().model


def write_address(key: str = "tab") -> None:
    """Bring the address bar up to date; called at the end of each run: a page's, or, with its own key, a part's."""
    current, linked, is_new_session = visitor(), linked_visitor(), st.session_state["begins"]
    parameters = _server_parameters(links.to_query(linked))
    left_out = _server_parameters(links.left_out_parameters(linked))
    changes, known = selection_sync.changes_to_send(current)
    address = (st.session_state["page"], parameters, left_out)
    before, written_at = st.session_state.get("written_address", (None, 0.0))
    next_page = st.session_state.pop("next_page", None)
    if address != before or changes or next_page:
        before, written_at = st.session_state["written_address"] = address, time.time()
        _remember_address(parameters)
    address_bar(
        {
            "query": urlencode(parameters),
            "time": written_at,
            "overflow": left_out,
            "selection_changes": changes,
            "known_selection": known,
            "requests_selection": st.session_state.pop("selection_requested", False),
            "next_page": next_page,
            "path": urlsplit(st.context.url or "").path,
            "is_new_session": is_new_session,
        },
        key=key,
        on_restore=_restore_from_tab,
        on_select=lambda selection: selection_sync.update_from_browser(current, selection),
    )


def _remember_address(parameters: dict[str, str]) -> None:
    """Note that the page that is open has these in its address."""
    known, written = st.session_state["known_addresses"], _server_parameters(parameters)
    if written not in known:
        st.session_state["known_addresses"] = [*known[:1], *known[1:][2 - MAX_KNOWN_ADDRESSES :], written]


def _server_parameters(parameters: dict[str, str]) -> dict[str, str]:
    """The parameters that Python writes."""
    return {name: value for name, value in parameters.items() if name not in links.SELECTION_FIELDS}


def _restore_from_tab(query: str, others: dict[str, str]) -> None:
    """Take up what the tab knows of a view: of one whose session was lost, or what an address had no room for.

    others: what it holds beside the address, and what the address had no room for.
    """
    with contextlib.suppress(ValueError):
        parameters = dict(parse_qsl(query, keep_blank_values=True, max_num_fields=100))
        _return_to(visitor(), links.from_query(parameters | others))


def link_prompt(prompt: str) -> None:
    """Have links hold a prompt for the one that was typed: while that can't be read, the last that could."""
    st.session_state["linked_prompt"] = visitor().prompt, prompt


def linked_visitor() -> Visitor:
    """The choices that the link holds."""
    typed, linked = st.session_state.get("linked_prompt", (None, None))
    return dataclasses.replace(visitor(), prompt=linked) if typed == visitor().prompt else visitor()


def page_link() -> str:
    """The address that opens this page in this state on any server that runs the app."""
    parts = (st.context.url or "").split("?")[0], urlencode(links.to_query(linked_visitor()))
    return "?".join(parts)
