"""Draws rows of horizontal bars: distributions over tokens, and losses on the rungs of a ladder."""

import textwrap
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from pages.ui.figures.axes import CHARACTER, longest_label, plotly_label, plotly_text
from pages.ui.figures.palette import CATEGORICAL, LEGEND_ABOVE, LIGHT, MONOSPACE, Theme, style
from pages.ui.number_format import percent

PAIR, SINGLE = 35, 26
"""Pixels of a row of two bars, and of one."""
LONGEST = 18
"""Characters of a rung's name: longer ones go on in a second line."""
LABEL, BESIDE_LABELS, NARROW = 13, 32, 6.2
"""Pixels: the font of a token's label, what stands beside the longest one, and a character of a rung's name."""
VERSIONS = ("unchanged", "changed")


def paired_bars(
    labels: Sequence[str],
    before: np.ndarray,
    after: np.ndarray | None,
    *,
    names: tuple[str, str] = VERSIONS,
    theme: Theme = LIGHT,
) -> go.Figure:
    """Probabilities of the same tokens in two distributions, a pair of bars each, the first token on top.

    before, after: (token,); NaN for a token that isn't in one; after is None while there is one alone. names: what the
    two are called. ValueError for labels that don't fit.
    """
    values = dict(zip(names, [before] if after is None else [before, after], strict=False))
    texts = [plotly_label(label) for label in labels]
    left = BESIDE_LABELS + longest_label(labels) * CHARACTER * LABEL
    figure = _bars(values, texts, percent, "probability %{x:.6~g}", across="probability", left=left, theme=theme)
    limit = figure.layout.to_plotly_json()["xaxis"]["range"][1]
    figure.update_xaxes(tickformat=".0%" if limit > 0.025 else ".1%")
    figure.update_yaxes(ticktext=texts, tickfont=dict(family=MONOSPACE, size=LABEL))
    return figure


def loss_bars(
    titles: Sequence[str], losses: np.ndarray, usual: np.ndarray, chosen: int | None, *, theme: Theme = LIGHT
) -> go.Figure:
    """Two losses a rung, in nats, the lowest rung on top: of a text, and of what the rung was measured on.

    losses, usual: (rung,); NaN where there is none. chosen: the rung that is outlined. ValueError for what doesn't fit.
    """
    values = {"this text": losses, "held-out text": usual}
    texts = [plotly_text(title) for title in titles]
    left = BESIDE_LABELS + LONGEST * NARROW
    figure = _bars(
        values, texts, "{:.2f}".format, "%{x:.4f} nats", across="loss (nats per token)", left=left, theme=theme
    )
    edges = [2.5 if bar == chosen else 0 for bar in range(len(titles))]
    figure.update_traces(marker_line=dict(color=theme.foreground, width=edges))
    wrapped = (textwrap.wrap(title, LONGEST, break_long_words=False, break_on_hyphens=False) for title in titles)
    figure.update_yaxes(ticktext=["<br>".join(map(plotly_text, lines)) for lines in wrapped])
    return figure


def _bars(
    values: Mapping[str, np.ndarray],
    texts: Sequence[str],
    says: Callable[[float], str],
    hover: str,
    *,
    across: str,
    left: float,
    theme: Theme,
) -> go.Figure:
    """A row for each text, with a bar of each of `values`. says: what stands beside a bar; hover: in its tooltip."""
    if any(len(numbers) != len(texts) for numbers in values.values()):
        counts = " and ".join(str(len(numbers)) for numbers in values.values())
        raise ValueError(f"{len(texts)} labels were given for {counts} numbers")
    rows, is_pair = np.arange(len(texts)), len(values) == 2
    traces = [
        dict(
            type="bar",
            orientation="h",
            name=plotly_text(name),
            x=numbers,
            y=rows,
            text=["" if np.isnan(value) else says(value) for value in numbers],
            textposition="outside",
            cliponaxis=False,
            customdata=texts,
            marker=dict(color=color),
            hovertemplate=f"%{{customdata}}, {plotly_text(name)}<br><b>{hover}</b><extra></extra>",
        )
        for (name, numbers), color in zip(values.items(), CATEGORICAL, strict=False)
    ]
    limit = float(np.nanmax([0.0, *np.concatenate(list(values.values()))])) or 1.0
    height = (PAIR if is_pair else SINGLE) * len(texts)
    layout = style(theme, height=height, across=across, down="", top=46 if is_pair else 18, bottom=54, left=round(left))
    layout["xaxis"] |= dict(range=[0, 1.25 * limit], nticks=5)
    layout["yaxis"] |= dict(range=[len(texts) - 0.5, -0.5], showgrid=False, ticks="", tickmode="array", tickvals=rows)
    layout |= dict(barmode="group", bargap=0.25, bargroupgap=0.05, dragmode=False, legend=LEGEND_ABOVE)
    return go.Figure(traces, layout | dict(showlegend=is_pair))
