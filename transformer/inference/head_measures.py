"""Measures of attention heads: a few numbers from 0 to 1 that describe each head's pattern.

Shapes: head, query, key; measure in the order of `MEASURES`.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class HeadMeasure:
    """One thing that a head can do more or less."""

    name: str
    title: str
    sentence: str
    """What a head that does it does, to follow “this head”."""


MEASURES = (
    HeadMeasure("previous", "Previous token", "looks at the token before it"),
    HeadMeasure("first", "First token", "looks at the first token"),
    HeadMeasure("itself", "Itself", "looks at the very token it stands at"),
    HeadMeasure("same", "Same token", "looks at earlier occurrences of the same token"),
    HeadMeasure("induction", "Induction", "looks at what came after earlier occurrences of the same token"),
    HeadMeasure("spread", "Spread", "spreads its weight evenly over all it may see"),
)
"""Heads that look at a neighbour are the positional heads of Voita et al. 2019, "Analyzing multi-head self-attention".
A head that looks at the previous token and, a layer above, one that looks at what came after an earlier occurrence,
together continue whatever repeats: Olsson et al. 2022, "In-context learning and induction heads"."""


def head_measures(pattern: Tensor, mask: Tensor, tokens: Tensor | None = None) -> Tensor:
    """How much each head does each of the `MEASURES`.

    All but the last are the mean, over the queries that have such a key in sight, of the weight on it, or on all such
    keys together. `first` leaves out the first query of a text that looks at itself. `spread` is the entropy of a
    query's weights ÷ the logarithm of how many keys it sees, the mean over the queries that see several: 1 for
    the plain average, 0 for a head that looks at one key alone.

    pattern: (head, query, key), each row's weights; mask: (query, key), True where visible.
    tokens: (pos,), the ids of the text that looks at itself; None where queries and keys are of different texts, as
        in cross-attention, which has only `first`, of all queries, and `spread`.
    Returns: (head, measure), float32; NaN where no query has such a key, or the measure has no meaning.
    """
    _, query, key = pattern.shape
    pattern = pattern.float()
    targets = {"first": _first(query, key, pattern.device)} if tokens is None else _targets(tokens)
    found = {name: _mean_weight(pattern, target & mask) for name, target in targets.items()}
    found["spread"] = _spread(pattern, mask)
    missing = pattern.new_full((len(pattern),), torch.nan)
    return torch.stack([found.get(measure.name, missing) for measure in MEASURES], -1)


def _targets(tokens: Tensor) -> dict[str, Tensor]:
    """Which keys each query would look at, by measure: (query, key), boolean."""
    pos = len(tokens)
    first = _first(pos, pos, tokens.device)
    first[:1] = False
    same = (tokens[:, None] == tokens).tril(-1)
    after = torch.zeros_like(same)
    after[:, 1:] = same[:, :-1]
    own = torch.eye(pos, dtype=torch.bool, device=tokens.device)
    before = torch.zeros_like(own)
    before[1:] = own[:-1]
    return {"previous": before, "first": first, "itself": own, "same": same, "induction": after}


def _first(query: int, key: int, device: torch.device) -> Tensor:
    return (torch.arange(key, device=device) == 0).repeat(query, 1)


def _mean_weight(pattern: Tensor, target: Tensor) -> Tensor:
    """(head,): the summed weight on a query's targets, its mean over the queries that have any; NaN if none has."""
    on_target = pattern.flatten(1) @ target.flatten().float()  # a third of einsum's time, or less
    return (on_target / target.any(-1).sum()).clamp(0, 1)


def _spread(pattern: Tensor, mask: Tensor) -> Tensor:
    """(head,): the mean entropy of the queries that see several keys, in shares of the largest there could be."""
    visible = mask.sum(-1)
    several = visible > 1
    entropy = torch.special.entr(pattern).sum(-1)
    return (entropy[:, several] / visible[several].log()).mean(-1).clamp(0, 1)
