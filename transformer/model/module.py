"""PyTorch's module, for models so small that finding their parts takes as long as computing with them."""

from __future__ import annotations

from typing import Any

from torch import nn


class Module(nn.Module):
    """nn.Module, which finds its parts sooner.

    PyTorch looks into its table of a module's parts only after everything else was searched in vain, which takes half a
    microsecond. A class of ours looks there at once for the names that its parts have had: into the same table, so that
    whatever was put there by PyTorch's own ways is found.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if isinstance(value, nn.Module) and not hasattr(type(self), name):
            setattr(type(self), name, _Part(name))


class _Part:
    """A name in a class, for the part that a module of this class has by it."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, module: nn.Module | None, owner: type) -> Any:
        if module is None:
            return self
        try:
            return module._modules[self.name]
        except KeyError:
            raise AttributeError from None  # so that PyTorch looks for it, and says what is missing
