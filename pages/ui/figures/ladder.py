"""Draws the loss of a text on every rung of a ladder of models."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from pages.ui.figures.axes import plotly_text
from pages.ui.figures.palette import CATEGORICAL, LEGEND_ABOVE, LIGHT, Theme, style

PAIR = 36
"""Pixels of a rung's two bars."""
LONGEST = 18
"""Characters of a rung's name: longer ones go on in a second line."""


def loss_bars(
    titles: Sequence[str], losses: np.ndarray, usual: np.ndarray, chosen: int | None, *, theme: Theme = LIGHT
) -> go.Figure:
    """Two losses a rung, in nats, the lowest rung on top: of a text, and of what the rung was measured on.

    losses, usual: (rung,); NaN where there is none. chosen: the rung that is outlined. ValueError for what doesn't fit.
    """
    if not len(titles) == len(losses) == len(usual):
        raise ValueError(f"{len(titles)} titles were given for {len(losses)} and {len(usual)} losses")
    places = np.arange(len(titles))
    edges = [2.5 if place == chosen else 0 for place in places]
    traces = [
        dict(
            type="bar",
            orientation="h",
            name=name,
            x=values,
            y=places,
            text=["" if np.isnan(value) else f"{value:.2f}" for value in values],
            textposition="outside",
            cliponaxis=False,
            customdata=[plotly_text(title) for title in titles],
            marker=dict(color=color, line=dict(color=theme.foreground, width=edges)),
            hovertemplate=f"%{{customdata}}, {name}<br><b>%{{x:.4f}} nats</b><extra></extra>",
        )
        for name, values, color in zip(("this text", "held-out text"), (losses, usual), CATEGORICAL, strict=False)
    ]
    known = np.concatenate([losses, usual])
    limit = float(np.nanmax(known)) if np.isfinite(known).any() else 1.0
    layout = style(theme, height=PAIR * len(titles), across="loss (nats per token)", down="", top=46)
    layout["xaxis"] |= dict(range=[0, 1.15 * limit], nticks=6)
    layout["yaxis"] |= dict(range=[len(titles) - 0.5, -0.5], showgrid=False, ticks="", tickmode="array")
    layout["yaxis"] |= dict(tickvals=places, ticktext=[_broken(title) for title in titles])
    layout |= dict(barmode="group", bargap=0.25, bargroupgap=0.05, dragmode=False, legend=LEGEND_ABOVE)
    return go.Figure(traces, layout)


def _broken(title: str) -> str:
    """A rung's name in lines of at most `LONGEST` characters, where its words allow it."""
    lines = [""]
    for word in title.split():
        if lines[-1] and len(lines[-1]) + 1 + len(word) > LONGEST:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return "<br>".join(map(plotly_text, lines))
