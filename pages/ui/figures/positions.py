"""Draws positional encodings, and computes the numbers of the figures.

Dimensions 2i and 2i+1 of the sinusoidal encoding are the sine and cosine of the position times one frequency, in
radians per position (Vaswani et al. 2017, §3.5). Shapes: table (position, dimension); one frequency a pair, so
d_model/2 of them, the fastest first.
"""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from pages.ui.figures.lines import line_figure
from pages.ui.figures.palette import CATEGORICAL, LEGEND_ABOVE, LIGHT, Theme, style


def cosine_similarities(table: np.ndarray) -> np.ndarray:
    """Cosine of the angle between every two rows, in float64 (position, position); NaN for a row of zeros."""
    table = table.astype(np.float64)
    norms = np.linalg.norm(table, axis=1)
    norms[norms == 0] = np.nan
    return table @ table.T / np.outer(norms, norms)


def encoding_waves(
    table: np.ndarray, dimensions: Sequence[int], frequencies: np.ndarray, *, theme: Theme = LIGHT
) -> go.Figure:
    """The value of each of `dimensions` along a sinusoidal table (position, dimension), one line each.

    `frequencies` are for the wavelengths in the legend. ValueError for no dimensions, or one that the table does not
    have.
    """
    positions, d_model = table.shape
    wrong = [dimension for dimension in dimensions if not 0 <= dimension < d_model]
    if wrong or not len(dimensions):
        raise ValueError(f"dimensions are {list(dimensions)}; give some of 0 to {d_model - 1}")
    top = 20 + 20 * len(dimensions)
    layout = style(theme, height=240, top=top, left=66, across="position", down="value")
    layout["xaxis"] |= dict(range=[-0.5, positions - 0.5])
    layout["yaxis"] |= dict(zeroline=True, zerolinecolor=theme.muted, zerolinewidth=1)
    lines = {_wave_name(dimension, frequencies[dimension // 2]): table[:, dimension] for dimension in dimensions}
    figure = line_figure(lines, layout, hover="position %{x}, %{fullData.name}<br><b>%{y:.6~g}</b>")
    return figure.update_layout(showlegend=True)


def similarity_by_distance(similarity: np.ndarray, *, theme: Theme = LIGHT) -> go.Figure:
    """The similarity of two positions against their distance, (distance,)."""
    layout = style(theme, height=240, left=56, across="distance between two positions", down="cosine")
    layout["yaxis"] |= dict(zeroline=True, zerolinecolor=theme.muted, zerolinewidth=1)
    return line_figure({"cosine": similarity}, layout, hover="distance %{x}<br><b>cosine %{y:.6~g}</b>")


def rotation_figure(
    frequency: float, position: int, shift: int, *, length: int, pair: int, theme: Theme = LIGHT
) -> go.Figure:
    """One pair of dimensions on the unit circle, and the turn from `position` to `position + shift`.

    `frequency` is the pair's, in radians per position; `length` positions from 0 on are dotted. The turn from 0 to
    `shift` is drawn inside it: the same angle, wherever it starts. `pair` is i, and names the axes' dimensions 2i
    and 2i+1. ValueError for a length below 1.
    """
    if length < 1:
        raise ValueError(f"length is {length}; give at least 1 position")
    every, angle = np.arange(length), shift * frequency
    turn = f"{angle:.4g} rad = {np.degrees(angle):.4g}°".replace("-", "−")
    close = abs(np.angle(np.exp(1j * angle))) < 0.25
    circle = np.linspace(0, 2 * np.pi, 181)
    silent = dict(mode="lines+markers", hoverinfo="skip", showlegend=False)
    traces = [
        dict(x=np.cos(circle), y=np.sin(circle), **silent | dict(mode="lines", line=dict(color=theme.grid))),
        dict(
            name=f"positions 0 to {length - 1}",
            x=np.cos(every * frequency),
            y=np.sin(every * frequency),
            customdata=every,
            mode="markers",
            marker=dict(color=theme.muted, size=6),
            hovertemplate="position %{customdata}<br><b>cosine %{x:.6~g}, sine %{y:.6~g}</b><extra></extra>",
        ),
        _turn_trace(frequency, 0, shift, 0.5, turn, dict(color=theme.muted, dash="dot", width=3)),
        _turn_trace(frequency, position, shift, 0.75, turn, dict(color=CATEGORICAL[1], width=3)),
    ]
    labels = []
    ends = ((position, CATEGORICAL[0], 1.16), (position + shift, CATEGORICAL[1], 1.32 if close else 1.16))
    for end, color, reach in ends:
        x, y = np.cos(end * frequency), np.sin(end * frequency)
        look = dict(line=dict(color=color), marker=dict(color=color, size=[0, 12], opacity=1), **silent)
        traces.append(dict(name=f"position {end}", x=[0, x], y=[0, y], **look))
        label = dict(text=f"<b>{_signed(end)}</b>", showarrow=False, font=dict(size=14))
        labels.append(dict(x=reach * x, y=reach * y, **label))
    across, down = f"cosine (dimension {2 * pair + 1})", f"sine (dimension {2 * pair})"
    ticks = dict(range=[-1.42, 1.42], tickvals=[-1, 0, 1], constrain="domain")
    layout = style(theme, height=310, top=84, across=across, down=down)
    layout["xaxis"] |= ticks
    layout["yaxis"] |= dict(scaleanchor="x", constraintoward="top", **ticks)
    return go.Figure(traces, layout | dict(legend=LEGEND_ABOVE, annotations=labels))


def frequency_spectrum(
    frequencies: np.ndarray, base: float, *, length: int, selected: int, theme: Theme = LIGHT
) -> go.Figure:
    """The wavelength in positions of every pair of dimensions, on a log axis from 2π to 2π · base.

    `length` draws that of the table as a line, `selected` rings one pair. ValueError for a pair that is not there.
    """
    waves = 2 * np.pi / frequencies
    if not 0 <= selected < len(waves):
        raise ValueError(f"selected is pair {selected}; there are pairs 0 to {len(waves) - 1}")
    pairs = np.arange(len(waves))
    traces: list[dict] = [
        dict(
            name="wavelength",
            x=pairs,
            y=waves,
            mode="lines+markers" if len(waves) <= 64 else "lines",
            line=dict(color=CATEGORICAL[0], width=1.5),
            customdata=np.stack([2 * pairs, 2 * pairs + 1], axis=1),
            hovertemplate="pair %{x}: dimensions %{customdata[0]} and %{customdata[1]}<br>"
            "<b>wavelength %{y:.6~g} positions</b><extra></extra>",
        )
    ]
    ring = dict(size=14, symbol="circle-open", color=CATEGORICAL[1], line=dict(width=3))
    marked = dict(x=[selected], y=[waves[selected]])
    traces.append(dict(name="selected pair", mode="markers", marker=ring, hoverinfo="skip", **marked))
    levels = {"2π": 2 * np.pi, f"2π · {base:g}": 2 * np.pi * base, f"length {length}": length}
    dotted = dict(type="line", xref="paper", x0=0, x1=1, line=dict(color=theme.muted, width=1, dash="dot"))
    beside = dict(x=1, xref="paper", xanchor="right", yanchor="bottom", showarrow=False)
    beside |= dict(font=dict(color=theme.muted))
    heights = np.log10([*levels.values()])
    across, down = "pair i of dimensions 2i and 2i+1", "wavelength (positions)"
    layout = style(theme, height=260, left=62, across=across, down=down)
    layout["shapes"] = [dict(y0=level, y1=level, **dotted) for level in levels.values()]
    # On a log axis plotly takes a shape's place as it is, and an annotation's as its logarithm.
    layout["annotations"] = [dict(text=words, y=np.log10(level), **beside) for words, level in levels.items()]
    layout["xaxis"] |= dict(range=[-0.5, len(waves) - 0.5])
    layout["yaxis"] |= dict(
        type="log", range=[heights.min() - 0.3, heights.max() + 0.5], dtick=1, exponentformat="power"
    )
    return go.Figure(traces, layout | dict(showlegend=False))


def _wave_name(dimension: int, frequency: float) -> str:
    wave = "cosine" if dimension % 2 else "sine"
    return f"dimension {dimension} ({wave}), wavelength {2 * np.pi / frequency:.4g}"


def _turn_trace(frequency: float, start: int, shift: int, radius: float, turn: str, line: dict) -> dict:
    """The angle from `start` to `start + shift`, widening, so that more than a full turn can be seen."""
    angles = np.linspace(start * frequency, (start + shift) * frequency, 181)
    radii = np.linspace(radius, radius + 0.12, 181)
    return dict(
        name=f"{start} → {_signed(start + shift)}: {turn}",
        x=radii * np.cos(angles),
        y=radii * np.sin(angles),
        mode="lines+markers",
        line=line,
        marker=dict(symbol="arrow", angleref="previous", color=line["color"], size=[*[0] * 180, 11]),
        hoverinfo="skip",
    )


def _signed(number: int) -> str:
    return str(number).replace("-", "−")
