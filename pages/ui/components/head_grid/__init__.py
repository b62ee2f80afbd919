"""All heads of one layer, or all layers × heads, as small heatmaps to pick one from.

Dimensions: layer, head, query (row of a heatmap), key (column).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import streamlit as st
from safetensors.numpy import save

from pages.ui.components.events import told
from pages.ui.components.sources import reader, script, style
from transformer.inference.overview import LIMIT, pool, quantise

MAX_BYTES = 1_000_000
"""Of all heatmaps together."""

_mount = st.components.v2.component(
    "headsup_head_grid",
    html=reader(__file__)("head_grid.html"),
    css=style(__file__, instruments=["save.css", "overview.css"]),
    js=script(__file__, "head_grid.js"),
)


def head_grid(
    *,
    patterns: np.ndarray,
    layers: Sequence[int],
    selected: tuple[int, int],
    hidden: np.ndarray | None,
    key: str,
    on_select: Callable[[int, int], None] | None = None,
) -> Any:
    """Show attention patterns (layer, head, query, key), weights from 0 to 1, as a grid of buttons.

    layers: what each layer is called. selected: (layer, head), the layer as in `layers`; what is not there selects
    nothing. hidden: True where the mask hides a cell, any shape that broadcasts to `patterns`; NaN hides too. A
    pattern of more than 64 × 64 cells is max-pooled, so that a single large weight stays visible: a pixel then
    stands for several cells and is hidden only if all of them are. Colours have 255 steps.

    One event, for one run only (`result.head` is [layer, head], None otherwise) and as a callback that runs before
    the script (or the fragment): `on_select(layer, head)`, the layer as in `layers`. The selection belongs to the
    caller: keep it and pass it back as `selected`.
    """
    data = build_payload(patterns, layers, selected, hidden)
    shape = (tuple(layers), patterns.shape[1])

    def selected_in_browser() -> None:
        head = checked_head(told(key, "head"), *shape)
        if on_select is not None and head is not None:
            on_select(*head)

    return _mount(key=key, data=data, on_head_change=selected_in_browser)


def build_payload(
    patterns: np.ndarray, layers: Sequence[int], selected: tuple[int, int], hidden: np.ndarray | None
) -> bytes:
    """A recording: the tensor `overview` (layer, head, query, key), one byte a cell, and the metadata `grid`.

    All that is known is in one entry, for safetensors writes several in any order, and equal grids are equal bytes.
    """
    if patterns.ndim != 4 or patterns.shape[0] != len(layers):
        raise ValueError(
            f"patterns has shape {patterns.shape} for {len(layers)} layers; (layer, head, query, key) is needed"
        )
    if patterns.size == 0:
        raise ValueError(f"patterns has shape {patterns.shape}; there is no cell to draw")
    n_heatmaps = patterns.shape[0] * patterns.shape[1]
    limit = min(LIMIT, int((MAX_BYTES / n_heatmaps) ** 0.5))
    if limit < 1:
        raise ValueError(f"{n_heatmaps} heads are too many for one grid; {MAX_BYTES} would do")
    cells = quantise(*pool(patterns, hidden, limit))
    known = {"layers": [int(layer) for layer in layers], "selected": [int(part) for part in selected]}
    return save({"overview": np.ascontiguousarray(cells)}, {"grid": json.dumps(known)})


def checked_head(value: Any, layers: Sequence[int], n_heads: int) -> tuple[int, int] | None:
    """(layer, head) in a `head` event, or None unless it is one that was shown: browsers can send anything."""
    if not (isinstance(value, list) and len(value) == 2 and all(type(part) is int for part in value)):
        return None
    layer, head = value
    return (layer, head) if layer in layers and 0 <= head < n_heads else None
