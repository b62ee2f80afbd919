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

    Which ones is drawn from the generator that `dropout_from` gives, so that trainings in several threads don't
    disturb each other; outside of it from PyTorch's global one. From either it draws what `nn.Dropout` would draw on a
    CPU. Source: Srivastava et al. 2014, "Dropout".
    """
    if not (is_training and p):
        return x
    kept = torch.empty_like(x, dtype=torch.bool).bernoulli_(1 - p, generator=_generator.get())
    return x * kept * (1 / (1 - p))


@contextmanager
def dropout_from(generator: torch.Generator) -> Iterator[None]:
    """Inside, on this thread, dropout is drawn from this generator, which must be on the model's device."""
    token = _generator.set(generator)
    try:
        yield
    finally:
        _generator.reset(token)
