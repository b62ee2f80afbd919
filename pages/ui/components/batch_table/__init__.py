"""Shows a padded batch as a table: one row per prompt, one column per position.

Shapes: batch (row), pos (column).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pages.ui.components.assets import custom_component

_mount = custom_component(__file__)


def batch_table(
    labels: Sequence[Sequence[str]], padding: np.ndarray, lines: Sequence[int], *, selected: int, key: str
) -> None:
    """Show a batch, as wide as its tokens are; what doesn't fit is scrolled.

    padding: bool (batch, pos), True for filler. lines: what each row is called. selected: the row to outline.
    """
    _mount(key=key, data=build_payload(labels, padding, lines, selected))


def build_payload(
    labels: Sequence[Sequence[str]], padding: np.ndarray, lines: Sequence[int], selected: int
) -> dict[str, Any]:
    """What the browser gets. Raises: ValueError for labels that don't fit."""
    rows, columns = padding.shape
    if [len(row) for row in labels] != [columns] * rows or len(lines) != rows:
        raise ValueError(f"{len(lines)} rows of labels were given for a batch of shape {padding.shape}")
    return {
        "labels": [list(row) for row in labels],
        "padding": padding.tolist(),
        "lines": list(lines),
        "selected": selected,
    }
