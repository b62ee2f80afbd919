"""Numbers as the browser gets them."""

from __future__ import annotations

import math


def short(number: float | None) -> float | None:
    """Five significant digits; None for what JSON does not have (NaN, infinities)."""
    if number is None:
        return None
    rounded = float(f"{number:.5g}")  # the very largest number becomes infinite
    return rounded if math.isfinite(rounded) else None
