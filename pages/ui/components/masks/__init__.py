"""Shows masks side by side: which keys each query may see.

Shapes: query (row), key (column).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import streamlit as st

from pages.ui.components.sources import reader, script, style

_mount = st.components.v2.component(
    "headsup_masks",
    html=reader(__file__)("masks.html"),
    css=style(__file__, "masks.css", instruments=["likeliest.css", "tip.css"]),
    js=script(__file__, "masks.js"),
)


@dataclass(frozen=True)
class Panel:
    """One mask over some tokens, and what to say about it."""

    title: str
    labels: list[str]
    mask: np.ndarray
    """(query, key), True where visible."""
    offset: int
    """The first token's place in the text."""
    words: str


Likeliest = Sequence[tuple[str, float]]
"""Labels of tokens and their probabilities, the likeliest first."""


@dataclass(frozen=True)
class Predictions:
    """What a model predicts after each token of a mask, in two readings."""

    names: tuple[str, str]
    rows: Sequence[tuple[Likeliest, Likeliest]]
    following: Sequence[str | None]
    """What really came next; None where nothing has come yet."""
    sees: Sequence[str]
    """What each token's row of the mask lets it see, in words."""
    row: int
    """The token whose predictions are shown until another is chosen."""
    words: str
    """What to say of the last token, from which the mask hides nothing."""


def masks(panels: Sequence[Panel], *, key: str, predictions: Predictions | None = None) -> None:
    """Show masks beside one another, or below one another where there is no room.

    predictions: of the first mask, shown beside it for the row that is chosen.
    """
    _mount(key=key, data=build_payload(panels, predictions))


def build_payload(panels: Sequence[Panel], predictions: Predictions | None = None) -> dict[str, Any]:
    """What the browser gets: of each mask a string of ones and zeros, row by row.

    Raises: ValueError for a mask that isn't as wide and as high as there are labels, or for predictions after
    another number of tokens.
    """
    for panel in panels:
        if panel.mask.shape != (len(panel.labels),) * 2:
            raise ValueError(f"{len(panel.labels)} labels were given for a mask of {panel.mask.shape}")
    if predictions and not len(panels[0].labels) == len(predictions.rows) == len(predictions.following):
        raise ValueError(f"{len(panels[0].labels)} tokens were given predictions after {len(predictions.rows)}")
    return {
        "predictions": predictions and vars(predictions),
        "panels": [
            {
                "title": panel.title,
                "words": panel.words,
                "labels": panel.labels,
                "offset": panel.offset,
                "visible": "".join("1" if cell else "0" for cell in panel.mask.ravel().tolist()),
            }
            for panel in panels
        ],
    }
