"""The work of a training: its steps, what is looked at between them, and the checkpoint that comes out.

Losses are mean cross-entropy in nats per token.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from ..checkpoints.folder import Checkpoint
from ..data.batches import Batch
from ..model.models import build_model
from .loop import StepReport, TrainingRun, train
from .measures import card_of, measure_of
from .plan import Plan, Snapshot, attention_patterns, sample_text, snapshot_steps

REST, REST_EVERY = 0.0005, 0.01
"""Seconds in which threads that answer visitors go first, and how often. Between them they go first often enough,
for PyTorch lets go of the interpreter's lock inside each of its operations."""
MEASURING_SECONDS, MEASURING_SECONDS_EARLY = 5.0, 0.3
"""What the last measurement may take, of a training that came to its end and of one that didn't."""
LOOKING_SHARE, SURE_SNAPSHOTS = 0.2, 6
"""Of all time, for snapshots: beyond the first few and the last, one that would take more is left out."""
WRITING_SHARE = 0.1
"""Of the time since the snapshot before, for a sample that is longer than the shortest."""
LAST_WRITING_SECONDS = 1.0
"""For the sample after the last step."""
MOST_VALIDATIONS, MOST_POINTS = 300, 400


@dataclass
class Progress:
    """How far a training has come; written by its thread, read by any."""

    steps: int
    step: int = 0
    tokens_per_second: float = 0.0
    """Over the last second or so."""
    seconds_left: float | None = None
    """At the speed of the last ten seconds or so, pauses aside; None until that can be told."""
    train_losses: list[tuple[int, float]] = field(default_factory=list)
    """Step, and mean loss of the batches since the point before; at most `MOST_POINTS` of them."""
    validation_losses: list[tuple[int, float]] = field(default_factory=list)
    """Step and loss, on a fixed part of what is held out."""
    snapshots: list[Snapshot] = field(default_factory=list)


