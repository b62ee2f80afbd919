"""The text one visitor's model is writing: written in short turns, so that it can be watched and stopped."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import torch

from pages.ui.models import activations
from pages.ui.models.library import OpenModel, opened
from transformer import GenerationStep, Sampling, generate, token_statistics


@dataclass(frozen=True)
class Written:
    """One token after the prompt; probability, rank (1: likeliest) and entropy (nats) are the model's own."""

    id: int
    probability: float
    rank: int
    entropy: float
    picked: bool = False


@dataclass
class Writer:
    """A prompt, what was written after it, and the iterator that writes on.

    It keeps the model it began with: one that is replaced meanwhile doesn't change a text half-way. Two script runs
    of one visitor can overlap for a moment; the lock lets one of them write at a time, and `stop` is heeded after the
    token in progress.
    """

    opened: OpenModel | None = None
    """The model that writes; None before the first prompt."""
    prompt: tuple[int, ...] = ()
    """For an encoder–decoder, its start token."""
    source: tuple[int, ...] = ()
    """What the encoder reads; empty for a model that has none."""
    written: list[Written] = field(default_factory=list)
    live: bool = False
    target: int = 0
    """How many written tokens end the present run."""
    newest: tuple[np.ndarray, Mapping[str, np.ndarray]] | None = None
    """Logits (vocab,) that chose the newest token, and where its predecessor looked, as in `activations.next_token`."""
    _steps: Iterator[GenerationStep] | None = None
    _sampling: Sampling | None = None
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _started: float = 0.0
    _written_at_start: int = 0

    @property
    def model(self) -> str:
        """The name of the model that writes; empty before the first prompt."""
        return self.opened.name if self.opened else ""

    @property
    def tokens(self) -> tuple[int, ...]:
        """Prompt and text."""
        return self.prompt + tuple(token.id for token in self.written)

    @property
    def finished(self) -> bool:
        """True once the model has said, with its end token, that nothing follows."""
        return bool(self.written) and self.written[-1].id == self.opened.checkpoint.card.end_token_id

    def begin(self, model: str, prompt: tuple[int, ...], source: tuple[int, ...] = ()) -> bool:
        """Take up a prompt. A new one, or a new model, drops what was written; returns whether it did.

        Raises: CheckpointError if there is no such model.
        """
        found = opened(model)
        with self._lock:
            same_model = self.opened is not None and found.version == self.opened.version
            if same_model and (prompt, source) == (self.prompt, self.source):
                return False
            self.opened, self.prompt, self.source = found, prompt, source
            self.clear()
            return True

    def restore(self, tokens: tuple[int, ...]) -> None:
        """Take over a text that was written elsewhere, with the model's own statistics for each token."""
        found = activations.scored(self.opened, self.prompt + tokens, self.source)
        first = len(self.prompt) - 1
        with self._lock:
            self.clear()
            self.written = [
                Written(token, float(found.probability[i]), int(found.rank[i]), float(found.entropy[i]))
                for i, token in enumerate(tokens, start=first)
            ]

    def start(self, tokens: int) -> None:
        """Begin to write `tokens` more tokens."""
        with self._lock:
            self.live, self.target = True, len(self.written) + tokens
            self._started, self._written_at_start = time.monotonic(), len(self.written)

    def stop(self) -> None:
        """Write no more, from now on."""
        self.live = False

    def clear(self) -> None:
        """Drop the text, keep the prompt."""
        self.live = False
        with self._lock:
            self.written, self.newest, self._steps = [], None, None

    def pick(self, position: int, token_id: int) -> None:
        """Put a token of the visitor's choice at a position, and drop what followed there."""
        with self._lock:
            self.live = False
            del self.written[position - len(self.prompt) :]
            logits, _ = activations.next_token(self.opened, self.tokens, self.source)
            self._append(logits, token_id, picked=True)
            self.newest, self._steps = None, None

    def write(self, sampling: Sampling, seconds: float, pace: float = float("inf")) -> None:
        """Write for about `seconds` seconds, at most `pace` tokens per second, until the run's target."""
        deadline = time.monotonic() + seconds
        with self._lock:
            while self.live and len(self.written) < self.target and time.monotonic() < deadline:
                due = self._written_at_start + 1 + (time.monotonic() - self._started) * pace
                if len(self.written) + 1 > due:
                    break
                self._one_step(sampling)
            if len(self.written) >= self.target or self.finished:
                self.live = False

    def write_one(self, sampling: Sampling) -> None:
        """Write the next token."""
        with self._lock:
            self.live = False
            self._one_step(sampling)

    def _one_step(self, sampling: Sampling) -> None:
        if self.finished:
            self.live = False
            return
        if self._steps is None or sampling != self._sampling:
            self._sampling = sampling
            self._steps = generate(
                self.opened.checkpoint.model,
                self.tokens,
                source=self.source or None,
                max_new_tokens=10**9,
                sampling=sampling,
                names_filter=lambda name: name.endswith("hook_pattern"),
            )
        step = next(self._steps)
        shape = self.opened.checkpoint.model.config
        self.newest = step.logits.numpy().copy(), activations.newest_rows(step.cache, shape)
        self.written.append(Written(step.token_id, step.probability, step.rank, step.entropy))
        if len(self.tokens) > shape.context_length:
            self._steps = None  # nothing is cached any more, so it would only hold on to what it recorded last

    def _append(self, logits: np.ndarray, token_id: int, *, picked: bool) -> None:
        self.written.append(Written(token_id, *token_statistics(torch.tensor(logits), token_id), picked))
