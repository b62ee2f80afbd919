"""From logits to the next token: temperature, top-k, top-p, and a random number that lands on one of them.

Shapes: vocab.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True)
class Sampling:
    """How the next token is drawn from the model's distribution.

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
    """The probabilities a token is drawn with, after temperature, top-k and top-p.

    logits: (vocab,), raw. Returns: (vocab,), summing to one; zero for tokens that are cut off.
    """
    logits = logits.double()
    if sampling.temperature == 0:
        return torch.zeros_like(logits).index_fill_(0, logits.argmax(), 1.0)
    logits = (logits - logits.max()) / sampling.temperature
    if sampling.top_k is not None and sampling.top_k < len(logits):
        logits = logits.masked_fill(logits < logits.topk(sampling.top_k).values[-1], -torch.inf)
    probabilities = logits.softmax(-1)
    if sampling.top_p is not None and sampling.top_p < 1:
        ranked, order = probabilities.sort(descending=True, stable=True)
        likelier = ranked.cumsum(-1) - ranked  # the probability of all that rank above
        probabilities[order[likelier >= sampling.top_p]] = 0.0
        probabilities = probabilities / probabilities.sum()
    return probabilities


def choose_token(logits: Tensor, sampling: Sampling, position: int) -> int:
    """Draw the token at a position. logits: (vocab,), raw.

    A random number between 0 and 1 falls into one token's share of the distribution. With a seed, that number
    depends on seed and position alone: not on other threads, nor on whether the text was written in one go.
    """
    probabilities = sampling_distribution(logits, sampling)
    if sampling.temperature == 0:
        return int(probabilities.argmax())
    seed = secrets.randbits(63) if sampling.seed is None else sampling.seed
    shares = probabilities.cumsum(-1)
    point = np.random.default_rng((seed, position)).random() * float(shares[-1])
    index = int(torch.searchsorted(shares.cpu(), torch.tensor(point, dtype=shares.dtype), right=True))
    return min(index, int(probabilities.nonzero()[-1]))
