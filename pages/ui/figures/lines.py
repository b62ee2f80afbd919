"""Draws lines that are told apart by colour, dash and symbol: as predictions by position."""

from collections.abc import Mapping, Sequence
from itertools import cycle

import numpy as np
import plotly.graph_objects as go

from pages.ui.figures.axes import PHONE, plotly_label, plotly_text, token_axis
from pages.ui.figures.palette import CATEGORICAL, LEGEND_ABOVE, LIGHT, Theme, style

DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
SYMBOLS = ("circle", "diamond", "square", "cross", "triangle-up", "star")
MARKED = 64
"""Points of a line that has a symbol at each, at most."""


def line_figure(
    lines: Mapping[str, np.ndarray], layout: dict, *, hover: str, start: int = 0, texts: Sequence[Sequence[str]] = ()
) -> go.Figure:
    """A line for each name over the positions from `start` on; lines may have different numbers of points.

    layout: as `style` makes it. hover: a template of plotly's, in which %{text} is of each line's `texts`.
    """
    traces = [
        dict(
            name=plotly_text(name),
            x=np.arange(len(line)) + start,
            y=line,
            text=text and text[: len(line)],
            mode="lines+markers" if len(line) <= MARKED else "lines",
            line=dict(color=color, dash=dash, width=2),
            marker=dict(symbol=symbol, size=6),
            hovertemplate=f"{hover}<extra></extra>",
        )
        for (name, line), text, color, dash, symbol in zip(
            lines.items(), texts or cycle([None]), cycle(CATEGORICAL), cycle(DASHES), cycle(SYMBOLS), strict=False
        )
    ]
    return go.Figure(traces, layout | dict(showlegend=len(lines) > 1, legend=LEGEND_ABOVE, dragmode=False))


def lines_by_position(
    values: Mapping[str, np.ndarray],
    labels: Sequence[str],
    following: Sequence[str] | None,
    *,
    unit: str,
    theme: Theme = LIGHT,
    offset: int = 0,
    top: float | None = None,
) -> go.Figure:
    """One line for each of `values`, by the token that was read; each may end before the tokens do.

    following: what came after each token, "?" where that isn't known; None where the token itself is predicted. top:
    where the axis ends; None for where the numbers end, but no lower than 0.1.
    """
    words = [f"at {plotly_label(label)}" for label in labels]
    if following is not None:
        pairs = zip(labels, following, strict=True)
        words = [f"after {plotly_label(label)}, before {plotly_label(after)}" for label, after in pairs]
    positions = np.arange(len(labels)) + offset
    across, foot = token_axis(labels, positions, PHONE / len(labels))
    layout = style(theme, height=200, top=44, bottom=34 + foot, left=56, across="token read", down=unit)
    layout["xaxis"] |= across | dict(range=[positions[0] - 0.5, positions[-1] + 0.5])
    highest = top or max([0.1, *(float(line.max()) for line in values.values() if len(line))])
    layout["yaxis"] |= dict(range=[-0.03 * highest, 1.05 * highest])
    hover = f"position %{{x:d}}: %{{text}}<br><b>{unit} %{{y:.4~g}}</b> %{{fullData.name}}"
    return line_figure(values, layout, hover=hover, start=offset, texts=[words] * len(values))
