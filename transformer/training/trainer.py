"""The trainer: runs a training plan from the first step to a checkpoint, for the command line and the page.

Losses are mean cross-entropy in nats per token.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor

from ..checkpoints.folder import Checkpoint
from ..data.batches import Batch
from ..model.models import build_model
from .evaluation import evaluator_of
from .execution import Execution
from .loop import ALONE, StepReport, TrainingRun, train
from .model_card import card_of
from .plan import TrainingPlan
from .snapshots import Snapshot, attention_patterns, sample_text, snapshot_steps

MEASURING_SECONDS, MEASURING_SECONDS_EARLY = 5.0, 0.3
"""Seconds for the last measurement, after a complete training and after one that was stopped."""
LOOKING_SHARE, SURE_SNAPSHOTS = 0.2, 6
"""The share of time for snapshots: except for the first few and the last, one that would exceed it is skipped."""
WRITING_SHARE = 0.1
"""The share of the time since the last snapshot for a sample longer than the shortest."""
LAST_WRITING_SECONDS = 1.0
"""Seconds for the sample after the last step."""
MOST_VALIDATIONS, MOST_POINTS = 300, 400
LAST = 100
"""The last steps, whose mean loss a card reports."""


@dataclass
class Progress:
    """The progress of a training; its thread writes it, any thread reads it."""

    steps: int
    step: int = 0
    seconds: float = 0.0
    """So far, pauses aside."""
    seconds_left: float | None = None
    """At the speed of about the last five seconds, without pauses; None until it is known."""
    tokens_per_second: float = 0.0
    """Over the last second or so."""
    batch_losses: list[tuple[int, float]] = field(default_factory=list)
    """Step, and mean loss of the batches since the previous point; at most `MOST_POINTS` points."""
    validation_losses: list[tuple[int, float]] = field(default_factory=list)
    """Step and loss: on all held-out data if the plan is thorough, else on a fixed part of it."""
    snapshots: list[Snapshot] = field(default_factory=list)


class Trainer:
    """One training, from its first step to a checkpoint. Only one thread may use it.

    state: the file to which a thorough training saves its state at each validation; `resume` continues from it.
    """

    def __init__(
        self,
        plan: TrainingPlan,
        progress: Progress | None = None,
        *,
        state: Path | None = None,
        execution: Execution = ALONE,
    ) -> None:
        self.plan, self.progress = plan, progress or Progress(plan.training.steps)
        model = build_model(plan.config, seed=plan.training.seed)
        with torch.no_grad():
            for name, weights in plan.begins_with.items():
                model.get_parameter(name)[: len(weights)] = weights
        self.run = TrainingRun(model.to(execution.device), plan.training, execution)
        self._state = state
        self._evaluator = evaluator_of(plan.objective, plan.config.context_length)
        self._clock = Clock()
        self._best: dict[str, Tensor] = {}
        self._best_loss, self._best_step = math.inf, 0
        self._bin: list[float] = []
        self._bin_width = math.ceil(plan.training.steps / MOST_POINTS)
        self._recent: deque[float] = deque(maxlen=LAST)
        self._tokens = 0
        self._looked_at = self._looking = 0.0
        self._looks_to_come = 0

    def resume(self) -> None:
        """Continue from the state file. Raises ValueError if it is damaged, or another training's."""
        if self._state is None:
            raise ValueError("This training has no file of its state to go on from.")
        self._best, notes = self.run.resume(self._state)
        self._best_loss, self._best_step = notes.get("best_loss", math.inf), notes.get("best_step", 0)
        self._recent.extend(notes.get("recent", ()))
        self._clock = Clock(notes.get("seconds", 0.0))
        self.progress.step = self.run.step

    def go(
        self,
        is_wanted: Callable[[], bool] = lambda: True,
        may_go_on: Callable[[], bool] = lambda: True,
        on_step: Callable[[StepReport, float | None], None] = lambda report, validation_loss: None,
    ) -> None:
        """Train until the last step, or until told to stop.

        is_wanted: whether anybody still wants snapshots.
        may_go_on: called after each step but the last; blocks while the training is paused; False stops it.
        on_step: called after each step with its report, and the validation loss if there is a new one.
        Raises: NotFiniteError, with the weights as they were before that step; OSError if no state can be written.
        """
        due, steps = frozenset(snapshot_steps(self.plan)), self.progress.steps
        self._looks_to_come = len(due)
        every = max(self.plan.evaluate_every, math.ceil(steps / MOST_VALIDATIONS))

        def after_step(report: StepReport) -> bool:
            self._note(report)
            self._looks_to_come -= report.step in due
            is_last, loss = report.step == steps, None
            if report.step in due and is_wanted() and (is_last or self._can_afford_a_look()):
                with self._clock.aside():
                    loss = self.look()
            elif (report.step % every == 0 or is_last) and is_wanted():
                with self._clock.aside():
                    loss = self._validate()
            on_step(report, loss)
            self._clock.step_done(report.step, self._tokens)
            self._tell_time()
            with self._clock.stopped():
                return is_last or may_go_on()

        with self._clock.running():
            if due and self.run.step == 0:
                self.look()
            self._clock.count_from(self.run.step)
            train(self.run.model, self._batch, self.plan.training, after_step, run=self.run)
            self._end_bin()
            if due and is_wanted() and self.progress.snapshots[-1].step != self.run.step:
                self.look()

    def look(self) -> float:
        """Take a snapshot; returns its validation loss."""
        began = self._clock.seconds
        is_last = self.run.step == self.progress.steps
        budget = LAST_WRITING_SECONDS if is_last else WRITING_SHARE * (began - self._looked_at)
        self._looked_at = began
        model = self.run.best_model
        snapshot = Snapshot(
            step=self.run.step,
            validation_loss=self._validate(),
            sample=sample_text(model, self.plan, budget),
            patterns=attention_patterns(model, self.plan),
            accuracy=self._evaluator.glance_accuracy(model),
        )
        self.progress.snapshots.append(snapshot)
        self._looking += self._clock.seconds - began
        return snapshot.validation_loss

    def checkpoint(self, ending: str = "", check: Callable[[], None] = lambda: None) -> Checkpoint:
        """The trained model, measured, with its card.

        ending: a sentence if training ended before its last step.
        check: called regularly; an exception from it ends the measurement.
        Raises: ValueError if the weights or the model's outputs are not finite, so that there is nothing to keep.
        """
        model = build_model(self.plan.config, seed=0).eval()
        model.load_state_dict(self._best or self.run.best_model.state_dict())
        if not all(weight.isfinite().all() for weight in model.parameters()):
            raise ValueError("The weights are no longer finite numbers.")
        seconds = MEASURING_SECONDS_EARLY if ending else MEASURING_SECONDS
        if self.plan.is_thorough:
            seconds = math.inf
        measures = self._evaluator.measure(model.to(self.run.device), seconds, check)
        if not math.isfinite(measures.validation_loss):
            raise ValueError("The weights are so large that the model computes nothing finite.")
        card = card_of(
            self.plan,
            measures,
            parameters=model.parameter_count(),
            best_step=self._best_step if self._best else self.run.step,
            last_losses=list(self._recent),
            seconds=self._clock.seconds,
            device=self.run.device,
            processes=self.run.execution.world_size,
            ending=ending,
        )
        return Checkpoint(model.cpu(), self.plan.objective.tokenizer, card)

    def _batch(self, step: int) -> Batch:
        batch = self.plan.objective.batches(step)
        self._tokens = batch.targets.numel()
        return batch

    def _note(self, report: StepReport) -> None:
        self.progress.step = report.step
        self._recent.append(report.loss)
        self._bin.append(report.loss)
        if report.step % self._bin_width == 0:
            self._end_bin()

    def _end_bin(self) -> None:
        if self._bin:
            self.progress.batch_losses.append((self.run.step, sum(self._bin) / len(self._bin)))
            self._bin = []

    def _tell_time(self) -> None:
        self.progress.seconds = self._clock.seconds
        left = self._clock.seconds_left(self.progress.steps)
        if left and self.progress.snapshots:
            looking = self._looks_to_come * self._looking / len(self.progress.snapshots)
            left += min(looking, left * LOOKING_SHARE / (1 - LOOKING_SHARE))
        self.progress.seconds_left = left
        self.progress.tokens_per_second = self._clock.tokens_per_second

    def _can_afford_a_look(self) -> bool:
        few = len(self.progress.snapshots) < SURE_SNAPSHOTS
        return few or self._looking < LOOKING_SHARE * self._clock.seconds

    def _validate(self) -> float:
        model = self.run.best_model
        loss = self._evaluator.validation_loss(model) if self.plan.is_thorough else self._evaluator.glance(model)
        self.progress.validation_losses.append((self.run.step, loss))
        if self.plan.is_thorough:
            self._keep(loss)
        return loss

    def _keep(self, loss: float) -> None:
        """Keep the weights if they are the best so far, and save the state."""
        if not self._best or loss < self._best_loss:
            self._best_loss, self._best_step = loss if math.isfinite(loss) else math.inf, self.run.step
            self._best = {name: tensor.cpu().clone() for name, tensor in self.run.best_model.state_dict().items()}
        if self._state:
            notes = {
                "best_loss": self._best_loss,
                "best_step": self._best_step,
                "recent": list(self._recent),
                "seconds": self._clock.seconds,
            }
            self.run.save(self._state, kept=self._best, notes=notes)


