"""What an intervention is: a small value that says what is changed in a forward pass."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Protocol, runtime_checkable

from ..hooks import ForwardHook, HookedModule


@runtime_checkable
class Intervention(Hashable, Protocol):
    """A frozen value that says what is changed in a pass; equal values change the same.

    Several together are a tuple, applied in its order, and part of the key under which a result is remembered.
    """

    def fwd_hooks(self, model: HookedModule) -> Sequence[ForwardHook]:
        """The change as hooks for `run_with_hooks` on this model; ValueError, saying why, if it hasn't the place."""
        ...


def hooks_of(interventions: Sequence[Intervention], model: HookedModule) -> list[ForwardHook]:
    """The hooks of several interventions on one model, in their order."""
    return [hook for intervention in interventions for hook in intervention.fwd_hooks(model)]