class Work:
    """One training, from its first step to a checkpoint. Used by one thread."""

    def __init__(self, plan: Plan, progress: Progress) -> None:
        self.plan, self.progress = plan, progress
        self.run = TrainingRun(build_model(plan.config, seed=plan.training.seed), plan.training)
        self._measure = measure_of(plan)
        self._clock = _Clock()
        self._bin: list[float] = []
        self._bin_width = math.ceil(progress.steps / MOST_POINTS)
        self._recent: deque[float] = deque(maxlen=50)
        self._batch_size = self._tokens = 0
        self._looked_at = self._looking = self._rested_at = 0.0

    def go(self, is_wanted: Callable[[], bool], may_go_on: Callable[[], bool]) -> None:
        """Train until the last step, or until told to stop.

        is_wanted: says whether anybody still wants to see how the model is doing.
        may_go_on: called after each step but the last; takes its time while the training is paused; False stops it.
        Raises: NotFiniteError, with the weights as they were before that step.
        """
        due = frozenset(snapshot_steps(self.plan))
        every = max(self.plan.evaluate_every, math.ceil(self.progress.steps / MOST_VALIDATIONS))

        def after_step(report: StepReport) -> bool:
            self._note(report)
            if report.step in due and is_wanted() and self._can_afford_a_look():
                self.look()
            elif report.step % every == 0 and is_wanted():
                self._validate()
            self._rest()
            self._clock.step_done(report.step, self._tokens)
            self.progress.tokens_per_second = self._clock.tokens_per_second
            self.progress.seconds_left = self._clock.seconds_left(self.progress.steps)
            with self._clock.stopped():
                return report.step == self.progress.steps or may_go_on()

        self._clock.start()
        self.look()
        train(self.run.model, self._batch, self.plan.training, after_step, run=self.run)
        self._end_bin()
        if is_wanted() and self.progress.snapshots[-1].step != self.run.step:
            self.look()

    def look(self) -> None:
        """Take a snapshot."""
        began = self._clock.seconds
        is_last = self.run.step == self.progress.steps
        budget = LAST_WRITING_SECONDS if is_last else WRITING_SHARE * (began - self._looked_at)
        self._looked_at = began
        recent = list(self._recent)[-(1 + self.run.step // 10) :]  # few, as long as the loss falls fast
        model = self.run.best_model
        self.progress.snapshots.append(
            Snapshot(
                step=self.run.step,
                train_loss=sum(recent) / len(recent) if recent else None,
                validation_loss=self._validate(),
                sample=sample_text(model, self.plan, budget),
                patterns=attention_patterns(model, self.plan),
            )
        )
        self._looking += self._clock.seconds - began

    def _rest(self) -> None:
        if self._clock.seconds - self._rested_at > REST_EVERY:
            time.sleep(REST)
            self._rested_at = self._clock.seconds

    def _can_afford_a_look(self) -> bool:
        few = len(self.progress.snapshots) < SURE_SNAPSHOTS
        return few or self._looking < LOOKING_SHARE * self._clock.seconds

    def checkpoint(self, ending: str, check: Callable[[], None]) -> Checkpoint:
        """The model as it is now, measured.

        ending: how training ended, in a sentence, if not with its last step.
        check: called every now and then; what it raises ends the measuring.
        Raises: ValueError if the weights are no numbers, so that there is nothing to keep.
        """
        model = build_model(self.plan.config, seed=0).eval()
        model.load_state_dict(self.run.best_model.state_dict())
        if not all(weight.isfinite().all() for weight in model.parameters()):
            raise ValueError("The weights are no numbers any more.")
        seconds = MEASURING_SECONDS_EARLY if ending else MEASURING_SECONDS
        measures = self._measure.measure(model, seconds, check)
        card = card_of(
            self.plan,
            measures,
            parameters=model.parameter_count(),
            batch=self._batch_size,
            step=self.run.step,
            seconds=self._clock.seconds,
            ending=ending,
        )
        return Checkpoint(model, self.plan.objective.tokenizer, card)

    def _batch(self, step: int) -> Batch:
        batch = self.plan.objective.batches(step)
        self._batch_size, self._tokens = len(batch.targets), batch.targets.numel()
        return batch

    def _note(self, report: StepReport) -> None:
        self.progress.step = report.step
        self._recent.append(report.loss)
        self._bin.append(report.loss)
        if report.step % self._bin_width == 0:
            self._end_bin()

    def _end_bin(self) -> None:
        if self._bin:
            self.progress.train_losses.append((self.run.step, sum(self._bin) / len(self._bin)))
            self._bin = []

    def _validate(self) -> float:
        loss = self._measure.glance(self.run.best_model)
        self.progress.validation_losses.append((self.run.step, loss))
        return loss


class _Clock:
    """How long a training has run, pauses aside, and how fast."""

    def __init__(self) -> None:
        self._before = 0.0
        self._started: float | None = None
        self._step = self._tokens = 0
        self._marks: deque[tuple[float, int, int]] = deque([(0.0, 0, 0)], maxlen=50)
        """Seconds, steps and tokens so far, every fifth of a second or more."""

    @property
    def seconds(self) -> float:
        """So far."""
        return self._before + (0.0 if self._started is None else time.perf_counter() - self._started)

    def start(self) -> None:
        """Begin to count."""
        self._started = time.perf_counter()

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """What happens inside doesn't count."""
        self._before, self._started = self.seconds, None
        try:
            yield
        finally:
            self.start()

    def step_done(self, step: int, tokens: int) -> None:
        """Count a step."""
        self._step, self._tokens = step, self._tokens + tokens
        if self.seconds - self._marks[-1][0] >= 0.2:
            self._marks.append((self.seconds, step, self._tokens))

    @property
    def tokens_per_second(self) -> float:
        """Over about the last second; 0 until that can be told."""
        (then, _, before), (now, _, tokens) = self._marks[max(len(self._marks) - 6, 0)], self._marks[-1]
        return (tokens - before) / (now - then) if now > then else 0.0

    def seconds_left(self, steps: int) -> float | None:
        """Until the last of so many steps, at the speed of the last ten seconds or so."""
        (then, before, _), (now, step, _) = self._marks[0], self._marks[-1]
        if self._step == steps:
            return 0.0
        if step == before:
            return None
        return max((steps - step) * (now - then) / (step - before) - (self.seconds - now), 0.0)
