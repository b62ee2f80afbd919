"""Tokens as they come to stand in a text: drawn, picked by the visitor, or found there. No model is needed for that.

Dimensions: vocab.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from pages.ui.models.branches import Computed, Written
from transformer import Sampling, token_statistics
from transformer.inference.sampling import random_points, token_at

LIKELIEST = 64
"""So many logits stand for those of a large vocabulary."""


def top_of(logits: np.ndarray) -> np.ndarray:
    """The likeliest tokens with their logits, and the logarithm of the sum of all exp(logits), so that what the others
    have together is known exactly.

    logits: (vocab,). Returns: (likeliest + 1, 2), float64: id and logit, the largest first, equal ones by their id;
        then −1 and the logarithm.
    """
    count = min(LIKELIEST, len(logits))
    among = np.flatnonzero(logits >= np.partition(logits, -count)[-count])
    order = among[np.argsort(-logits[among], kind="stable")[:count]]
    exact = logits.astype(np.float64)
    total = exact.max() + np.log(np.exp(exact - exact.max()).sum())
    return np.array([*zip(order, exact[order], strict=True), (-1, total)])


def drawn(logits: np.ndarray, computed: Computed, sampling: Sampling, place: int) -> Written:
    """The token that the random number of a place falls on. logits: (vocab,), raw."""
    point, scores = next(random_points(sampling, place, ahead=1)), torch.tensor(logits)
    token = token_at(point, scores, sampling)
    return Written(token, *token_statistics(scores, token), point=point, sampling=sampling, computed=computed)


def picked(token: int, logits: np.ndarray, computed: Computed, instead_of: Written | None) -> Written:
    """A token of the visitor's choice. instead_of: the one that was drawn there, if there was one."""
    statistics = token_statistics(torch.tensor(logits), token)
    point, sampling = (instead_of.point, instead_of.sampling) if instead_of else (None, None)
    return Written(token, *statistics, picked=True, point=point, sampling=sampling, computed=computed)


def found(
    token: int, statistics: tuple[float, int, float], logits: np.ndarray, computed: Computed,
    points: Iterator[float], sampling: Sampling | None,
) -> Written:  # fmt: skip
    """A token of a text that was written elsewhere, perhaps with this sampling, whose random number comes next."""
    if sampling is not None:
        point = next(points)
        if token_at(point, torch.tensor(logits), sampling) == token:
            return Written(token, *statistics, point=point, sampling=sampling, computed=computed)
    return Written(token, *statistics, computed=computed)
