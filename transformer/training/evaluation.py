"""Evaluates a model: losses, accuracy, and how well it continues repeated sequences.

A model in training is looked at in two ways: at a glance on the way, always on the same part of what is held out; and
as fully as time allows at the end. Losses are mean cross-entropy in nats per token. Shapes: batch, pos.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from ..data.batches import IGNORED, Batch, task_batch
from ..data.tasks import END, START, Example, Induction, Question, Stories, Task
from ..inference.analysis import induction_score
from ..inference.generation import write_greedily
from ..model.models import Model
from ..model.registry import pattern_names
from .objectives import Objective, TaskObjective, TextObjective

EVALUATED_AT_ONCE = 4096
"""Tokens: fewer, and small models mostly wait for Python; more, and what they compute no longer fits into caches."""
GLANCE_TOKENS = 4096
"""Tokens of a text that a loss on the way is measured on, always the same ones."""
FEWEST_PIECES = 4
"""A text's loss is measured on at least so many pieces, however little time there is: one would cover too little."""
GLANCE_EXAMPLES, EXAMPLES = 128, 512
"""Held-out examples of a task that its loss is measured on, on the way and at the end."""
HELD_OUT = 2000
"""Held-out examples that the share of right answers is of, or all there are if they are fewer."""
ANSWERED_AT_ONCE = 200
"""Of these; between two such lots, measuring can end."""
SIDE_SHARE = 0.2
"""Of the time for the validation loss, what another measure may take."""


@contextmanager
def evaluating(model: Model) -> Iterator[None]:
    """Inside, dropout rests and no gradient is kept; afterwards the model is in the mode it was in, come what may."""
    was_training = model.training
    try:
        model.eval()
        with torch.no_grad():
            yield
    finally:
        model.train(was_training)


def token_loss(logits: Tensor, targets: Tensor, reduction: str = "mean") -> Tensor:
    """Cross-entropy in nats. logits: (batch, pos, vocab); targets: (batch, pos), IGNORED where nothing counts."""
    return F.cross_entropy(logits.float().flatten(0, 1), targets.flatten(), ignore_index=IGNORED, reduction=reduction)


