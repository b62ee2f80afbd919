"""Keeps models in memory, each loaded once for all visitors; those used least recently are unloaded first."""

import gc
import os
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from typing import Self

import torch

from ..checkpoints.folder import Checkpoint
from .model_store import checkpoint_bytes
from .single_flight import SingleFlight

OWN = "own"
"""The name of a visitor's own model in a URL."""
VARIABLE, OFF = "HEADSUP_BROWSER_MODELS", "off"
"""Set to this, browsers compute nothing themselves, and the server answers all that they ask."""
MOST_PARAMETERS = 4_000_000
"""The most parameters of a model that browsers compute: they read a prompt of 64 tokens within about 150 ms
(`python -m tests.benchmarks javascript`; one of 3.4 million takes 0.09 to 0.12 s of a core)."""

MANY_PARAMETERS = 40_000_000
"""A model from this size on is called large."""


@dataclass(frozen=True)
class OpenModel:
    """A model as it was when it was opened, whatever becomes of its folder."""

    name: str
    version: str
    """Differs for any two checkpoints that differ; for an own model, its token."""
    checkpoint: Checkpoint
    is_own: bool = False

    def with_new_words(self, texts: Iterable[str]) -> Self:
        """The same model; its tokenizer's new words are those of these texts, in order."""
        named = self.checkpoint.with_new_words(texts)
        return self if named is self.checkpoint else replace(self, checkpoint=named)


def is_large(checkpoint: Checkpoint) -> bool:
    """Whether a model is so large that passes over many variants of a text take long."""
    return checkpoint.card.parameters >= MANY_PARAMETERS


def is_for_browsers(model: OpenModel) -> bool:
    """Whether visitors' browsers are to compute a model: a small one, in the precision that they compute in."""
    if os.environ.get(VARIABLE, "").lower() == OFF:
        return False
    engine = model.checkpoint.model
    is_single = all(weight.dtype == torch.float32 for weight in engine.parameters())
    return is_single and engine.parameter_count() <= MOST_PARAMETERS


class OpenModels:
    """Models by key, opened once, however many ask at once, and kept while there is room.

    An evicted model lives on while somebody holds it, such as a text in progress, and is handed out again on request.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._kept: OrderedDict[Hashable, OpenModel] = OrderedDict()
        self._alive: weakref.WeakValueDictionary[Hashable, OpenModel] = weakref.WeakValueDictionary()
        self._once: SingleFlight[OpenModel] = SingleFlight()

    def get(self, key: Hashable, size: Callable[[], int], load: Callable[[], OpenModel]) -> OpenModel:
        """The model of a key; to open it, others may be evicted first. size: about how many bytes it will take.

        Raises: what `load` raises; then the next who asks tries again.
        """

        def find() -> OpenModel | None:
            model = self._alive.get(key)
            if model is not None:
                keep(model)
            return model

        def open_anew() -> OpenModel:
            self._evict(size())
            return load()

        def keep(model: OpenModel) -> None:
            self._kept[key] = self._alive[key] = model
            self._kept.move_to_end(key)

        return self._once.get(key, find, open_anew, keep)

    @property
    def size(self) -> int:
        """Bytes of all open models, including evicted ones that somebody holds."""
        with self._once.lock:
            return sum(checkpoint_bytes(model.checkpoint) for model in list(self._alive.values()))

    def _evict(self, size: int) -> None:
        """Unload the models used least recently, until one more of this size fits."""
        while self.size + size > self.limit:
            with self._once.lock:
                if not self._kept:
                    return
                oldest = next(iter(self._kept))
                del self._kept[oldest]
            if oldest in self._alive:  # held by somebody, or by nothing but a cycle
                gc.collect()  # all visitors wait for this
