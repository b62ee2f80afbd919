"""Shows a matrix as one heatmap, whose cells can be read and chosen.

Dimensions: row, column.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from pages.ui.components.assets import custom_component
from transformer import Recording

_mount = custom_component(__file__, "save.css", "tooltip.css", "matrix/matrix.css")


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
) -> None:
    """Show a matrix (row, column), row 0 on top; −∞ where hidden.

    name: what the picture is called. across, down: what a column and a row are, as "dimension". unit: what a number is.
    kind: of scores on a scale around 0, or weights from 0 to 1. square: whether cells are as high as wide. labels: of
    the tokens that rows and columns stand for, if they do; offsets: the positions of the first two in their texts.
    """
    about = {
        "name": name,
        "across": across,
        "down": down,
        "unit": unit,
        "kind": kind,
        "square": square,
        "labels": labels,
        "offsets": offsets,
        "selected": None,
        "chooses": False,
    }
    _mount(data=build_payload(values, about), key=key)


def build_payload(values: np.ndarray, about: Mapping[str, Any]) -> bytes:
    """A recording of one tensor, `values`, and the limit of its scale: 1 for sines and weights, else the largest size.

    Raises: ValueError for what is no matrix with a cell, and for labels that don't fit.
    """
    if values.ndim != 2 or 0 in values.shape:
        raise ValueError(f"values has shape {values.shape}; give one 2-D matrix, at least 1 by 1")
    labels = about.get("labels")
    if labels and tuple(map(len, labels)) != values.shape:
        raise ValueError(f"{len(labels[0])} and {len(labels[1])} labels were given for values of {values.shape}")
    largest = float(np.abs(values[np.isfinite(values)]).max(initial=0.0)) or 1.0
    # Sines computed in float32 may pass 1 by a rounding error.
    limit = 1.0 if about.get("kind") == "weights" or 0.5 < largest < 1.001 else largest
    return Recording({"values": values.astype(np.float32)}, {"about": {**about, "limit": limit}}).to_bytes()
