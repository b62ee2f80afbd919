"""Shows a matrix as one heatmap, whose cells can be read and chosen.

Dimensions: row, column.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, NonNegativeInt

from pages.ui.components.assets import custom_component
from pages.ui.components.events import listening
from transformer import Recording

_mount = custom_component(__file__, "save.css", "tooltip.css", "matrix/matrix.css")

Cell = tuple[int, int]


class _Chosen(BaseModel):
    row: NonNegativeInt
    column: NonNegativeInt


def matrix(
    values: np.ndarray,
    *,
    key: str,
    name: str,
    across: str,
    down: str,
    unit: str,
    kind: Literal["scores", "weights"] = "scores",
    square: bool = False,
    labels: tuple[Sequence[str], Sequence[str]] | None = None,
    offsets: tuple[int, int] = (0, 0),
    selected: Cell | None = None,
    on_choose: Callable[[Cell], None] | None = None,
) -> None:
    """Show a matrix (row, column), row 0 on top; −∞ where hidden.

    name: what the picture is called. across, down: what a column and a row are, as "dimension". unit: what a number is.
    kind: of scores on a scale around 0, or weights from 0 to 1. square: whether cells are as high as wide. labels: of
    the tokens that rows and columns stand for, if they do; offsets: the positions of the first two in their texts.
    on_choose: called with the cell that is chosen, before the page runs again.
    """

    def chosen(cell: _Chosen) -> None:
        if on_choose and cell.row < values.shape[0] and cell.column < values.shape[1]:
            on_choose((cell.row, cell.column))

    about = {
        "key": key,
        "name": name,
        "across": across,
        "down": down,
        "unit": unit,
        "kind": kind,
        "square": square,
        "labels": labels,
        "offsets": offsets,
        "selected": selected and list(selected),
        "chooses": on_choose is not None,
    }
    _mount(data=build_payload(values, about), **listening(key, chosen=(_Chosen, chosen)))


def build_payload(values: np.ndarray, about: Mapping[str, Any]) -> bytes:
    """A recording of one tensor, `values`, and the limit of its scale: 1 for sines and weights, else the largest size.

    Raises: ValueError for what is no matrix with a cell, for a selection outside it, and for labels that don't fit.
    """
    if values.ndim != 2 or 0 in values.shape:
        raise ValueError(f"values has shape {values.shape}; give one 2-D matrix, at least 1 by 1")
    cell = about.get("selected")
    if cell is not None and not all(0 <= at < size for at, size in zip(cell, values.shape, strict=True)):
        raise ValueError(f"selected is {tuple(cell)}; the matrix has shape {values.shape}")
    labels = about.get("labels")
    if labels and tuple(map(len, labels)) != values.shape:
        raise ValueError(f"{len(labels[0])} and {len(labels[1])} labels were given for values of {values.shape}")
    largest = float(np.abs(values[np.isfinite(values)]).max(initial=0.0)) or 1.0
    # Sines computed in float32 may pass 1 by a rounding error.
    limit = 1.0 if about.get("kind") == "weights" or 0.5 < largest < 1.001 else largest
    return Recording({"values": values.astype(np.float32)}, {"about": {**about, "limit": limit}}).to_bytes()
