"""Draws the parts of the page Positions about the sinusoidal table and the model's own positions.

Dimensions: position (row of a table), dimension (column).
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from pages.ui.components.matrix import matrix
from pages.ui.figures import positions as figures
from pages.ui.frame import widgets
from pages.ui.frame.page import Session
from pages.ui.frame.state import visitor
from pages.ui.frame.url_parameters import MAX_WAVES
from pages.ui.frame.visitor_choices import Visitor
from pages.ui.frame.widgets import Binding
from pages.ui.markdown import counted, plain
from pages.ui.models import activations, library
from pages.ui.tables import offer_data
from pages.ui.views.charts import chart
from pages.ui.views.side_by_side import side_by_side
from transformer import attention_modules, sinusoidal_encoding
from transformer.model.positions import position_angles

HARDLY = 0.1
"""Radians that a wave turns by from the first position to the last, and less, that can hardly be seen."""


def sinusoidal(session: Session) -> np.ndarray:
    """The table's dials and its heatmap; returns the table, (position, dimension)."""
    current = session.visitor
    with st.container(horizontal=True, vertical_alignment="center"):
        st.header("Sinusoidal table", anchor=False, width="content")
        words = st.container()
    picture = st.container()
    left, middle, right = st.columns(3)
    with left:
        widgets.slider("Length: positions", 2, 512, "length")
    with middle:
        widgets.slider("Width: d_model", 2, 512, "width", step=2)
    with right:
        widgets.number_input(
            "Base",
            2.0,
            1e6,
            "base",
            step=100.0,
            format="%g",
            help="10000 in the paper. A smaller base makes the slow waves faster.",
        )
    _keep_cell_inside()
    table = sinusoidal_encoding(current.length, current.width, current.base).numpy()
    words.caption(f"{_whose(session)} {_how_fast(current)}")
    with picture:
        matrix(
            table,
            key="positions_table",
            name="Sinusoidal table",
            across="dimension",
            down="position",
            unit="value",
            selected=(current.position, current.dimension),
            on_choose=_choose,
        )
    return table


def _whose(session: Session) -> str:
    """Whether the selected model uses such a table."""
    title, config = plain(library.model(session.name).card.title, 100), session.config
    if config.positions == "sinusoidal":
        return f"**{title}** adds this table to its embeddings: {config.context_length} × {config.d_model}."
    kind = config.positions.replace("none", "no")
    return f"**{title}** uses {kind} positions; the paper's model adds this table to its embeddings."


def offer_table(table: np.ndarray) -> None:
    """The table as numbers."""
    offer_data(lambda: _wide(table), "The table's numbers", "sinusoidal-encoding.csv")


def _choose(cell: tuple[int, int]) -> None:
    visitor().position, visitor().dimension = cell


def formula(session: Session, table: np.ndarray) -> None:
    """The paper's formula with one cell's numbers filled in."""
    current = session.visitor
    left, right = st.columns(2)
    with left:
        widgets.number_input("Position", 0, current.length - 1, "position")
    with right:
        widgets.number_input("Dimension", 0, current.width - 1, "dimension")
    st.latex(_formula(current, table))
    st.caption("Vaswani et al. 2017, §3.5: even dimensions 2i are sines, odd ones 2i+1 cosines of the same angle.")


