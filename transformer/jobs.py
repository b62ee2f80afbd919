"""Runs jobs on a few threads, in turn among their owners, with progress, until they end or are stopped."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar
from typing import Any, Generic, TypeVar

from .fair_queue import FairQueue, most_of

T = TypeVar("T")
J = TypeVar("J", bound="Job[Any]")


class StoppedError(Exception):
    """The job was stopped."""


class Job(Future[T]):
    """A call that waits for a thread, runs or has ended, and its result."""

    def __init__(self, owner: Hashable, compute: Callable[[], T]) -> None:
        super().__init__()
        self.owner, self.compute = owner, compute
        self.share = 0.0
        """The share that is done, 0 to 1, if the call reports it."""
        self.begun_at: float | None = None
        """The start, in seconds of the monotonic clock."""
        self.was_stopped = False

    def stop(self) -> None:
        """Cancel the job or, if it runs, end it at its next call of `progress`."""
        self.was_stopped = True
        self.cancel()


_current: ContextVar[Job[Any] | None] = ContextVar("job", default=None)


def progress(share: float) -> None:
    """Report how much of the calling job is done, 0 to 1; outside a job, do nothing. Raises: StoppedError to end it."""
    if (job := _current.get()) is not None:
        job.share = min(max(share, 0.0), 1.0)
        if job.was_stopped:
            raise StoppedError


class FairSlots(ABC, Generic[J]):
    """Slots that jobs get in turn among their owners; an owner has at most `most_of` of them at once."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.changed = threading.Condition()
        """Guards all state."""
        self._waiting, self._running = FairQueue[J](), set[J]()

    def enter(self, job: J) -> None:
        """Give a job a slot in its owner's turn, after the owner's other jobs."""
        with self.changed:
            self._waiting.put(job.owner, job)
            self._hand_out()

    def leave(self, job: J) -> None:
        """Take a job's slot, or its place among those that wait; the next one gets the slot."""
        with self.changed:
            self._waiting.remove(job)
            self._running.discard(job)
            self._hand_out()

    def _hand_out(self) -> None:
        while len(self._running) < self.limit and (taken := self._waiting.take(self._may_run)):
            owner, job = taken
            if job.begun_at is not None or job.set_running_or_notify_cancel():
                job.owner = owner
                self._running.add(job)
                self._start(job)
                job.begun_at = job.begun_at or time.monotonic()

    def _may_run(self, owner: Hashable) -> bool:
        return sum(job.owner == owner for job in self._running) < most_of(owner, self.limit)

    @abstractmethod
    def _start(self, job: J) -> None:
        """Begin a job, which has just got a slot, or let it go on. Called with the lock held."""

    def _run(self, job: J) -> None:
        """Call the job's function, on whatever thread this is."""
        token = _current.set(job)
        try:
            result = job.compute()
        except BaseException as error:
            job.set_exception(error)
        else:
            job.set_result(result)
        finally:
            _current.reset(token)


class FairThreads(FairSlots[Job[Any]]):
    """A pool of `limit` threads. niceness: how far they stand back behind others, where the system lets them."""

    def __init__(self, limit: int, name: str, niceness: int = 0) -> None:
        super().__init__(limit)
        self._niceness = niceness
        self._pool = ThreadPoolExecutor(limit, name, self._stand_back if niceness else None)

    def submit(self, owner: Hashable, compute: Callable[[], T]) -> Job[T]:
        """Call a function on one of the threads, in its owner's turn. It can be cancelled until it begins."""
        job = Job(owner, compute)
        job.add_done_callback(self._done)
        self.enter(job)
        return job

    def share(self, owner: Hashable, job: Job[Any]) -> None:
        """Let a job that waits begin in this owner's turn, too, if that comes first."""
        with self.changed:
            if job in self._waiting:
                self._waiting.put(owner, job)

    def make_room(self, owner: Hashable, error: Exception) -> bool:
        """End, by an error, the last job that waits of whoever has most waiting; returns whether there is one.

        There is none if this owner would have as many.
        """
        with self.changed:
            job = self._waiting.last_of_longest(owner)
            if job is not None:
                self._waiting.remove(job)
        if job is not None:
            job.set_exception(error)
        return job is not None

    @property
    def seconds_running(self) -> float:
        """For how long the job has run that has run for longest; 0 if none does."""
        with self.changed:
            return max((time.monotonic() - (job.begun_at or time.monotonic()) for job in self._running), default=0.0)

    def stop_all(self) -> None:
        """Stop what waits and what runs."""
        with self.changed:
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

    def _done(self, job: Future[Any]) -> None:
        if isinstance(job, Job):
            self.leave(job)

    def _start(self, job: Job[Any]) -> None:
        self._pool.submit(self._run, job)
