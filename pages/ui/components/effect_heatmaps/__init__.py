"""Shows effects by layer as heatmaps whose cells can be chosen.

Dimensions: row, column.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from pydantic import BaseModel, NonNegativeInt

from pages.ui.components.assets import custom_component
from pages.ui.components.events import listening
from pages.ui.components.rounding import rounded

PITCH = 28
"""Pixels of a row."""

_mount = custom_component(__file__, "save.css", "tooltip.css")


@dataclass(frozen=True)
class Matrix:
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


class Cell(BaseModel):
    """A cell, and which of the matrices it is in."""

    matrix: NonNegativeInt
    row: NonNegativeInt
    column: NonNegativeInt

    def is_in(self, matrices: Sequence[Matrix]) -> bool:
        """Whether there is such a cell, with something to choose."""
        if self.matrix >= len(matrices):
            return False
        values = matrices[self.matrix].values
        is_there = self.row < values.shape[0] and self.column < values.shape[1]
        return is_there and bool(np.isfinite(values[self.row, self.column]))


def effect_heatmaps(
    matrices: Sequence[Matrix],
    *,
    key: str,
    name: str,
    sentences: tuple[str, str],
    actions: tuple[str, str],
    limit: float,
    pitch: int = PITCH,
    on_choose: Callable[[Cell], None],
) -> None:
    """Show matrices on one diverging scale, from −limit to limit.

    name: what the picture is called. sentences: a cell's, if its number is at least 0 and if it is below, in which
    `{cell}` and `{value}`, the number without its sign, are filled in. actions: what choosing a cell does, and what it
    does to one that is in force. pitch: pixels of a row. on_choose: called with the cell before the page runs again.
    """

    def chosen(cell: Cell) -> None:
        if cell.is_in(matrices):
            on_choose(cell)

    data = build_payload(matrices, name, sentences, actions, limit, pitch)
    _mount(data={"key": key, **data}, **listening(key, chosen=(Cell, chosen)))


def build_payload(
    matrices: Sequence[Matrix],
    name: str,
    sentences: tuple[str, str],
    actions: tuple[str, str],
    limit: float,
    pitch: int = PITCH,
) -> dict[str, Any]:
    """What the browser gets: numbers with five significant digits. Raises: ValueError for labels that don't fit."""
    for matrix in matrices:
        sides = len(matrix.rows), len(matrix.columns)
        drawn = len(matrix.row_labels or matrix.rows), len(matrix.column_labels or matrix.columns)
        if not matrix.values.shape == sides == drawn:
            raise ValueError(f"{matrix.title}: values of {matrix.values.shape} have names {sides} and labels {drawn}")
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
