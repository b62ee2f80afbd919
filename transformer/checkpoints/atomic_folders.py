"""Replaces a folder atomically while other threads and processes read it or replace it too.

A new version is written into a hidden sibling, `.name.XXXXXXXX.tmp`. Then the old folder steps aside as
`.name.previous`, the new one takes the name, and the old one is removed. Between the two renames, and for good if the
machine stops there, the old version is whole under its hidden name. Readers find it there and leave it where it is;
only a save moves anything, and only one at a time.
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
except ImportError:  # Windows: there only the threads of one process are kept apart
    fcntl = None

T = TypeVar("T")
LOOKS = 3
"""How often a folder is looked for or read while it is being replaced, before the reader makes the saves wait."""
_HIDDEN = re.compile(r"\.(.+)\.(?:previous|[a-z0-9_]{8}\.tmp)")
_ONE_THREAD = threading.Lock()


class NoFolderError(OSError):
    """There is no folder of this name, nor an earlier version of it."""


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A new, empty folder to be filled, which takes the place of `path` when the block ends without an error.

    What earlier saves of this folder left, because they were killed, is tidied up first.
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
    """What `read` makes of a folder, all of it of one version: it reads again if the folder was replaced meanwhile.

    Raises: NoFolderError, and what `read` raises of a folder that kept still.
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
    with _one_save_at_a_time(path.parent):  # for it is replaced again and again
        return read(current(path))


def current(path: Path) -> Path:
    """Where a folder is at the moment: in its place, or hidden if it is being replaced. Raises NoFolderError."""
    for _ in range(LOOKS):  # it may move between two looks
        for place in (path, _previous(path)):
            if place.is_dir():
                return place
    raise NoFolderError(f"There is no folder {path.name!r}.")


def folder_names(parent: Path) -> list[str]:
    """The names of all folders in `parent`, sorted, those that are just being replaced included."""
    found = set()
    with os.scandir(parent) as children:
        for child in children:
            if hidden := _HIDDEN.fullmatch(child.name):
                found.add(hidden[1])
            elif not child.name.startswith(".") and child.is_dir():
                found.add(child.name)
    return sorted(found)


def _tidy(path: Path) -> None:
    """Put back the old version if no new one took its place, and remove what is left of others."""
    previous = _previous(path)
    if previous.is_dir() and not path.exists():
        previous.rename(path)
    shutil.rmtree(previous, ignore_errors=True)
    for child in path.parent.iterdir():
        if child.name.endswith(".tmp") and (hidden := _HIDDEN.fullmatch(child.name)) and hidden[1] == path.name:
            shutil.rmtree(child, ignore_errors=True)


@contextmanager
def _one_save_at_a_time(folder: Path) -> Iterator[None]:
    """Keeps out every (other) save into this folder. The lock is the system's, which lifts it when a process dies."""
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
    """What tells this folder from another that takes its place; None if it is gone."""
    try:
        found = folder.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns
