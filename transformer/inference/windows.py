"""Interventions in a window of a text: their positions count from the text's start, not from the window's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..hooks import ForwardHook, HookedModule
from .interventions import Intervention, Start, from_the_start


@dataclass(frozen=True)
class Within:
    """An intervention in a pass that reads a text from position `begin` on; an intervention itself."""

    intervention: Intervention
    begin: int

    @property
    def looks_ahead(self) -> bool:
        """As in the intervention."""
        return looks_ahead(self.intervention)

    def fwd_hooks(self, model: HookedModule, start: Start = from_the_start) -> Sequence[ForwardHook]:
        """As in `Intervention`."""
        return self.intervention.fwd_hooks(model, lambda: self.begin + start())

    def __str__(self) -> str:
        return str(self.intervention)


def in_window(interventions: Sequence[Intervention], begin: int) -> tuple[Intervention, ...]:
    """The same interventions for a pass whose first token stands at position `begin` of the text.

    begin: below 0 where the text is padded on its left.
    """
    return tuple(Within(each, begin) if begin else each for each in interventions)


def looks_ahead(intervention: Intervention) -> bool:
    """Whether what it does at a position depends on later tokens; assumed of one that doesn't say."""
    return getattr(intervention, "looks_ahead", True)
