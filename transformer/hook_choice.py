"""Reads which hook points a caller means: by a name, a list of names, or a predicate on names."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection
from typing import Any, TypeVar

from .activation_cache import suggested

NamePredicate = Callable[[str], bool]
NamesFilter = str | Collection[str] | NamePredicate | None
Pair = TypeVar("Pair", bound=tuple[Any, Any])


def chosen(names: str | Collection[str] | NamePredicate, known: frozenset[str]) -> frozenset[str]:
    """The hook points of a model that are meant. known: all of them. Raises: ValueError for a name that is none."""
    if callable(names):
        found = frozenset(name for name in known if names(name))
        if not found:
            words = "The function of names chooses none of this model's hook points, so nothing is recorded or changed."
            warnings.warn(words, stacklevel=5)
        return found
    if not isinstance(names, str | Collection):
        raise TypeError(f"Hook points are given by a name, a list of names or a function of names, not by {names!r}.")
    found = frozenset([names] if isinstance(names, str) else names)
    if not found <= known:
        unknown = sorted(found - known)
        meant, some = suggested(unknown[0], known), ""
        if any(name.endswith(unknown[0]) for name in known):
            some = f" For some of all layers, give a function: lambda name: name.endswith({unknown[0]!r})."
        raise ValueError(f"{unknown[0]!r} is no hook point of this model.{meant}{some}")
    return found


def checked_pair(pair: Pair) -> Pair:
    """Raise TypeError for what isn't a hook point, or several, and a function."""
    if isinstance(pair, tuple | list) and len(pair) == 2 and callable(pair[1]):
        return pair
    raise TypeError(f"Hooks are a list of pairs, also of one: [(name, function)]. {pair!r} is no such pair.")
