"""Attention, score and mask heatmaps: arrays in, a plotly figure out.

Shapes: (query, key). Rows are queries, row 0 on top; columns are keys. A cell's coordinates are the positions
of its tokens in the text: `key_offset + column` on x, `query_offset + row` on y.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TypedDict, Unpack

import numpy as np
import plotly.graph_objects as go

from pages.ui.figures.palette import (
    CATEGORICAL,
    DIVERGING,
    INVALID,
    MONOSPACE,
    SEQUENTIAL,
    Colorscale,
    Theme,
    style,
)

Places = dict[str, np.ndarray]  # the coordinates of the columns, x, and of the rows, y
Cell = tuple[int, int]  # row and column of a matrix
LIGHT = Theme(dark=False)
MAX_CLICKABLE_CELLS = 4096
MAX_TICKS = 32
MAX_LABEL = 16
PLOT_SIDE = 330  # pixels: what a column of 380 leaves for the cells
MAX_CELL = 36  # pixels
FOOT = 32  # pixels of a colour bar or legend below the axis
TOKENS = "query %{y} at position %{y:d}<br>key %{x} at position %{x:d}"
"""Where the pointer is. %{y} is the token's label; a format makes plotly take the raw coordinate instead."""


@dataclass(frozen=True)
class Note:
    """Cells drawn in one plain colour, with words in place of a number."""

    cells: np.ndarray  # bool (query, key)
    color: str
    words: str


class Options(TypedDict, total=False):
    """What every heatmap of this module takes by name; `Grid` has the defaults.

    `selected` is (row, column) of the matrix, outlined with its row. With `clickable`, and at most 4,096 cells,
    a click reports customdata [row, column]. The offsets are the positions of row 0 and column 0 in the text.
    """

    title: str | None
    theme: Theme
    selected: Cell | None
    clickable: bool
    query_offset: int
    key_offset: int


@dataclass(frozen=True)
class Grid:
    """What the tokens of a (query, key) matrix are called, where they stand in the text, and the options."""

    shape: tuple[int, int]
    query_labels: Sequence[str]
    key_labels: Sequence[str]
    title: str | None = None
    theme: Theme = LIGHT
    selected: Cell | None = None
    clickable: bool = True
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
        return self.clickable and self.shape[0] * self.shape[1] <= MAX_CLICKABLE_CELLS


def attention_heatmap(
    weights: np.ndarray,
    query_labels: Sequence[str],
    key_labels: Sequence[str],
    *,
    mask: np.ndarray | None = None,
    hidden_by: str = "the causal mask",
    **options: Unpack[Options],
) -> go.Figure:
    """Attention weights (query, key) on a scale from 0 to 1.

    `mask` is bool (query, key), True where a key may be seen; what it hides is grey, whatever its weight, and
    said to be hidden by `hidden_by`. The rest are `Options`. ValueError for a shape, label count, mask or
    selection that does not fit.
    """
    weights = as_matrix(weights, "weights")
    grid = Grid(weights.shape, query_labels, key_labels, **options)
    hidden = _hidden(mask, weights.shape)
    notes = [Note(hidden, grid.theme.hidden, f"hidden by {hidden_by}"), *invalid_notes(weights, ~hidden)]
    return _numbers_figure(weights, grid, notes, SEQUENTIAL, (0.0, 1.0), "weight")


def scores_heatmap(
    scores: np.ndarray,
    query_labels: Sequence[str],
    key_labels: Sequence[str],
    *,
    mask: np.ndarray | None = None,
    hidden_by: str = "the mask",
    **options: Unpack[Options],
) -> go.Figure:
    """Scores (query, key) of any size and sign, on a scale symmetric about 0 over the finite visible values.

    −∞ is drawn as hidden, and so is what `mask` hides. The rest is as in `attention_heatmap`.
    """
    scores = as_matrix(scores, "scores")
    grid = Grid(scores.shape, query_labels, key_labels, **options)
    hidden = _hidden(mask, scores.shape)
    minus_infinity = np.isneginf(scores)
    notes = [
        Note(minus_infinity, grid.theme.hidden, f"−∞: hidden by {hidden_by}"),
        Note(hidden & ~minus_infinity, grid.theme.hidden, f"hidden by {hidden_by}"),
        *invalid_notes(scores, ~hidden & ~minus_infinity),
    ]
    limit = symmetric_limit(scores[~hidden])
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
    traces = note_traces(notes, grid.places, TOKENS)
    for note in notes:
        swatch = dict(symbol="square", size=12, color=note.color)
        named = dict(name=note.words, mode="markers", marker=swatch, showlegend=True)
        traces.append(dict(type="scatter", x=[None], y=[None], **named))
    if grid.has_markers:
        traces.append(_marker_trace(grid, np.where(visible, "visible", "hidden")))
    return _figure(grid, traces)


