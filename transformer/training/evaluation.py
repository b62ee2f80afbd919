"""How good a model is: losses, the share of right answers, and how well it goes on with what repeats.

Losses are mean cross-entropy in nats per token. Shapes: batch, pos.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..data.batches import IGNORED, task_batch
from ..data.tasks import END, START, Example, Induction, Task
from ..inference.analysis import induction_score
from ..inference.generation import write_greedily

EVALUATED_AT_ONCE = 4096
"""Tokens: fewer, and small models mostly wait for Python; more, and what they compute no longer fits into caches."""


def token_loss(logits: Tensor, targets: Tensor, reduction: str = "mean") -> Tensor:
    """Cross-entropy in nats. logits: (batch, pos, vocab); targets: (batch, pos), IGNORED where nothing counts."""
    return F.cross_entropy(logits.float().flatten(0, 1), targets.flatten(), ignore_index=IGNORED, reduction=reduction)


@torch.no_grad()
def evaluate_loss(model: nn.Module, tokens: Sequence[int] | Tensor, batch: int | None = None) -> float:
    """Mean cross-entropy, in nats per token, over a whole text in consecutive windows of the model's context.

    Every token but the first is predicted once, from what precedes it in its window.
    batch: how many windows at once; None for as many as hold EVALUATED_AT_ONCE tokens.
    """
    was_training = model.training
    model.eval()
    device = next(model.parameters()).device
    tokens = torch.as_tensor(tokens, device=device)
    if len(tokens) < 2:
        raise ValueError("A loss needs a text of at least two tokens.")
    context = model.config.context_length
    batch = batch or max(EVALUATED_AT_ONCE // context, 1)
    total = 0.0
    for windows, targets in _windows(tokens, context, batch):
        total += token_loss(model(windows), targets, reduction="sum").item()
    model.train(was_training)
    return total / (len(tokens) - 1)


def _windows(tokens: Tensor, context: int, batch: int) -> Iterator[tuple[Tensor, Tensor]]:
    whole = (len(tokens) - 1) // context
    inputs = tokens[: whole * context].view(whole, context)
    targets = tokens[1 : whole * context + 1].view(whole, context)
    yield from zip(inputs.split(batch), targets.split(batch), strict=True)
    if (len(tokens) - 1) % context:
        yield tokens[None, whole * context : -1], tokens[None, whole * context + 1 :]

HELD_OUT = 2000
"""Examples of a task that a model is measured by, or all there are if they are fewer."""


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
