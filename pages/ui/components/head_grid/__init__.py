"""Shows the attention of many heads as a grid of small heatmaps.

Dimensions: layer, head, query (row of a heatmap), key (column).
"""

import numpy as np

from pages.ui.components.assets import custom_component
from transformer import Recording
from transformer.inference.pattern_pooling import LIMIT, pool, quantise

MAX_BYTES = 1_000_000
"""Of all heatmaps together."""

_mount = custom_component(__file__, "save.css", "head_overview.css")


def head_grid(*, patterns: np.ndarray, hidden: np.ndarray | None, key: str) -> None:
    """Show attention patterns (layer, head, query, key), weights from 0 to 1, as a grid of buttons.

    hidden: True where the mask hides a cell, any shape that broadcasts to `patterns`; NaN hides too. A pattern of more
    than 64 × 64 cells is max-pooled, so that a single large weight stays visible: a pixel then stands for several
    cells and is hidden only if all of them are. Colours have 255 steps. A head that is picked stays marked in the
    browser, whatever patterns follow.
    """
    _mount(key=key, data=build_payload(patterns, hidden))


def build_payload(patterns: np.ndarray, hidden: np.ndarray | None) -> bytes:
    """A recording of one tensor, `overview` (layer, head, query, key), one byte a cell."""
    if patterns.ndim != 4:
        raise ValueError(f"patterns has shape {patterns.shape}; (layer, head, query, key) is needed")
    if patterns.size == 0:
        raise ValueError(f"patterns has shape {patterns.shape}; there is no cell to draw")
    n_heatmaps = patterns.shape[0] * patterns.shape[1]
    limit = min(LIMIT, int((MAX_BYTES / n_heatmaps) ** 0.5))
    if limit < 1:
        raise ValueError(f"{n_heatmaps} heads are too many for one grid; {MAX_BYTES} would do")
    cells = quantise(*pool(patterns, hidden, limit))
    return Recording({"overview": cells}, {}).to_bytes()