def as_matrix(values: np.ndarray, name: str) -> np.ndarray:
    """`values` as a 2-D float array; float32 and float64 stay. ValueError for another or an empty shape."""
    values = np.asarray(values)
    if values.ndim != 2 or 0 in values.shape:
        raise ValueError(f"{name} has shape {values.shape}; give one 2-D matrix, at least 1 by 1")
    return values if values.dtype in (np.float32, np.float64) else values.astype(np.float32)


def symmetric_limit(values: np.ndarray) -> float:
    """The largest size among the finite `values`, or 1 where that is 0 or none: a range is never empty."""
    finite = np.abs(values[np.isfinite(values)])
    limit = float(finite.max()) if finite.size else 0.0
    return limit if limit > 0 else 1.0


def plotly_label(label: str) -> str:
    """A token label for plotly, which reads `<b>`, `&lt;` and `$x$` as markup; cut to 16 characters."""
    label = label if len(label) <= MAX_LABEL else label[: MAX_LABEL - 1] + "…"
    return escape(label, quote=False).replace("$", "&#36;")


def invalid_notes(values: np.ndarray, visible: np.ndarray) -> list[Note]:
    """One note for each kind of non-finite number among the visible cells."""
    kinds = (("NaN", np.isnan(values)), ("+∞", np.isposinf(values)), ("−∞", np.isneginf(values)))
    return [Note(cells & visible, INVALID, f"{kind}: not a finite number") for kind, cells in kinds]


def note_traces(notes: Sequence[Note], places: Places, where: str) -> list[dict]:
    """A plain heatmap for each note that has cells; `places` and `where` as in `value_traces`."""
    return [
        dict(
            type="heatmap",
            name=note.words,
            z=np.where(note.cells, np.float32(1), np.float32(np.nan)),
            **places,
            colorscale=[(0, note.color), (1, note.color)],
            showscale=False,
            hoverongaps=False,
            hovertemplate=_hover(where, note.words),
        )
        for note in notes
        if note.cells.any()
    ]


def value_traces(
    values: np.ndarray,
    places: Places,
    notes: Sequence[Note],
    scale: Colorscale,
    limits: tuple[float, float],
    unit: str,
    where: str,
) -> list[dict]:
    """`values` (row, column) at `places` (columns on x, rows on y), with a colour bar at the foot.

    Noted cells are NaN in the values' own trace, and a plain colour beneath it. `where` is the hover label's
    first part, a plotly template that names the place by %{x} and %{y}.
    """
    drawn = np.where(np.any([note.cells for note in notes], axis=0), values.dtype.type(np.nan), values)
    # By the container: plotly.js shifts all titles where a horizontal bar is placed by the plot.
    bar = dict(orientation="h", x=0.5, y=0, yref="container", yanchor="bottom", ypad=4, thickness=9)
    bar |= dict(lenmode="pixels", len=200, nticks=5, outlinewidth=0, tickfont=dict(size=11))
    numbers = dict(
        type="heatmap",
        name=unit,
        z=drawn,
        **places,
        zmin=limits[0],
        zmax=limits[1],
        colorscale=scale,
        colorbar=dict(title=dict(text=unit + " ", side="right", font=dict(size=12)), **bar),
        hoverongaps=False,
        hovertemplate=_hover(where, f"{unit} %{{z:.6~g}}"),
    )
    return [*note_traces(notes, places, where), numbers]


