"""Measures of attention heads: a few numbers from 0 to 1 that describe each head's pattern.

Shapes: head, query, key; measure in the order of `MEASURES`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class HeadMeasure:
    """One measure of a head's behaviour."""

    name: str
    title: str
    sentence: str
    """A predicate that follows “this head”."""


MEASURES = (
    HeadMeasure("previous", "Previous token", "looks at the token before it"),
    HeadMeasure("next", "Next token", "looks at the token after it"),
    HeadMeasure("first", "First token", "looks at the first token"),
    HeadMeasure("itself", "Itself", "looks at its own position"),
    HeadMeasure("same", "Same token", "looks at other occurrences of the same token"),
    HeadMeasure("induction", "Induction", "looks at what comes after other occurrences of the same token"),
    HeadMeasure("quotation", "Quotation", "looks, from inside a quotation, at the mark that opened it"),
    HeadMeasure("spread", "Spread", "spreads its weight evenly over all it may see"),
)
"""Heads that look at a neighbour are the positional heads of Voita et al. 2019, "Analyzing multi-head self-attention".
A head that attends to the previous token and, a layer above, one that attends to the token after an earlier occurrence
together continue repeated sequences: Olsson et al. 2022, "In-context learning and induction heads". Where a mask hides
what comes later, `next` has no meaning, and other occurrences are earlier ones."""


BEFORE_A_QUOTATION = "␣↵⇥([—-"
"""Signs of labels after which a mark opens a quotation."""


def head_measures(pattern: Tensor, mask: Tensor, tokens: Tensor | None = None, labels: Sequence[str] = ()) -> Tensor:
    """Each head's `MEASURES`.

    All but the last are the mean, over the queries that have such a key in the text, of the weight on it, or on all
    such keys together; a key that the mask hides has weight 0. `first` leaves out the first query of a text that looks
    at itself. `spread` is the entropy of a query's weights ÷ the logarithm of how many keys it sees, the mean over
    the queries that see several: 1 for the plain average, 0 for a head that looks at one key alone. `quotation` is of
    the tokens behind an opening mark, up to the closing one.

    pattern: (head, query, key), each row's weights; mask: (query, key), True where visible.
    tokens: (pos,), the ids of the text that looks at itself; None where queries and keys are of different texts, as
        in cross-attention, which has only `first`, of all queries, and `spread`.
    labels: what the tokens of that text are called, without which there are no quotations.
    Returns: (head, measure), float32; NaN where no query has such a key, or the measure has no meaning.
    Raises: ValueError for a mask or a text of another length.
    """
    _, query, key = pattern.shape
    if mask.shape != (query, key) or (tokens is not None and not query == key == len(tokens)):
        text = "" if tokens is None else f", and a text of {len(tokens)} tokens"
        raise ValueError(f"A pattern {tuple(pattern.shape)} doesn't go with a mask {tuple(mask.shape)}{text}.")
    pattern = pattern.float()
    looks_ahead = bool(mask.triu(1).any())
    targets = {"first": _first(query, key, pattern.device)} if tokens is None else targets_in(tokens, looks_ahead)
    if tokens is not None and (quotation := _quotation(labels)) is not None:
        targets["quotation"] = quotation.to(pattern.device)
    measured = {name: _mean_weight(pattern, target & mask, target.any(-1).sum()) for name, target in targets.items()}
    measured["spread"] = _spread(pattern, mask)
    missing = pattern.new_full((len(pattern),), torch.nan)
    return torch.stack([measured.get(measure.name, missing) for measure in MEASURES], -1)


def targets_in(tokens: Tensor, looks_ahead: bool) -> dict[str, Tensor]:
    """The keys that each measure counts, by query: (query, key), boolean.

    looks_ahead: whether some query sees a later key.
    """
    pos = len(tokens)
    first = _first(pos, pos, tokens.device)
    first[:1] = False
    own = torch.eye(pos, dtype=torch.bool, device=tokens.device)
    same = (tokens[:, None] == tokens) & ~own
    if not looks_ahead:
        same = same.tril()
    before, after = torch.zeros_like(own), torch.zeros_like(same)
    before[1:], after[:, 1:] = own[:-1], same[:, :-1]
    found = {"previous": before, "first": first, "itself": own, "same": same, "induction": after}
    return {**found, "next": before.T} if looks_ahead else found


def _quotation(labels: Sequence[str]) -> Tensor | None:
    """The mark that opens the quotation that each query stands in, (query, key); None without quotations. A mark opens
    one between a blank, a bracket or a dash, or nothing, and a letter or digit."""
    target = torch.zeros(len(labels), len(labels), dtype=torch.bool)
    text, at, opening = "".join(labels), 0, None
    for query, label in enumerate(labels):
        if opening is not None:
            target[query, opening] = True
        for sign in label:
            is_first = at == 0 or text[at - 1] in BEFORE_A_QUOTATION
            if sign in '"“' and is_first and text[at + 1 : at + 2].isalnum():
                opening = query
            elif sign in '"”':
                opening = None
            at += 1
    return target if target.any() else None


def _first(query: int, key: int, device: torch.device) -> Tensor:
    return (torch.arange(key, device=device) == 0).repeat(query, 1)


def _mean_weight(pattern: Tensor, target: Tensor, queries: Tensor) -> Tensor:
    """(head,): the summed weight on all visible targets ÷ how many queries have any in the text; NaN if none has."""
    on_target = pattern.flatten(1) @ target.flatten().float()  # takes a third of einsum's time, or less
    return (on_target / queries).clamp(0, 1)


def _spread(pattern: Tensor, mask: Tensor) -> Tensor:
    """(head,): the mean entropy of the queries that see several keys, as a share of the largest possible."""
    visible = mask.sum(-1)
    several = visible > 1
    entropy = torch.special.entr(pattern).sum(-1)
    return (entropy[:, several] / visible[several].log()).mean(-1).clamp(0, 1)
