"""Pure functions of tensors that answer a question about what a model did."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


def token_statistics(logits: Tensor, token_id: int) -> tuple[float, int, float]:
    """A token's probability and rank (1 for the likeliest), and the distribution's entropy in nats.

    logits: (vocab,), raw. Equal logits rank by token id.
    """
    log_probabilities = logits.double().log_softmax(-1)
    probabilities = log_probabilities.exp()
    entropy = -torch.special.xlogy(probabilities, probabilities).sum()
    likelier = int((logits > logits[token_id]).sum() + (logits[:token_id] == logits[token_id]).sum())
    return float(probabilities[token_id]), likelier + 1, max(float(entropy), 0.0)


def induction_score(pattern: Tensor, period: int) -> Tensor:
    """How much each head looks, in a sequence that repeats, at the token after the previous occurrence: 0 to 1.

    pattern: (batch, head, query, key), on sequences that repeat after `period` tokens.
    Returns: (head,), the mean weight from each query of the second stretch on to the key `period` − 1 before it.
    Source: Olsson et al. 2022, "In-context learning and induction heads", the prefix-matching score.
    """
    queries = torch.arange(period, pattern.shape[-2], device=pattern.device)
    return pattern[:, :, queries, queries - (period - 1)].mean((0, 2))


SMOOTHING = 0.1
"""Added to the count of every pair. Much less or much more loses more on texts between 1 kB and 1 MB."""


def bigram_loss(
    train: Sequence[int] | Tensor, validation: Sequence[int] | Tensor, vocab_size: int
) -> tuple[float, float]:
    """What the best table of pairs loses, which knows the last token and nothing else: the line for a model to beat.

    On the training part it is the counted frequencies themselves, below which no table can go; on the validation
    part `SMOOTHING` is added to each count (Lidstone 1920), so that a pair never met isn't held impossible.
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


@dataclass(frozen=True)
class ScoreArithmetic:
    """How one attention weight comes about, number by number, for a query i and a key j of one head."""

    products: Tensor
    """(d_head,): query and key multiplied dimension by dimension."""
    raw: float
    """Their sum, q_i · k_j."""
    scaled: float
    """Divided by √d_head."""
    visible: bool
    row_maximum: float
    """The largest visible score of the row, taken off every score so that no exponential overflows."""
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
    Source: Vaswani et al. 2017, eq. 1.
    """
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
