"""Training objectives: the batches to learn from, the configuration fields they determine, and a description.

Shapes: batch, pos.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import torch

from ..data.batches import Batch, TextBatches, character_ids, task_batch
from ..data.corpora import Corpus
from ..data.tasks import END, MASK, PAD, START, Task
from ..data.tokenizers import Tokenizer


class Objective(ABC):
    """A source of batches."""

    tokenizer: Tokenizer
    batch: int
    """Windows, or examples, in a batch."""
    end_token_id: int | None = None
    """The token with which a model ends its answer; None for a text, which has no end."""

    @property
    @abstractmethod
    def shape(self) -> dict[str, Any]:
        """The fields of ModelConfig that the objective determines."""

    @abstractmethod
    def batches(self, step: int) -> Batch:
        """The batch of a step."""

    @abstractmethod
    def card(self) -> dict[str, Any]:
        """The fields of a card that describe the training data."""


class TextObjective(Objective):
    """Random windows of a text, character by character, or in the tokens of byte-level BPE."""

    def __init__(self, corpus: Corpus, context: int, batch: int, seed: int, *, vocab_size: int | None = None) -> None:
        """vocab_size: of the tokens, which are learnt from the training part; None: characters."""
        self.corpus, self.batch, self._is_of_bytes = corpus, batch, vocab_size is not None
        parts = corpus.split()
        if vocab_size is None:
            self.tokenizer = Tokenizer.of_characters(corpus.text)
            self.train, self.validation = (character_ids(self.tokenizer, part) for part in parts)
        else:
            self.tokenizer = Tokenizer.of_bytes(parts[0], vocab_size)
            self.train, self.validation = (torch.tensor(self.tokenizer.encode(part)) for part in parts)
        self._windows = TextBatches(self.train, context, batch, seed)

    @property
    def shape(self) -> dict[str, Any]:
        return {"vocab_size": self.tokenizer.vocab_size}

    def batches(self, step: int) -> Batch:
        return self._windows(step)

    def card(self) -> dict[str, Any]:
        source = self.corpus.source
        return {
            "language": source.language,
            "task": "next token" if self._is_of_bytes else "next character",
            "corpus": {
                "name": source.name,
                "title": source.title,
                "sha256": self.corpus.sha256,
                "licence": source.licence,
                "train_fraction": source.train_fraction,
            },
        }


class TaskObjective(Objective):
    """Examples of a task, drawn anew for each batch and padded with `[pad]` to the longest one."""

    def __init__(self, task: Task, batch: int, seed: int) -> None:
        self.task, self.batch, self.seed = task, batch, seed
        self.tokenizer = task.tokenizer
        self.end_token_id = self.tokenizer.special_id(END) if task.ends else None

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
        return task_batch(self.task, self.task.draw_batch(random, self.batch, step))

    def card(self) -> dict[str, Any]:
        return {
            "language": self.task.language,
            "task": self.task.name,
            "corpus": {"name": self.task.name, "title": self.task.title, "licence": "generated"},
            **self._special_tokens(),
        }

    def _special_tokens(self) -> dict[str, Any]:
        if self.task.architecture == "encoder-only":
            return {"mask_token_id": self.tokenizer.special_id(MASK)}
        return {"start_token_id": self.tokenizer.special_id(START), "end_token_id": self.end_token_id}
