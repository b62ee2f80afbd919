"""The models in a folder of checkpoints: lists them, and loads each once for all visitors."""

import contextlib
import hashlib
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

from ..checkpoints.atomic_folders import current
from ..checkpoints.folder import (
    FILES,
    CheckpointEntry,
    UnreadableCheckpoint,
    checkpoint_stamp,
    list_checkpoints,
    load_checkpoint,
    weight_bytes,
)
from ..checkpoints.memory_limit import memory_limit
from .open_models import OpenModel, OpenModels

FOLDER = Path(os.environ.get("HEADSUP_CHECKPOINTS") or Path(__file__).parents[2] / "checkpoints")
"""Where the shipped models are, unless the environment names another folder."""
ANSWERS = b"1"
"""Another one once the same question is answered otherwise: what a browser has of a version, it keeps for good."""
LISTED_FOR = 10.0
"""Seconds after which the folder is looked through again."""


class Library:
    """Checkpoints by name. Safe from any thread."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self.folder = folder
        self._open = OpenModels(memory_limit())
        self._lock = threading.Lock()
        self._listed: tuple[CheckpointEntry | UnreadableCheckpoint, ...] = ()
        self._listed_at = -LISTED_FOR
        self._versions: dict[str, tuple[tuple[int, ...], str]] = {}
        """By name, with the stamp of the folder that it was computed of."""

    def entries(self) -> tuple[CheckpointEntry | UnreadableCheckpoint, ...]:
        """Every checkpoint folder, the damaged ones with what is wrong; the same objects for everybody."""
        with self._lock:
            if time.monotonic() - self._listed_at >= LISTED_FOR:
                self._listed, self._listed_at = tuple(list_checkpoints(self.folder)), time.monotonic()
            return self._listed

    def open(
        self, name: str, waiting: Callable[[], contextlib.AbstractContextManager] = contextlib.nullcontext
    ) -> OpenModel:
        """A model as its folder has it now. waiting: entered while it is read, if it has to be.

        Raises: CheckpointError if it can't be opened.
        """
        path = self.folder / name
        stamp = checkpoint_stamp(path)

        def load() -> OpenModel:
            with waiting():
                return OpenModel(name, self.version(name), load_checkpoint(path))

        return self._open.get((name, stamp), lambda: weight_bytes(path), load)

    def version(self, name: str) -> str:
        """The version of a checkpoint as its folder has it now."""
        stamp = checkpoint_stamp(self.folder / name)
        known, version = self._versions.get(name, (None, ""))
        if known != stamp:
            version = version_of(self.folder / name)
            self._versions[name] = stamp, version
        return version


def version_of(path: Path) -> str:
    """Twelve hexadecimal digits that every server gives the same checkpoint, and no other."""
    digest = hashlib.blake2b(digest_size=6, person=ANSWERS)
    for name in FILES:
        try:
            with (current(path) / name).open("rb") as file:
                digest.update(hashlib.file_digest(file, "blake2b").digest())
        except OSError:  # there is no such checkpoint, as opening it will say
            break
    return digest.hexdigest()
