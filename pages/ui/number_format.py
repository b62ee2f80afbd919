"""Writes probabilities for people."""

import math


def percent(share: float) -> str:
    """A probability or share: whole from 10% to 99%, finer at both ends: `92%`, `6.4%`, `0.53%`, `99.95%`.

    `100%` is exactly 1, `0%` exactly 0. The same rule as `percent` in transformer/frontend/number_format.js.
    """
    value = 100 * share
    if not math.isfinite(value):
        return str(share)
    if 0 < value < 0.01:
        return "<0.01%"
    if 99.99 < value < 100:
        return ">99.99%"
    size = abs(value)
    digits = 2 if 0 < size < 0.995 or 99 < size < 100 else 1 if 0 < size < 9.95 else 0
    rounded = math.floor(size * 10**digits + 0.5) / 10**digits  # halves up, as in the browser
    return f"{'−' if value < 0 else ''}{rounded:,.{digits}f}%"
