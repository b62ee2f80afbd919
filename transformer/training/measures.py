"""How good a model in training is: at a glance on the way, as fully as time allows at the end; and its card.

Losses are mean cross-entropy in nats per token.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np
import torch
from torch import Tensor, nn

from ..checkpoints.card import Card
from ..data.batches import Batch, task_batch
from .evaluation import evaluate_loss, exact_matches, token_loss
from .objectives import TaskObjective, TextObjective
from .plan import Plan

GLANCE_TOKENS = 4096
"""Tokens of a text that a loss on the way is measured on, always the same ones."""
GLANCE_EXAMPLES = 128
EXAMPLES = 512
EXACT_EXAMPLES = 200
"""Held-out examples of a task that the share of right answers is of."""


@dataclass(frozen=True)
class Measures:
    """How good a model is, and what that was measured on, in words."""

    train_loss: float
    validation_loss: float
    accuracy: float | None
    measured_on: str


class Measure(ABC):
    """Measures models on one objective."""

    @abstractmethod
    def glance(self, model: nn.Module) -> float:
        """The validation loss on a fixed part of what is held out."""

    @abstractmethod
    def measure(self, model: nn.Module, seconds: float, check: Callable[[], None]) -> Measures:
        """Every measure of a model, on all that is held out if that takes no longer than about so many seconds.

        check: called every now and then; what it raises ends the measurement.
        """


def measure_of(plan: Plan) -> Measure:
    """The way to measure a model on the plan's objective."""
    objective = plan.objective
    if isinstance(objective, TaskObjective):
        return TaskMeasure(objective)
    return TextMeasure(objective, plan.config.context_length)


class TextMeasure(Measure):
    """On windows of a text, as long as the context."""

    def __init__(self, objective: TextObjective, context: int) -> None:
        self._objective, self._context = objective, context
        self._batch = max(GLANCE_TOKENS // context, 1)
        validation = objective.validation
        whole = (len(validation) - 1) // context
        self._windows = None
        if whole:
            chosen = np.unique(np.linspace(0, whole - 1, min(self._batch, whole)).round().astype(int))
            self._windows = validation[torch.from_numpy(chosen[:, None] * context + np.arange(context + 1))]

    def glance(self, model: nn.Module) -> float:
        if self._windows is None:
            return evaluate_loss(model, self._objective.validation)
        return _loss(model, Batch((self._windows[:, :-1],), self._windows[:, 1:]))

    def measure(self, model: nn.Module, seconds: float, check: Callable[[], None]) -> Measures:
        validation_loss, measured = self._measure(model, self._objective.validation, seconds, check)
        train_loss, of_train = self._measure(model, self._objective.train, seconds / 5, check)
        parts = (
            _in_words(measured, len(self._objective.validation) - 1, "the part held out"),
            _in_words(of_train, len(self._objective.train) - 1, "the part trained on"),
        )
        return Measures(train_loss, validation_loss, None, ", and on ".join(parts))

    def _measure(
        self, model: nn.Module, text: Tensor, seconds: float, check: Callable[[], None]
    ) -> tuple[float, int]:
        """The loss, and on how many predictions. Pieces come in an order that is evenly spread wherever it ends."""
        size = self._batch * self._context
        starts = range(0, len(text) - 1, size)
        golden = (math.sqrt(5) - 1) / 2
        total, measured, deadline = 0.0, 0, time.monotonic() + seconds
        for place in sorted(range(len(starts)), key=lambda place: place * golden % 1):
            piece = text[starts[place] : starts[place] + size + 1]
            total += evaluate_loss(model, piece, self._batch) * (len(piece) - 1)
            measured += len(piece) - 1
            check()
            if time.monotonic() > deadline:
                break
        return total / measured, measured


class TaskMeasure(Measure):
    """On examples that training never meets."""

    def __init__(self, objective: TaskObjective) -> None:
        self._objective = objective
        self._glance = task_batch(objective.task, objective.task.sample(GLANCE_EXAMPLES, seed=1))

    def glance(self, model: nn.Module) -> float:
        return _loss(model, self._glance)

    def measure(self, model: nn.Module, seconds: float, check: Callable[[], None]) -> Measures:
        task, random = self._objective.task, np.random.default_rng(self._objective.seed)
        held_out = task.sample(EXAMPLES, seed=1)
        validation_loss = _loss(model, task_batch(task, held_out))
        check()
        train_loss = _loss(model, task_batch(task, [task.draw(random) for _ in range(EXAMPLES)]))
        check()
        answered = task.sample(EXACT_EXAMPLES) if task.ends else []
        accuracy = exact_matches(model, task, answered) if answered else None
        words = f"{len(held_out)} examples held out" + (f", {len(answered)} of them written out" if answered else "")
        return Measures(train_loss, validation_loss, accuracy, words)


def card_of(
    plan: Plan, measures: Measures, *, parameters: int, batch: int, step: int, seconds: float, ending: str
) -> Card:
    """What a visitor should know of the model they trained.

    ending: how training ended, in a sentence, if not with its last step.
    """
    return Card(
        title=plan.title,
        summary=f"{plan.summary} {ending}".strip(),
        group="Yours",
        **plan.objective.card(),
        training={
            **asdict(plan.training) | {"betas": list(plan.training.betas)},
            "batch": batch,
            "best_step": step,
            "ending": ending or "finished",
            "seconds": round(seconds, 1),
            "machine": "one CPU core",
            "measured_on": measures.measured_on,
        },
        parameters=parameters,
        train_loss=_rounded(measures.train_loss),
        validation_loss=_rounded(measures.validation_loss),
        accuracy=_rounded(measures.accuracy),
        examples=list(plan.examples),
    )


@torch.no_grad()
def _loss(model: nn.Module, batch: Batch) -> float:
    return token_loss(model.eval()(*batch.inputs), batch.targets).item()


def _in_words(measured: int, whole: int, part: str) -> str:
    return f"all of {part}" if measured == whole else f"{measured:,} of {whole:,} tokens of {part}, evenly spread"


def _rounded(number: float | None) -> float | None:
    """No card holds a number that is none."""
    return None if number is None or not math.isfinite(number) else round(number, 5)
