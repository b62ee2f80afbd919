"""Lists the activations that interventions overwrite: there a tensor needn't follow from its equation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ..config import ModelConfig
from .context_windows import WindowedIntervention
from .intervention_kinds import ablates
from .interventions import HookPointIntervention, Intervention, SetAttention, Without


@dataclass(frozen=True)
class OverwrittenValues:
    """Numbers of one hook point that don't follow from what comes before them."""

    point: str
    head: int | None
    """None: all."""
    position: int | None
    """A position of the pass, or of a query; None: all."""
    words: str
    """The intervention that set them."""
    rule: str = ""
    """The one that the pass does without, if that is it: one of `RULES`."""
    weighed: tuple[int, float, bool] | None = None
    """For a weight set by hand: its key, the weight, and whether the rest of the row was renormalised."""
    ablated: bool = False
    """Whether they were set to zero."""


def overwritten_records(interventions: Sequence[Intervention], config: ModelConfig) -> list[dict[str, Any]]:
    """The fields of each of the `overwritten_values`, for JSON."""
    return [asdict(values) for values in overwritten_values(interventions, config)]


def overwritten_values(interventions: Sequence[Intervention], config: ModelConfig) -> list[OverwrittenValues]:
    """The values that the interventions of a pass set in a model of this configuration, in their order.

    Interventions of other packages are left out: nothing is known of them.
    """
    values = []
    for intervention in interventions:
        begin = 0
        while isinstance(intervention, WindowedIntervention):
            begin, intervention = begin + intervention.begin, intervention.intervention
        words = str(intervention)
        if isinstance(intervention, Without):
            values += [
                OverwrittenValues(point, None, None, words, intervention.rule) for point in intervention.sets(config)
            ]
            continue
        if not isinstance(intervention, SetAttention | HookPointIntervention):
            continue
        of_source = intervention.point.startswith("encoder.")
        start = 0 if of_source else begin  # an encoder reads the source as a whole
        if isinstance(intervention, SetAttention):
            key = intervention.key if of_source or ".cross_attn." in intervention.point else intervention.key - begin
            weighed = key, intervention.weight, intervention.renormalised
            position = intervention.query - start
            values.append(OverwrittenValues(intervention.point, intervention.head, position, words, weighed=weighed))
        else:
            position = None if intervention.position is None else intervention.position - start
            ablated = ablates(intervention.word, intervention.values)
            values.append(OverwrittenValues(intervention.point, intervention.head, position, words, ablated=ablated))
            module, _, last = intervention.point.rpartition(".")
            if last == "hook_result":  # its heads' sum is what attention gives, not what z · W_O would
                block, _, name = module.rpartition(".")
                values.append(OverwrittenValues(f"{block}.hook_{name}_out", None, position, words))
    return values
