"""Shows two inputs that Streamlit lacks: items to put in order, and cells of a picture to choose.

Both report what is chosen; what a browser reports is checked here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from streamlit.components.v2 import component

from pages.ui.components.assets import reader, script, style
from pages.ui.components.events import event_value

_HTML, _CSS = reader(__file__)("answer_inputs.html"), style(__file__, "answer_inputs.css")
_sortable_list = component("headsup_sortable_list", html=_HTML, css=_CSS, js=script(__file__, "sortable_list.js"))
_cell_picker = component("headsup_cell_picker", html=_HTML, css=_CSS, js=script(__file__, "cell_picker.js"))


def sortable_list(
    *, items: Sequence[str], order: Sequence[int], label: str, fixed: bool, take: Callable[[list[int]], None], key: str
) -> None:
    """Show things in an order. order: the numbers of the items; take: called with a new one; fixed: it can't change."""

    def chosen() -> None:
        order = event_value(key, "chosen")
        if is_order(order, len(items)):
            take(order)

    _sortable_list(
        key=key,
        data={"items": list(items), "order": list(order), "label": label, "fixed": fixed},
        on_chosen_change=chosen,
    )


def cell_picker(
    *,
    queries: Sequence[str],
    keys: Sequence[str],
    begin: tuple[int, int],
    causal: bool,
    chosen: Sequence[int] | None,
    right: Sequence[int] | None,
    label: str,
    fixed: bool,
    take: Callable[[list[int]], None],
    key: str,
) -> None:
    """Show the cells of a head's picture, without what is in them.

    queries, keys: labels. begin: the positions of the first of them in the text; all other positions count from these.
    causal: whether later keys are hidden. chosen, right: a query and a key. take: called with those that are chosen.
    """

    def pick() -> None:
        cell = event_value(key, "chosen")
        if is_cell(cell, len(queries), len(keys), causal):
            take(cell)

    _cell_picker(
        key=key,
        data={
            "queries": list(queries),
            "keys": list(keys),
            "begin": list(begin),
            "causal": causal,
            "chosen": chosen and list(chosen),
            "right": right and list(right),
            "label": label,
            "fixed": fixed,
        },
        on_chosen_change=pick,
    )


def is_order(value: Any, count: int) -> bool:
    """Whether this holds the numbers of so many items, each once."""
    return (
        isinstance(value, list) and all(type(number) is int for number in value) and sorted(value) == list(range(count))
    )


def is_cell(value: Any, queries: int, keys: int, causal: bool) -> bool:
    """Whether this is a query and a key that there are, and that the mask doesn't hide."""
    if not (isinstance(value, list) and len(value) == 2 and all(type(number) is int for number in value)):
        return False
    query, key = value
    return 0 <= query < queries and 0 <= key < keys and not (causal and key > query)