def selection_shapes(selected: Cell | None, places: Places, theme: Theme, width: float) -> list[dict]:
    """Outlines of the cell `selected`, (row, column), and of its row, with a halo that shows on any colour.

    `places` as in `value_traces`, `width` in pixels. ValueError for a cell that is not there.
    """
    if selected is None:
        return []
    (row, column), x, y = selected, places["x"], places["y"]
    if not (0 <= row < len(y) and 0 <= column < len(x)):
        raise ValueError(
            f"selected is {tuple(selected)}; the matrix has rows 0 to {len(y) - 1}, columns 0 to {len(x) - 1}"
        )
    shapes = []
    for left, right, line in ((x[0], x[-1], width / 3), (x[column], x[column], width)):
        box = dict(type="rect", x0=left - 0.5, x1=right + 0.5, y0=y[row] - 0.5, y1=y[row] + 0.5)
        shapes.append(box | dict(line=dict(color=theme.surface, width=line + 2)))
        shapes.append(box | dict(line=dict(color=theme.foreground, width=line)))
    return shapes


def _hidden(mask: np.ndarray | None, shape: tuple[int, int]) -> np.ndarray:
    """What `mask` hides, bool of `shape`; nothing where it is None."""
    mask = np.ones(shape, dtype=bool) if mask is None else np.asarray(mask)
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


def _hover(where: str, words: str) -> str:
    return f"{where}<br><b>{words}</b><extra></extra>"


def _marker_trace(grid: Grid, words: np.ndarray) -> dict:
    """What is clicked: plotly reports no selection on a heatmap, but the marker nearest to the pointer."""
    unseen = {"marker": {"opacity": 0}}
    return dict(
        type="scatter",
        name="cells",
        x=np.tile(grid.places["x"], grid.shape[0]),
        y=np.repeat(grid.places["y"], grid.shape[1]),
        # A list, because Streamlit hands a packed array's rows back as dictionaries.
        customdata=np.argwhere(np.ones(grid.shape)).tolist(),
        text=words.ravel().tolist(),
        hovertemplate=_hover(TOKENS, "%{text}"),
        mode="markers",
        marker=dict(symbol="square", size=4, opacity=0),
        selected=unseen,
        unselected=unseen,
        showlegend=False,
    )


def _figure(grid: Grid, traces: list[dict]) -> go.Figure:
    (rows, columns), x, y = grid.shape, grid.places["x"], grid.places["y"]
    longest = max(min(MAX_LABEL, len(label)) for label in grid.query_labels)
    side = PLOT_SIDE - 7 * (longest - 1)
    square = max(rows, columns) <= 4 * min(rows, columns)
    cell = min(MAX_CELL, side / max(rows, columns))
    height = round(max(72, rows * (cell if square else min(18, side / rows))))
    key_axis, label_height = _token_axis(grid.key_labels, x, cell if square else side / columns, upright=True)
    query_axis, _ = _token_axis(grid.query_labels, y, height / rows, upright=False)
    looks = "query: the token that looks" if height > 190 else "query"
    names = dict(across="key: the token looked at", down=looks)
    bottom = 34 + label_height + FOOT
    layout = style(grid.theme, height=height, title=grid.title, bottom=bottom, **names)
    layout["xaxis"] |= key_axis | dict(range=[x[0] - 0.5, x[-1] + 0.5])
    layout["yaxis"] |= query_axis | dict(range=[y[-1] + 0.5, y[0] - 0.5])
    if square:
        layout["xaxis"] |= dict(constrain="domain")
        layout["yaxis"] |= dict(constrain="domain", constraintoward="top", scaleanchor="x")
    if grid.has_markers:
        layout |= dict(hoverdistance=-1, dragmode=False)
    foot = dict(x=0.5, xanchor="center", y=0, yref="container", yanchor="bottom")
    layout["legend"] = dict(orientation="h", itemclick=False, itemdoubleclick=False, **foot)
    layout["shapes"] = selection_shapes(grid.selected, grid.places, grid.theme, 2.5)
    return go.Figure(traces, layout)


def _token_axis(labels: Sequence[str], places: np.ndarray, pitch: float, upright: bool) -> tuple[dict, int]:
    """A numeric axis that reads as tokens, and the height in pixels of its labels below the plot.

    Numeric, because a category axis merges tokens that are equal. `pitch` is a cell's size in pixels.
    """
    texts = [plotly_label(label) for label in labels]
    step = -(-len(texts) // MAX_TICKS)
    size = int(np.clip(pitch * step, 9, 13))
    longest = min(MAX_LABEL, max(len(label) for label in labels)) * 0.62 * size
    turned = upright and longest > pitch * step
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
