"""The training queue: at most `limit` trainings run at once, and the others wait."""

from __future__ import annotations

import atexit
import os
import re
import threading
import time
import weakref
from collections.abc import Callable, Hashable

from ..fair_queue import FairQueue, most_of
from .plan import TrainingPlan
from .training_job import ENDED, TrainingJob

LIMIT_VARIABLE, HIGHEST_LIMIT = "HEADSUP_TRAININGS", 64
"""The environment variable that says how many trainings run at once, and the most it may say."""
PATIENCE = 120.0
"""Seconds after which a paused training's slot is given to one that waits."""


class TrainingQueue:
    """All trainings of a server: the first `limit` of them run, the others wait for their turn, which owners have in
    turn. No owner has all of several slots.

    A paused one keeps its slot for `patience` seconds; after that it gives it up as soon as another waits.
    """

    def __init__(
        self, limit: int | None = None, patience: float = PATIENCE, is_busy: Callable[[], bool] = lambda: False
    ) -> None:
        self.limit = trainings_limit() if limit is None else limit
        self.is_busy = is_busy
        """Says whether visitors wait for answers, for which trainings then leave most of the time."""
        self.changed = threading.Condition()
        """The lock of all state, and how threads learn that it changed."""
        self._patience = patience
        self._stopped_for = ""
        self._active: list[TrainingJob] = []
        self._waiting: FairQueue[TrainingJob] = FairQueue()
        self._jobs: weakref.WeakSet[TrainingJob] = weakref.WeakSet()
        atexit.register(_close, weakref.ref(self))

    def submit(self, plan: TrainingPlan, owner: Hashable = None) -> TrainingJob:
        """A new training, behind those of its owner; it starts by itself."""
        job = TrainingJob(plan, self, owner)
        self._jobs.add(job)
        self.enter(job)
        job.start()
        if self._stopped_for:
            job.stop(self._stopped_for)
        return job

    @property
    def counts(self) -> tuple[int, int]:
        """How many have a slot, and how many wait for one."""
        with self.changed:
            return len(self._active), len(self._waiting)

    @property
    def owners(self) -> list[Hashable]:
        """Of all that have a slot or wait for one, each."""
        with self.changed:
            return [job.owner for job in (*self._active, *self._waiting)]

    @property
    def unfinished(self) -> int:
        """How many run, wait or pause, with a slot or without."""
        return sum(job.state not in ENDED for job in list(self._jobs))

    def stop(self, reason: str) -> None:
        """Stop all trainings, and at once those that come later. Each keeps its model.

        reason: as in a job's `stop`.
        """
        self._stopped_for = reason
        for job in list(self._jobs):
            job.stop(reason)

    def position(self, job: TrainingJob) -> int | None:
        """Its position among those that wait, from 1; None if it doesn't."""
        with self.changed:
            waiting = list(self._waiting)
        return waiting.index(job) + 1 if job in waiting else None

    def close(self, seconds: float = 2.0) -> None:
        """End all trainings, and wait so long for their threads."""
        deadline = time.monotonic() + seconds
        jobs = list(self._jobs)
        for job in jobs:
            job.close()
        for job in jobs:
            job.join(max(deadline - time.monotonic(), 0))

    def enter(self, job: TrainingJob) -> None:
        """Let a job run: at once if it still has a slot, else in its turn. For jobs."""
        with self.changed:
            if job in self._active:
                job.state = "running"
            else:
                job.state = "waiting"
                self._waiting.put(job.owner, job)
                self._hand_out()
            self.changed.notify_all()

    def step_back(self, job: TrainingJob) -> None:
        """Give a running job's slot to one that waits, if any does; it goes on in its turn, from the queue's end."""
        with self.changed:
            if self._waiting and job in self._active and job.state == "running" and not job.finishing:
                self._active.remove(job)
                self.enter(job)

    def leave(self, job: TrainingJob) -> None:
        """Take a job out of the queue, and give its slot to the next. For jobs."""
        with self.changed:
            self._waiting.remove(job)
            if job in self._active:
                self._active.remove(job)
            self._hand_out()
            self.changed.notify_all()

    def wait_for_turn(self, job: TrainingJob) -> None:
        """Return once a job runs, or is to end. For a job's own thread."""
        with self.changed:
            while job.state in ("waiting", "paused") and not job.is_ending:
                if self._hand_out():
                    self.changed.notify_all()
                    continue
                keeps = self._patience - (time.monotonic() - job.paused_at)
                self.changed.wait(keeps if job in self._active and keeps > 0 else None)

    def _hand_out(self) -> bool:
        """Give free slots, and those of jobs that have paused too long, to jobs that wait; True if any was given."""
        if self._waiting:
            now = time.monotonic()
            self._active = [
                job for job in self._active if not (job.state == "paused" and now - job.paused_at >= self._patience)
            ]
        has_given = False
        while len(self._active) < self.limit and (taken := self._waiting.take(self._may_run)):
            _, job = taken
            self._active.append(job)
            job.state = "running"
            has_given = True
        return has_given

    def _may_run(self, owner: Hashable) -> bool:
        return sum(job.owner == owner for job in self._active) < most_of(owner, self.limit)


def _close(queue: weakref.ref[TrainingQueue]) -> None:
    """At the interpreter's end: a thread that is then inside PyTorch would end the process with an error."""
    if running := queue():
        running.close()


def trainings_limit() -> int:
    """How many trainings may run at once: what the environment says, else all cores but one.

    Raises: ValueError, saying what would do, for a variable that says what it can't.
    """
    given = os.environ.get(LIMIT_VARIABLE, "").strip()
    if not given:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        return max(1, cores - 1)
    if not re.fullmatch("[0-9]{1,4}", given) or not 1 <= int(given) <= HIGHEST_LIMIT:
        raise ValueError(f"{LIMIT_VARIABLE} is {given[:20]!r}; it must be a whole number from 1 to {HIGHEST_LIMIT}.")
    return int(given)
