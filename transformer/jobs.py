"""Runs jobs on a few threads, in turn among their owners, with progress, until they end or are stopped."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar
from typing import Any, TypeVar

from .fair_queue import FairQueue, most_of

T = TypeVar("T")


class StoppedError(Exception):
    """The job was stopped."""


class Job(Future[T]):
    """A call that waits for a thread, runs or has ended, and what came of it."""

    def __init__(self, owner: Hashable, compute: Callable[[], T]) -> None:
        super().__init__()
        self.owner, self.compute = owner, compute
        self.share = 0.0
        """How much of it is done, 0 to 1, if it says so."""
        self.begun_at: float | None = None
        """Since when it runs, in seconds of the monotonic clock."""
        self.was_stopped = False

    def stop(self) -> None:
        """Cancel it, or if it runs, end it when it next tells its progress."""
        self.was_stopped = True
        self.cancel()

    def progress(self, share: float) -> None:
        """Note how much is done. Raises: StoppedError once it should end."""
        self.share = min(max(share, 0.0), 1.0)
        if self.was_stopped:
            raise StoppedError


_current: ContextVar[Job[Any] | None] = ContextVar("job", default=None)


def progress(share: float) -> None:
    """How much of the job that calls this is done, 0 to 1; outside of one, nothing. Raises: StoppedError, to end it."""
    if (job := _current.get()) is not None:
        job.progress(share)


class FairThreads:
    """A pool of threads that begins waiting jobs owner by owner, of each as many at once as `most_of` says.

    niceness: how far its threads stand back behind others, where the system lets them.
    """

    def __init__(self, threads: int, name: str, niceness: int = 0) -> None:
        self._threads, self._niceness = threads, niceness
        self._pool = ThreadPoolExecutor(threads, name, self._stand_back if niceness else None)
        self._lock = threading.RLock()
        self._waiting, self._running = FairQueue[Job[Any]](), set[Job[Any]]()

    def submit(self, owner: Hashable, compute: Callable[[], T]) -> Job[T]:
        """Call a function on one of the threads, in its owner's turn. It can be cancelled until it begins."""
        job = Job(owner, compute)
        job.add_done_callback(self._forget)
        with self._lock:
            self._waiting.put(owner, job)
            self._begin()
        return job

    def share(self, owner: Hashable, job: Job[Any]) -> None:
        """Let a job that waits begin in this owner's turn, too, if that comes first."""
        with self._lock:
            if job in self._waiting:
                self._waiting.put(owner, job)

    def make_room(self, owner: Hashable, error: Exception) -> bool:
        """End, by an error, the last job that waits of whoever has most waiting; returns whether there is one.

        There is none if this owner would have as many.
        """
        with self._lock:
            job = self._waiting.last_of_longest(owner)
            if job is not None:
                self._waiting.remove(job)
        if job is not None:
            job.set_exception(error)
        return job is not None

    @property
    def seconds_running(self) -> float:
        """For how long the job has run that has run for longest; 0 if none does."""
        with self._lock:
            return max((time.monotonic() - (job.begun_at or time.monotonic()) for job in self._running), default=0.0)

    def stop_all(self) -> None:
        """Stop what waits and what runs."""
        with self._lock:
            jobs = [*self._waiting, *self._running]
        for job in jobs:
            job.stop()

    def close(self) -> None:
        """Stop everything, wait for nothing, and begin nothing any more."""
        self.stop_all()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _stand_back(self) -> None:
        with contextlib.suppress(AttributeError, OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), self._niceness)

    def _forget(self, job: Future[Any]) -> None:
        with self._lock:
            if isinstance(job, Job):
                self._waiting.remove(job)

    def _begin(self) -> None:
        while len(self._running) < self._threads:
            taken = self._waiting.take(self._may_run)
            if taken is None:
                return
            owner, job = taken
            if job.set_running_or_notify_cancel():
                job.owner = owner
                self._running.add(job)
                self._pool.submit(self._run, job)

    def _may_run(self, owner: Hashable) -> bool:
        return sum(job.owner == owner for job in self._running) < most_of(owner, self._threads)

    def _run(self, job: Job[Any]) -> None:
        job.begun_at, token = time.monotonic(), _current.set(job)
        try:
            result = job.compute()
        except BaseException as error:
            job.set_exception(error)
        else:
            job.set_result(result)
        finally:
            _current.reset(token)
            with self._lock:
                self._running.remove(job)
                self._begin()
