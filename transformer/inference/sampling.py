"""Sampling: from logits to the next token, by temperature, top-k, top-p and a random number.

Shapes: vocab.
"""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from .analysis import check_logits


@dataclass(frozen=True)
class Sampling:
    """The settings for drawing the next token.

    temperature: logits are divided by it; 0 always takes the likeliest token (greedy).
    top_k: only the k likeliest may be drawn; None for all.
    top_p: only the likeliest that together reach this probability (Holtzman et al. 2020, §3.1); None for all.
    seed: with a seed the draw at a position is always the same; None draws differently each time.
    They apply in the order of this list. Raises ValueError for a number outside its range.
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    seed: int | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.temperature < float("inf"):
            raise ValueError(f"temperature is {self.temperature}; it must be 0 (greedy) or more.")
        if self.top_k is not None and self.top_k < 1:
            raise ValueError(f"top_k is {self.top_k}; it must be None or at least 1.")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise ValueError(f"top_p is {self.top_p}; it must be None, or above 0 and at most 1.")
        if self.seed is not None and self.seed < 0:
            raise ValueError(f"seed is {self.seed}; it must be None, or 0 or more.")


def sampling_distribution(logits: Tensor, sampling: Sampling) -> Tensor:
    """The probabilities for drawing a token, after temperature, top-k and top-p.

    logits: (vocab,), raw. Returns: (vocab,), float64, on the CPU, summing to one; zero for tokens that are cut off.
    """
    weights = _weights(logits, sampling)
    return torch.from_numpy(weights / weights.sum())


def choose_token(logits: Tensor, sampling: Sampling, position: int) -> int:
    """Draw the token at a position. logits: (vocab,), raw.

    A random number between 0 and 1 falls into one token's share of the distribution. With a seed, that number
    depends on seed and position alone: not on other threads, nor on whether the text was written in one go.
    Raises: ValueError for a position before the text.
    """
    if position < 0:
        raise ValueError(f"There is no position {position}; they count from 0.")
    return token_at(next(random_points(sampling, position, ahead=1)), logits, sampling)


def random_points(sampling: Sampling, position: int, ahead: int = 16) -> Iterator[float]:
    """The random numbers between 0 and 1 for the tokens from this position on, without end.

    Draws `ahead` of them at a time: drawing each between two forward passes would take several times as long. Greedy
    writing gets zeros.
    """
    if sampling.temperature == 0:
        yield from itertools.repeat(0.0)
    seed = secrets.randbits(63) if sampling.seed is None else sampling.seed
    while True:
        yield from [np.random.default_rng((seed, at)).random() for at in range(position, position + ahead)]
        position += ahead


def token_at(point: float, logits: Tensor, sampling: Sampling) -> int:
    """The token whose share of the distribution contains a point between 0 and 1. logits: (vocab,), raw.

    Raises: LogitsError for logits that are not numbers.
    """
    if sampling.temperature == 0:
        token = int(logits.argmax())
        check_logits(float(logits[token]))
        return token
    weights = _weights(logits, sampling)
    shares = weights.cumsum()
    index = int(shares.searchsorted(point * shares[-1], side="right"))
    return index if index < len(shares) else int(weights.nonzero()[0][-1])  # rounding can reach the very end


def _weights(logits: Tensor, sampling: Sampling) -> np.ndarray:
    """The unnormalised `sampling_distribution`; in NumPy, which is much faster on so few numbers."""
    scores = logits.detach().cpu().double().numpy()
    check_logits(scores.max())
    if sampling.temperature == 0:
        return np.eye(1, len(scores), int(scores.argmax()))[0]
    weights = np.exp((scores - scores.max()) / max(sampling.temperature, 1e-250))  # so that no difference overflows
    kept = len(weights)
    if (sampling.top_k or kept) >= kept and (sampling.top_p or 1) >= 1:
        return weights
    order = (-scores).argsort(kind="stable")
    ranked = weights[order]
    if sampling.top_k is not None and sampling.top_k < kept:
        kept = np.count_nonzero(scores >= scores[order[sampling.top_k - 1]])  # more than k if the last ones tie
    if sampling.top_p is not None and sampling.top_p < 1:
        reached = ranked[:kept].cumsum()
        likelier = reached - ranked[:kept]  # the weight of all tokens ranked above
        kept = np.count_nonzero(likelier < sampling.top_p * reached[-1])
    weights[order[kept:]] = 0.0
    return weights
