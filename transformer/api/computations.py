"""Lets identical requests share one job, which is stopped when all of them have left."""

import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any

from ..jobs import FairThreads, Job
from .errors import ApiError, stopping


class Computations:
    """Jobs by key. threads: how many run at once. waiting: how many may be under way."""

    def __init__(self, threads: int, waiting: int) -> None:
        self._threads = FairThreads(threads, "api")
        self._waiting = waiting
        self._lock = threading.Lock()
        self._jobs: dict[Hashable, Job[Any]] = {}
        self._readers: dict[Hashable, int] = {}
        self.is_closed = False

    @contextmanager
    def join(self, key: Hashable, compute: Callable[[], Any], owner: Hashable = None) -> Iterator[Job[Any]]:
        """Inside, share the job of a key: the one under way, or else a new one.

        owner: in whose turn to compute it. If too many are under way, the owner with most waiting loses the last.
        Raises: ApiError 503 if that is this owner, and after `close`.
        """
        with self._lock:
            if self.is_closed:
                raise stopping()
            if (job := self._jobs.get(key)) is not None:
                self._threads.share(owner, job)
            elif len(self._jobs) < self._waiting or self._threads.make_room(owner, _too_much()):
                job = self._jobs[key] = self._threads.submit(owner, compute)
            else:
                raise _too_much()
            self._readers[key] = self._readers.get(key, 0) + 1
        try:
            yield job
        finally:
            with self._lock:
                self._readers[key] -= 1
                if not self._readers[key]:
                    del self._jobs[key], self._readers[key]
                    job.stop()

    def __len__(self) -> int:
        """How many are under way."""
        return len(self._jobs)

    @property
    def seconds_running(self) -> float:
        """How long the longest-running one has run; 0 if none runs."""
        return self._threads.seconds_running

    def close(self) -> None:
        """Cancel jobs that haven't begun, and end the others at their next call of `progress`."""
        with self._lock:
            self.is_closed = True
        self._threads.close()


def _too_much() -> ApiError:
    return ApiError(503, "The server has too much to compute just now; ask again in a second.", retry_after=1)
