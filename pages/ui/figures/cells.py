"""Draws the cells of a matrix, coloured by number or filled with words.

Arrays in, plotly traces out. Shapes: (row, column), row 0 on top.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pages.ui.figures.palette import INVALID, Colorscale

Places = dict[str, np.ndarray]  # the coordinates of the columns, x, and of the rows, y
FOOT = 32  # pixels of a colour bar or legend below the axis
TOKENS = "query %{y} at position %{y:d}<br>key %{x} at position %{x:d}"
"""Where the pointer is. %{y} is the token's label; a format makes plotly take the raw coordinate instead."""


@dataclass(frozen=True)
class Note:
    """Cells drawn in one plain colour, with words in place of a number."""

    cells: np.ndarray  # bool (row, column)
    color: str
    words: str


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
            hovertemplate=hover(where, note.words),
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
        hovertemplate=hover(where, f"{unit} %{{z:.6~g}}"),
    )
    return [*note_traces(notes, places, where), numbers]


def hover(where: str, words: str) -> str:
    """A hover label: where the pointer is, and in bold what is there."""
    return f"{where}<br><b>{words}</b><extra></extra>"
