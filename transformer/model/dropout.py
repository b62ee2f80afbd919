"""Dropout with a random generator per training run instead of a global one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Tensor, nn

_generator: ContextVar[torch.Generator | None] = ContextVar("dropout_generator", default=None)


class Dropout(nn.Module):
    """Sets each number to zero with probability p while training, and scales the others by 1 / (1 − p).

    Which ones is drawn from the generator that `dropout_from` gives, so that trainings in several threads don't
    disturb each other; outside of it from PyTorch's global one. From either it draws what `nn.Dropout` would draw on a
    CPU. Source: Srivastava et al. 2014, "Dropout".
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        if not (self.training and self.p):
            return x
        kept = torch.empty_like(x, dtype=torch.bool).bernoulli_(1 - self.p, generator=_generator.get())
        return x * kept * (1 / (1 - self.p))

    def extra_repr(self) -> str:
        return f"p={self.p}"


@contextmanager
def dropout_from(generator: torch.Generator) -> Iterator[None]:
    """Inside, on this thread, dropout is drawn from this generator, which must be on the model's device."""
    token = _generator.set(generator)
    try:
        yield
    finally:
        _generator.reset(token)
