"""Draws a head's attention as SVG, for printing.

Dimensions: query, key.
"""

from collections.abc import Sequence
from html import escape

import numpy as np

CELL, MARGIN, FONT = 18, 26, 11
"""In pixels: the side of a cell, the room for labels, the size of their letters."""
WIDE = 6.2
"""Pixels of a letter."""
INK = (0x1F, 0x3A, 0x6E)
"""The colour of a weight of 1."""


def pattern_svg(weights: np.ndarray, queries: Sequence[str], keys: Sequence[str], *, causal: bool) -> str:
    """The weights of one head, darker for more; what a mask hides is left out.

    weights: (query, key), from 0 to 1. Rows are queries, columns are keys.
    """
    room = max(MARGIN, int(WIDE * max(map(len, [*queries, *keys])) + 10))
    width, height = room + CELL * len(keys), room + CELL * len(queries)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img" '
        f'aria-label="Attention weights: rows are queries, columns are keys" font-size="{FONT}" '
        'font-family="ui-monospace, monospace">'
    ]
    is_turned = max(map(len, keys)) > 2
    for key, label in enumerate(keys):
        x = room + CELL * key + CELL / 2 + 4
        turned = f'transform="translate({x:g} {room - 5}) rotate(-90)"'
        upright = f'x="{x - 4:g}" y="{room - 5}" text-anchor="middle"'
        parts.append(f"<text {turned if is_turned else upright}>{escape(label)}</text>")
    for query, label in enumerate(queries):
        y = room + CELL * query
        parts.append(f'<text x="{room - 5}" y="{y + CELL / 2 + 4:g}" text-anchor="end">{escape(label)}</text>')
        for key in range(len(keys)):
            if causal and key > query:
                continue
            weight = float(np.clip(weights[query, key], 0, 1))
            colour = "#" + "".join(f"{round(255 - (255 - ink) * weight):02x}" for ink in INK)
            title = f"<title>{escape(label)} → {escape(keys[key])}: {weight:.2f}</title>"
            parts.append(
                f'<rect x="{room + CELL * key}" y="{y}" width="{CELL}" height="{CELL}" fill="{colour}" '
                f'stroke="#c8c8d0" stroke-width=".5">{title}</rect>'
            )
    return "".join([*parts, "</svg>"])
