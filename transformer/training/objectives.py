"""What a model is trained on: batches to learn from, and what is held out to measure it by.

Shapes: batch, pos.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from ..data.batches import Batch, TextBatches, character_ids, task_batch
from ..data.corpora import Corpus
from ..data.tasks import END, PAD, START, Example, Task
from ..data.tokenizers import Tokenizer
from .evaluation import HELD_OUT, evaluate_loss, exact_matches, token_loss


@dataclass(frozen=True)
class Scores:
    """How good a model is. Losses in nats per token; accuracy: the share of held-out examples written exactly."""

    train_loss: float
    validation_loss: float
    accuracy: float | None = None


class Objective(ABC):
    """A source of batches, and of what measures the model they train."""

    tokenizer: Tokenizer

    @property
    @abstractmethod
    def shape(self) -> dict[str, Any]:
        """The fields of ModelConfig that the objective decides."""

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


class TextObjective(Objective):
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


class TaskObjective(Objective):
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


