"""Enlarges the type of a figure for a screen in a classroom."""

from typing import Any

import plotly.graph_objects as go


def enlarge_type(figure: go.Figure, factor: float) -> go.Figure:
    """Make every font of a figure, and the margins that hold its labels, `factor` times as large; returns the figure.

    The plot itself keeps its height. factor: above 0.
    """
    layout = figure.layout.to_plotly_json()
    grown = _grown(layout, factor)
    margin = layout.get("margin", {})
    grown["margin"] = {side: factor * size if side in "lrtb" else size for side, size in margin.items()}
    if "height" in layout:
        grown["height"] += (factor - 1) * sum(margin.get(side, 0) for side in "tb")
    figure.layout = grown
    return figure


def _grown(part: Any, factor: float) -> Any:
    """The same with every font's size times `factor`, at any depth."""
    if isinstance(part, list | tuple):
        return [_grown(item, factor) for item in part]
    if not isinstance(part, dict):
        return part
    return {
        name: {**value, "size": factor * value["size"]}
        if name.endswith("font") and isinstance(value, dict) and "size" in value
        else _grown(value, factor)
        for name, value in part.items()
    }
