"""Draws the folded parts of the page Positions: waves, similarity and rotation of the sinusoidal table.

Dimensions: position (row of a table), dimension (column).
"""

import math

import numpy as np
import pandas as pd
import streamlit as st

from pages.ui.components.matrix import matrix
from pages.ui.figures import positions as figures
from pages.ui.frame import widgets
from pages.ui.frame.page import Session
from pages.ui.frame.widgets import Binding
from pages.ui.host.page_state import PARAMETERS, PageState
from pages.ui.tables import offer_data
from pages.ui.views.charts import chart
from pages.ui.views.side_by_side import side_by_side
from transformer import sinusoidal_encoding
from transformer.model.positions import position_angles


def _table(current: PageState) -> np.ndarray:
    """The sinusoidal table, (position, dimension)."""
    return sinusoidal_encoding(current.length, current.width, current.base).numpy()


def waves(session: Session) -> None:
    """The columns of the table as waves."""
    table = _table(session.state)
    width = table.shape[1]
    telling = tuple(sorted({d for d in (0, 1, width // 8 * 2, width // 4 * 2, width // 2) if d < width}))
    chosen = widgets.multiselect(
        "Dimensions", range(width), Binding("waves", default=telling), most=PARAMETERS["waves"]["most"]
    )
    if not chosen:
        st.info("Pick at least one dimension to see its wave.")
        return
    base = session.state.base
    frequencies = _angles(session.state)[1]
    lengths = "2π"
    if len(frequencies) > 1:
        lengths = f"from 2π to 2π · {base:.12g}^({width - 2}/{width}), about {_longest(session.state):,.0f}"
    left, right = side_by_side("waves", 2)
    with left:
        chart(figures.encoding_waves(table, chosen, frequencies, theme=session.theme), "positions_waves")
        st.caption("Each line is one column of the table.")
    with right:
        pair = min(session.state.dimension, width - 1) // 2
        figure = figures.frequency_spectrum(frequencies, base, length=len(table), selected=pair, theme=session.theme)
        chart(figure, "positions_spectrum")
        st.caption(f"Wavelength in positions, on a logarithmic axis: {lengths}.")
    columns = {f"dimension {d}": table[:, d] for d in chosen}
    offer_data(lambda: pd.DataFrame({"position": range(len(table)), **columns}), "The waves' numbers", "waves.csv")


def similarity(session: Session) -> None:
    """How alike two positions' rows are."""
    table = _table(session.state)
    cosines = figures.cosine_similarities(table)
    left, right = side_by_side("similarity", 2)
    with left:
        matrix(
            cosines,
            key="positions_similarity",
            name="Similarity of positions",
            across="position",
            down="position",
            unit="cosine",
            square=True,
        )
        st.caption("The stripes are parallel to the diagonal: similarity depends on the distance alone.")
    with right:
        chart(figures.similarity_by_distance(cosines[0], theme=session.theme), "positions_distance")
        st.caption("So this curve is the same from every position: the first row of the picture.")
    summary = {"distance": range(len(table)), "cosine": cosines[0]}
    offer_data(lambda: pd.DataFrame(summary), "Similarity by distance, as a table", "similarity-by-distance.csv")


def rotation(session: Session) -> None:
    """A step of k positions turns every pair by the same angle, wherever it starts."""
    current = session.state
    position, pair = min(current.position, current.length - 1), min(current.dimension, current.width - 1) // 2
    left, right = side_by_side("rotation", 2)
    with left:
        shift = widgets.slider("Step k", 0, max(current.length - 1, 1), "shift")
        frequency = float(_angles(current)[1, pair])
        turn = frequency * shift
        st.markdown(
            f"Sine and cosine of pair {pair} (dimensions {2 * pair} and {2 * pair + 1}) are a point on a circle. One "
            f"position turns it by {_radians(f'{frequency:.6g}')}. From position {position} to "
            f"{position + shift} it turns by {shift} × {frequency:.6g} "
            f"= **{_radians(f'{turn:.5g}')}** ({math.degrees(turn) % 360:.1f}°), as from any other position: one fixed "
            "matrix looks k positions back. Rotary positions turn queries and keys in the same way."
        )
    with right:
        figure = figures.rotation_figure(
            frequency, position, shift, pair=pair, theme=session.theme, length=min(current.length, 64)
        )
        chart(figure, "positions_rotation")


def _radians(number: str) -> str:
    return f"{number} radian{'' if number == '1' else 's'}"


def _angles(current: PageState) -> np.ndarray:
    """The angle in radians of each position and pair, (position, d_model/2); row 1 is each pair's frequency."""
    return position_angles(current.length, current.width, current.base).numpy()


def _longest(current: PageState) -> float:
    """How many positions the slowest wave takes to come round."""
    return 2 * math.pi / float(_angles(current)[1, -1])
