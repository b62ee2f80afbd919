"""What a model is trained on: batches to learn from, and what is held out to measure it by.

Shapes: batch, pos.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .analysis import induction_score
from .corpora import Corpus
from .generation import write_greedily
from .tasks import END, PAD, START, Example, Induction, Task
from .tokenizers import Tokenizer
from .training import IGNORED, Batch, TextBatches, evaluate_loss, token_loss

HELD_OUT = 2000
"""Examples of a task that a model is measured by, or all there are if they are fewer."""


@dataclass(frozen=True)
class Scores:
    """How good a model is. Losses in nats per token; accuracy: the share of held-out examples written exactly."""

    train_loss: float
    validation_loss: float
    accuracy: float | None = None


class Lesson(ABC):
    """A source of batches, and of what measures the model they train."""

    tokenizer: Tokenizer

    @property
    @abstractmethod
    def shape(self) -> dict[str, Any]:
        """The fields of ModelConfig that the lesson decides."""

    @abstractmethod
    def batches(self, step: int) -> Batch:
        """The batch of a step."""

    @abstractmethod
    def validation_loss(self, model: nn.Module) -> float:
        """Mean cross-entropy on what is held out, in nats per token."""

    @abstractmethod
    def scores(self, model: nn.Module) -> Scores:
        """Every measure of a finished model."""

    @abstractmethod
    def card(self) -> dict[str, Any]:
        """The fields of a card that say what the model was trained on."""


class TextLesson(Lesson):
    """Random windows of a text, character by character."""

    def __init__(self, corpus: Corpus, context: int, batch: int, seed: int, device: str = "cpu") -> None:
        self.corpus = corpus
        self.tokenizer = Tokenizer.of_characters(corpus.text)
        ids = character_ids(self.tokenizer, corpus.text)
        at = len(corpus.split()[0])
        self.train, self.validation = ids[:at], ids[at:]
        self._windows = TextBatches(self.train, context, batch, seed, device)

    @property
    def shape(self) -> dict[str, Any]:
        return {"vocab_size": self.tokenizer.vocab_size}

    def batches(self, step: int) -> Batch:
        return self._windows(step)

    def validation_loss(self, model: nn.Module) -> float:
        return evaluate_loss(model, self.validation)

    def scores(self, model: nn.Module) -> Scores:
        """The training loss is that of the text's first part, as long as what is held out."""
        return Scores(evaluate_loss(model, self.train[: len(self.validation)]), self.validation_loss(model))

    def card(self) -> dict[str, Any]:
        source = self.corpus.source
        return {
            "language": source.language,
            "task": "next character",
            "corpus": {
                "name": source.name,
                "title": source.title,
                "sha256": self.corpus.sha256,
                "licence": source.licence,
                "train_fraction": source.train_fraction,
            },
        }


def character_ids(tokenizer: Tokenizer, text: str) -> Tensor:
    """`tokenizer.encode` of a text, (pos,), for a tokenizer of characters; it looks each different one up only once.

    A megabyte takes milliseconds, where `encode` takes seconds and hundreds of megabytes.
    """
    if not text:
        return torch.zeros(0, dtype=torch.long)
    codes = np.frombuffer(text.encode("utf-32-le"), dtype="<u4")
    alphabet = sorted(set(text))
    ids = np.zeros(ord(alphabet[-1]) + 1, dtype=np.int64)
    ids[[ord(character) for character in alphabet]] = tokenizer.encode("".join(alphabet))
    return torch.from_numpy(ids[codes])


class TaskLesson(Lesson):
    """Examples of a task, drawn anew for each batch and filled up with `[pad]` to the longest among them."""

    def __init__(self, task: Task, batch: int, seed: int, device: str = "cpu") -> None:
        self.task, self.batch, self.seed, self.device = task, batch, seed, device
        self.tokenizer = task.tokenizer

    @property
    def shape(self) -> dict[str, Any]:
        return {
            "vocab_size": self.tokenizer.vocab_size,
            "pad_token_id": self.tokenizer.special_id(PAD),
            "context_length": self.task.longest,
            "architecture": self.task.architecture,
        }

    def batches(self, step: int) -> Batch:
        random = np.random.default_rng((self.seed, step))
        return task_batch(self.task, [self.task.draw(random) for _ in range(self.batch)], self.device)

    def validation_loss(self, model: nn.Module) -> float:
        return self._loss(model, self.task.sample(512, seed=1))

    def scores(self, model: nn.Module) -> Scores:
        random = np.random.default_rng(self.seed)
        train = [self.task.draw(random) for _ in range(512)]
        accuracy = exact_matches(model, self.task, self.task.sample(HELD_OUT)) if self.task.ends else None
        return Scores(self._loss(model, train), self.validation_loss(model), accuracy)

    def card(self) -> dict[str, Any]:
        return {
            "language": self.task.language,
            "task": self.task.name,
            "corpus": {"name": self.task.name, "title": self.task.title, "licence": "generated"},
            "start_token_id": self.tokenizer.special_id(START),
            "end_token_id": self.tokenizer.special_id(END) if self.task.ends else None,
        }

    @torch.no_grad()
    def _loss(self, model: nn.Module, examples: Sequence[Example]) -> float:
        was_training = model.training
        model.eval()
        batch = task_batch(self.task, examples, self.device)
        loss = token_loss(model(*batch.inputs), batch.targets).item()
        model.train(was_training)
        return loss


