"""Shrinks attention patterns for an overview: pools each head to a few cells of one byte.

Shapes: query, key, and whatever dimensions stand before them.
"""

from __future__ import annotations

import numpy as np

LIMIT = 64
"""The most rows and columns of one head's overview."""
HIDDEN = 255
"""The byte of a cell that the mask hides; 0 to 254 stand for weights from 0 to 1."""


def pool(patterns: np.ndarray, hidden: np.ndarray | None, limit: int = LIMIT) -> tuple[np.ndarray, np.ndarray]:
    """Max-pool the last two dimensions to at most `limit` each, so that a single large weight stays visible.

    patterns: (…, query, key). hidden: True where the mask hides a cell, any shape that broadcasts to `patterns`.
    Returns: the pooled weights and, in the same shape, True where every cell of a block is hidden or NaN. Blocks
    differ by at most one row or column; a dimension within the limit is left as it is.
    """
    covered = np.isnan(patterns)
    if hidden is not None:
        covered = covered | np.broadcast_to(hidden, patterns.shape)
    weights = np.where(covered, -np.inf, patterns)
    for axis in (-2, -1):
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
