"""What models computed, remembered by the bytes it takes: for everybody, and apart from that for each visitor's own.

What a shipped model computed serves all visitors, so nothing that is remembered can be changed. What a visitor's own
model computed is kept in the visitor's session, goes when that goes, and crowds out nobody else's.
"""

from __future__ import annotations

import dataclasses
import functools
import sys
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from types import MappingProxyType
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, cast

import numpy as np
import streamlit as st
import torch

from pages.ui.models.library import OpenModel, opened
from pages.ui.models.once import Once
from transformer import Checkpoint

P = ParamSpec("P")
T = TypeVar("T")

SHARED_BYTES = 64_000_000
"""Some ten prompts of full length, each with all that a page shows of it, on the largest model that ships."""
OWN_BYTES = 16_000_000
"""A visitor's own models are smaller, and a room of thirty has thirty such caches."""

PLAIN = (str, bytes, int, float, type(None))
"""What has no parts, as thousands of the values in a picture's description."""


class Cache:
    """Values by key, the least recently used dropped when all together would take more than `limit` bytes.

    Threads that ask for the same key at once wait for one computation. A value larger than the limit isn't kept.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.size = 0
        """Bytes of all values and keys."""
        self._kept: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._once: Once[Any] = Once()

    def get(self, key: Hashable, compute: Callable[[], T]) -> T:
        """The value of a key: remembered, or computed now, and then unchangeable, as `frozen` makes it."""

        def find() -> T | None:
            if key not in self._kept:
                return None
            self._kept.move_to_end(key)
            return self._kept[key][0]

        return self._once.get(key, find, lambda: frozen(compute()), lambda value: self._keep(key, value))

    def known(self, key: Hashable) -> Any:
        """The value of a key if it is remembered, else None."""
        with self._once.lock:
            return self._kept.get(key, (None,))[0]

    def clear(self) -> None:
        """Forget everything; what is being computed will still be remembered."""
        with self._once.lock:
            self._kept.clear()
            self.size = 0

    def __len__(self) -> int:
        return len(self._kept)

    def _keep(self, key: Hashable, value: Any) -> None:
        size = bytes_of(key) + bytes_of(value)
        if value is None or size > self.limit:
            return
        self._kept[key] = value, size
        self.size += size
        while self.size > self.limit:
            self.size -= self._kept.popitem(last=False)[1][1]


class Remembered(Generic[P, T]):
    """A function of a checkpoint as one of a model's name, or of a model that is open, whose results are remembered.

    All other arguments must be hashable.
    """

    def __init__(self, compute: Callable[Concatenate[Checkpoint, P], T]) -> None:
        functools.update_wrapper(self, compute)
        self._compute = compute

    def __call__(self, model: str | OpenModel, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.later(opened(model) if isinstance(model, str) else model, *args, **kwargs)()

    def key(self, model: OpenModel, *args: P.args, **kwargs: P.kwargs) -> Hashable:
        """What a result is remembered under."""
        return self._compute.__module__, self._compute.__qualname__, model.version, args, tuple(sorted(kwargs.items()))

    def known(self, model: OpenModel, *args: P.args, **kwargs: P.kwargs) -> T | None:
        """The result, if it is remembered; else nothing is computed."""
        return _cache_for(model).known(self.key(model, *args, **kwargs))

    def later(self, model: OpenModel, *args: P.args, **kwargs: P.kwargs) -> Callable[[], T]:
        """What computes the result and remembers it, on whatever thread it is called."""
        cache, key = _cache_for(model), self.key(model, *args, **kwargs)

        return lambda: cache.get(key, lambda: self._compute(model.checkpoint, *args, **kwargs))


def remembered(compute: Callable[Concatenate[Checkpoint, P], T]) -> Remembered[P, T]:
    """Remember the results of a function of a checkpoint."""
    return Remembered(compute)


def frozen(value: T) -> T:
    """The same, of parts that can't be changed: read-only arrays that keep nothing else alive, proxies, tuples."""
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
    """Forget everything that any model computed for everybody, and this visitor's own."""
    _shared().clear()
    st.session_state.pop("own_results", None)


def _cache_for(model: OpenModel) -> Cache:
    return st.session_state.setdefault("own_results", Cache(OWN_BYTES)) if model.is_own else _shared()


@st.cache_resource(show_spinner=False)
def _shared() -> Cache:
    return Cache(SHARED_BYTES)
