"""Attention, score and mask heatmaps: arrays in, a plotly figure out.

Shapes: (query, key). Rows are queries, row 0 on top; columns are keys. A cell's coordinates are the positions
of its tokens in the text: `key_offset + column` on x, `query_offset + row` on y.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict, Unpack

import numpy as np
import plotly.graph_objects as go

from pages.ui.figures.axes import PHONE, longest_label, room, token_axis
from pages.ui.figures.cells import (
    FOOT,
    LEGEND_BELOW,
    TOKENS,
    Cell,
    Note,
    Places,
    as_matrix,
    hover,
    invalid_notes,
    note_traces,
    selection_shapes,
    swatches,
    symmetric_limit,
    value_traces,
)
from pages.ui.figures.palette import CATEGORICAL, DIVERGING, LIGHT, SEQUENTIAL, Colorscale, Theme, style

MAX_CLICKABLE_CELLS = 4096
PLOT_SIDE = 330  # pixels: what a column of 388 leaves for the cells
MAX_CELL = 36  # pixels


class Options(TypedDict, total=False):
    """What every heatmap of this module takes by name; `Grid` has the defaults.

    `selected` is (row, column) of the matrix, outlined with its row. With at most 4,096 cells, a click reports
    customdata [row, column]. The offsets are the positions of row 0 and column 0 in the text.
    """

    theme: Theme
    selected: Cell | None
    query_offset: int
    key_offset: int


@dataclass(frozen=True)
class Grid:
    """What the tokens of a (query, key) matrix are called, where they stand in the text, and the options."""

    shape: tuple[int, int]
    query_labels: Sequence[str]
    key_labels: Sequence[str]
    theme: Theme = LIGHT
    selected: Cell | None = None
    query_offset: int = 0
    key_offset: int = 0

    def __post_init__(self) -> None:
        labels = {"query": self.query_labels, "key": self.key_labels}
        for (axis, given), length in zip(labels.items(), self.shape, strict=True):
            if len(given) != length:
                raise ValueError(
                    f"{len(given)} {axis} labels were given for {length} {axis} positions; give one each"
                )

    @property
    def places(self) -> Places:
        rows, columns = self.shape
        return {"x": np.arange(columns) + self.key_offset, "y": np.arange(rows) + self.query_offset}

    @property
    def has_markers(self) -> bool:
        return self.shape[0] * self.shape[1] <= MAX_CLICKABLE_CELLS


def attention_heatmap(
    weights: np.ndarray,
    query_labels: Sequence[str],
    key_labels: Sequence[str],
    *,
    mask: np.ndarray,
    **options: Unpack[Options],
) -> go.Figure:
    """Attention weights (query, key) on a scale from 0 to 1.

    `mask` is bool (query, key), True where a key may be seen; what it hides is grey, whatever its weight. The rest
    are `Options`. ValueError for a shape, label count, mask or selection that does not fit.
    """
    weights = as_matrix(weights, "weights")
    grid = Grid(weights.shape, query_labels, key_labels, **options)
    hidden = _hidden(mask, weights.shape)
    notes = [Note(hidden, grid.theme.hidden, "hidden by the mask"), *invalid_notes(weights, ~hidden)]
    return _numbers_figure(weights, grid, notes, SEQUENTIAL, (0.0, 1.0), "weight")


def scores_heatmap(
    scores: np.ndarray, query_labels: Sequence[str], key_labels: Sequence[str], **options: Unpack[Options]
) -> go.Figure:
    """Scores (query, key) of any size and sign, on a scale symmetric about 0 over the finite values.

    −∞ is drawn as hidden by the mask. The rest is as in `attention_heatmap`.
    """
    scores = as_matrix(scores, "scores")
    grid = Grid(scores.shape, query_labels, key_labels, **options)
    minus_infinity = np.isneginf(scores)
    notes = [
        Note(minus_infinity, grid.theme.hidden, "−∞: hidden by the mask"),
        *invalid_notes(scores, ~minus_infinity),
    ]
    limit = symmetric_limit(scores)
    return _numbers_figure(scores, grid, notes, DIVERGING, (-limit, limit), "score")


def mask_heatmap(
    mask: np.ndarray, query_labels: Sequence[str], key_labels: Sequence[str], **options: Unpack[Options]
) -> go.Figure:
    """A mask, bool (query, key), True where a key may be seen, in two plain colours that a legend names.

    ValueError as in `attention_heatmap`.
    """
    shape = as_matrix(mask, "mask").shape
    visible = ~_hidden(mask, shape)
    grid = Grid(shape, query_labels, key_labels, **options)
    notes = [Note(visible, CATEGORICAL[0], "visible"), Note(~visible, grid.theme.hidden, "hidden")]
    traces = [*note_traces(notes, grid.places, TOKENS), *swatches(notes)]
    if grid.has_markers:
        traces.append(_marker_trace(grid, np.where(visible, "visible", "hidden")))
    return _figure(grid, traces)


def _hidden(mask: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """What `mask` hides, bool of `shape`."""
    mask = np.asarray(mask)
    if mask.dtype != bool or mask.shape != shape:
        given = f"{mask.dtype} of shape {mask.shape}"
        raise ValueError(f"mask is {given}; give bool of shape {shape}, True where a key may be seen")
    return ~mask


def _numbers_figure(
    values: np.ndarray,
    grid: Grid,
    notes: list[Note],
    scale: Colorscale,
    limits: tuple[float, float],
    unit: str,
) -> go.Figure:
    traces = value_traces(values, grid.places, notes, scale, limits, unit, TOKENS)
    if grid.has_markers:
        words = np.array([[f"{unit} {value:.6g}" for value in row] for row in values.tolist()], dtype=object)
        for note in notes:
            words[note.cells] = note.words
        traces.append(_marker_trace(grid, words))
    return _figure(grid, traces)


def _marker_trace(grid: Grid, words: np.ndarray) -> dict:
    """What is clicked: plotly reports no selection on a heatmap, but the marker nearest to the pointer."""
    unseen = {"marker": {"opacity": 0}}
    return dict(
        type="scatter",
        name="cells",
        x=np.tile(grid.places["x"], grid.shape[0]),
        y=np.repeat(grid.places["y"], grid.shape[1]),
        # A list, because Streamlit returns a packed array's rows as dictionaries.
        customdata=np.argwhere(np.ones(grid.shape)).tolist(),
        text=words.ravel().tolist(),
        hovertemplate=hover(TOKENS, "%{text}"),
        mode="markers",
        marker=dict(symbol="square", size=4, opacity=0),
        selected=unseen,
        unselected=unseen,
        showlegend=False,
    )


def _figure(grid: Grid, traces: list[dict]) -> go.Figure:
    (rows, columns), x, y = grid.shape, grid.places["x"], grid.places["y"]
    side = PLOT_SIDE - 8 * (longest_label(grid.query_labels) - 1)
    narrowest = room(PHONE, grid.query_labels)
    square = max(rows, columns) <= 4 * min(rows, columns)
    cell = min(MAX_CELL, side / max(rows, columns))
    height = round(max(72, rows * (cell if square else min(18, side / rows))))
    # Square cells shrink both ways where the column is narrow.
    smallest = min(cell, narrowest / max(rows, columns))
    key_axis, label_height = token_axis(grid.key_labels, x, smallest if square else narrowest / columns)
    query_axis, _ = token_axis(grid.query_labels, y, smallest if square else height / rows, upright=False)
    looks = "query: the token that looks" if height > 190 else "query"
    names = dict(across="key: the token looked at", down=looks)
    layout = style(grid.theme, height=height, bottom=34 + label_height + FOOT, **names)
    layout["xaxis"] |= key_axis | dict(range=[x[0] - 0.5, x[-1] + 0.5])
    layout["yaxis"] |= query_axis | dict(range=[y[-1] + 0.5, y[0] - 0.5])
    if square:
        layout["xaxis"] |= dict(constrain="domain")
        layout["yaxis"] |= dict(constrain="domain", constraintoward="top", scaleanchor="x")
    if grid.has_markers:
        layout |= dict(hoverdistance=-1, dragmode=False)
    layout["legend"] = LEGEND_BELOW
    layout["shapes"] = selection_shapes(grid.selected, grid.places, grid.theme, 2.5)
    return go.Figure(traces, layout)
