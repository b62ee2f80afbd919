"""Shows training and validation loss by step, and appends to the chart while a model trains."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from pages.ui.components.assets import custom_component
from pages.ui.components.rounding import rounded

Points = Sequence[tuple[int, float]]
"""(step, loss in nats)."""

_mount = custom_component(__file__, "save.css")


def loss_chart(
    *, train: Points, validation: Points, references: Mapping[str, float], steps: int, here: int | None, key: str
) -> Any:
    """Show losses; call it again with the same `key`, and the chart grows.

    references: losses to compare with, by name, drawn as level lines. steps: the right end of the chart.
    here: a step to mark, or None.
    """
    return _mount(key=key, data=build_payload(train, validation, references, steps, here))


def build_payload(
    train: Points, validation: Points, references: Mapping[str, float], steps: int, here: int | None
) -> dict[str, Any]:
    """What the browser gets: numbers with five significant digits, and the chart in words, to be read aloud."""
    if steps < 1:
        raise ValueError(f"steps is {steps}; a chart needs at least one")
    return {
        "train": _drawn(train),
        "validation": _drawn(validation),
        "references": [{"label": label, "loss": rounded(loss)} for label, loss in references.items()],
        "steps": steps,
        "here": here,
        "summary": _in_words(train, validation, references),
    }


def _drawn(points: Points) -> list[list[float | None]]:
    """Losses that aren't finite are left out: JSON has no such numbers."""
    return [[step, rounded(loss)] for step, loss in points if math.isfinite(loss)]


def _in_words(train: Points, validation: Points, references: Mapping[str, float]) -> str:
    if not train:
        return "Loss by step: nothing yet."
    parts = [f"training loss from {train[0][1]:#.3g} to {train[-1][1]:#.3g} nats at step {train[-1][0]}"]
    if validation:
        parts.append(f"validation loss {validation[-1][1]:#.3g}")
    parts += [f"{label} = {loss:#.3g}" for label, loss in references.items()]
    return f"Loss by step: {', '.join(parts)}."
