"""The context window: which part of a long text the model reads, and interventions within that part.

Positions of interventions count from the text's start, not from the window's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from ..config import ModelConfig
from ..hooks import ForwardHook
from ..model.models import Model
from .interventions import Intervention, Start, from_the_start


def window_start(length: int, context_length: int) -> int:
    """The start of the window from which the token after the first `length` tokens is predicted.

    Past the context it moves by a quarter of the context at a time, so that keys and values stay valid in between.

    >>> [window_start(length, 8) for length in (7, 8, 9, 10, 11)]
    [0, 0, 2, 2, 4]
    """
    step = max(1, context_length // 4)
    return max(0, -(-(length - context_length) // step)) * step


def by_window(
    lengths: Iterable[int], context_length: int, interventions: Iterable[Intervention] = ()
) -> list[tuple[int, list[int]]]:
    """Group lengths in ascending order by the start of their window: one pass serves a window, unless an intervention
    lets a token see later ones.

    >>> by_window(range(7, 12), 8)
    [(0, [7, 8]), (2, [9, 10]), (4, [11])]
    """
    if any(map(looks_ahead, interventions)):
        return [(window_start(length, context_length), [length]) for length in lengths]
    return [
        (start, list(group)) for start, group in groupby(lengths, lambda length: window_start(length, context_length))
    ]


@dataclass(frozen=True)
class WindowedIntervention:
    """An intervention in a pass over a text from position `begin` on; itself an intervention."""

    intervention: Intervention
    begin: int

    @property
    def looks_ahead(self) -> bool:
        return looks_ahead(self.intervention)

    def check(self, config: ModelConfig) -> None:
        self.intervention.check(config)

    def fwd_hooks(self, model: Model, start: Start = from_the_start) -> Sequence[ForwardHook]:
        return self.intervention.fwd_hooks(model, lambda: self.begin + start())

    def __str__(self) -> str:
        return str(self.intervention)


def in_window(interventions: Sequence[Intervention], begin: int) -> tuple[Intervention, ...]:
    """The same interventions for a pass whose first token stands at position `begin` of the text.

    begin: below 0 where the text is padded on its left.
    """
    return tuple(WindowedIntervention(intervention, begin) if begin else intervention for intervention in interventions)


def looks_ahead(intervention: Intervention) -> bool:
    """Whether its effect at a position depends on later tokens; assumed true if it doesn't say."""
    return getattr(intervention, "looks_ahead", True)
