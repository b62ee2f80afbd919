"""Trainings in the background: each in a thread of its own, so many at once, the others in a queue.

    waiting ──► running ⇄ paused        and from each of these, or by itself, to finished, stopped or failed

A job can be read from any thread at any time. Its state changes under the queue's lock; its own thread looks at it
between any two steps.
"""

from __future__ import annotations

import atexit
import logging
import os
import re
import threading
import time
import weakref
from typing import Literal

import torch

from ..checkpoints.folder import Checkpoint
from .loop import NotFiniteError
from .plan import Plan, Snapshot
from .runner import Progress, Work

__all__ = ["ENDED", "Job", "Plan", "Queue", "Snapshot"]

State = Literal["waiting", "running", "paused", "finished", "stopped", "failed"]
ENDED = ("finished", "stopped", "failed")
LIMIT_VARIABLE, HIGHEST_LIMIT = "HEADSUP_TRAININGS", 64
"""The environment variable that says how many trainings run at once, and the most it may say."""
PATIENCE = 120.0
"""Seconds after which a paused training's place is given to one that waits."""
_log = logging.getLogger(__name__)


class Cancelled(Exception):
    """Nobody waits for a result any more."""


class Job:
    """One visitor's training, and all that a page shows of it."""

    def __init__(self, plan: Plan, queue: Queue) -> None:
        self.state: State = "waiting"
        self.finishing = False
        """True while the model that came out is measured, when no step is taken any more."""
        self.result: Checkpoint | None = None
        """The model that came out, once the state is one of `ENDED`; None if not even one step was taken."""
        self.problem: str | None = None
        """Why it failed, in a sentence or two."""
        self.paused_at = 0.0
        self._progress = Progress(plan.training.steps)
        self._wish: Literal["go on", "stop", "close"] = "go on"
        self._begun = False
        self._queue = queue
        self._thread = threading.Thread(target=self._work, args=(plan, self._progress), name="training", daemon=True)

    @property
    def steps(self) -> int:
        """How many there are to take."""
        return self._progress.steps

    @property
    def step(self) -> int:
        """How many have been taken."""
        return self._progress.step

    @property
    def tokens_per_second(self) -> float:
        """Over the last second or so; 0 until that can be told."""
        return self._progress.tokens_per_second

    @property
    def seconds_left(self) -> float | None:
        """Pauses aside; None until that can be told."""
        return self._progress.seconds_left

    @property
    def train_losses(self) -> list[tuple[int, float]]:
        """Step, and mean loss of the batches since the point before: nats per token, at most 400 points."""
        return self._progress.train_losses

    @property
    def validation_losses(self) -> list[tuple[int, float]]:
        """Step and loss, on a fixed part of what is held out."""
        return self._progress.validation_losses

    @property
    def snapshots(self) -> list[Snapshot]:
        """The model at some of its steps, from 0 on."""
        return self._progress.snapshots

    @property
    def is_ending(self) -> bool:
        """True once somebody has said that no further step is to be taken."""
        return self._wish != "go on"

    def start(self) -> None:
        """Begin as soon as there is a place. Called once, by the queue."""
        self._thread.start()

    def join(self, seconds: float | None = None) -> bool:
        """Wait for the thread to end; returns whether it did within so many seconds."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def pause(self) -> None:
        """Take no step after the one in progress, until resumed. Whoever still waits for a place leaves the queue."""
        with self._queue.changed:
            if self.state not in ("waiting", "running") or self.is_ending:
                return
            if self.state == "waiting":
                self._queue.leave(self)
            self.state, self.paused_at = "paused", time.monotonic()
            self._queue.changed.notify_all()

    def resume(self) -> None:
        """Go on: at once or, if the place was given to another meanwhile, from the queue's end."""
        with self._queue.changed:
            if self.state == "paused" and not self.is_ending:
                self._queue.enter(self)

    def stop(self) -> None:
        """Take no step after the one in progress, and keep the model as it is then; it is there a moment later."""
        with self._queue.changed:
            if self.state in ENDED or self.is_ending:
                return
            self._wish = "stop"
            if not self._begun:
                self.state = "stopped"
                self._queue.leave(self)
            self._queue.changed.notify_all()

    def close(self) -> None:
        """Take no step after the one in progress, keep nothing, and leave the place to the next at once."""
        with self._queue.changed:
            self._wish = "close"
            if self.state not in ENDED:
                self.state = "stopped"
            self._queue.leave(self)
            self.result, self._progress = None, Progress(self.steps)
            self._queue.changed.notify_all()

    def _work(self, plan: Plan, progress: Progress) -> None:
        torch.set_num_threads(1)  # tiny tensors gain nothing from several, and jobs would wait for each other's
        work, state, problem, result = None, "stopped", None, None
        try:
            if self._may_begin():
                work = Work(plan, progress)
                work.go(lambda: self._wish != "close", self._may_go_on)
                state = "finished" if progress.step == progress.steps else "stopped"
        except NotFiniteError as error:
            state, problem = "failed", str(error)
        except Exception:
            _log.exception("A training failed.")
            state, problem = "failed", "The training broke off because of an error, which the server has noted."
        if progress.step and self._wish != "close":
            self.finishing = True
            try:
                result = work.checkpoint(_ending(state, progress), self._check)
            except Cancelled:
                pass
            except Exception:
                _log.exception("The model of a training could not be kept.")
                state, problem = "failed", f"{problem or 'The training ended.'} Its model could not be kept."
            else:
                problem = problem and f"{problem} The model is kept as it was before that step."
        with self._queue.changed:
            if self._wish != "close" and self.state not in ENDED:
                self.result, self.problem, self.state = result, problem, state
            self.finishing = False
            self._queue.leave(self)

    def _may_begin(self) -> bool:
        with self._queue.changed:
            self._queue.wait_for_turn(self)
            self._begun = not self.is_ending
            return self._begun

    def _may_go_on(self) -> bool:
        if self.state != "running":
            self._queue.wait_for_turn(self)
        return not self.is_ending

    def _check(self) -> None:
        if self._wish == "close":
            raise Cancelled


