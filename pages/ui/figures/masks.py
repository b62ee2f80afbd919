"""Draws the predictions of a text by position, with and without a mask."""

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from pages.ui.figures.axes import PHONE, plotly_label, room, token_axis
from pages.ui.figures.palette import CATEGORICAL, LEGEND_ABOVE, LIGHT, Theme, style

STROKES = (("solid", "circle"), ("dash", "diamond"))


def lines_by_position(
    values: Mapping[str, np.ndarray],
    labels: Sequence[str],
    following: Sequence[str],
    *,
    unit: str,
    theme: Theme = LIGHT,
    offset: int = 0,
    top: float | None = None,
) -> go.Figure:
    """One line for each of `values`, by the token that was read; each may end before the tokens do.

    following: what came after each token, "?" where that isn't known. top: where the axis ends; None for where the
    numbers end, but no lower than 0.1.
    """
    places = np.arange(len(labels)) + offset
    words = [
        f"after {plotly_label(label)}, before {plotly_label(after)}"
        for label, after in zip(labels, following, strict=True)
    ]
    traces = [
        dict(
            name=name,
            x=places[: len(line)],
            y=line,
            text=words[: len(line)],
            mode="lines+markers",
            line=dict(color=color, dash=dash, width=2),
            marker=dict(symbol=symbol, size=6),
            hovertemplate=f"position %{{x:d}}: %{{text}}<br><b>{unit} %{{y:.4~g}}</b> {name}<extra></extra>",
        )
        for (name, line), color, (dash, symbol) in zip(values.items(), CATEGORICAL, STROKES, strict=False)
    ]
    across, foot = token_axis(labels, places, room(PHONE, ["0.5"]) / len(labels))
    layout = style(theme, height=200, top=44, bottom=34 + foot, left=56, across="token read", down=unit)
    layout["xaxis"] |= across | dict(range=[places[0] - 0.5, places[-1] + 0.5])
    highest = top or max([0.1, *(float(line.max()) for line in values.values() if len(line))])
    layout["yaxis"] |= dict(range=[-0.03 * highest, 1.05 * highest])
    return go.Figure(traces, layout | dict(showlegend=True, legend=LEGEND_ABOVE, dragmode=False))
