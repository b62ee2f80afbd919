"""Writes the browser's address bar without adding to its history, and restores a tab's view."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from streamlit.components.v2 import component

from pages.ui.components import events
from pages.ui.components.assets import script

LONGEST_PARAMETER, MAX_PARAMETERS = 100_000, 100
_mount = component("headsup_address_bar", js=script(__file__, "address_bar.js"))


def address_bar(
    query: str,
    time: float,
    *,
    overflow: Mapping[str, str],
    selection_changes: Mapping[str, str | None],
    known_selection: Mapping[str, str],
    requests_selection: bool,
    next_page: str | None,
    path: str,
    is_new_session: bool,
    key: str,
    on_restore: Callable[[str, dict[str, str]], None],
    on_select: Callable[[dict[str, str]], None],
) -> None:
    """Write parameters into the address bar.

    query: the encoded parameters, without those that the browser writes itself. time: when it was made; a query older
    than the last is ignored. overflow: parameters too long for the address, which the tab keeps over a reload.
    selection_changes: what to select, None for a default. known_selection: the selection as the server knows it; if
    requests_selection, on_select is called with the tab's selection where it differs. next_page: the title of a page to
    open. path: the page that the query belongs to; while the address bar shows another page (the visitor has just gone
    back), nothing is written. is_new_session: if the tab then holds a view that the query doesn't have (after a restart
    of the server, say), nothing is written, and on_restore is called with the tab's query and its other parameters.
    """

    def restored() -> None:
        restored_link = checked(events.event_value(key, "restored"))
        if restored_link is not None:
            on_restore(*restored_link)

    def selected() -> None:
        selection = texts_of(events.event_value(key, "selection"))
        if selection is not None:
            on_select(selection)

    data = {
        "query": query,
        "time": time,
        "overflow": dict(overflow),
        "selection_changes": dict(selection_changes),
        "known_selection": dict(known_selection),
        "requests_selection": requests_selection,
        "next_page": next_page,
        "path": path,
        "is_new_session": is_new_session,
    }
    _mount(key=key, data=data, on_restored_change=restored, on_selection_change=selected)


def checked(value: Any) -> tuple[str, dict[str, str]] | None:
    """Query and other parameters of a `restored` event, or None if they are invalid: browsers can send anything."""
    if not isinstance(value, Mapping):
        return None
    query, others = value.get("query"), texts_of(value.get("others"))
    if not isinstance(query, str) or len(query) > LONGEST_PARAMETER or others is None:
        return None
    return query, others


def texts_of(value: Any) -> dict[str, str] | None:
    """Parameters that a browser sent, or None if they are invalid."""
    if not isinstance(value, Mapping) or len(value) > MAX_PARAMETERS:
        return None
    texts = [*value, *value.values()]
    fits = all(isinstance(text, str) and len(text) <= LONGEST_PARAMETER for text in texts)
    return dict(value) if fits else None
