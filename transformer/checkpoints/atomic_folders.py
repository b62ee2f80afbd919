"""Replaces a folder atomically while other threads and processes read it or replace it too.

A new version is written into a hidden sibling, `.name.XXXXXXXX.tmp`. Then the old folder steps aside as
`.name.previous`, the new one takes the name, and the old one is removed. Between the two renames, or if the machine
stops there, the old version is whole under its hidden name, where readers find it. Only saves move folders, one save at
a time.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

try:
    import fcntl
except ImportError:  # Windows, where only threads of one process exclude each other
    fcntl = None

T = TypeVar("T")
LOOKS = 3
"""Attempts to read a folder that is being replaced, before the reader locks out saves."""
_HIDDEN = re.compile(r"\.(.+)\.(?:previous|[a-z0-9_]{8}\.tmp)")
_ONE_THREAD = threading.Lock()


class NoFolderError(OSError):
    """There is neither a folder of this name nor an earlier version of it."""


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a new, empty folder, which replaces `path` when the block ends without an error.

    First removes leftovers of killed saves.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with _one_save_at_a_time(path.parent):
        _tidy(path)
        partial = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent))
        try:
            yield partial
            if path.exists():
                path.rename(_previous(path))
            partial.rename(path)
        finally:
            _tidy(path)


def steadily(path: Path, read: Callable[[Path], T]) -> T:
    """The result of `read` on one version of a folder: reads again if the folder was replaced meanwhile.

    Raises: NoFolderError, and any error of `read` on a folder that wasn't replaced.
    """
    for _ in range(LOOKS):
        folder = current(path)
        before = _identity(folder)
        try:
            found = read(folder)
        except Exception:
            if before is not None and _identity(folder) == before:
                raise
        else:
            if before is not None and _identity(folder) == before:
                return found
    with _one_save_at_a_time(path.parent):  # it keeps being replaced
        return read(current(path))


def current(path: Path) -> Path:
    """The folder's present path: its own, or a hidden one while it is being replaced. Raises NoFolderError."""
    for _ in range(LOOKS):  # it may move between the two checks
        for place in (path, _previous(path)):
            if place.is_dir():
                return place
    raise NoFolderError(f"There is no folder {path.name!r}.")


def folder_names(parent: Path) -> list[str]:
    """The names of all folders in `parent`, sorted, including those that are being replaced."""
    found = set()
    with os.scandir(parent) as children:
        for child in children:
            if hidden := _HIDDEN.fullmatch(child.name):
                found.add(hidden[1])
            elif not child.name.startswith(".") and child.is_dir():
                found.add(child.name)
    return sorted(found)


def _tidy(path: Path) -> None:
    """Restore the old version if no new one replaced it, and remove leftovers."""
    previous = _previous(path)
    if previous.is_dir() and not path.exists():
        previous.rename(path)
    shutil.rmtree(previous, ignore_errors=True)
    for child in path.parent.iterdir():
        if child.name.endswith(".tmp") and (hidden := _HIDDEN.fullmatch(child.name)) and hidden[1] == path.name:
            shutil.rmtree(child, ignore_errors=True)


@contextmanager
def _one_save_at_a_time(folder: Path) -> Iterator[None]:
    """Exclude other saves into this folder, by a lock that the system releases if the process dies."""
    if fcntl is None:
        with _ONE_THREAD:
            yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _previous(path: Path) -> Path:
    return path.with_name(f".{path.name}.previous")


def _identity(folder: Path) -> tuple[int, int] | None:
    """Identifies this folder among its versions; None if it is gone."""
    try:
        found = folder.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns
