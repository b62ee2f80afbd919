"""Labels axes with tokens: as many labels as fit, evenly spaced, and a note on those left out.

The server doesn't know how wide a figure will be, so it counts with the narrowest that the page allows there.
"""

from collections.abc import Sequence
from html import escape

import numpy as np
import plotly.graph_objects as go

from pages.ui.figures.palette import MONOSPACE

PHONE = 254
"""Pixels of a plot beside its vertical axis, on a phone of 360."""
SMALLEST, LARGEST = 10, 13
"""Sizes of a label's font, in pixels."""
LINE, CHARACTER = 1.2, 0.62
"""A label's height and a character's width, in sizes of the font."""
MAX_LABEL = 16
"""Characters of a label; a longer one is cut."""
STEPS = {2: "second", 3: "third", 4: "fourth", 5: "fifth", 6: "sixth", 7: "seventh", 8: "eighth", 9: "ninth"}


def plotly_label(label: str) -> str:
    """A token label for plotly, which reads `<b>`, `&lt;` and `$x$` as markup; cut to 16 characters."""
    return plotly_text(label if len(label) <= MAX_LABEL else label[: MAX_LABEL - 1] + "…")


def plotly_text(text: str) -> str:
    """A text of any length for plotly, in which nothing is read as markup, nor as a place to fill in."""
    return escape(text, quote=False).replace("$", "&#36;").replace("%{", "&#37;{")


def longest_label(labels: Sequence[str]) -> int:
    """Characters of the longest label, as it is drawn."""
    return min(MAX_LABEL, max(map(len, labels)))


def token_axis(labels: Sequence[str], positions: np.ndarray, pitch: float) -> tuple[dict, int]:
    """A numeric axis that reads as tokens, and the height in pixels that its labels take below a plot.

    Numeric, because a category axis merges tokens that are equal. pitch: pixels from one token to the next where the
    figure is narrowest; every so many-th is labelled that no label touches the next. Long labels stand upright.
    """
    texts = [plotly_label(label) for label in labels]
    step = max(1, int(np.ceil(LINE * SMALLEST / pitch)))
    size = int(np.clip(pitch * step / LINE, SMALLEST, LARGEST))
    longest = longest_label(labels) * CHARACTER * size
    turned = longest + 2 > pitch * step
    axis = dict(
        tickmode="array",
        tickvals=positions[::step],
        ticktext=texts[::step],
        tickangle=-90 if turned else 0,
        tickfont=dict(family=MONOSPACE, size=size),
        ticks="",
        showgrid=False,
        # Hover labels read this where a tick was left out.
        labelalias={str(position): text for position, text in zip(positions.tolist(), texts, strict=True)},
    )
    return axis, round(longest + 8 if turned else 1.3 * size)


def labelling_note(figure: go.Figure) -> str:
    """A sentence on the tokens that a figure's horizontal axis leaves without a label; empty where each has its own."""
    axis = figure.layout.to_plotly_json()["xaxis"]
    positions, labels = axis["tickvals"], axis["labelalias"]
    if len(positions) == len(labels):
        return ""
    step = int(positions[1] - positions[0]) if len(positions) > 1 else len(labels)
    every = f"Every {STEPS[step]} token" if step in STEPS else f"One token in {step}"
    return f"{every} is labelled; point at or tap a line to see its token."
