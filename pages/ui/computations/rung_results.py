"""Lists the rungs of a ladder of models, and runs a text on each.

Dimensions: vocab.
"""

from dataclasses import dataclass

import numpy as np

from pages.ui.computations import activations
from pages.ui.models import library
from transformer import CheckpointEntry, Sampling
from transformer.training.presets import Group

GENERATED_TOKENS = 60
"""Tokens that each rung writes."""


@dataclass(frozen=True)
class RungResult:
    """One text on one rung."""

    loss: float | None
    """The mean cross-entropy of its tokens but the first, in nats; None for a text of one token."""
    probabilities: np.ndarray
    """(vocab,): the probability of each next token."""
    text: str
    """What the rung writes after it."""


def rungs(group: Group) -> dict[str, CheckpointEntry]:
    """The rungs of a ladder that there are, from the lowest to the highest."""
    entries = {name: entry for name, entry in library.usable().items() if entry.card.group == group}
    return dict(sorted(entries.items()))


def rung_result(name: str, tokens: tuple[int, ...], sampling: Sampling) -> RungResult:
    """One text on a rung. Each token is predicted from those before it in the rung's window."""
    expected = activations.probabilities(name, tokens).astype(np.float64)
    probabilities = np.exp(activations.log_softmax(activations.next_token(name, tokens)))
    loss = float(-np.log(np.maximum(expected, np.finfo(float).tiny)).mean()) if len(tokens) > 1 else None
    more = activations.written(name, tokens, (), sampling, GENERATED_TOKENS)
    return RungResult(loss, probabilities, library.tokenizer(name).decode(list(more)))
