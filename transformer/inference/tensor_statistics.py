"""Summarises tensors: mean, spread and extremes, and rows averaged into a few cells.

Shapes: pos, d_model.
"""

from __future__ import annotations

import numpy as np

MOST_CELLS = 48
"""The most cells of a token's strip."""
AT_ONCE = 30_000
"""Numbers to sum at once, so that intermediate results stay in the processor's cache."""
Statistics = tuple[float, float, float, float]
"""Mean, spread (standard deviation), smallest and largest finite value; NaN without any."""


class Summary:
    """Statistics of numbers that arrive in pieces, merged in float64 (Chan et al. 1983, eq. 2.1)."""

    def __init__(self) -> None:
        self._count, self._mean, self._squares = 0, 0.0, 0.0
        self._smallest, self._largest = np.inf, -np.inf

    def add(self, values: np.ndarray) -> None:
        """Add some of the numbers."""
        flat = values.reshape(-1)
        for first in range(0, flat.size, AT_ONCE):
            self._add(flat[first : first + AT_ONCE])

    def _add(self, piece: np.ndarray) -> None:
        finite = piece[np.isfinite(piece)].astype(np.float64)
        if not finite.size:
            return
        self._smallest = min(self._smallest, float(finite.min()))
        self._largest = max(self._largest, float(finite.max()))
        mean, count = float(finite.mean()), self._count + finite.size
        finite -= mean
        finite *= finite  # not a dot product, which NumPy would spread over cores
        moved = (mean - self._mean) ** 2 * self._count * finite.size / count
        self._squares += float(finite.sum()) + moved
        self._mean += (mean - self._mean) * finite.size / count
        self._count = count

    @property
    def statistics(self) -> Statistics:
        """The statistics of all numbers so far."""
        if not self._count:
            return np.nan, np.nan, np.nan, np.nan
        return self._mean, (self._squares / self._count) ** 0.5, self._smallest, self._largest


def statistics(values: np.ndarray) -> Statistics:
    """The statistics of an array."""
    summary = Summary()
    summary.add(values)
    return summary.statistics


def strip(values: np.ndarray, most: int = MOST_CELLS) -> tuple[np.ndarray, float]:
    """A stream (pos, d_model) as bytes, at most `most` per token: each cell has its value farthest from 0.

    Returns: bytes, 128 + 127 · value / limit; and the limit, the largest absolute value.
    """
    values = np.nan_to_num(values, posinf=0.0, neginf=0.0)
    width = values.shape[-1]
    cells = min(width, most)
    starts = np.arange(cells) * width // cells
    high, low = (reduce.reduceat(values, starts, axis=-1) for reduce in (np.maximum, np.minimum))
    pooled = np.where(high >= -low, high, low)
    limit = float(np.abs(values).max(initial=0.0))
    return np.rint(128 + 127 * (pooled / limit if limit else pooled)).astype(np.uint8), limit
