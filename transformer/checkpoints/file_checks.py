"""Checks files from elsewhere before they are read: their size, and whether they are Git LFS pointers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .folder import LARGEST_JSON, CheckpointError, reason

POINTER = b"version https://git-lfs.github.com/"
"""The beginning of a Git LFS pointer file."""


def refuse_pointer(path: Path) -> Path:
    """The path of a file. Raises: CheckpointError for a Git LFS pointer."""
    with path.open("rb") as file:
        if file.read(len(POINTER)) == POINTER:
            raise CheckpointError(
                f"{path.name} is a Git LFS pointer, not the file itself; `git lfs pull` fetches that."
            )
    return path


def checked(path: Path) -> Path:
    """The path of a file to read whole. Raises: CheckpointError if it is too large, or a Git LFS pointer."""
    if path.stat().st_size > LARGEST_JSON:
        raise CheckpointError(f"{path.name} is larger than any such file should be.")
    return refuse_pointer(path)


def read_json(path: Path) -> dict[str, Any]:
    """The fields of a JSON file. Raises: CheckpointError for one that is too large or has none."""
    try:
        found = json.loads(checked(path).read_text(encoding="utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path.name} can't be read ({reason(error)}).") from None
    if not isinstance(found, dict):
        raise CheckpointError(f"{path.name} is no set of named values.")
    return found
