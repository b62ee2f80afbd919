"""Shows effects by layer as heatmaps whose cells can be chosen.

Dimensions: row, column.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from streamlit.components.v2 import component

from pages.ui.components.assets import reader, script, style
from pages.ui.components.events import event_value
from pages.ui.components.rounding import rounded

PITCH = 28
"""Pixels of a row."""

_mount = component(
    "headsup_effect_heatmaps",
    html=reader(__file__)("effect_heatmaps.html"),
    css=style(__file__, "effect_heatmaps.css", instruments=["save.css", "tooltip.css"]),
    js=script(__file__, "effect_heatmaps.js"),
)


@dataclass(frozen=True)
class Matrix:
    """One heatmap."""

    title: str
    values: np.ndarray
    """(row, column); NaN where there is nothing to choose."""
    rows: Sequence[str]
    """What they are called when a cell is read out: "layer 0"."""
    columns: Sequence[str]
    row_labels: Sequence[str] = ()
    """As they are drawn; empty: as they are called."""
    column_labels: Sequence[str] = ()
    marked: Collection[tuple[int, int]] = ()
    """(row, column) of the cells that are in force, which are crossed out."""


@dataclass(frozen=True)
class Cell:
    """A cell, and which of the matrices it is in."""

    matrix: int
    row: int
    column: int


def effect_heatmaps(
    matrices: Sequence[Matrix],
    *,
    key: str,
    name: str,
    sentences: tuple[str, str],
    actions: tuple[str, str],
    limit: float | None = None,
    pitch: int = PITCH,
    on_choose: Callable[[Cell], None],
) -> None:
    """Show matrices on one diverging scale, from −limit to limit; by default as far as the largest of their numbers.

    name: what the picture is called. sentences: a cell's, if its number is at least 0 and if it is below, in which
    `{cell}` and `{value}`, the number without its sign, are filled in. actions: what choosing a cell does, and what it
    does to one that is in force. pitch: pixels of a row. on_choose: called with the cell before the page runs again.
    """

    def chosen() -> None:
        cell = checked_cell(event_value(key, "chosen"), matrices)
        if cell is not None:
            on_choose(cell)

    _mount(key=key, data=build_payload(matrices, name, sentences, actions, limit, pitch), on_chosen_change=chosen)


def build_payload(
    matrices: Sequence[Matrix],
    name: str,
    sentences: tuple[str, str],
    actions: tuple[str, str],
    limit: float | None,
    pitch: int = PITCH,
) -> dict[str, Any]:
    """What the browser gets: numbers with five significant digits. Raises: ValueError for labels that don't fit."""
    for matrix in matrices:
        sides = len(matrix.rows), len(matrix.columns)
        drawn = len(matrix.row_labels or matrix.rows), len(matrix.column_labels or matrix.columns)
        if not matrix.values.shape == sides == drawn:
            raise ValueError(f"{matrix.title}: values of {matrix.values.shape} have names {sides} and labels {drawn}")
    if limit is None:
        known = [np.abs(matrix.values[np.isfinite(matrix.values)]).max(initial=0.0) for matrix in matrices]
        limit = float(max(known, default=0.0)) or 1.0
    return {
        "name": name,
        "sentences": list(sentences),
        "actions": list(actions),
        "limit": limit,
        "pitch": pitch,
        "matrices": [
            {
                "title": matrix.title,
                "values": [[rounded(value) for value in row] for row in matrix.values.tolist()],
                "rows": list(matrix.rows),
                "columns": list(matrix.columns),
                "rowLabels": list(matrix.row_labels or matrix.rows),
                "columnLabels": list(matrix.column_labels or matrix.columns),
                "marked": [list(cell) for cell in matrix.marked],
            }
            for matrix in matrices
        ],
    }


def checked_cell(value: Any, matrices: Sequence[Matrix]) -> Cell | None:
    """The cell that a `chosen` event names, or None unless it can be chosen: browsers can send anything."""
    if not isinstance(value, Mapping):
        return None
    cell = [value.get(name, -1) for name in ("matrix", "row", "column")]
    if not all(type(number) is int and number >= 0 for number in cell) or cell[0] >= len(matrices):
        return None
    matrix, row, column = cell
    values = matrices[matrix].values
    if row >= values.shape[0] or column >= values.shape[1] or not np.isfinite(values[row, column]):
        return None
    return Cell(matrix, row, column)
