"""Caches functions of a model, called by its name or with an open model."""

from typing import ParamSpec, TypeVar

from pages.ui.models.library import OpenModel, opened
from transformer.api.cache import Cached

P = ParamSpec("P")
T = TypeVar("T")


class ModelCached(Cached[P, T]):
    """Like `Cached`, but also callable with a model's name."""

    def __call__(self, model: str | OpenModel, *args: P.args, **kwargs: P.kwargs) -> T:
        return super().__call__(opened(model) if isinstance(model, str) else model, *args, **kwargs)


cached = ModelCached