class Queue:
    """All trainings of a server: the first `limit` of them run, the others wait for their turn.

    A paused one keeps its place for `patience` seconds; after that it gives it up as soon as somebody waits.
    """

    def __init__(self, limit: int | None = None, patience: float = PATIENCE) -> None:
        self.limit = _limit() if limit is None else limit
        self.changed = threading.Condition()
        """The lock of all state, and how threads learn that it changed."""
        self._patience = patience
        self._placed: list[Job] = []
        self._waiting: list[Job] = []
        self._jobs: weakref.WeakSet[Job] = weakref.WeakSet()
        atexit.register(_close, weakref.ref(self))

    def submit(self, plan: Plan) -> Job:
        """A new training, at the end of the queue; it starts by itself."""
        job = Job(plan, self)
        self._jobs.add(job)
        self.enter(job)
        job.start()
        return job

    def place(self, job: Job) -> int | None:
        """Its place among those that wait, from 1; None if it doesn't."""
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

    def enter(self, job: Job) -> None:
        """Let a job run: at once if it still has a place, else in its turn. For jobs."""
        with self.changed:
            if job in self._placed:
                job.state = "running"
            else:
                job.state = "waiting"
                self._waiting.append(job)
                self._hand_out()
            self.changed.notify_all()

    def leave(self, job: Job) -> None:
        """Take a job out of the queue, and give its place to the next. For jobs."""
        with self.changed:
            for jobs in (self._placed, self._waiting):
                if job in jobs:
                    jobs.remove(job)
            self._hand_out()
            self.changed.notify_all()

    def wait_for_turn(self, job: Job) -> None:
        """Return once a job runs, or is to end. For a job's own thread."""
        with self.changed:
            while job.state in ("waiting", "paused") and not job.is_ending:
                keeps = self._patience - (time.monotonic() - job.paused_at)
                self.changed.wait(keeps if job in self._placed and keeps > 0 else None)
                if self._hand_out():
                    self.changed.notify_all()

    def _hand_out(self) -> bool:
        """Give free places, and those of jobs that have paused too long, to whoever waits; True if any was given."""
        if self._waiting:
            now = time.monotonic()
            self._placed = [job for job in self._placed
                            if not (job.state == "paused" and now - job.paused_at >= self._patience)]  # fmt: skip
        given = self._waiting[: max(self.limit - len(self._placed), 0)]
        for job in given:
            self._waiting.remove(job)
            self._placed.append(job)
            job.state = "running"
        return bool(given)


def _close(queue: weakref.ref[Queue]) -> None:
    """At the interpreter's end: a thread that is then inside PyTorch would end the process with an error."""
    if found := queue():
        found.close()


def _ending(state: State, progress: Progress) -> str:
    how = {"stopped": "Stopped early", "failed": "Broke off"}
    return f"{how[state]}, after {progress.step:,} of {progress.steps:,} steps." if state in how else ""


def _limit() -> int:
    """How many trainings may run at once: what the environment says, else all cores but one."""
    given = os.environ.get(LIMIT_VARIABLE, "").strip()
    if not given:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        return max(1, cores - 1)
    if not re.fullmatch("[0-9]{1,4}", given) or not 1 <= int(given) <= HIGHEST_LIMIT:
        raise ValueError(f"{LIMIT_VARIABLE} is {given[:20]!r}; it must be a whole number from 1 to {HIGHEST_LIMIT}.")
    return int(given)
