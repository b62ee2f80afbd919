"""Writes the browser's address bar without adding to its history, restores a tab's view, and says what was heard."""

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import BaseModel

from pages.ui.components.assets import custom_component
from pages.ui.components.events import Text, Texts, heard, listening

_mount = custom_component(__file__)


class _Restored(BaseModel):
    """What the tab holds: the address's parameters, encoded, and those that it had no room for."""

    query: Text
    others: Texts


def address_bar(
    data: Mapping[str, Any],
    *,
    key: str,
    on_restore: Callable[[str, dict[str, str]], None],
    on_select: Callable[[dict[str, str]], None],
) -> None:
    """Write parameters into the address bar. data is all of this:

    query: the encoded parameters, without those that the browser writes itself. time: when it was made; a query older
    than the last is ignored. overflow: parameters too long for the address, which the tab keeps over a reload.
    selection_changes: what to select, None for a default. known_selection: the selection as the server knows it; if
    requests_selection, on_select is called with the tab's selection where it differs. next_page: the title of a page to
    open. path: the page that the query belongs to; while the address bar shows another page (the visitor has just gone
    back), nothing is written. is_new_session: if the tab then holds a view that the query doesn't have (after a restart
    of the server, say), nothing is written, and on_restore is called with the tab's query and its other parameters.
    """
    _mount(
        data={"key": key, "heard": heard(), **data},
        **listening(
            key, restored=(_Restored, lambda link: on_restore(link.query, link.others)), selection=(Texts, on_select)
        ),
    )
