"""Dropout with a random generator per training run instead of a global one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Tensor

_generator: ContextVar[torch.Generator | None] = ContextVar("dropout_generator", default=None)


def dropout(x: Tensor, p: float, is_training: bool) -> Tensor:
    """Sets each number to zero with probability p while training, and scales the others by 1 / (1 − p).

    The generator is the one that `dropout_from` sets, so that trainings in several threads don't disturb each other,
    or else PyTorch's global one. On a CPU the draws equal those of `nn.Dropout`.
    Source: Srivastava et al. 2014, "Dropout".
    """
    if not (is_training and p):
        return x
    kept = torch.empty_like(x, dtype=torch.bool).bernoulli_(1 - p, generator=_generator.get())
    return x * kept * (1 / (1 - p))


@contextmanager
def dropout_from(generator: torch.Generator) -> Iterator[None]:
    """Draw this thread's dropout from this generator, which must be on the model's device."""
    token = _generator.set(generator)
    try:
        yield
    finally:
        _generator.reset(token)
