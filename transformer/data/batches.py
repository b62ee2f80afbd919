"""Training batches: what the model reads, and the target of each position.

Shapes: batch, pos.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from .tasks import END, MASK, PAD, START, Example, Task
from .tokenizers import Tokenizer

IGNORED = -100
"""A target that the loss ignores, such as padding."""


class Batch(NamedTuple):
    """What goes into a model, and the token ids, (batch, pos), that its logits should predict."""

    inputs: tuple[Tensor, ...]
    targets: Tensor

    def to(self, device: torch.device) -> Batch:
        """The same batch on another device."""
        return Batch(tuple(part.to(device) for part in self.inputs), self.targets.to(device))


Batches = Callable[[int], Batch]
"""The batch of a step: a function of the step's number, so that resuming needs no position in a stream."""


class TextBatches:
    """Random windows of a text, and the same windows one token later.

    With context 4, the text `hello` gives the input `hell` and the target `ello`: four predictions at once.
    """

    def __init__(self, tokens: Sequence[int] | Tensor, context: int, batch: int, seed: int = 0) -> None:
        self.tokens = torch.as_tensor(tokens)
        self.context, self.batch, self.seed = context, batch, seed
        if len(self.tokens) <= context:
            raise ValueError(
                f"The text has {len(self.tokens)} tokens, too few for a context of {context}; "
                f"it needs at least {context + 1}."
            )

    def __call__(self, step: int) -> Batch:
        last = len(self.tokens) - self.context
        starts = np.random.default_rng((self.seed, step)).integers(last, size=(self.batch, 1))
        windows = self.tokens[torch.from_numpy(starts + np.arange(self.context + 1))]  # (batch, context + 1)
        return Batch((windows[:, :-1],), windows[:, 1:])


def character_ids(tokenizer: Tokenizer, text: str) -> Tensor:
    """`tokenizer.encode` of a text, (pos,), for a tokenizer of characters; it looks up each distinct one once.

    A megabyte takes milliseconds; `encode` would take seconds and hundreds of megabytes.
    """
    if not text:
        return torch.zeros(0, dtype=torch.long)
    codes = np.frombuffer(text.encode("utf-32-le"), dtype="<u4")
    alphabet = sorted(set(text))
    ids = np.zeros(ord(alphabet[-1]) + 1, dtype=np.int64)
    ids[[ord(character) for character in alphabet]] = tokenizer.encode("".join(alphabet))
    return torch.from_numpy(ids[codes])


def task_batch(task: Task, examples: Sequence[Example]) -> Batch:
    """A batch of examples, with the token to predict at each position of the answer.

    For an encoder–decoder, `abc` → `e` is the source `a b c`, the target `[start] e`, and `e [end]` to predict.
    A decoder-only model reads `c a = a c` and predicts `a c [end]` from the `=` on; with `predicts_source`, it predicts
    `a = a c [end]` from the start. Further examples follow in the same row, without an `[end]` to read. An encoder
    reads a text with masks and predicts the masked words.
    """
    pad = task.tokenizer.special_id(PAD)
    if task.architecture == "encoder-decoder":
        encode, special = task.tokenizer.encode, task.tokenizer.special_id
        read = [encode(example.source) for example in examples]
        targets = [encode(example.target) + [special(END)] * task.ends for example in examples]
        inputs = (read, [[special(START), *ids[:-1]] for ids in targets])
    elif task.architecture == "encoder-only":
        mask = task.tokenizer.special_id(MASK)
        named = [(task.tokenizer.with_new_words(texts), texts) for texts in ((e.source, e.target) for e in examples)]
        read, hidden = zip(*[map(tokenizer.encode, texts) for tokenizer, texts in named], strict=True)
        targets = [
            [right if token == mask else IGNORED for token, right in zip(*row, strict=True)]
            for row in zip(read, hidden, strict=True)
        ]
        inputs = (read,)
    else:
        rows = [_continued(task, example) for example in examples]
        inputs, targets = ([read for read, _ in rows],), [wanted for _, wanted in rows]
    return Batch(tuple(padded(rows, pad) for rows in inputs), padded(targets, IGNORED))


def _continued(task: Task, example: Example) -> tuple[list[int], list[int]]:
    """A decoder-only model's input for an example, and the target at each position."""
    parts, end = (example, *example.further), [task.tokenizer.special_id(END)] * task.ends
    encode = task.tokenizer.with_new_words(text for part in parts for text in (part.source, part.target)).encode
    read, targets = [], []
    for part in parts:
        source, target = encode(part.source), encode(part.target) + end
        read += source + target[:-1]
        targets += (source[1:] if part.predicts_source else [IGNORED] * (len(source) - 1)) + target
    return read, targets


def padded(rows: Sequence[Sequence[int]], fill: int) -> Tensor:
    """Rows of unequal length as one tensor (batch, pos), padded on the right."""
    longest = max(map(len, rows))
    return torch.tensor([[*row, *[fill] * (longest - len(row))] for row in rows])
