"""Reads from the environment how much memory all loaded models may use."""

from __future__ import annotations

import os
import re

VARIABLE, EXAMPLE = "HEADSUP_MODEL_MEMORY", "1500 MB"
"""The environment variable that says how much memory models may take together, and what it may say."""
DEFAULT = 1_500_000_000
"""Bytes, where it says nothing."""
UNITS = {"MB": 10**6, "GB": 10**9}


def memory_limit() -> int:
    """Bytes that models may take together. Raises: ValueError, saying what would do, for a variable that says nothing
    of the kind."""
    told = os.environ.get(VARIABLE, "")
    if not told:
        return DEFAULT
    found = re.fullmatch(r"\s*(\d{1,9}(?:\.\d{1,9})?)\s*(MB|GB)\s*", told, re.ASCII | re.IGNORECASE)
    size = int(float(found[1]) * UNITS[found[2].upper()]) if found else 0
    if size < 1:
        raise ValueError(f"{VARIABLE} is {told[:40]!r}; it must be a size above 0 in MB or GB, such as {EXAMPLE!r}.")
    return size