def waves(session: Session, table: np.ndarray) -> None:
    """The columns of the table as waves."""
    width = table.shape[1]
    telling = tuple(sorted({d for d in (0, 1, width // 8 * 2, width // 4 * 2, width // 2) if d < width}))
    chosen = widgets.multiselect("Dimensions", range(width), Binding("waves", default=telling), most=MAX_WAVES)
    if not chosen:
        st.info("Pick at least one dimension to see its wave.")
        return
    base = session.visitor.base
    frequencies = _angles(session.visitor)[1]
    lengths = "2π"
    if len(frequencies) > 1:
        lengths = f"from 2π to 2π · {base:.12g}^({width - 2}/{width}), about {_longest(session.visitor):,.0f}"
    left, right = side_by_side("waves", 2)
    with left:
        _chart(figures.encoding_waves(table, chosen, frequencies, theme=session.theme), "waves")
        st.caption("Each line is one column of the table.")
    with right:
        pair = session.visitor.dimension // 2
        figure = figures.frequency_spectrum(frequencies, base, length=len(table), selected=pair, theme=session.theme)
        _chart(figure, "spectrum")
        st.caption(f"Wavelength in positions, on a logarithmic axis: {lengths}.")
    columns = {f"dimension {d}": table[:, d] for d in chosen}
    offer_data(lambda: pd.DataFrame({"position": range(len(table)), **columns}), "The waves' numbers", "waves.csv")


def similarity(session: Session, table: np.ndarray) -> None:
    """How alike two positions' rows are."""
    products = figures.dot_products(table)
    distances = figures.pair_distances(len(table))
    left, right = side_by_side("similarity", 2)
    with left:
        matrix(
            figures.cosine_similarities(table),
            key="positions_similarity",
            name="Similarity of positions",
            across="position",
            down="position",
            unit="cosine",
            square=True,
        )
        st.caption(
            "Cosine of every position with every other. The stripes are parallel to the diagonal: only distance counts."
        )
    with right:
        _chart(figures.similarity_by_distance(distances, products, theme=session.theme), "distance")
        st.caption(
            "Dot product by distance, with a band from the least to the greatest of all pairs. It has no width here."
        )
    distance, mean, least, greatest = figures.summarise_by_distance(distances, products)
    summary = {"distance": distance, "mean": mean, "least": least, "greatest": greatest}
    offer_data(lambda: pd.DataFrame(summary), "Similarity by distance, as a table", "similarity-by-distance.csv")


def rotation(session: Session) -> None:
    """A step of k positions turns every pair by the same angle, wherever it starts."""
    current = session.visitor
    left, right = side_by_side("rotation", 2)
    with left:
        pair = current.dimension // 2
        widgets.slider("Step k", 0, max(current.length - 1, 1), "shift")
        frequency = float(_angles(current)[1, pair])
        turn = frequency * current.shift
        st.markdown(
            f"Sine and cosine of pair {pair} (dimensions {2 * pair} and {2 * pair + 1}) are a point on a circle. One "
            f"position turns it by {_radians(f'{frequency:.6g}')}. From position {current.position} to "
            f"{current.position + current.shift} it turns by {current.shift} × {frequency:.6g} "
            f"= **{_radians(f'{turn:.5g}')}** ({math.degrees(turn) % 360:.1f}°), as from any other position: one fixed "
            "matrix looks k positions back. Rotary positions turn queries and keys in the same way."
        )
    with right:
        figure = figures.rotation_figure(
            frequency, current.position, current.shift, pair=pair, theme=session.theme, length=min(current.length, 64)
        )
        _chart(figure, "rotation")


def of_the_model(session: Session) -> None:
    """What the selected model itself uses; if that is a table, the same heatmap of it."""
    config = session.config
    is_blind = config.positions == "none" and not attention_modules(config)
    dims = config.turned_dims
    size = {"context": counted(config.context_length, "position"), "width": counted(config.d_model, "dimension")}
    st.markdown(
        _BLIND
        if is_blind
        else _WHAT_IT_USES[config.positions].format(
            **size,
            base=config.rotary_base,
            dims=dims,
            turned=dims if dims == config.d_head else f"the first {dims} of {config.d_head}",
        )
    )
    table = activations.position_table(session.name)
    if table is not None:
        matrix(
            table,
            key="positions_model",
            name="The model's own table",
            across="dimension",
            down="position",
            unit="value",
        )
        st.caption(f"The model's own table: {size['context']} × {size['width']}.")
        offer_data(lambda: _wide(table), "The model's table, as numbers", f"{session.file_name}-positions.csv")
    elif config.positions == "rotary":
        _rotary(session)


_WHAT_IT_USES = {
    "sinusoidal": "It adds the paper's fixed table to its embeddings: {context}, {width}.",
    "learned": "It adds a learned table, {context} × {width}, in place of sines.",
    "rotary": (
        "It adds no table. It turns each pair of dimensions of its queries and keys, {turned} dimensions a head, by "
        "its position's angle (Su et al. 2021): pair i of position p by p ÷ {base:.12g}^(2i ÷ {dims}) radians. The "
        "product of a query and a key then depends on their distance alone. These are the angles' sines and cosines:"
    ),
    "none": "It has no positions. Only its causal mask tells it the order.",
}
_BLIND = "It has no positions and needs none: without attention it reads one token alone."


def _rotary(session: Session) -> None:
    config = session.config
    table = sinusoidal_encoding(config.context_length, config.turned_dims, config.rotary_base).numpy()
    matrix(
        table,
        key="positions_model",
        name="Sines and cosines of rotary positions",
        across="column",
        down="position",
        unit="value",
    )
    st.caption(
        "Even columns: the sine a pair is turned with; odd columns: the cosine. The same in every layer and head."
    )
    offer_data(lambda: _wide(table), "These sines and cosines, as numbers", f"{session.file_name}-rotary.csv")


def _keep_cell_inside() -> None:
    """A shorter or narrower table takes the chosen cell along."""
    current = visitor()
    current.position = min(current.position, current.length - 1)
    current.dimension = min(current.dimension, current.width - 1)
    current.shift = min(current.shift, max(current.length - 1, 1))


def _radians(number: str) -> str:
    return f"{number} radian{'' if number == '1' else 's'}"


def _angles(current: Visitor) -> np.ndarray:
    """The angle in radians of each position and pair, (position, d_model/2); row 1 is each pair's frequency."""
    return position_angles(current.length, current.width, current.base).numpy()


def _longest(current: Visitor) -> float:
    """How many positions the slowest wave takes to come round."""
    return 2 * math.pi / float(_angles(current)[1, -1])


def _how_fast(current: Visitor) -> str:
    """The waves of the table from left to right, in words."""
    if current.width == 2:
        return "Both columns are one fast wave, its sine and its cosine, which tells neighbours apart."
    right = "slow ones on the right, near from far"
    if _angles(current)[-1, -1] >= HARDLY:
        right = (
            f"they slow down to the right, and the last takes about {_longest(current):,.0f} positions to come round"
        )
    return f"Fast waves on the left tell neighbours apart; {right}."


def _formula(current: Visitor, table: np.ndarray) -> str:
    position, dimension, width, base = current.position, current.dimension, current.width, current.base
    even = dimension - dimension % 2
    wave = "cos" if dimension % 2 else "sin"
    angle = _angles(current)[position, dimension // 2]
    return (
        rf"\begin{{aligned}} PE_{{({position},\,{dimension})}} &= \{wave}\left(\frac{{{position}}}"
        rf"{{{base:.12g}^{{{even}/{width}}}}}\right) \\ &= \{wave}({angle:.6g}) \\ &= {table[position, dimension]:.6f}"
        r"\end{aligned}"
    )


def _chart(figure: go.Figure, name: str) -> None:
    chart(figure, f"positions_{name}")


def _wide(table: np.ndarray) -> pd.DataFrame:
    """A table (position, dimension) as a frame with a column for each dimension."""
    frame = pd.DataFrame(table, columns=[f"dimension {i}" for i in range(table.shape[1])])
    frame.insert(0, "position", range(len(table)))
    return frame
