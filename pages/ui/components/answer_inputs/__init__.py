"""Shows two inputs that Streamlit lacks: items to put in order, and cells of a picture to choose.

Both report what is chosen; what a browser reports is checked here.
"""

from collections.abc import Callable, Sequence
from typing import Annotated

from pydantic import Field
from streamlit.components.v2 import component

from pages.ui.components.assets import reader, script, style
from pages.ui.components.events import listening

_HTML, _CSS = reader(__file__)("answer_inputs.html"), style(__file__, "answer_inputs.css")
_sortable_list = component("headsup_sortable_list", html=_HTML, css=_CSS, js=script("sortable_list"))
_cell_picker = component("headsup_cell_picker", html=_HTML, css=_CSS, js=script("cell_picker"))


def sortable_list(
    *, items: Sequence[str], order: Sequence[int], label: str, fixed: bool, take: Callable[[list[int]], None], key: str
) -> None:
    """Show things in an order. order: the numbers of the items; take: called with a new one; fixed: it can't change."""

    def chosen(order: list[int]) -> None:
        if sorted(order) == list(range(len(items))):
            take(order)

    _sortable_list(
        data={"key": key, "items": list(items), "order": list(order), "label": label, "fixed": fixed},
        **listening(key, chosen=(list[int], chosen)),
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

    def pick(cell: list[int]) -> None:
        query, at = cell
        if 0 <= query < len(queries) and 0 <= at < len(keys) and not (causal and at > query):
            take(cell)

    _cell_picker(
        data={
            "key": key,
            "queries": list(queries),
            "keys": list(keys),
            "begin": list(begin),
            "causal": causal,
            "chosen": chosen and list(chosen),
            "right": right and list(right),
            "label": label,
            "fixed": fixed,
        },
        **listening(key, chosen=(Annotated[list[int], Field(min_length=2, max_length=2)], pick)),
    )
