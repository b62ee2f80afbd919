"""The baseline loss: the best that a bigram table can reach."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

SMOOTHING = 0.1
"""Added to the count of every pair. Much less or much more loses more on texts between 1 kB and 1 MB."""


def bigram_loss(
    train: Sequence[int] | Tensor, validation: Sequence[int] | Tensor, vocab_size: int
) -> tuple[float, float]:
    """What the best table of pairs loses, which knows the last token and nothing else: the line for a model to beat.

    On the training part it is the counted frequencies themselves, below which no table can go; on the validation
    part `SMOOTHING` is added to each count (Lidstone 1920), so that an unseen pair isn't considered impossible.
    Returns: mean cross-entropy on the training part and on the validation part, in nats per token.
    Raises: ValueError for a part without a pair, or ids outside the vocabulary.
    """
    counts, seen = _pair_counts(train, vocab_size), _pair_counts(validation, vocab_size)
    rows = counts.sum(1, keepdim=True)
    frequencies = counts / rows.clamp(min=1)
    smoothed = (counts + SMOOTHING) / (rows + SMOOTHING * vocab_size)
    return _mean_surprise(counts, frequencies), _mean_surprise(seen, smoothed)


def _pair_counts(tokens: Sequence[int] | Tensor, vocab_size: int) -> Tensor:
    """How often each token follows each: (vocab, vocab), row by the first of the two."""
    tokens = torch.as_tensor(tokens)
    if len(tokens) < 2:
        raise ValueError("A table of pairs needs a text of at least two tokens.")
    if tokens.min() < 0 or tokens.max() >= vocab_size:
        raise ValueError(f"Token ids must lie between 0 and {vocab_size - 1} for a vocabulary of {vocab_size}.")
    pairs = tokens[:-1] * vocab_size + tokens[1:]
    return torch.bincount(pairs, minlength=vocab_size**2).view(vocab_size, vocab_size).double()


def _mean_surprise(counts: Tensor, probabilities: Tensor) -> float:
    return -float(torch.special.xlogy(counts, probabilities).sum() / counts.sum())
