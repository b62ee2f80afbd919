"""The memory limit for all open models: the environment variable's, or derived from the process's."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

from .checkpoint import CheckpointError

VARIABLE, EXAMPLE = "HEADSUP_MODEL_MEMORY", "1500 MB"
"""The environment variable for the memory of all models, and its format."""
RESERVED = 700_000_000
"""Bytes for the app and a class, if the variable isn't set."""
UNKNOWN = 2_200_000_000
"""Bytes to assume for a process if the system doesn't tell."""
UNITS = {"MB": 10**6, "GB": 10**9}


def memory_limit() -> int:
    """The most bytes for all models together: the variable's value; without it, the process's memory minus `RESERVED`,
    but at least a quarter of it. Raises: ValueError, saying what would do, for an invalid value."""
    told = os.environ.get(VARIABLE, "")
    if not told:
        memory = process_memory()
        return max(memory - RESERVED, memory // 4)
    found = re.fullmatch(r"\s*(\d{1,9}(?:\.\d{1,9})?)\s*(MB|GB)\s*", told, re.ASCII | re.IGNORECASE)
    size = int(float(found[1]) * UNITS[found[2].upper()]) if found else 0
    if size < 1:
        raise ValueError(f"{VARIABLE} is {told[:40]!r}; it must be a size above 0 in MB or GB, such as {EXAMPLE!r}.")
    return size


def check_fits(size: int) -> None:
    """Raise CheckpointError for a model whose weights alone exceed the limit for all models."""
    if size > (limit := memory_limit()):
        raise CheckpointError(
            f"Its weights need {size / 1e6:,.0f} MB of memory, and models may take {limit / 1e6:,.0f} MB here; "
            f"{VARIABLE} can allow more."
        )


def process_memory(root: Path = Path("/")) -> int:
    """The bytes that this process may use: the lowest limit of its control groups, or the machine's memory.

    root: the parent of the system's folders proc and sys.
    """
    return min([_physical_memory(), *_group_limits(root)])


def _physical_memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # on Windows
        return UNKNOWN


def _group_limits(root: Path) -> Iterator[int]:
    """The limits of the process's control groups, versions 1 and 2, and of those around them; see cgroups(7)."""
    with contextlib.suppress(OSError):  # only Linux has them
        for line in (root / "proc/self/cgroup").read_text().splitlines():
            _, controllers, group = line.split(":", 2)
            if controllers and "memory" not in controllers.split(","):
                continue
            top = root / "sys/fs/cgroup" / ("memory" if controllers else "")
            name = "memory.limit_in_bytes" if controllers else "memory.max"
            folder = top / group.strip("/")
            for each in [folder, *folder.parents][: len(folder.parts) - len(top.parts) + 1]:
                with contextlib.suppress(OSError, ValueError):  # not visible, or "max"
                    yield int((each / name).read_text())
