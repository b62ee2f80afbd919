"""A cache of model outputs with a size limit: each is computed once, then kept read-only.

A shipped model's outputs serve everybody, so cached values can't be changed. An own model's are cached with that model,
and crowd out nobody else's.
"""

import dataclasses
import functools
import sys
import threading
import weakref
from collections.abc import Callable, Hashable, Mapping
from types import MappingProxyType
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, cast

import numpy as np
import torch
from cachetools import LRUCache

from ..checkpoints.folder import Checkpoint
from .open_models import OpenModel
from .single_flight import SingleFlight

P = ParamSpec("P")
T = TypeVar("T")

SHARED_BYTES = 64_000_000
"""Thirty prompts of 140 tokens, each with all queries, keys and values, on the largest model that ships."""
OWN_BYTES = 16_000_000
"""Bytes for each own model: they are smaller, and a room of thirty has thirty such caches."""

PLAIN = (str, bytes, int, float, type(None))
"""Types without parts, as of thousands of the values in a picture's description."""


class Cache:
    """Values by key, the least recently used dropped when all together would take more than `limit` bytes.

    Threads that ask for the same key at once wait for one computation. A value of more than `largest` bytes, or
    than the limit, isn't kept.
    """

    def __init__(self, limit: int, largest: int | None = None) -> None:
        self.limit, self.largest = limit, min(largest or limit, limit)
        self._kept: LRUCache[Hashable, tuple[Any, int]] = LRUCache(limit, lambda kept: kept[1])
        self._once: SingleFlight[Any] = SingleFlight()

    def get(self, key: Hashable, compute: Callable[[], T]) -> T:
        """The value of a key: cached, or computed now, and then unchangeable, as `frozen` makes it."""

        def keep(value: T) -> None:
            size = bytes_of(key) + bytes_of(value)
            if value is not None and size <= self.largest:
                self._kept[key] = value, size

        return self._once.get(key, lambda: self._kept.get(key, (None,))[0], lambda: frozen(compute()), keep)

    def known(self, key: Hashable) -> Any:
        """The value of a key if it is cached, else None."""
        with self._once.lock:
            return self._kept.get(key, (None,))[0]

    def clear(self) -> None:
        """Forget everything; what is being computed will still be cached."""
        with self._once.lock:
            self._kept.clear()

    @property
    def size(self) -> int:
        """Bytes of all values and keys."""
        return int(self._kept.currsize)

    def __len__(self) -> int:
        return len(self._kept)


class Cached(Generic[P, T]):
    """A function of a checkpoint, as a cached function of an open model.

    All other arguments must be hashable.
    """

    def __init__(self, compute: Callable[Concatenate[Checkpoint, P], T]) -> None:
        functools.update_wrapper(self, compute)
        self._compute = compute

    def __call__(self, model: OpenModel, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.later(model, *args, **kwargs)()

    def key(self, model: OpenModel, *args: P.args, **kwargs: P.kwargs) -> Hashable:
        """A result's key in the cache."""
        which = model.version, model.checkpoint.tokenizer.new_words
        return self._compute.__module__, self._compute.__qualname__, *which, args, tuple(sorted(kwargs.items()))

    def known(self, model: OpenModel, *args: P.args, **kwargs: P.kwargs) -> T | None:
        """The result if it is cached; computes nothing."""
        return _cache_for(model).known(self.key(model, *args, **kwargs))

    def later(self, model: OpenModel, *args: P.args, **kwargs: P.kwargs) -> Callable[[], T]:
        """A function that computes the result and caches it, on whatever thread calls it."""
        cache, key = _cache_for(model), self.key(model, *args, **kwargs)

        return lambda: cache.get(key, lambda: self._compute(model.checkpoint, *args, **kwargs))


cached = Cached


def frozen(value: T) -> T:
    """The same value, unchangeable: read-only arrays that keep nothing else alive, proxies, tuples."""
    if isinstance(value, PLAIN):
        return value
    if isinstance(value, np.ndarray):
        array = value if _is_whole(value) else value.copy()
        array.flags.writeable = False
        return array
    if isinstance(value, Mapping):
        return cast(T, MappingProxyType({key: frozen(part) for key, part in value.items()}))
    if isinstance(value, list | tuple):
        return cast(T, tuple(map(frozen, value)))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        parts = {field.name: frozen(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return dataclasses.replace(value, **parts)
    return value


def _is_whole(array: np.ndarray) -> bool:
    """Whether an array is all of the memory it keeps alive, rather than a part of a larger array or tensor."""
    base = array.base
    return base is None or (isinstance(base, torch.Tensor) and base.untyped_storage().nbytes() == array.nbytes)


def bytes_of(value: object) -> int:
    """About how much memory a value or a key takes, all its parts included."""
    if isinstance(value, PLAIN):
        return sys.getsizeof(value)
    if isinstance(value, np.ndarray):
        return sys.getsizeof(value) if value.base is None else value.nbytes
    if isinstance(value, Mapping):
        return sum(bytes_of(key) + bytes_of(part) for key, part in value.items()) + 64 * len(value)
    if isinstance(value, list | tuple):
        return sys.getsizeof(value) + sum(map(bytes_of, value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return sum(bytes_of(getattr(value, field.name)) for field in dataclasses.fields(value)) + 64
    return sys.getsizeof(value)


def clear() -> None:
    """Forget everything that any model computed."""
    _SHARED.clear()
    with _LOCK:
        _of_own.clear()


def _cache_for(model: OpenModel) -> Cache:
    if not model.is_own:
        return _SHARED
    with _LOCK:
        return _of_own.setdefault(model.checkpoint.model, Cache(OWN_BYTES))


_SHARED = Cache(SHARED_BYTES)
_of_own: weakref.WeakKeyDictionary[torch.nn.Module, Cache] = weakref.WeakKeyDictionary()
_LOCK = threading.Lock()
