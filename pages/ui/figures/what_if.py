"""Draws one distribution over tokens, or two on one axis."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from pages.ui.figures.axes import plotly_label, plotly_text
from pages.ui.figures.palette import CATEGORICAL, LEGEND_ABOVE, LIGHT, MONOSPACE, Theme, style

PAIR, SINGLE = 34, 26
"""Pixels of a token's two bars, and of one."""
VERSIONS = ("unchanged", "changed")


def percent(probability: float) -> str:
    """A probability as people read it, finer at both ends."""
    if probability < 5e-5:
        return "< 0.01%"
    if probability > 1 - 5e-5:
        return "> 99.99%"
    return f"{probability:.1%}" if 0.1 <= probability <= 0.99 else f"{probability:.2%}"


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
    both = [before] if after is None else [before, after]
    if any(len(probabilities) != len(labels) for probabilities in both):
        counts = " and ".join(str(len(probabilities)) for probabilities in both)
        raise ValueError(f"{len(labels)} labels were given for {counts} probabilities")
    places = np.arange(len(labels))
    texts = [plotly_label(label) for label in labels]
    traces = [
        dict(
            type="bar",
            orientation="h",
            name=name,
            x=probabilities,
            y=places,
            text=["" if np.isnan(value) else percent(value) for value in probabilities],
            textposition="outside",
            cliponaxis=False,
            customdata=texts,
            marker=dict(color=color),
            hovertemplate=f"%{{customdata}}, {name}<br><b>probability %{{x:.6~g}}</b><extra></extra>",
        )
        for name, probabilities, color in zip(map(plotly_text, names), both, CATEGORICAL, strict=False)
    ]
    limit = float(np.nanmax([0.0, *np.concatenate(both)])) or 1.0
    layout = style(
        theme,
        height=(PAIR if len(both) == 2 else SINGLE) * len(labels),
        across="probability",
        down="",
        top=36 if len(both) == 2 else 8,
        bottom=44,
    )
    layout["xaxis"] |= dict(range=[0, 1.25 * limit], nticks=5, tickformat=".0%" if limit > 0.02 else ".1%")
    layout["yaxis"] |= dict(range=[len(labels) - 0.5, -0.5], showgrid=False, ticks="", tickmode="array")
    layout["yaxis"] |= dict(tickvals=places, ticktext=texts, tickfont=dict(family=MONOSPACE, size=13))
    layout |= dict(barmode="group", bargap=0.25, bargroupgap=0.05, dragmode=False, legend=LEGEND_ABOVE)
    layout["showlegend"] = len(both) == 2
    return go.Figure(traces, layout)
