"""Draws the parts of the page Positions about the sinusoidal table and the model's own positions.

Dimensions: position (row of a table), dimension (column).
"""

import math

import numpy as np
import pandas as pd
import streamlit as st

from pages.ui.components.matrix import matrix
from pages.ui.computations import activations
from pages.ui.figures import positions as figures
from pages.ui.frame import widgets
from pages.ui.frame.page import Session
from pages.ui.frame.state import visitor
from pages.ui.frame.visitor_choices import Visitor
from pages.ui.frame.widgets import Binding
from pages.ui.host.page_state import PARAMETERS
from pages.ui.markdown import counted
from pages.ui.tables import offer_data
from pages.ui.views.charts import chart
from pages.ui.views.side_by_side import side_by_side
from transformer import ModelConfig, attention_modules, sinusoidal_encoding
from transformer.model.positions import alibi, position_angles

HARDLY = 0.1
"""Radians that a wave turns by from the first position to the last, and less, that can hardly be seen."""


def sinusoidal(session: Session) -> np.ndarray:
    """The table's dials and its heatmap; returns the table, (position, dimension)."""
    current = session.visitor
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="table_heading"):
        st.header("Sinusoidal table", anchor=False, width="content")
        words = st.empty()
    picture = st.container()
    left, middle, right = st.columns(3)
    with left:
        widgets.slider("Length: positions", 2, 512, "length")
    with middle:
        widgets.slider("Width: d_model", 2, 512, "width", step=2)
    with right:
        why = "10000 in the paper. A smaller base makes the slow waves faster."
        widgets.number_input("Base", 2.0, 1e6, "base", step=100.0, format="%g", help=why)
    # A shorter or narrower table takes the chosen cell along.
    current.position = min(current.position, current.length - 1)
    current.dimension = min(current.dimension, current.width - 1)
    current.shift = min(current.shift, max(current.length - 1, 1))
    table = sinusoidal_encoding(current.length, current.width, current.base).numpy()
    words.caption(f"The paper's model adds this table to its embeddings. {_how_fast(current)}")
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


def offer_table(table: np.ndarray) -> None:
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
    chosen = widgets.multiselect(
        "Dimensions", range(width), Binding("waves", default=telling), most=PARAMETERS["waves"]["most"]
    )
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
        chart(figures.encoding_waves(table, chosen, frequencies, theme=session.theme), "positions_waves")
        st.caption("Each line is one column of the table.")
    with right:
        pair = session.visitor.dimension // 2
        figure = figures.frequency_spectrum(frequencies, base, length=len(table), selected=pair, theme=session.theme)
        chart(figure, "positions_spectrum")
        st.caption(f"Wavelength in positions, on a logarithmic axis: {lengths}.")
    columns = {f"dimension {d}": table[:, d] for d in chosen}
    offer_data(lambda: pd.DataFrame({"position": range(len(table)), **columns}), "The waves' numbers", "waves.csv")


def similarity(session: Session, table: np.ndarray) -> None:
    """How alike two positions' rows are."""
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
        chart(figure, "positions_rotation")


def of_the_model(session: Session) -> None:
    """What the selected model itself uses; if that is a table, the same heatmap of it."""
    config = session.config
    is_blind = config.positions == "none" and not attention_modules(config)
    dims = config.rotated_dims
    size = {"context": counted(config.context_length, "position"), "width": counted(config.d_model, "dimension")}
    words = _WHAT_IT_USES[config.positions].format(
        **size,
        base=config.rotary_base,
        order="Only its causal mask tells it the order" if config.is_causal else "Nothing tells it the order",
        dims=dims,
        turned=dims if dims == config.d_head else f"the first {dims} of {config.d_head}",
    )
    st.markdown(_BLIND if is_blind else " ".join([words, *_of_scaled_rotation(config)]))
    if config.positions == "alibi":
        _costs(session)
        return
    table, name = activations.position_table(session.name), "The model's own table"
    caption = f"{name}: {size['context']} × {size['width']}."
    if table is None and config.positions == "rotary":
        table = sinusoidal_encoding(config.context_length, dims, config.rotary_base, config.rotary_factors).numpy()
        name = "Sines and cosines of rotary positions"
        caption = "The angles' sines, in even dimensions, and cosines, in odd ones. The same in every layer and head"
        caption += " that rotates." if config.unrotated_layers else "."
    if table is not None:
        matrix(table, key="positions_model", name=name, across="dimension", down="position", unit="value")
        st.caption(caption)
        offer_data(lambda: _wide(table), f"{name}, as numbers", f"{session.file_name}-positions.csv")


