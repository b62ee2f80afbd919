"""Caches functions of a model, called by its name or with an open model."""

from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

from pages.ui.models.library import OpenModel, opened
from transformer import Checkpoint
from transformer.api.cache import Cached

P = ParamSpec("P")
T = TypeVar("T")


class ModelCached(Cached[P, T]):
    """Like `Cached`, but also callable with a model's name."""

    def __call__(self, model: str | OpenModel, *args: P.args, **kwargs: P.kwargs) -> T:
        return super().__call__(opened(model) if isinstance(model, str) else model, *args, **kwargs)


def cached(compute: Callable[Concatenate[Checkpoint, P], T]) -> ModelCached[P, T]:
    """Cache the results of a function of a checkpoint."""
    return ModelCached(compute)
