"""Evaluates a model: losses, accuracy, and how well it continues repeated sequences.

A model is measured twice: at a glance during training, always on the same part of the held-out data, and at the end as
fully as time allows. Losses are mean cross-entropy in nats per token. Shapes: batch, pos.
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
"""Tokens in one pass: with fewer, small models mostly wait for Python; with more, tensors no longer fit into caches."""
GLANCE_TOKENS = 4096
"""Tokens of a text for a glance, always the same ones."""
FEWEST_PIECES = 4
"""The fewest pieces of a text to measure, however short the time: one would cover too little."""
GLANCE_EXAMPLES, EXAMPLES = 128, 512
"""Held-out examples of a task for the loss, at a glance and at the end."""
HELD_OUT = 2000
"""Held-out examples for the accuracy, or all of them if there are fewer."""
ANSWERED_AT_ONCE = 200
"""Examples answered in one batch; between two batches, measuring can end."""
SIDE_SHARE = 0.2
"""The time for any other measure, as a share of that for the validation loss."""


@contextmanager
def evaluating(model: Model) -> Iterator[None]:
    """Switch dropout and gradients off inside, and restore the model's mode afterwards, even after an error."""
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

    Every token but the first is predicted once, from the tokens before it in its window.
    batch: windows per pass; None for as many as hold EVALUATED_AT_ONCE tokens.
    """
    tokens = torch.as_tensor(tokens, device=model.device)
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
    """The share of examples that the model answers exactly, greedily, with an end; or whose masks it fills right."""
    examples = list(examples)
    if task.architecture == "encoder-only":
        return _filled(model, task_batch(task, examples).to(model.device))
    written = list(zip(examples, translations(model, task, examples), strict=True))
    return sum(example.target == text for example, text in written) / len(written)


def _filled(model: Model, batch: Batch) -> float:
    """The share of texts in which the likeliest token is right at every mask."""
    with evaluating(model):
        right = (model(*batch.inputs).argmax(-1) == batch.targets) | (batch.targets == IGNORED)
    return right.all(-1).double().mean().item()


def translations(model: Model, task: Task, examples: Iterable[Example]) -> list[str | None]:
    """The model's greedy answer to each example; None if it doesn't end."""
    examples = list(examples)
    tokenizers = [task.tokenizer.with_new_words([example.source]) for example in examples]
    sources = [tokenizer.encode(each.source) for tokenizer, each in zip(tokenizers, examples, strict=True)]
    start, end, device = task.tokenizer.special_id(START), task.tokenizer.special_id(END), model.device
    lengths = list(map(len, sources))
    order = sorted(range(len(examples)), key=lengths.__getitem__)
    texts: list[str | None] = [None] * len(examples)
    for length, indices in groupby(order, key=lengths.__getitem__):
        indices = list(indices)
        read = torch.tensor([sources[index] for index in indices], device=device)
        if task.architecture == "encoder-decoder":
            begun, source, most = torch.full((len(indices), 1), start, device=device), read, task.longest
        else:
            begun, source, most = read, None, task.longest - length
        with evaluating(model):
            written = write_greedily(model, begun, most, source=source, end_token=end).tolist()
        for index, ids in zip(indices, written, strict=True):
            if end in ids:
                texts[index] = tokenizers[index].decode(ids[: ids.index(end)])
    return texts


@dataclass(frozen=True)
class InductionMeasure:
    """How well a model continues a repeated sequence. Losses in nats per token; the score is `induction_score`'s."""

    sequences: int
    period: int
    first_loss: float
    second_loss: float
    best_score: float
    layer: int
    head: int


def measure_induction(model: Model, task: Induction, sequences: int = 500) -> InductionMeasure:
    """Measure on repeated random sequences of half the longest length: the loss in each half, and the best head."""
    random = np.random.default_rng(0)
    period = task.longest // 2
    batch = task_batch(task, [task.repeated(random, period) for _ in range(sequences)]).to(model.device)
    with evaluating(model):
        logits, cache = model.run_with_cache(*batch.inputs, names_filter=pattern_names(model.config))
    losses = F.cross_entropy(logits.mT, batch.targets, reduction="none")  # (batch, pos)
    scores = torch.stack([induction_score(pattern, period) for pattern in cache.values()])  # (layer, head)
    layer, head = divmod(int(scores.argmax()), scores.shape[1])
    first, second = losses[:, : period - 1].mean(), losses[:, period - 1 :].mean()
    return InductionMeasure(sequences, period, first.item(), second.item(), scores.max().item(), layer, head)


