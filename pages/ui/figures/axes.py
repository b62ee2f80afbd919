"""Labels axes with tokens: as many labels as fit, evenly spaced, and a note on those left out.

The server doesn't know how wide a figure will be, so it counts with the narrowest that the page allows there.
"""

from collections.abc import Sequence
from html import escape

import numpy as np
import plotly.graph_objects as go

from pages.ui.figures.palette import MONOSPACE

PHONE = 328
"""Pixels of a figure that has the page for itself, on a phone of 360."""
THIRD = 250
"""Pixels of a figure beside two others, at the least: as the style sheet has it."""
MARGINS = 58
"""Pixels beside the cells, with labels of one character: the axis' name, the labels, and the space to the right."""
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


def room(width: int, row_labels: Sequence[str]) -> float:
    """Pixels that a figure of `width` pixels leaves for its columns beside the labels of its rows."""
    return width - MARGINS - CHARACTER * LARGEST * (longest_label(row_labels) - 1)


def token_axis(labels: Sequence[str], places: np.ndarray, pitch: float, *, upright: bool = True) -> tuple[dict, int]:
    """A numeric axis that reads as tokens, and the height in pixels that its labels take below a plot.

    Numeric, because a category axis merges tokens that are equal. pitch: a cell's size in pixels where the figure is
    narrowest; every so many-th token is labelled that no label touches the next. upright: labels that are longer than
    that may stand upright, as those below a plot.
    """
    texts = [plotly_label(label) for label in labels]
    step = max(1, int(np.ceil(LINE * SMALLEST / pitch)))
    size = int(np.clip(pitch * step / LINE, SMALLEST, LARGEST))
    longest = longest_label(labels) * CHARACTER * size
    turned = upright and longest + 2 > pitch * step
    axis = dict(
        tickmode="array",
        tickvals=places[::step],
        ticktext=texts[::step],
        tickangle=-90 if turned else 0,
        tickfont=dict(family=MONOSPACE, size=size),
        ticks="",
        showgrid=False,
        # Hover labels read this where a tick was left out.
        labelalias={str(place): text for place, text in zip(places.tolist(), texts, strict=True)},
    )
    return axis, round(longest + 8 if turned else 1.3 * size)


def labelling_note(figure: go.Figure) -> str:
    """A sentence on the tokens that a figure leaves without a label; empty where each has its own.

    Where both axes name tokens, they leave out the same.
    """
    axis = figure.layout.xaxis
    if axis.labelalias is None or len(axis.tickvals) == len(axis.labelalias):  # numbers, or all tokens
        return ""
    step = int(axis.tickvals[1] - axis.tickvals[0]) if len(axis.tickvals) > 1 else len(axis.labelalias)
    every = f"Every {STEPS[step]} token" if step in STEPS else f"One token in {step}"
    named = "a line names its token" if figure.layout.yaxis.labelalias is None else "a cell names both of its tokens"
    return f"{every} is labelled; pointing at {named}."
