"""Draws two models or prompts side by side: attention, its difference, and the logit lens by layer.

Arrays in, a plotly figure out. Shapes: query (row) and key (column); height.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from pages.ui.figures.axes import THIRD, plotly_label, plotly_text, room, token_axis
from pages.ui.figures.cells import FOOT, TOKENS, Note, as_matrix, invalid_notes, symmetric_limit, value_traces
from pages.ui.figures.palette import CATEGORICAL, DIVERGING, LEGEND_ABOVE, LIGHT, SEQUENTIAL, Theme, style

SPARE = 25
"""Pixels more in height, for where there is more room."""
STROKES = (("solid", "circle"), ("dash", "diamond"), ("dot", "square"), ("dashdot", "cross"))


def attention_panel(
    weights: np.ndarray,
    query_labels: Sequence[str],
    key_labels: Sequence[str],
    hidden: np.ndarray,
    *,
    is_difference: bool = False,
    offsets: tuple[int, int] = (0, 0),
    theme: Theme = LIGHT,
) -> go.Figure:
    """One head's weights (query, key) from 0 to 1, or the difference of two on a scale around 0.

    hidden: bool (query, key), what the mask hides. offsets: the positions of row 0 and column 0 in their texts.
    ValueError for labels that don't fit.
    """
    weights = as_matrix(weights, "weights")
    rows, columns = weights.shape
    if (len(query_labels), len(key_labels)) != (rows, columns) or hidden.shape != weights.shape:
        raise ValueError(f"{len(query_labels)} and {len(key_labels)} labels were given for weights of {weights.shape}")
    places = {"x": np.arange(columns) + offsets[1], "y": np.arange(rows) + offsets[0]}
    notes = [Note(hidden, theme.hidden, "hidden by the mask"), *invalid_notes(weights, ~hidden)]
    limit = symmetric_limit(weights[~hidden]) if is_difference else 1.0
    scale, low, unit = (DIVERGING, -limit, "difference") if is_difference else (SEQUENTIAL, 0.0, "weight")
    traces = value_traces(weights, places, notes, scale, (low, limit), unit, TOKENS)
    side = room(THIRD, query_labels)
    pitch = side / max(rows, columns)
    across, foot = token_axis(key_labels, places["x"], pitch)
    down, _ = token_axis(query_labels, places["y"], pitch, upright=False)
    height = round(side + SPARE)
    layout = style(theme, height=height, bottom=34 + foot + FOOT, across="key", down="query")
    layout["xaxis"] |= across | dict(range=[places["x"][0] - 0.5, places["x"][-1] + 0.5], constrain="domain")
    layout["yaxis"] |= down | dict(range=[places["y"][-1] + 0.5, places["y"][0] - 0.5], constrain="domain")
    layout["yaxis"] |= dict(constraintoward="top", scaleanchor="x")
    return go.Figure(traces, layout | dict(dragmode=False))


@dataclass(frozen=True)
class Line:
    """How likely one token is at every height of one side."""

    values: np.ndarray
    """(height,)."""
    says: Sequence[str]
    """What that height would have said, to be read beside the point."""


def lens_lines(lines: Mapping[str, Line], *, theme: Theme = LIGHT) -> go.Figure:
    """Probabilities by height, a line for each name; sides may have different numbers of heights."""
    traces = [
        dict(
            name=plotly_text(name),
            x=np.arange(len(line.values)),
            y=line.values,
            customdata=[plotly_label(token) for token in line.says],
            mode="lines+markers",
            line=dict(color=color, dash=dash, width=2),
            marker=dict(symbol=symbol, size=8),
            hovertemplate="%{x}: <b>probability %{y:.4~g}</b><br>likeliest there: %{customdata}<extra></extra>",
        )
        for (name, line), color, (dash, symbol) in zip(lines.items(), CATEGORICAL, STROKES, strict=False)
    ]
    most = max(len(line.values) for line in lines.values())
    names = ["embedding", *(f"layer {layer}" for layer in range(most - 1))]
    layout = style(theme, height=240, top=60, left=56, across="height: what leaves the …", down="probability")
    layout["xaxis"] |= dict(tickmode="array", tickvals=np.arange(most), ticktext=names, range=[-0.3, most - 0.7])
    layout["yaxis"] |= dict(range=[-0.03, 1.05])
    return go.Figure(traces, layout | dict(showlegend=True, legend=LEGEND_ABOVE, dragmode=False))
