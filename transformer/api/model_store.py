"""Stores visitors' models, trained or uploaded: each under a secret token, for a limited time, within a size limit.

They lie in memory, or in a folder, where they outlive a restart and every replica of the server sees them. Whoever has
a model's token has the model, so tokens are never listed and never logged. Where there is no room, whoever has most
loses what they used least recently, so that nobody's uploads push out everybody's models.
"""

import functools
import logging
import math
import os
import re
import secrets
import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from cachetools import TLRUCache

from ..checkpoints.folder import CARD, Checkpoint, CheckpointError, load_checkpoint, save_checkpoint
from ..data.disk_errors import disk_problem
from .limits import Share, signer

FOLDER_VARIABLE = "HEADSUP_STORE"
"""The environment variable that names the folder; without it, models lie in memory."""
PREFIX = "own-"
TOKEN = re.compile(f"{PREFIX}[0-9a-f]{{32}}")
LIFETIME = 24 * 3600.0
"""Seconds for which a model is kept after it was last used."""
LIMIT_IN_MEMORY, LIMIT_IN_FOLDER = 256_000_000, 4_000_000_000
"""Bytes of all models together; with more, some go."""
OWNER = "owner"
"""A file in a model's folder, with two keyed hashes: of whose it is, and of the address it came from."""
SWEEP_EVERY = 60.0
"""Seconds between two looks for models whose time is over."""
LEFT_OVER_AFTER = 3600.0
"""Seconds after which what a process that was killed has left of a model is removed."""
_LEFT_OVER = re.compile(rf"\.gone-[0-9a-f]{{16}}|\.{TOKEN.pattern}\..*")
_log = logging.getLogger(__name__)


class Stored(NamedTuple):
    """The data that decide which model is removed. used: its last use. who, address: its owner's; "" if unknown."""

    token: str
    size: int
    used: float
    who: str = ""
    address: str = ""


def surplus(models: Iterable[Stored], limit: int) -> Iterator[str]:
    """The tokens of models to remove, so that the others have at most `limit` bytes. The most recently used stays.

    Each time, the owner with the most bytes loses the model used least recently; first those at an address that has
    more than half of the limit.
    """
    left = sorted(models, key=lambda model: model.used)
    total, of_address, of_who = 0, Counter[str](), Counter[tuple[str, str]]()
    for model in left:
        total += model.size
        of_address[model.address] += model.size
        of_who[model.address, model.who] += model.size
    del left[-1:]
    while total > limit and left:
        crowded = [model for model in left if model.address and of_address[model.address] > limit / 2]
        gone = max(crowded or left, key=lambda model: of_who[model.address, model.who])  # the first of equals
        left.remove(gone)
        total -= gone.size
        of_address[gone.address] -= gone.size
        of_who[gone.address, gone.who] -= gone.size
        yield gone.token


def is_token(text: object) -> bool:
    """Whether this has the form of an own model's token. Nothing else ever becomes part of a path."""
    return isinstance(text, str) and TOKEN.fullmatch(text) is not None