def _of_scaled_rotation(config: ModelConfig) -> list[str]:
    """What a model does otherwise than the formula has it, a sentence each."""
    found = []
    if factors := config.rotary_factors:
        range_of = f"{min(factors):.4g} to {max(factors):.4g}" if min(factors) < max(factors) else f"{factors[0]:.4g}"
        found.append(f"To reach further, its pairs turn {range_of} times slower than that.")
    if config.rotary_scale != 1:
        found.append(f"Rotated queries and keys are multiplied by {config.rotary_scale:.4g}.")
    if config.window_rotary_base is not None:
        found.append(f"Layers that see a window only have the base {config.window_rotary_base:.12g}, unscaled.")
    if unrotated := [str(layer) for layer in config.unrotated_layers if layer < config.n_layers]:
        many = len(unrotated) > 1
        layers = f"s {', '.join(unrotated[:-1])} and {unrotated[-1]} rotate" if many else f" {unrotated[0]} rotates"
        order = f": only the causal mask tells {'them' if many else 'it'} the order" if config.is_causal else ""
        found.append(f"Layer{layers} nothing{order}.")
    return found


def _costs(session: Session) -> None:
    """What ALiBi takes from a score, by head and distance."""
    config = session.config
    costs = alibi(config, 1, config.context_length)[:, 0].flip(-1).numpy()  # of the last query, the nearest key first
    matrix(costs, key="positions_model", name="What distance costs", across="distance", down="head", unit="score")
    st.caption(
        "A row for each head: what is added to its score of a key so many positions away. The same in every layer."
    )
    columns = {"distance": range(config.context_length), **{f"head {head}": row for head, row in enumerate(costs)}}
    offer_data(lambda: pd.DataFrame(columns), "What distance costs, as numbers", f"{session.file_name}-positions.csv")


_WHAT_IT_USES = {
    "sinusoidal": "It adds the paper's fixed table to its embeddings: {context}, {width}.",
    "learned": "It adds a learned table, {context} × {width}, in place of sines.",
    "rotary": (
        "It adds no table. It turns each pair of dimensions of its queries and keys, {turned} dimensions a head, by "
        "its position's angle (Su et al. 2021): pair i of position p by p ÷ {base:.12g}^(2i ÷ {dims}) radians. Of "
        "their positions, the dot product of a query and a key then sees the distance alone."
    ),
    "alibi": (
        "It adds no table and rotates nothing. Each head takes from a score in proportion to how far away the key is: "
        "ALiBi, attention with linear biases (Press et al. 2022). A head with a steep slope looks nearby, one with a "
        "gentle slope far back."
    ),
    "relative": (
        "It adds no table and rotates nothing. To each score it adds a number that was learned for the head and the "
        "key's distance (Raffel et al. 2020); large distances that hardly differ share one."
    ),
    "none": "It has no positions. {order}.",
}
_BLIND = "It has no positions and needs none: without attention it reads one token alone."


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


def _wide(table: np.ndarray) -> pd.DataFrame:
    """A table (position, dimension) as a frame with a column for each dimension."""
    frame = pd.DataFrame(table, columns=[f"dimension {i}" for i in range(table.shape[1])])
    frame.insert(0, "position", range(len(table)))
    return frame
