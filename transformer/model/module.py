"""PyTorch's module, for models so small that finding their parts takes as long as computing with them."""

from __future__ import annotations

from typing import Any

from torch import nn


class Module(nn.Module):
    """nn.Module, which finds its parts and parameters sooner.

    PyTorch looks into its tables of them only after everything else was searched in vain, which takes half a
    microsecond. A class of ours looks there at once for the names that have been in them: into the same tables, so that
    whatever was put there by PyTorch's own ways is found.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if isinstance(value, nn.Module | nn.Parameter) and not hasattr(type(self), name):
            table = "_modules" if isinstance(value, nn.Module) else "_parameters"
            setattr(type(self), name, _InTable(table, name))


class _InTable:
    """A name in a class, for what one of its modules has by this name in a table of PyTorch's."""

    __slots__ = ("name", "table")

    def __init__(self, table: str, name: str) -> None:
        self.table, self.name = table, name

    def __get__(self, module: nn.Module | None, owner: type) -> Any:
        if module is None:
            return self
        try:
            return module.__dict__[self.table][self.name]
        except KeyError:
            raise AttributeError from None  # so that PyTorch looks for it, and says what is missing