def checkpoint_bytes(checkpoint: Checkpoint) -> int:
    return sum(weight.nbytes for weight in checkpoint.model.parameters())


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
        self._lifetime, self._now, self._swept = lifetime, now, now()
        self._lock = threading.RLock()
        self._kept: TLRUCache[str, Checkpoint] = TLRUCache(
            min(self.limit, LIMIT_IN_MEMORY), lambda token, kept, used: used + lifetime, now, checkpoint_bytes
        )
        """Models in memory; of a folder's, those used last."""
        self._stored: dict[str, Stored] = {}
        """The models that are in memory alone, by token."""
        if self.folder is not None:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def put(self, checkpoint: Checkpoint, share: Share | None = None) -> str:
        """Keep a model; returns its token. Others may be removed for it. share: its owner.

        Raises: CheckpointError for a model that is larger than the store, or that can't be written.
        """
        token, size = PREFIX + secrets.token_hex(16), checkpoint_bytes(checkpoint)
        if size > self._kept.maxsize:
            raise CheckpointError(
                f"The model has {size / 1e6:,.0f} MB, and at most {self._kept.maxsize / 1e6:,.0f} MB "
                "can be kept. Train a smaller one."
            )
        who, address = (_hash(share.who), _hash(share.address)) if share else ("", "")
        if self.folder is not None:
            try:
                save_checkpoint(self.folder / token, checkpoint)
                with suppress(OSError):  # another process has just removed it
                    (self.folder / token / OWNER).write_text(f"{who}\n{address}", encoding="ascii")
            except CheckpointError as error:  # whose words have the token, as do the errors that it comes from
                _log.error("A model can't be written to the folder that %s names.", FOLDER_VARIABLE)
                cause = error.__cause__
                known = isinstance(cause, OSError) and cause.strerror
                why = f": {disk_problem(cause) or known}" if cause and (disk_problem(cause) or known) else ""
                raise CheckpointError(f"The model can't be kept{why}. Download it, and try again later.") from None
        with self._lock:
            if self.folder is None:
                self._sweep()
                self._stored[token] = Stored(token, size, self._now(), who, address)
                for gone in [*surplus(self._stored.values(), self.limit)]:
                    self.forget(gone)
            self._use(token, checkpoint)
        if self.folder is not None:
            self._sweep()
        return token

    def get(self, token: str) -> Checkpoint | None:
        """The model of a token, which counts as a use of it; None if there is none, or none any more."""
        if not is_token(token):
            return None
        if self._now() - self._swept > SWEEP_EVERY:
            self._sweep()
        with self._lock:
            if token not in self:
                self._kept.pop(token, None)
                return None
            if checkpoint := self._kept.get(token):
                self._use(token, checkpoint)
        if checkpoint is not None or self.folder is None:
            return checkpoint
        try:
            checkpoint = load_checkpoint(self.folder / token)
        except CheckpointError:  # it went meanwhile, or it is damaged
            _log.warning("An own model can't be read.")
            return None
        self._use(token, checkpoint)
        return checkpoint

    def __contains__(self, token: object) -> bool:
        """Whether there is a model of this token, without using it."""
        if not is_token(token):
            return False
        if self.folder is None:
            with self._lock:
                return token in self._kept
        return self._now() - self._last_use(str(token)) <= self._lifetime

    def forget(self, token: str) -> None:
        """Remove a model; one that isn't there changes nothing."""
        if not is_token(token):
            return
        with self._lock:
            self._kept.pop(token, None)
            self._stored.pop(token, None)
        if self.folder is not None:
            _remove(self.folder / token)

    def _last_use(self, token: str) -> float:
        """When a model in the folder was used, in seconds since 1970."""
        try:
            return (self.folder / token / CARD).stat().st_mtime if self.folder else 0.0
        except OSError:
            return -math.inf

    def _use(self, token: str, checkpoint: Checkpoint) -> None:
        """Note that a model is used now."""
        with self._lock, suppress(ValueError):  # one of another replica may be too large for this one's memory
            self._kept[token] = checkpoint
            if token in self._stored:
                self._stored[token] = self._stored[token]._replace(used=self._now())
        if self.folder is not None:
            with suppress(OSError):  # another process has just removed it
                os.utime(self.folder / token / CARD, (self._now(), self._now()))

    def _sweep(self) -> None:
        """Remove models that weren't used for too long, and those that there is no room for."""
        self._swept = self._now()
        with self._lock:
            self._kept.expire()
            for token in [token for token in self._kept if token not in self]:
                del self._kept[token]
            self._stored = {token: stored for token, stored in self._stored.items() if token in self._kept}
        if self.folder is None:
            return
        for path in self.folder.iterdir():
            if _LEFT_OVER.fullmatch(path.name):
                with suppress(OSError):
                    if time.time() - path.stat().st_mtime > LEFT_OVER_AFTER:
                        shutil.rmtree(path, ignore_errors=True)
        tokens = [path.name for path in self.folder.iterdir() if is_token(path.name)]
        for token in [token for token in tokens if token not in self]:
            self.forget(token)
            tokens.remove(token)
        for token in [*surplus(map(self._stored_in_folder, tokens), self.limit)]:
            self.forget(token)

    def _stored_in_folder(self, token: str) -> Stored:
        path = Path(self.folder or "") / token
        try:
            who, _, address = (path / OWNER).read_text(encoding="ascii")[:200].partition("\n")
        except (OSError, ValueError):  # it has none, or another process has just removed it
            who = address = ""
        return Stored(token, _bytes_in(path), self._last_use(token), who, address)


def _hash(name: str | None) -> str:
    """Hash a name with the key that signs cookies; "" if it is unknown."""
    return signer().get_signature(f"model of {name}").decode() if name else ""


def _bytes_in(folder: Path) -> int:
    try:
        return sum(file.stat().st_size for file in folder.iterdir())
    except OSError:  # another process has just removed it
        return 0


def _remove(path: Path) -> None:
    """Remove a folder. It is renamed first, so that readers find all of it or nothing."""
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