@dataclass(frozen=True)
class ReadingMeasure:
    """How well a model answers questions about stories, and where it looks when it does."""

    questions: int
    accuracy: float
    """The share of right answers, by their first word, which is the whole answer."""
    weight: float
    """The best head's mean attention weight from the question mark to the answering word, 0 to 1."""
    layer: int
    head: int


def measure_reading(model: Model, task: Stories, questions: int = 1000) -> ReadingMeasure:
    """Measure on held-out questions: the accuracy, and the head that attends most to the answering word."""
    examples = [example for example in task.sample(questions) if isinstance(example, Question)]
    right, weights = 0, []
    for at in range(0, len(examples), ANSWERED_AT_ONCE):
        lot = examples[at : at + ANSWERED_AT_ONCE]
        batch = task_batch(task, lot).to(model.device)
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
    """A model's losses and accuracy, and what they were measured on, in words."""

    train_loss: float
    validation_loss: float
    accuracy: float | None
    """The share of held-out examples written exactly; None where there are no right answers."""
    measured_on: str


class Evaluator(ABC):
    """Measures models on one objective."""

    @abstractmethod
    def glance(self, model: Model) -> float:
        """The loss on a fixed part of the held-out data."""

    def glance_accuracy(self, model: Model) -> float | None:
        """The accuracy there if one pass gives it, as for an encoder's masks."""
        return None

    @abstractmethod
    def validation_loss(self, model: Model) -> float:
        """The loss on the held-out data: all of a text, or `EXAMPLES` of a task."""

    @abstractmethod
    def measure(self, model: Model, seconds: float = math.inf, check: Callable[[], None] = lambda: None) -> Measures:
        """Every measure of a model, on all the data or on as much as `seconds` allow.

        check: called regularly; an exception from it ends the measurement.
        """


def evaluator_of(objective: Objective, context: int) -> Evaluator:
    """Make the evaluator for models of this context on an objective."""
    if isinstance(objective, TextObjective):
        return TextEvaluator(objective, context)
    assert isinstance(objective, TaskObjective)
    return TaskEvaluator(objective)


class TextEvaluator(Evaluator):
    """Measures on windows of a text, as long as the context."""

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
        """The loss, and its number of predictions. The pieces' order is evenly spread, wherever time ends it."""
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
    """Measures on examples that training never meets."""

    def __init__(self, objective: TaskObjective) -> None:
        self._task, self._seed = objective.task, objective.seed
        self._held_out = self._task.sample(EXAMPLES, seed=1)
        self._whole = task_batch(self._task, self._held_out)
        self._glance = task_batch(self._task, self._held_out[:GLANCE_EXAMPLES])

    def glance(self, model: Model) -> float:
        return _loss(model, self._glance)

    def glance_accuracy(self, model: Model) -> float | None:
        is_encoder = self._task.architecture == "encoder-only"
        return _filled(model, self._glance.to(model.device)) if is_encoder else None

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
        """The accuracy, and the number of examples."""
        examples = self._task.sample(HELD_OUT)
        right, answered, deadline = 0.0, 0, time.monotonic() + seconds
        while answered < len(examples) and (not answered or time.monotonic() < deadline):
            lot = examples[answered : answered + ANSWERED_AT_ONCE]
            right += exact_matches(model, self._task, lot) * len(lot)
            answered += len(lot)
            check()
        return right / answered, answered


def _loss(model: Model, batch: Batch) -> float:
    batch = batch.to(model.device)
    with evaluating(model):
        return token_loss(model(*batch.inputs), batch.targets).item()


def _windows(tokens: Tensor, context: int, batch: int) -> Iterator[tuple[Tensor, Tensor]]:
    whole = (len(tokens) - 1) // context
    inputs = tokens[: whole * context].view(whole, context)
    targets = tokens[1 : whole * context + 1].view(whole, context)
    yield from zip(inputs.split(batch), targets.split(batch), strict=True)
    if (len(tokens) - 1) % context:
        yield tokens[None, whole * context : -1], tokens[None, whole * context + 1 :]


def _in_words(measured: int, whole: int, part: str) -> str:
    return f"all of {part}" if measured == whole else f"{measured:,} of {whole:,} tokens of {part}, evenly spread"
