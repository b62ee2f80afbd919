"""Which numbers of a pass its interventions have set, so that a check by hand can say where arithmetic ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..config import ModelConfig
from .interventions import Intervention, Weighed, Without
from .windows import Within


@dataclass(frozen=True)
class PlaceSet:
    """Numbers of one hook point that don't follow from what comes before them."""

    point: str
    head: int | None
    """None: all."""
    position: int | None
    """Of the pass, or of a query; None: all."""
    words: str
    """What set them."""
    rule: str = ""
    """The one that the pass does without, if that is it: one of `RULES`."""
    weighed: tuple[int, float, bool] | None = None
    """Of a weight set by hand: its key, the weight, and whether the rest of the row was renormalised."""


def places_set(interventions: Sequence[Intervention], config: ModelConfig) -> list[PlaceSet]:
    """What the interventions of a pass set in a model of this configuration, in the order in which they do.

    Of an intervention that is none of this package's nothing is known.
    """
    found = []
    for intervention in interventions:
        begin = 0
        while isinstance(intervention, Within):
            begin, intervention = begin + intervention.begin, intervention.intervention
        words = str(intervention)
        if isinstance(intervention, Without):
            found += [PlaceSet(point, None, None, words, intervention.rule) for point in intervention.sets(config)]
            continue
        if not hasattr(intervention, "point"):  # somebody else's kind, which only says what it does
            continue
        of_source = intervention.point.startswith("encoder.")
        start = 0 if of_source else begin  # an encoder reads the source as a whole
        if isinstance(intervention, Weighed):
            key = intervention.key if of_source or ".cross_attn." in intervention.point else intervention.key - begin
            weighed = key, intervention.weight, intervention.renormalised
            place = intervention.query - start
            found.append(PlaceSet(intervention.point, intervention.head, place, words, weighed=weighed))
        else:
            place = None if intervention.position is None else intervention.position - start
            found.append(PlaceSet(intervention.point, intervention.head, place, words))
            module, _, last = intervention.point.rpartition(".")
            if last == "hook_result":  # its heads' sum is what attention gives, not what z · W_O would
                block, _, name = module.rpartition(".")
                found.append(PlaceSet(f"{block}.hook_{name}_out", None, place, words))
    return found
