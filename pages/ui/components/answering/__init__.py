"""Shows two inputs that Streamlit lacks: items to put in order, and cells of a picture to choose.

Both report what is chosen; what a browser reports is checked here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from pages.ui.components.events import event_value
from pages.ui.components.sources import reader, script, style

_LOOK = {"html": reader(__file__)("answering.html"), "css": style(__file__, "answering.css")}
_order = st.components.v2.component("headsup_order", js=script(__file__, "order.js"), **_LOOK)
_cells = st.components.v2.component("headsup_cells", js=script(__file__, "cells.js"), **_LOOK)


def order(
    *, items: Sequence[str], order: Sequence[int], label: str, fixed: bool, take: Callable[[list[int]], None], key: str
) -> None:
    """Show things in an order. order: the numbers of the items; take: called with a new one; fixed: it can't change."""

    def chosen() -> None:
        found = event_value(key, "chosen")
        if is_order(found, len(items)):
            take(found)

    _order(
        key=key,
        data={"items": list(items), "order": list(order), "label": label, "fixed": fixed},
        on_chosen_change=chosen,
    )


def cells(
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

    queries, keys: labels. begin: the places of the first of them in the text; all other places count from these.
    causal: whether later keys are hidden. chosen, right: a query and a key. take: called with those that are chosen.
    """

    def pick() -> None:
        found = event_value(key, "chosen")
        if is_cell(found, len(queries), len(keys), causal):
            take(found)

    _cells(
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


def is_order(found: Any, count: int) -> bool:
    """Whether this holds the numbers of so many items, each once."""
    return isinstance(found, list) and all(type(each) is int for each in found) and sorted(found) == list(range(count))


def is_cell(found: Any, queries: int, keys: int, causal: bool) -> bool:
    """Whether this is a query and a key that there are, and that the mask doesn't hide."""
    if not (isinstance(found, list) and len(found) == 2 and all(type(each) is int for each in found)):
        return False
    query, key = found
    return 0 <= query < queries and 0 <= key < keys and not (causal and key > query)