class Clock:
    """The time and speed of a training, without pauses. before: seconds that it ran earlier."""

    def __init__(self, before: float = 0.0) -> None:
        self._before = before
        self._started: float | None = None
        self._step = self._tokens = 0
        self._aside = 0.0
        self._marks: deque[tuple[float, int, int]] = deque(maxlen=25)
        """Seconds of stepping, steps and tokens so far, at most five times a second."""

    @property
    def seconds(self) -> float:
        """So far."""
        return self._before + (0.0 if self._started is None else time.perf_counter() - self._started)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Count the time inside."""
        self._started = time.perf_counter()
        try:
            yield
        finally:
            self._before, self._started = self.seconds, None

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """While running: don't count the time inside."""
        self._before, self._started = self.seconds, None
        try:
            yield
        finally:
            self._started = time.perf_counter()

    @contextmanager
    def aside(self) -> Iterator[None]:
        """While running: count the time inside, but not for the speed."""
        began = self.seconds
        yield
        self._aside += self.seconds - began

    @property
    def _stepping(self) -> float:
        """Seconds so far that count for the speed."""
        return self.seconds - self._aside

    def count_from(self, step: int) -> None:
        """Begin to count steps for the speed."""
        self._step = step
        self._marks.append((self._stepping, step, self._tokens))

    def step_done(self, step: int, tokens: int) -> None:
        """Count a step."""
        self._step, self._tokens = step, self._tokens + tokens
        if self._stepping - self._marks[-1][0] >= 0.2:
            self._marks.append((self._stepping, step, self._tokens))

    @property
    def tokens_per_second(self) -> float:
        """Over about the last second; 0 until it is known."""
        (then, _, before), (now, _, tokens) = self._marks[max(len(self._marks) - 6, 0)], self._marks[-1]
        return (tokens - before) / (now - then) if now > then else 0.0

    def seconds_left(self, steps: int) -> float | None:
        """Until the last of `steps` steps, at the speed of about the last five seconds; None until it is known."""
        (then, before, _), (now, step, _) = self._marks[0], self._marks[-1]
        if self._step == steps:
            return 0.0
        if step == before:
            return None
        return max((steps - step) * (now - then) / (step - before) - (self._stepping - now), 0.0)