def task_batch(task: Task, examples: Sequence[Example], device: str = "cpu") -> Batch:
    """Examples as a model takes them, with the token to foretell at each position of what it should write.

    For an encoder–decoder, `abc` → `e` is the source `a b c`, the target `[start] e`, and `e [end]` to foretell.
    A decoder-only model reads `c a = a c`, and is asked for `a c [end]` from the `=` on.
    """
    encode, special = task.tokenizer.encode, task.tokenizer.special_id
    end = [special(END)] if task.ends else []
    read = [encode(example.source) for example in examples]
    written = [encode(example.target) + end for example in examples]
    if task.architecture == "encoder-decoder":
        inputs = (read, [[special(START), *ids[:-1]] for ids in written])
        targets = written
    else:
        inputs = ([source + ids[:-1] for source, ids in zip(read, written, strict=True)],)
        targets = [[IGNORED] * (len(source) - 1) + ids for source, ids in zip(read, written, strict=True)]
    pad = special(PAD)
    return Batch(tuple(padded(rows, pad).to(device) for rows in inputs), padded(targets, IGNORED).to(device))


def padded(rows: Sequence[Sequence[int]], fill: int) -> Tensor:
    """Rows of unequal length as one tensor (batch, pos), filled up on the right."""
    longest = max(map(len, rows))
    return torch.tensor([[*row, *[fill] * (longest - len(row))] for row in rows])


def exact_matches(model: nn.Module, task: Task, examples: Iterable[Example]) -> float:
    """The share of examples whose target the model writes exactly, greedily, and then ends."""
    examples = list(examples)
    written = list(zip(examples, translations(model, task, examples), strict=True))
    return sum(example.target == text for example, text in written) / len(written)


def translations(model: nn.Module, task: Task, examples: Iterable[Example]) -> list[str | None]:
    """What the model writes for each example, greedily; None where it comes to no end."""
    examples = list(examples)
    was_training = model.training
    model.eval()
    tokenizer = task.tokenizer
    start, end = tokenizer.special_id(START), tokenizer.special_id(END)
    device = next(model.parameters()).device
    lengths = [len(tokenizer.encode(example.source)) for example in examples]
    order = sorted(range(len(examples)), key=lengths.__getitem__)
    found: list[str | None] = [None] * len(examples)
    for length, places in groupby(order, key=lengths.__getitem__):
        places = list(places)
        read = torch.tensor([tokenizer.encode(examples[place].source) for place in places], device=device)
        if task.architecture == "encoder-decoder":
            begun, source, room = torch.full((len(places), 1), start, device=device), read, task.longest
        else:
            begun, source, room = read, None, task.longest - length
        for place, ids in zip(places, write_greedily(model, begun, room, source=source).tolist(), strict=True):
            if end in ids:
                found[place] = tokenizer.decode(ids[: ids.index(end)])
    model.train(was_training)
    return found


@dataclass(frozen=True)
class InductionMeasure:
    """How well a model goes on with what repeats. Losses in nats per token; the score is `induction_score`'s."""

    sequences: int
    period: int
    first_loss: float
    second_loss: float
    best_score: float
    layer: int
    head: int


@torch.no_grad()
def measure_induction(model: nn.Module, task: Induction, sequences: int = 500) -> InductionMeasure:
    """Random stretches of half the longest sequence, each given twice: the loss in each half, and the best head."""
    random = np.random.default_rng(0)
    period = task.longest // 2
    batch = task_batch(task, [task.repeated(random, period) for _ in range(sequences)])
    logits, cache = model.eval().run_with_cache(*batch.inputs, names_filter=lambda name: name.endswith("hook_pattern"))
    losses = F.cross_entropy(logits.mT, batch.targets, reduction="none")  # (batch, pos)
    scores = torch.stack([induction_score(pattern, period) for pattern in cache.values()])  # (layer, head)
    layer, head = divmod(int(scores.argmax()), scores.shape[1])
    first, second = losses[:, : period - 1].mean(), losses[:, period - 1 :].mean()
    return InductionMeasure(sequences, period, first.item(), second.item(), scores.max().item(), layer, head)
