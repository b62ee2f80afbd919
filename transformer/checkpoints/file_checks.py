"""Checks files from elsewhere before they are read: their size, and whether they are Git LFS pointers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..data.disk_errors import disk_problem
from .checkpoint import CheckpointError

LARGEST_JSON = 32_000_000
"""The largest file that is read whole, in bytes; a tokenizer of 150,000 tokens stays below it."""
LONGEST_REASON = 400
"""The longest description of a problem, in characters: a hostile file could fill pages with invented names."""
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


def reason(error: Exception) -> str:
    """An error's message in one line, shortened."""
    said = error.strerror if isinstance(error, OSError) and error.strerror else str(error) or type(error).__name__
    said = disk_problem(error) or said
    words = " ".join(said.split())
    return words if len(words) <= LONGEST_REASON else f"{words[: LONGEST_REASON - 1]}…"