def evaluate_loss(model: Model, tokens: Sequence[int] | Tensor, batch: int | None = None) -> float:
    """Mean cross-entropy, in nats per token, over a whole text in consecutive windows of the model's context.

    Every token but the first is predicted once, from what precedes it in its window.
    batch: how many windows at once; None for as many as hold EVALUATED_AT_ONCE tokens.
    """
    tokens = torch.as_tensor(tokens, device=_device(model))
    if len(tokens) < 2:
        raise ValueError("A loss needs a text of at least two tokens.")
    context = model.config.context_length
    batch = batch or max(EVALUATED_AT_ONCE // context, 1)
    total = 0.0
    with evaluating(model):
        for windows, targets in _windows(tokens, context, batch):
            total += token_loss(model(windows), targets, reduction="sum").item()
    return total / (len(tokens) - 1)


def exact_matches(model: Model, task: Task, examples: Iterable[Example]) -> float:
    """The share of examples whose target the model writes exactly, greedily, and then ends; or whose masks it fills."""
    examples = list(examples)
    if task.architecture == "encoder-only":
        return _filled(model, task_batch(task, examples).to(_device(model)))
    written = list(zip(examples, translations(model, task, examples), strict=True))
    return sum(example.target == text for example, text in written) / len(written)


def _filled(model: Model, batch: Batch) -> float:
    """The share of texts in which every masked token's likeliest is the right one."""
    with evaluating(model):
        right = (model(*batch.inputs).argmax(-1) == batch.targets) | (batch.targets == IGNORED)
    return right.all(-1).double().mean().item()


def translations(model: Model, task: Task, examples: Iterable[Example]) -> list[str | None]:
    """What the model writes for each example, greedily; None where it comes to no end."""
    examples = list(examples)
    tokenizer, device = task.tokenizer, _device(model)
    start, end = tokenizer.special_id(START), tokenizer.special_id(END)
    lengths = [len(tokenizer.encode(example.source)) for example in examples]
    order = sorted(range(len(examples)), key=lengths.__getitem__)
    texts: list[str | None] = [None] * len(examples)
    for length, indices in groupby(order, key=lengths.__getitem__):
        indices = list(indices)
        read = torch.tensor([tokenizer.encode(examples[index].source) for index in indices], device=device)
        if task.architecture == "encoder-decoder":
            begun, source, most = torch.full((len(indices), 1), start, device=device), read, task.longest
        else:
            begun, source, most = read, None, task.longest - length
        with evaluating(model):
            written = write_greedily(model, begun, most, source=source, end_token=end).tolist()
        for index, ids in zip(indices, written, strict=True):
            if end in ids:
                texts[index] = tokenizer.decode(ids[: ids.index(end)])
    return texts


@dataclass(frozen=True)
class InductionMeasure:
    """How well a model continues what repeats. Losses in nats per token; the score is `induction_score`'s."""

    sequences: int
    period: int
    first_loss: float
    second_loss: float
    best_score: float
    layer: int
    head: int


def measure_induction(model: Model, task: Induction, sequences: int = 500) -> InductionMeasure:
    """Random stretches of half the longest sequence, each given twice: the loss in each half, and the best head."""
    random = np.random.default_rng(0)
    period = task.longest // 2
    batch = task_batch(task, [task.repeated(random, period) for _ in range(sequences)]).to(_device(model))
    with evaluating(model):
        logits, cache = model.run_with_cache(*batch.inputs, names_filter=pattern_names(model.config))
    losses = F.cross_entropy(logits.mT, batch.targets, reduction="none")  # (batch, pos)
    scores = torch.stack([induction_score(pattern, period) for pattern in cache.values()])  # (layer, head)
    layer, head = divmod(int(scores.argmax()), scores.shape[1])
    first, second = losses[:, : period - 1].mean(), losses[:, period - 1 :].mean()
    return InductionMeasure(sequences, period, first.item(), second.item(), scores.max().item(), layer, head)


@dataclass(frozen=True)
class ReadingMeasure:
    """How well a model answers questions about stories, and where it looks as it does."""

    questions: int
    accuracy: float
    """The share of answers that are right: of the first word, which is all there is to them."""
    weight: float
    """What the best head, on average, gives the word that answers: attention from the question mark, from 0 to 1."""
    layer: int
    head: int


def measure_reading(model: Model, task: Stories, questions: int = 1000) -> ReadingMeasure:
    """Held-out questions: the share answered correctly, and the head that looks most at the word that answers them."""
    examples = [example for example in task.sample(questions) if isinstance(example, Question)]
    right, weights = 0, []
    for at in range(0, len(examples), ANSWERED_AT_ONCE):
        lot = examples[at : at + ANSWERED_AT_ONCE]
        batch = task_batch(task, lot).to(_device(model))
        rows, question_marks = torch.arange(len(lot)), (batch.targets != IGNORED).int().argmax(1)
        answers = torch.tensor([example.position for example in lot])
        with evaluating(model):
            logits, cache = model.run_with_cache(*batch.inputs, names_filter=pattern_names(model.config))
        right += int((logits.argmax(-1) == batch.targets)[rows, question_marks].sum())
        weights.append(torch.stack([pattern[rows, :, question_marks, answers] for pattern in cache.values()], dim=1))
    mean = torch.cat(weights).mean(0)  # (layer, head)
    layer, head = divmod(int(mean.argmax()), mean.shape[1])
    return ReadingMeasure(len(examples), right / len(examples), mean.max().item(), layer, head)


@dataclass(frozen=True)
class Measures:
    """How good a model is, and what that was measured on, in words."""

    train_loss: float
    validation_loss: float
    accuracy: float | None
    """The share of held-out examples written exactly; None where there are no right answers."""
    measured_on: str


class Evaluator(ABC):
    """Measures models on one objective."""

    @abstractmethod
    def glance(self, model: Model) -> float:
        """The loss on a fixed part of what is held out."""

    def glance_accuracy(self, model: Model) -> float | None:
        """The share of right answers there, if one pass tells it: the masks that an encoder fills."""
        return None

    @abstractmethod
    def validation_loss(self, model: Model) -> float:
        """The loss on what is held out: all of a text, or `EXAMPLES` of a task."""

    @abstractmethod
    def measure(self, model: Model, seconds: float = math.inf, check: Callable[[], None] = lambda: None) -> Measures:
        """Every measure of a model, on all there is for it, or on as much as `seconds` allow.

        check: called every now and then; what it raises ends the measurement.
        """


def evaluator_of(objective: Objective, context: int) -> Evaluator:
    """The way to measure models of this context on an objective."""
    if isinstance(objective, TextObjective):
        return TextEvaluator(objective, context)
    assert isinstance(objective, TaskObjective)
    return TaskEvaluator(objective)


class TextEvaluator(Evaluator):
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

    def glance(self, model: Model) -> float:
        if self._windows is None:
            return self.validation_loss(model)
        return _loss(model, Batch((self._windows[:, :-1],), self._windows[:, 1:]))

    def validation_loss(self, model: Model) -> float:
        return evaluate_loss(model, self._objective.validation)

    def measure(self, model: Model, seconds: float = math.inf, check: Callable[[], None] = lambda: None) -> Measures:
        validation_loss, measured = self._measure(model, self._objective.validation, seconds, check)
        train_loss, of_train = self._measure(model, self._objective.train, SIDE_SHARE * seconds, check)
        parts = (
            _in_words(measured, len(self._objective.validation) - 1, "the part held out"),
            _in_words(of_train, len(self._objective.train) - 1, "the part trained on"),
        )
        return Measures(train_loss, validation_loss, None, ", and on ".join(parts))

    def _measure(self, model: Model, text: Tensor, seconds: float, check: Callable[[], None]) -> tuple[float, int]:
        """The loss, and on how many predictions. Pieces come in an order that is evenly spread wherever it ends."""
        size = self._batch * self._context
        starts = range(0, len(text) - 1, size)
        golden = (math.sqrt(5) - 1) / 2
        total, measured, deadline = 0.0, 0, time.monotonic() + seconds
        order = sorted(range(len(starts)), key=lambda index: index * golden % 1)
        for count, index in enumerate(order, start=1):
            piece = text[starts[index] : starts[index] + size + 1]
            total += evaluate_loss(model, piece, self._batch) * (len(piece) - 1)
            measured += len(piece) - 1
            check()
            if time.monotonic() > deadline and count >= FEWEST_PIECES:
                break
        return total / measured, measured


class TaskEvaluator(Evaluator):
    """On examples that training never meets."""

    def __init__(self, objective: TaskObjective) -> None:
        self._task, self._seed = objective.task, objective.seed
        self._held_out = self._task.sample(EXAMPLES, seed=1)
        self._whole = task_batch(self._task, self._held_out)
        self._glance = task_batch(self._task, self._held_out[:GLANCE_EXAMPLES])

    def glance(self, model: Model) -> float:
        return _loss(model, self._glance)

    def glance_accuracy(self, model: Model) -> float | None:
        is_encoder = self._task.architecture == "encoder-only"
        return _filled(model, self._glance.to(_device(model))) if is_encoder else None

    def validation_loss(self, model: Model) -> float:
        return _loss(model, self._whole)

    def measure(self, model: Model, seconds: float = math.inf, check: Callable[[], None] = lambda: None) -> Measures:
        random = np.random.default_rng(self._seed)
        validation_loss = self.validation_loss(model)
        check()
        train_loss = _loss(model, task_batch(self._task, [self._task.draw(random) for _ in range(EXAMPLES)]))
        check()
        words, accuracy = f"{len(self._held_out)} examples held out", None
        if self._task.ends or self._task.architecture == "encoder-only":
            accuracy, answered = self._answer(model, SIDE_SHARE * seconds, check)
            words += f", and {answered:,} {'written out' if self._task.ends else 'filled in'}"
        return Measures(train_loss, validation_loss, accuracy, words)

    def _answer(self, model: Model, seconds: float, check: Callable[[], None]) -> tuple[float, int]:
        """The share of right answers, and of how many."""
        examples = self._task.sample(HELD_OUT)
        right, answered, deadline = 0.0, 0, time.monotonic() + seconds
        while answered < len(examples) and (not answered or time.monotonic() < deadline):
            lot = examples[answered : answered + ANSWERED_AT_ONCE]
            right += exact_matches(model, self._task, lot) * len(lot)
            answered += len(lot)
            check()
        return right / answered, answered


def _loss(model: Model, batch: Batch) -> float:
    batch = batch.to(_device(model))
    with evaluating(model):
        return token_loss(model(*batch.inputs), batch.targets).item()


def _windows(tokens: Tensor, context: int, batch: int) -> Iterator[tuple[Tensor, Tensor]]:
    whole = (len(tokens) - 1) // context
    inputs = tokens[: whole * context].view(whole, context)
    targets = tokens[1 : whole * context + 1].view(whole, context)
    yield from zip(inputs.split(batch), targets.split(batch), strict=True)
    if (len(tokens) - 1) % context:
        yield tokens[None, whole * context : -1], tokens[None, whole * context + 1 :]


def _device(model: Model) -> torch.device:
    return next(model.parameters()).device


def _in_words(measured: int, whole: int, part: str) -> str:
    return f"all of {part}" if measured == whole else f"{measured:,} of {whole:,} tokens of {part}, evenly spread"
