"""Shows masks side by side: which keys each query may see.

Shapes: query (row), key (column).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pages.ui.components.assets import custom_component

_mount = custom_component(__file__, "top_tokens.css", "tooltip.css", "masks/masks.css")


@dataclass(frozen=True)
class MaskPanel:
    """One mask over some tokens, and what to say about it."""

    title: str
    labels: list[str]
    mask: np.ndarray
    """(query, key): 0 where hidden, else which of `levels`, counted from 1."""
    offset: int
    """The first token's position in the text."""
    words: str
    levels: Sequence[str] = ("visible",)
    """Where a key can be visible, from the fewest layers to all of them."""
    before: Sequence[str] = ()
    """Labels of the tokens just before, outside the context."""


Likeliest = Sequence[tuple[str, float]]
"""Labels of tokens and their probabilities, the likeliest first."""


@dataclass(frozen=True)
class Predictions:
    """What a model predicts after each token of a mask, or in its place, in two readings."""

    names: tuple[str, str]
    rows: Sequence[tuple[Likeliest, Likeliest]]
    right: Sequence[tuple[int | None, int | None]]
    """Which of these really came next, or stands there; None where none of them does."""
    sees: Sequence[str]
    """What each token's row of the mask lets it see, in words."""
    row: int
    """The token whose predictions are shown until another is chosen."""
    words: str
    """What to say of the last token, from which the mask hides nothing."""
    heading: str = "What comes after"
    """What is predicted, before the token's name."""


def masks(panels: Sequence[MaskPanel], *, key: str, predictions: Predictions | None = None) -> None:
    """Show masks beside one another, or below one another where there is no room.

    predictions: of the first mask, shown beside it for the row that is chosen.
    """
    _mount(key=key, data=build_payload(panels, predictions))


def build_payload(panels: Sequence[MaskPanel], predictions: Predictions | None = None) -> dict[str, Any]:
    """What the browser gets: of each mask a string of digits, row by row.

    Raises: ValueError for a mask that isn't as wide and as high as there are labels, or for predictions after
    another number of tokens.
    """
    for panel in panels:
        if panel.mask.shape != (len(panel.labels),) * 2:
            raise ValueError(f"{len(panel.labels)} labels were given for a mask of {panel.mask.shape}")
    if predictions and not len(panels[0].labels) == len(predictions.rows) == len(predictions.right):
        raise ValueError(f"{len(panels[0].labels)} tokens were given predictions after {len(predictions.rows)}")
    return {
        "predictions": predictions and vars(predictions),
        "panels": [vars(panel) | {"mask": "".join(str(int(cell)) for cell in panel.mask.ravel())} for panel in panels],
    }
