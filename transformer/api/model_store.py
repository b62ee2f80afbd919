"""Stores visitors' models, trained or uploaded: each under a secret token, for a limited time, within a size limit.

They lie in memory, or in a folder, where they outlive a restart and every replica of the server sees them. Whoever has
a model's token has the model, so tokens are never listed and never logged.
"""

from __future__ import annotations

import functools
import logging
import os
import re
import secrets
import shutil
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ..checkpoints.folder import CARD, Checkpoint, CheckpointError, load_checkpoint, save_checkpoint

FOLDER_VARIABLE = "HEADSUP_STORE"
"""The environment variable that names the folder; without it, models lie in memory."""
PREFIX = "own-"
TOKEN = re.compile(f"{PREFIX}[0-9a-f]{{32}}")
LIFETIME = 24 * 3600.0
"""Seconds for which a model is kept after it was last used."""
LIMIT_IN_MEMORY, LIMIT_IN_FOLDER = 256_000_000, 4_000_000_000
"""Bytes of all models together; with more, those used least recently go."""
SWEEP_EVERY = 60.0
"""Seconds between two looks for models whose time is over."""
LEFT_OVER_AFTER = 3600.0
"""Seconds after which what a process that was killed has left of a model is removed."""
_LEFT_OVER = re.compile(rf"\.gone-[0-9a-f]{{16}}|\.{TOKEN.pattern}\..*")
_log = logging.getLogger(__name__)


def is_token(text: object) -> bool:
    """Whether this has the form of an own model's token. Nothing else ever becomes part of a path."""
    return isinstance(text, str) and TOKEN.fullmatch(text) is not None


def checkpoint_bytes(checkpoint: Checkpoint) -> int:
    """Bytes of a model's weights."""
    return sum(weight.nbytes for weight in checkpoint.model.parameters())


@dataclass
class _Kept:
    checkpoint: Checkpoint
    size: int
    used: float


class ModelStore:
    """Checkpoints by token. Any thread may use it at any time, and any process that has the same folder.

    folder: where models lie; None for memory. limit: bytes of all of them. lifetime: seconds since the last use.
    now: the clock, in seconds since 1970, as files have it.
    """

    def __init__(
        self,
        folder: str | Path | None = None,
        *,
        limit: int | None = None,
        lifetime: float = LIFETIME,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.folder = None if folder is None else Path(folder)
        self.limit = limit or (LIMIT_IN_MEMORY if folder is None else LIMIT_IN_FOLDER)
        self._memory_limit = min(self.limit, LIMIT_IN_MEMORY)
        self._lifetime, self._now = lifetime, now
        self._lock = threading.RLock()
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        """In memory, least recently used first. Of a folder's models, those that were asked for last."""
        self._swept = now()
        if self.folder is not None:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def put(self, checkpoint: Checkpoint) -> str:
        """Keep a model; returns its token. Others may have to go.

        Raises: CheckpointError for a model that is larger than the store, or that can't be written.
        """
        token, size = PREFIX + secrets.token_hex(16), checkpoint_bytes(checkpoint)
        if size > self._memory_limit:
            raise CheckpointError(
                f"The model has {size / 1e6:,.0f} MB, and at most {self._memory_limit / 1e6:,.0f} MB "
                "can be kept. Train a smaller one."
            )
        if self.folder is not None:
            try:
                save_checkpoint(self.folder / token, checkpoint)
            except CheckpointError as error:  # whose words have the token, as do the errors that it comes from
                _log.error("A model can't be written to the folder that %s names.", FOLDER_VARIABLE)
                cause = error.__cause__
                why = f": {cause.strerror}" if isinstance(cause, OSError) and cause.strerror else ""
                raise CheckpointError(f"The model can't be kept{why}. Download it, and try again later.") from None
            self._touch(token)
        self._remember(token, checkpoint, size)
        self._sweep()
        return token

    def get(self, token: str) -> Checkpoint | None:
        """The model of a token, which counts as a use of it; None if there is none, or none any more."""
        if not is_token(token):
            return None
        if self._now() - self._swept > SWEEP_EVERY:
            self._sweep()
        if not self._is_there(token):
            with self._lock:
                self._kept.pop(token, None)
            return None
        self._touch(token)
        with self._lock:
            if found := self._kept.get(token):
                found.used = self._now()
                self._kept.move_to_end(token)
                return found.checkpoint
        if self.folder is None:
            return None
        try:
            checkpoint = load_checkpoint(self.folder / token)
        except CheckpointError:  # it went meanwhile, or it is damaged
            _log.warning("An own model can't be read.")
            return None
        self._remember(token, checkpoint, checkpoint_bytes(checkpoint))
        return checkpoint

    def __contains__(self, token: object) -> bool:
        """Whether there is a model of this token, without using it."""
        return is_token(token) and self._is_there(str(token))

    def forget(self, token: str) -> None:
        """Remove a model; one that isn't there changes nothing."""
        if not is_token(token):
            return
        with self._lock:
            self._kept.pop(token, None)
        if self.folder is not None:
            _remove(self.folder / token)

    def _is_there(self, token: str) -> bool:
        used = self._last_use(token)
        return used is not None and self._now() - used <= self._lifetime

    def _last_use(self, token: str) -> float | None:
        if self.folder is None:
            with self._lock:
                found = self._kept.get(token)
            return found.used if found else None
        try:
            return (self.folder / token / CARD).stat().st_mtime
        except OSError:
            return None

    def _touch(self, token: str) -> None:
        """Note in the folder that a model is used now."""
        if self.folder is not None:
            with suppress(OSError):  # another process has just removed it
                os.utime(self.folder / token / CARD, (self._now(), self._now()))

    def _remember(self, token: str, checkpoint: Checkpoint, size: int) -> None:
        with self._lock:
            self._kept[token] = _Kept(checkpoint, size, self._now())
            while sum(kept.size for kept in self._kept.values()) > self._memory_limit:
                self._kept.popitem(last=False)

    def _sweep(self) -> None:
        """Remove what hasn't been used for too long, and what there is no room for."""
        self._swept = self._now()
        with self._lock:
            for token in [token for token in self._kept if not self._is_there(token)]:
                del self._kept[token]
        if self.folder is None:
            return
        for path in self.folder.iterdir():
            if _LEFT_OVER.fullmatch(path.name):
                with suppress(OSError):
                    if time.time() - path.stat().st_mtime > LEFT_OVER_AFTER:
                        shutil.rmtree(path, ignore_errors=True)
        tokens = [path.name for path in self.folder.iterdir() if is_token(path.name)]
        total = 0
        for token in sorted(tokens, key=lambda token: self._last_use(token) or 0.0, reverse=True):
            total += _bytes_in(self.folder / token)
            if total > self.limit or not self._is_there(token):
                self.forget(token)


def _bytes_in(folder: Path) -> int:
    try:
        return sum(file.stat().st_size for file in folder.iterdir())
    except OSError:  # another process has just removed it
        return 0


def _remove(path: Path) -> None:
    """Take a folder away, whole at first: whoever reads it meanwhile finds all of it, or nothing."""
    gone = path.with_name(f".gone-{secrets.token_hex(8)}")
    try:
        path.rename(gone)
    except OSError:  # another process was faster
        return
    shutil.rmtree(gone, ignore_errors=True)


@functools.cache
def model_store() -> ModelStore:
    """The store of this process. Raises OSError if the folder that `HEADSUP_STORE` names can't be made."""
    return ModelStore(os.environ.get(FOLDER_VARIABLE) or None)
