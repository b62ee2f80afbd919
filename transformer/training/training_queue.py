"""The training queue: at most `limit` trainings run at once, and the others wait."""

from __future__ import annotations

import atexit
import os
import re
import threading
import time
import weakref
from collections.abc import Callable, Hashable

from ..jobs import FairSlots
from .plan import TrainingPlan
from .training_job import ENDED, TrainingJob

LIMIT_VARIABLE, HIGHEST_LIMIT = "HEADSUP_TRAININGS", 64
"""The environment variable for the number of trainings at once, and its largest value."""
PATIENCE = 120.0
"""Seconds after which a waiting training gets a paused one's slot."""


class TrainingQueue(FairSlots[TrainingJob]):
    """All trainings of a server: `limit` of them have a slot, the others wait, and owners take turns.

    A paused training keeps its slot for `patience` seconds; after that it gives it up as soon as another one waits.
    """

    def __init__(
        self, limit: int | None = None, patience: float = PATIENCE, is_busy: Callable[[], bool] = lambda: False
    ) -> None:
        super().__init__(trainings_limit() if limit is None else limit)
        self.is_busy = is_busy
        """Whether visitors wait for answers: trainings then leave them most of the time."""
        self._patience = patience
        self._stopped_for = ""
        self._jobs: weakref.WeakSet[TrainingJob] = weakref.WeakSet()
        atexit.register(_close, weakref.ref(self))

    def train(self, plan: TrainingPlan, owner: Hashable = None) -> TrainingJob:
        """Add a training behind its owner's others; it starts by itself."""
        job = TrainingJob(plan, self, owner)
        self._jobs.add(job)
        self.enter(job)
        if self._stopped_for:
            job.stop(self._stopped_for)
        return job

    @property
    def counts(self) -> tuple[int, int]:
        """How many have a slot, and how many wait for one."""
        with self.changed:
            return len(self._running), len(self._waiting)

    @property
    def owners(self) -> list[Hashable]:
        """The owner of every training that has a slot or waits for one."""
        with self.changed:
            return [job.owner for job in (*self._running, *self._waiting)]

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
        """A job's position among those that wait, from 1; None if it doesn't wait."""
        with self.changed:
            waiting = list(self._waiting)
        return waiting.index(job) + 1 if job in waiting else None

    def close(self, seconds: float = 2.0) -> None:
        """End all trainings, and wait up to `seconds` for their threads."""
        deadline = time.monotonic() + seconds
        jobs = list(self._jobs)
        for job in jobs:
            job.close()
        for job in jobs:
            job.join(max(deadline - time.monotonic(), 0))

    def enter(self, job: TrainingJob) -> None:
        """Let a job run: at once if it still has a slot, else in its turn."""
        with self.changed:
            if job in self._running:
                job.state = "running"
            else:
                job.state = "waiting"
                super().enter(job)
            self.changed.notify_all()

    def step_back(self, job: TrainingJob) -> None:
        """Give a running job's slot to a waiting one, if any; the job continues in its turn, from the queue's end."""
        with self.changed:
            if self._waiting and job in self._running and job.state == "running" and not job.finishing:
                self._running.remove(job)
                self.enter(job)

    def wait_for_turn(self, job: TrainingJob) -> None:
        """Block until a job may run, or has to end. Called by the job's own thread."""
        with self.changed:
            while not job.is_ending:
                self._hand_out()
                if job.state == "running":
                    break
                keeps = self._patience - (time.monotonic() - job.paused_at)
                self.changed.wait(keeps if job in self._running and keeps > 0 else None)

    def _hand_out(self) -> None:
        if self._waiting:
            now = time.monotonic()
            self._running -= {
                job for job in self._running if job.state == "paused" and now - job.paused_at >= self._patience
            }
        super()._hand_out()

    def _start(self, job: TrainingJob) -> None:
        job.state = "running"
        self.changed.notify_all()
        if job.begun_at is None:  # else its thread waits for this turn
            # The interpreter waits for the threads of a pool before it ends, and for a daemon not.
            threading.Thread(target=self._run, args=(job,), name="training", daemon=True).start()


def _close(queue: weakref.ref[TrainingQueue]) -> None:
    """At exit, end all threads: one inside PyTorch would crash the process."""
    if running := queue():
        running.close()


def trainings_limit() -> int:
    """The number of trainings at once: the environment variable's, or all cores but one.

    Raises: ValueError, saying what would do, for a variable that says what it can't.
    """
    given = os.environ.get(LIMIT_VARIABLE, "").strip()
    if not given:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        return max(1, cores - 1)
    if not re.fullmatch("[0-9]{1,4}", given) or not 1 <= int(given) <= HIGHEST_LIMIT:
        raise ValueError(f"{LIMIT_VARIABLE} is {given[:20]!r}; it must be a whole number from 1 to {HIGHEST_LIMIT}.")
    return int(given)
