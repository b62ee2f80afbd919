"""Analyses of single tensors: token statistics, the induction score, and the arithmetic of one attention score."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ..choice_checks import check_index


class LogitsError(ValueError):
    """The logits have no softmax."""


def check_logits(largest: np.ndarray | Sequence[float] | float) -> None:
    """Raise LogitsError if a row's largest logit isn't finite, as with any NaN or ∞ in the row."""
    if not np.isfinite(largest).all():
        raise LogitsError(
            "The model's logits are not numbers: with its weights, or with what is changed in it, its numbers "
            "overflow. Take a change back, or use another model."
        )


def token_statistics(logits: Tensor, token_id: int) -> tuple[float, int, float]:
    """A token's probability and rank (1 for the likeliest), and the distribution's entropy in nats.

    logits: (vocab,), raw. Equal logits rank by token id.
    Raises: LogitsError for logits that are not numbers; ValueError for a token that has no logit.
    """
    check_index("token", token_id, len(logits))
    scores = logits.detach().cpu().double().numpy()  # NumPy is several times faster on vectors this short
    check_logits(scores.max())
    probabilities = np.exp(scores - scores.max())
    probabilities /= probabilities.sum()
    probable = probabilities[probabilities > 0]
    entropy = -(probable * np.log(probable)).sum()
    chosen = scores[token_id]
    likelier = np.count_nonzero(scores > chosen) + np.count_nonzero(scores[:token_id] == chosen)
    return float(probabilities[token_id]), int(likelier) + 1, max(float(entropy), 0.0)


def induction_score(pattern: Tensor, period: int) -> Tensor:
    """How much each head attends, in a repeated sequence, to the token after the previous occurrence: 0 to 1.

    pattern: (batch, head, query, key), on sequences that repeat after `period` tokens.
    Returns: (head,), the mean weight from each query of the second stretch on to the key `period` − 1 before it.
    Raises: ValueError for a period that leaves no second stretch.
    Source: Olsson et al. 2022, "In-context learning and induction heads", the prefix-matching score.
    """
    if not 1 <= period < pattern.shape[-2]:
        raise ValueError(f"The period is {period}; of {pattern.shape[-2]} tokens, from 1 on, some must come after it.")
    queries = torch.arange(period, pattern.shape[-2], device=pattern.device)
    return pattern[:, :, queries, queries - (period - 1)].mean((0, 2))


@dataclass(frozen=True)
class ScoreArithmetic:
    """The arithmetic of one attention weight, for a query i and a key j of one head."""

    products: Tensor
    """(d_head,): the products of query and key, by dimension."""
    raw: float
    """Their sum, q_i · k_j."""
    scaled: float
    """Divided by √d_head."""
    visible: bool
    row_maximum: float
    """The largest visible score of the row, subtracted from every score so that no exponential overflows."""
    exponential: float
    """exp(scaled − row_maximum); 0 for a hidden key."""
    row_sum: float
    """The sum of the row's exponentials."""
    weight: float
    """exponential / row_sum."""


def score_arithmetic(queries: Tensor, keys: Tensor, mask: Tensor, query: int, key: int) -> ScoreArithmetic:
    """Recompute one cell of the attention pattern from its queries and keys, in float64.

    queries: (query, d_head), keys: (key, d_head), as they enter the product (rotated, where positions are
    rotary); mask: (query, key), True where visible.
    Raises: ValueError for a query or a key that isn't there.
    Source: Vaswani et al. 2017, eq. 1.
    """
    check_index("query", query, len(queries))
    check_index("key", key, len(keys))
    q, k = queries.double(), keys.double()
    products = q[query] * k[key]
    row = (k @ q[query]) / math.sqrt(q.shape[-1])
    seen = row[mask[query]]
    maximum = float(seen.max()) if len(seen) else 0.0
    row_sum = float((seen - maximum).exp().sum())
    visible = bool(mask[query, key])
    exponential = math.exp(float(row[key]) - maximum) if visible else 0.0
    return ScoreArithmetic(
        products=products,
        raw=float(products.sum()),
        scaled=float(row[key]),
        visible=visible,
        row_maximum=maximum,
        exponential=exponential,
        row_sum=row_sum,
        weight=exponential / row_sum if row_sum else 0.0,
    )
