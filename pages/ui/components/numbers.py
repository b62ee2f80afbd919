"""Numbers as the browser gets them."""

from __future__ import annotations

import math


def short(number: float | None) -> float | None:
    """Five significant digits; None for what JSON does not have (NaN, infinities)."""
    if number is None or not math.isfinite(number):
        return None
    return float(f"{number:.5g}")
