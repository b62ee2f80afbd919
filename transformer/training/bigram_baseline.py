"""The bigram baseline: the lowest loss that a table of pairs can reach."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

SMOOTHING = 0.1
"""Added to every pair's count. On texts of 1 kB to 1 MB, much less or much more gives a higher loss."""


def bigram_loss(
    train: Sequence[int] | Tensor, validation: Sequence[int] | Tensor, vocab_size: int
) -> tuple[float, float]:
    """The loss of the best bigram table, which knows only the last token: the baseline for a model to beat.

    The training part is scored with the counted frequencies themselves, which no table can beat; for the validation
    part `SMOOTHING` is added to each count (Lidstone 1920), so that no unseen pair is impossible.
    Returns: mean cross-entropy on the training part and on the validation part, in nats per token.
    Raises: ValueError for a part without a pair, or ids outside the vocabulary.
    """
    counts, seen = _pair_counts(train, vocab_size), _pair_counts(validation, vocab_size)
    rows = counts.sum(1, keepdim=True)
    frequencies = counts / rows.clamp(min=1)
    smoothed = (counts + SMOOTHING) / (rows + SMOOTHING * vocab_size)
    return _mean_surprise(counts, frequencies), _mean_surprise(seen, smoothed)


def _pair_counts(tokens: Sequence[int] | Tensor, vocab_size: int) -> Tensor:
    """Counts of pairs, (vocab, vocab): row by the first token, column by the second."""
    tokens = torch.as_tensor(tokens)
    if len(tokens) < 2:
        raise ValueError("A table of pairs needs a text of at least two tokens.")
    if tokens.min() < 0 or tokens.max() >= vocab_size:
        raise ValueError(f"Token ids must lie between 0 and {vocab_size - 1} for a vocabulary of {vocab_size}.")
    pairs = tokens[:-1] * vocab_size + tokens[1:]
    return torch.bincount(pairs, minlength=vocab_size**2).view(vocab_size, vocab_size).double()


def _mean_surprise(counts: Tensor, probabilities: Tensor) -> float:
    return -float(torch.special.xlogy(counts, probabilities).sum() / counts.sum())
