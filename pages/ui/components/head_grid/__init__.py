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

from pages.ui.components.sources import reader, script, style

LIMIT = 64
"""Rows and columns of one heatmap in the browser."""
MAX_BYTES = 1_000_000
"""Of all heatmaps together."""
HIDDEN = 255
"""The byte of a cell that the mask hides; 0 to 254 stand for weights from 0 to 1."""

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
        head = checked_head(st.session_state[key].get("head"), *shape)
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


def pool(
    patterns: np.ndarray, hidden: np.ndarray | None, limit: int = LIMIT
) -> tuple[np.ndarray, np.ndarray]:
    """Max-pool the last two dimensions to at most `limit` each.

    Returns the pooled weights and, in the same shape, True where every cell of a block is hidden or NaN. Blocks
    differ by at most one row or column; a dimension within the limit is left as it is.
    """
    covered = np.isnan(patterns)
    if hidden is not None:
        covered = covered | np.broadcast_to(hidden, patterns.shape)
    weights = np.where(covered, -np.inf, patterns)
    for axis in (2, 3):
        length = patterns.shape[axis]
        if length > limit:
            starts = np.arange(limit) * length // limit
            weights = np.maximum.reduceat(weights, starts, axis=axis)
    pooled_hidden = np.isneginf(weights)
    return np.where(pooled_hidden, 0.0, weights), pooled_hidden


def quantise(weights: np.ndarray, hidden: np.ndarray) -> np.ndarray:
    """Weights from 0 to 1 as bytes from 0 to 254, HIDDEN where hidden."""
    levels = np.rint(np.clip(weights, 0, 1) * (HIDDEN - 1)).astype(np.uint8)
    return np.where(hidden, np.uint8(HIDDEN), levels)


def checked_head(value: Any, layers: Sequence[int], n_heads: int) -> tuple[int, int] | None:
    """(layer, head) in a `head` event, or None unless it is one that was shown: browsers can send anything."""
    if not (isinstance(value, list) and len(value) == 2 and all(type(part) is int for part in value)):
        return None
    layer, head = value
    return (layer, head) if layer in layers and 0 <= head < n_heads else None
