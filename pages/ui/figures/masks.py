"""Figures of the page Masks: a padded batch, and predictions with and without a mask.

Arrays in, a plotly figure out. Shapes: batch (row) and pos of a batch.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from pages.ui.figures.axes import (
    MARGINS,
    PHONE,
    longest_label,
    number_axis,
    plotly_label,
    room,
    token_axis,
)
from pages.ui.figures.cells import FOOT, LEGEND_BELOW, Note, note_traces, outline, swatches
from pages.ui.figures.palette import CATEGORICAL, LEGEND_ABOVE, LIGHT, MONOSPACE, Theme, style

ROW = 26
BAR = 24
LEGIBLE = 9.6
"""Pixels of a cell for each character of the longest token: plotly then writes in a size of 9."""
WIDEST = 4000
"""Pixels of a batch; where it would need more, its tokens are not written in their cells."""
STROKES = (("solid", "circle"), ("dash", "diamond"))


def batch_picture(
    labels: Sequence[Sequence[str]],
    padding: np.ndarray,
    lines: Sequence[int],
    *,
    theme: Theme = LIGHT,
    selected: int | None = None,
) -> go.Figure:
    """A batch as a rectangle of tokens, a row a prompt; `padding` is bool (batch, pos), True for filler.

    Tokens are written in their cells, as large as the longest one allows; `readable_width` says where that can be read.
    lines: what each row is called. selected: the row to outline. ValueError for labels that don't fit.
    """
    rows, columns = padding.shape
    if [len(row) for row in labels] != [columns] * rows or len(lines) != rows:
        raise ValueError(f"{len(lines)} rows of labels were given for a batch of shape {padding.shape}")
    texts = np.array([[plotly_label(label) for label in row] for row in labels], dtype=object)
    notes = [Note(~padding, CATEGORICAL[0], "token"), Note(padding, theme.hidden, "padding")]
    inks = dict(token="#ffffff", padding=theme.foreground)
    places = {"x": np.arange(columns), "y": np.arange(rows)}
    where = "line %{y}, position %{x:d}<br><b>%{text}</b>"
    traces = note_traces(notes, places, where)
    for trace in traces:
        own = np.where(np.isnan(trace["z"]), "", texts).tolist()  # what is not drawn is written all the same
        trace |= dict(text=own, xgap=1, ygap=1)
        if readable_width(labels):  # in the cells, in a size that fits them
            trace |= dict(texttemplate="%{text}", textfont=dict(family=MONOSPACE, color=inks[trace["name"]]))
    layout = style(theme, height=ROW * rows, bottom=51 + FOOT, across="position", down="line")
    layout["xaxis"] |= number_axis(columns) | dict(range=[-0.5, columns - 0.5])
    layout["yaxis"] |= dict(range=[rows - 0.5, -0.5], showgrid=False)
    layout["yaxis"] |= dict(tickmode="array", tickvals=places["y"], ticktext=[str(line) for line in lines])
    if selected is not None:
        layout["shapes"] = outline((0, columns - 1), selected, theme, 2.5)
    return go.Figure([*traces, *swatches(notes)], layout | dict(legend=LEGEND_BELOW, dragmode=False))


def readable_width(labels: Sequence[Sequence[str]]) -> int | None:
    """Pixels that a picture of a batch needs for its tokens to be read in their cells; None where that is too wide."""
    width = MARGINS + len(labels[0]) * LEGIBLE * max(longest_label(row) for row in labels)
    return round(width) if width <= WIDEST else None


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
    words = [f"after {plotly_label(label)}, before {plotly_label(after)}"
             for label, after in zip(labels, following, strict=True)]  # fmt: skip
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


def candidate_bars(
    labels: Sequence[str], probabilities: np.ndarray, *, limit: float, color: str, theme: Theme = LIGHT
) -> go.Figure:
    """Tokens and their probabilities as bars, the likeliest on top; `limit` is where the axis ends."""
    places = np.arange(len(labels))
    texts = [plotly_label(label) for label in labels]
    bars = dict(
        type="bar",
        orientation="h",
        x=probabilities,
        y=places,
        text=[f"{value:.1%}" if value >= 5e-4 else "< 0.1%" for value in probabilities],
        textposition="outside",
        cliponaxis=False,
        customdata=texts,
        marker=dict(color=color),
        hovertemplate="%{customdata}<br><b>probability %{x:.6~g}</b><extra></extra>",
    )
    layout = style(theme, height=BAR * len(labels), across="probability", down="")
    layout["xaxis"] |= dict(range=[0, 1.25 * limit], nticks=5, tickformat=".0%" if limit > 0.02 else ".1%")
    layout["yaxis"] |= dict(range=[len(labels) - 0.5, -0.5], showgrid=False, ticks="")
    layout["yaxis"] |= dict(tickmode="array", tickvals=places, ticktext=texts)
    layout["yaxis"] |= dict(tickfont=dict(family=MONOSPACE, size=13))
    return go.Figure([bars], layout | dict(bargap=0.3, dragmode=False))
