"""Runs computations on a few threads, in turn among those who ask.

Identical requests share one, and it is cancelled when all of them leave.
"""

import threading
import time
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from typing import Any

from ..fair_queue import FairThreads
from .errors import ApiError, stopping

Progress = Callable[[float], None]
"""Called by a computation with the share that is done, 0 to 1; raises AbandonedError once nobody waits for it."""


class AbandonedError(Exception):
    """Nobody waits for this computation any more."""


class Computation:
    """A computation under way, and how many wait for it."""

    def __init__(self) -> None:
        self.future: Future[Any]
        self.share = 0.0
        """How much of it is done, 0 to 1, if it says so."""
        self.begun_at: float | None = None
        self.readers = 0
        self.is_wanted = True
        """Whether its result is, if there are readers."""

    def progress(self, share: float) -> None:
        """As `Progress`."""
        self.share = min(max(share, 0.0), 1.0)
        if not (self.readers and self.is_wanted):
            raise AbandonedError


class Computations:
    """Computations by key. threads: how many are computed at the same moment. waiting: how many may be under way."""

    def __init__(self, threads: int, waiting: int) -> None:
        self._threads = FairThreads(threads, "api")
        self._waiting = waiting
        self._lock = threading.Lock()
        self._computations: dict[Hashable, Computation] = {}
        self._is_closed = False

    @contextmanager
    def join(self, key: Hashable, compute: Callable[[Progress], Any], owner: Hashable = None) -> Iterator[Computation]:
        """Wait, within, for the computation of a key: one that is under way, or else a new one.

        owner: whose turn it is computed in. Where too many are under way, whoever has most waiting loses the last.
        Raises: ApiError 503 where that is this owner, and after `close`.
        """
        with self._lock:
            if self._is_closed:
                raise stopping()
            computation = self._computations.get(key)
            if computation is None:
                if len(self._computations) >= self._waiting and not self._threads.make_room(owner, _too_much()):
                    raise _too_much()
                computation = self._computations[key] = Computation()
            computation.readers += 1
            if computation.readers == 1:  # before it begins, so that it finds itself waited for
                computation.future = self._threads.submit(owner, partial(self._run, computation, compute))
            else:
                self._threads.share(owner, computation.future)
        try:
            yield computation
        finally:
            with self._lock:
                computation.readers -= 1
                if not computation.readers:
                    del self._computations[key]
                    computation.future.cancel()  # if it hasn't begun

    def __len__(self) -> int:
        """How many are under way."""
        return len(self._computations)

    @property
    def seconds_running(self) -> float:
        """Of the one that has been computed for longest; 0 if none is."""
        with self._lock:
            begun = [each.begun_at for each in self._computations.values() if each.begun_at is not None]
        return time.monotonic() - min(begun) if begun else 0.0

    def _run(self, computation: Computation, compute: Callable[[Progress], Any]) -> Any:
        computation.begun_at = time.monotonic()
        try:
            return compute(computation.progress)
        finally:
            computation.begun_at = None

    def close(self) -> None:
        """Begin nothing any more, and end what says how far it is. The futures of what hasn't begun are cancelled."""
        with self._lock:
            self._is_closed = True
            for computation in self._computations.values():
                computation.is_wanted = False
        self._threads.close()


def _too_much() -> ApiError:
    return ApiError(503, "The server has too much to compute just now; ask again in a second.", retry_after=1)
