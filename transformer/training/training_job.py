"""A training job: runs one training in the background, and keeps everything a page shows of it.

    waiting ──► running ⇄ paused        and from each of these, or by itself, to finished, stopped or failed

Any thread may read a job at any time. Its state changes under the queue's lock; its own thread checks it between steps.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Hashable
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Literal

import torch

from ..checkpoints.folder import Checkpoint
from ..inference.analysis import LogitsError
from ..jobs import Job
from .loop import NotFiniteError, StepReport
from .plan import TrainingPlan
from .trainer import Progress, Trainer

if TYPE_CHECKING:
    from .training_queue import TrainingQueue

State = Literal["waiting", "running", "paused", "finished", "stopped", "failed"]
ENDED = ("finished", "stopped", "failed")
REST, REST_EVERY = 0.0005, 0.01
"""Seconds of each rest that lets threads which answer visitors run, and seconds between rests. In between, PyTorch's
operations release the interpreter's lock often enough."""
LEAST_SHARE, GLANCE_EVERY = 0.1, 0.005
"""A training's share of the time while visitors wait for answers; and the seconds between checks whether they do."""
_log = logging.getLogger(__name__)


class Cancelled(Exception):
    """Nobody waits for the result any more."""


class TrainingJob(Job[None]):
    """One visitor's training. It may pause, and keeps what its page shows."""

    def __init__(self, plan: TrainingPlan, queue: TrainingQueue, owner: Hashable = None) -> None:
        self.progress = progress = Progress(plan.training.steps)
        super().__init__(owner, lambda: self._work(plan, progress))
        self.state: State = "waiting"
        self.finishing = False
        """True after the last step, while the model is measured."""
        self.checkpoint: Checkpoint | None = None
        """The trained model, once the state is one of `ENDED`; None if no step was taken."""
        self.problem: str | None = None
        """Why it failed, in a sentence or two."""
        self.reason = ""
        """Why it was stopped, in a sentence, if not by its visitor."""
        self.paused_at = 0.0
        self._wish: Literal["continue", "stop", "close"] = "continue"
        self._begun = False
        self._rested_at = 0.0
        self._queue = queue

    @property
    def is_ending(self) -> bool:
        """True once it was told to take no more steps."""
        return self._wish != "continue"

    def join(self, seconds: float | None = None) -> bool:
        """Wait for the job's end; returns whether it came within `seconds`."""
        with contextlib.suppress(CancelledError, TimeoutError):
            self.exception(seconds)
        return self.done()

    def pause(self) -> None:
        """Take no step after the one in progress, until resumed. A job that waits for a slot leaves the queue."""
        with self._queue.changed:
            if self.state not in ("waiting", "running") or self.is_ending:
                return
            if self.state == "waiting":
                self._queue.leave(self)
            self.state, self.paused_at = "paused", time.monotonic()
            self._queue.changed.notify_all()

    def resume(self) -> None:
        """Continue: at once or, if another job got the slot meanwhile, from the queue's end."""
        with self._queue.changed:
            if self.state == "paused" and not self.is_ending:
                self._queue.enter(self)

    def stop(self, reason: str = "") -> None:
        """Take no step after the one in progress, and keep the model of that step; it is there a moment later.

        reason: a sentence for a visitor who comes back.
        """
        with self._queue.changed:
            if self.state in ENDED or self.is_ending:
                return
            self._wish, self.reason = "stop", reason
            if not self._begun:
                self.state = "stopped"
                self.cancel()
                self._queue.leave(self)
            self._queue.changed.notify_all()

    def close(self) -> None:
        """Take no step after the one in progress, keep nothing, and free the slot at once."""
        with self._queue.changed:
            self._wish = "close"
            if self.state not in ENDED:
                self.state = "stopped"
            self.cancel()
            self._queue.leave(self)
            self.checkpoint, self.progress = None, Progress(self.progress.steps)
            self._queue.changed.notify_all()

    def _work(self, plan: TrainingPlan, progress: Progress) -> None:
        del self.compute  # and with it the plan, whose corpus may be large
        torch.set_num_threads(1)  # tiny tensors gain nothing from several threads, and jobs would wait for each other's
        trainer, state, problem, result = None, "stopped", None, None
        try:
            if self._may_begin():
                trainer = Trainer(plan, progress)
                trainer.go(lambda: self._wish != "close", self._may_go_on, self._rest)
                state = "finished" if progress.step == progress.steps else "stopped"
        except NotFiniteError as error:
            state, problem = "failed", str(error)
        except LogitsError:  # during a snapshot between two steps
            state, problem = "failed", "The model's numbers overflow; a lower learning rate may help."
        except Exception:
            _log.exception("A training failed.")
            state, problem = "failed", "The training broke off because of an error, which the server has noted."
        if trainer and progress.step and self._wish != "close":
            self.finishing = True
            try:
                result = trainer.checkpoint(_ending(state, progress), self._check)
            except Cancelled:
                pass
            except Exception:
                _log.exception("The model of a training could not be kept.")
                state, problem = "failed", f"{problem or 'The training ended.'} Its model could not be kept."
            else:
                problem = problem and f"{problem} The model is kept as it was before that step."
        with self._queue.changed:
            if self._wish != "close" and self.state not in ENDED:
                self.checkpoint, self.problem, self.state = result, problem, state
            self.finishing = False
            self._queue.leave(self)

    def _may_begin(self) -> bool:
        with self._queue.changed:
            self._queue.wait_for_turn(self)
            self._begun, self._rested_at = not self.is_ending, time.perf_counter()
            return self._begun

    def _may_go_on(self) -> bool:
        if self.state != "running":
            self._queue.wait_for_turn(self)
            self._rested_at = time.perf_counter()
        return not self.is_ending

    def _rest(self, _report: StepReport, _validation_loss: float | None) -> None:
        """Let threads that answer visitors run: longer while somebody waits, but not for ever."""
        rests_from = time.perf_counter()
        worked = rests_from - self._rested_at
        if self._queue.is_busy():
            longest = worked * (1 / LEAST_SHARE - 1)
            while self._may_rest() and time.perf_counter() - rests_from < longest:
                time.sleep(GLANCE_EVERY)
        elif worked > REST_EVERY:
            time.sleep(REST)
        else:
            return
        self._rested_at = time.perf_counter()

    def _may_rest(self) -> bool:
        return self._queue.is_busy() and self.state == "running" and not self.is_ending

    def _check(self) -> None:
        if self._wish == "close":
            raise Cancelled


def _ending(state: State, progress: Progress) -> str:
    how = {"stopped": "Stopped early", "failed": "Broke off"}
    return f"{how[state]}, after {progress.step:,} of {progress.steps:,} steps." if state in how else ""
