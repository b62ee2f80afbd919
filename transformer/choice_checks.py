"""Refuses, in a sentence, to look at a token, a position, a layer or a head that isn't there."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def check_index(what: str, index: int, count: int) -> None:
    """Raise ValueError unless `index` is one of `count` things, counted from 0."""
    if not 0 <= index < count:
        there = f"there are {what}s 0 to {count - 1}" if count else "there is none"
        raise ValueError(f"There is no {what} {index}; {there}.")


def checked_tokens(tokens: Sequence[int] | Tensor | int, vocab_size: int) -> Tensor:
    """Token ids as a tensor. Raises: ValueError for one that is outside the vocabulary."""
    ids = torch.as_tensor(tokens)
    if outside := ids[(ids < 0) | (ids >= vocab_size)].flatten().tolist():
        raise ValueError(f"There is no token {outside[0]}; this vocabulary has tokens 0 to {vocab_size - 1}.")
    return ids


def check_count(tokens: Sequence[int] | Tensor, positions: int) -> None:
    """Raise ValueError unless there is one token for each position of a pass."""
    if len(tokens) != positions:
        given = "1 token was" if len(tokens) == 1 else f"{len(tokens)} tokens were"
        raise ValueError(f"{given} given, and this pass has {positions} positions; each needs its own.")
