"""Rounds numbers for the browser."""

import math


def rounded(number: float | None) -> float | None:
    """Five significant digits; None for what JSON does not have (NaN, infinities)."""
    if number is None:
        return None
    rounded = float(f"{number:.5g}")  # the very largest number becomes infinite
    return rounded if math.isfinite(rounded) else None
