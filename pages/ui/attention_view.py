"""The parts of the page Attention: which head, its weights, the steps they come from, and one cell by hand.

Dimensions: layer, head, query, key, d_head.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from pages.ui import engine, figures
from pages.ui.components.head_grid import head_grid
from pages.ui.data import matrix_table, offer_data
from pages.ui.sidebar import Session
from pages.ui.state import tied, visitor
from transformer import ScoreArithmetic

SHOWN = 48
"""Rows and columns of a heatmap at first; more can be asked for."""
SCOPES = {"prompt": "The prompt", "all": "The prompt and what was written"}


@dataclass(frozen=True)
class Shown:
    """What the page is about: a stretch of text, one head, and one cell (row, column) within the stretch."""

    tokens: tuple[int, ...]
    """What the model reads: the last tokens, as many as its context holds."""
    first: int
    """The first of them that is drawn."""
    offset: int
    """Its place in the whole text."""
    labels: list[str]
    layer: int
    head: int
    steps: engine.Steps
    cell: tuple[int, int]

    def cut(self, matrix: np.ndarray) -> np.ndarray:
        """The drawn part of a matrix (query, key)."""
        return matrix[self.first :, self.first :]


def choose(session: Session) -> Shown:
    """The dials of the page, and what they choose."""
    config, current = session.config, session.visitor
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.selectbox("Layer", range(config.n_layers), **tied("layer"), width=110)
        st.selectbox("Head", range(config.n_heads), **tied("head"), width=110)
        st.segmented_control("Text", list(SCOPES), **tied("scope"), format_func=SCOPES.get, required=True,
                             disabled=not session.writer.written)  # fmt: skip
        text = session.writer.tokens if current.scope == "all" else session.writer.prompt
        tokens = engine.window(session.name, text)
        first = _first_drawn(len(tokens))
    offset = len(text) - len(tokens) + first
    labels = engine.tokenizer(session.name).labels(tokens[first:])
    steps = engine.steps(session.name, tokens, current.layer)
    st.session_state["attention_offset"] = offset  # a click reports its cell, not its place in the text
    cell = _cell(steps.pattern[current.head][first:, first:], offset)
    return Shown(tokens, first, offset, labels, current.layer, current.head, steps, cell)


def heads(session: Session, shown: Shown) -> None:
    """All heads of the layer, or of the model, to pick one from."""
    everything = st.toggle("All layers", key="all_layers", help="Off: the heads of this layer alone.")
    patterns = engine.patterns(session.name, shown.tokens)[:, :, shown.first :, shown.first :]
    layers = list(range(session.config.n_layers)) if everything else [shown.layer]
    head_grid(
        key="head_grid",
        patterns=patterns[layers],
        layers=layers,
        selected=(shown.layer, shown.head),
        hidden=~shown.cut(shown.steps.mask),
        on_select=_select_head,
    )
    st.caption("Each square is one head's weights: dark is 0, yellow is 1, grey is hidden by the mask. "
               "Pick one to see it large.")  # fmt: skip


def weights(session: Session, shown: Shown) -> None:
    """The softmax weights of the chosen head, beside the scores they come from."""
    left, right = st.columns(2)
    pattern, mask = shown.cut(shown.steps.pattern[shown.head]), shown.cut(shown.steps.mask)
    with left:
        st.subheader("Attention weights", anchor=False)
        figure = figures.attention_heatmap(pattern, shown.labels, shown.labels, mask=mask, **_options(session, shown))
        _clickable(figure, "weights")
        st.caption(_in_words(shown, pattern))
    with right:
        st.subheader("Masked scores", anchor=False)
        scores = shown.cut(shown.steps.scores[shown.head])
        figure = figures.scores_heatmap(scores, shown.labels, shown.labels, **_options(session, shown))
        _clickable(figure, "scores")
        st.caption("The scores that softmax turns into weights, row by row. Hidden keys are −∞, so their weight is 0.")


def by_hand(session: Session, shown: Shown) -> None:
    """One weight, from the query and the key to the number in the heatmap."""
    row, column = shown.cell
    query, key = row + shown.first, column + shown.first
    with st.container(border=True):
        st.subheader("By hand", anchor=False)
        with st.container(horizontal=True):
            places = {shown.offset + i: label for i, label in enumerate(shown.labels)}
            _cell_dial("Query (row)", "query", places, shown.offset + row)
            _cell_dial("Key (column)", "key", places, shown.offset + column)
        found = engine.arithmetic(shown.steps, shown.head, query, key)
        st.markdown(_arithmetic(found, session.config.d_head, shown, row, column))
        with st.expander("Every product of the query and the key"):
            st.dataframe(_products(shown, query, key), hide_index=True, height=280)


def steps_before(session: Session, shown: Shown) -> None:
    """The mask, and the scores before and after scaling."""
    left, right = st.columns(2)
    options = _options(session, shown)
    with left:
        st.subheader("Causal mask", anchor=False)
        mask = shown.cut(shown.steps.mask)
        _plain(figures.mask_heatmap(mask, shown.labels, shown.labels, **options), "mask")
        st.caption("The same in every head: query i sees key j only if j is not after i. Without it a model in "
                   "training could read the answer off the next token.")  # fmt: skip
    with right:
        st.subheader("Scores before the mask", anchor=False)
        which = st.segmented_control("Scores", ["q · k", "q · k ÷ √d_head"], default="q · k ÷ √d_head",
                                     key="score_stage", required=True, label_visibility="collapsed")  # fmt: skip
        scores = shown.steps.raw if which == "q · k" else shown.steps.scaled
        figure = figures.scores_heatmap(shown.cut(scores[shown.head]), shown.labels, shown.labels, **options)
        _plain(figure, "before")
        st.caption(f"How well each query fits each key, the future included. Dividing by √d_head = "
                   f"√{session.config.d_head} keeps the spread from growing with the width of the head.")  # fmt: skip


def table(session: Session, shown: Shown) -> None:
    """All five matrices as one table."""
    steps, head = shown.steps, shown.head
    columns = {
        "q·k": steps.raw[head],
        "q·k/√d_head": steps.scaled[head],
        "visible": steps.mask,
        "masked score": steps.scores[head],
        "weight": steps.pattern[head],
    }
    cells = {name: shown.cut(matrix) for name, matrix in columns.items()}
    offer_data(
        matrix_table(cells, shown.labels, shown.labels, shown.offset),
        "These heatmaps as a table",
        f"{session.name}-layer{shown.layer}-head{head}.csv",
    )


def _first_drawn(tokens: int) -> int:
    """Where the drawn stretch begins: the last SHOWN tokens, or as many as the visitor asks for."""
    if tokens <= SHOWN:
        return 0
    drawn = st.slider("Tokens shown, from the end", 8, tokens, SHOWN, key="tokens_shown", width=240)
    return tokens - drawn


def _cell(pattern: np.ndarray, offset: int) -> tuple[int, int]:
    """The chosen cell as (row, column); without a choice, the last query and the key it weighs most."""
    current = visitor()
    size = len(pattern)
    row = size - 1 if current.query is None else current.query - offset
    if not 0 <= row < size:
        current.query, row = None, size - 1
    column = int(pattern[row].argmax()) if current.key is None else current.key - offset
    if not 0 <= column < size:
        current.key, column = None, int(pattern[row].argmax())
    return row, column


def _options(session: Session, shown: Shown) -> figures.Options:
    return {
        "theme": session.theme,
        "selected": shown.cell,
        "query_offset": shown.offset,
        "key_offset": shown.offset,
    }


def _clickable(figure: go.Figure, name: str) -> None:
    key = f"clicked_{name}"
    st.plotly_chart(figure, key=key, theme=None, width="stretch", selection_mode="points",
                    on_select=lambda: _select_cell(key), config={"displaylogo": False})  # fmt: skip


def _plain(figure: go.Figure, name: str) -> None:
    st.plotly_chart(figure, key=f"plain_{name}", theme=None, width="stretch", config={"displaylogo": False})


def _select_head(layer: int, head: int) -> None:
    current = visitor()
    current.layer, current.head = layer, head


def _select_cell(key: str) -> None:
    points = st.session_state[key].selection.points
    if points and (place := points[0].get("customdata")):
        current = visitor()
        offset = st.session_state["attention_offset"]
        current.query, current.key = int(place[0]) + offset, int(place[1]) + offset


def _cell_dial(label: str, name: str, places: dict[int, str], shown: int) -> None:
    """A picker of one place in the text, which follows the cell on screen until the visitor chooses."""
    key = f"cell_{name}"
    if st.session_state.get(key) != shown:
        st.session_state[key] = shown
    st.selectbox(label, list(places), key=key, format_func=lambda place: f"{place}: {places[place]}", width=160,
                 on_change=lambda: setattr(visitor(), name, st.session_state[key]))  # fmt: skip


def _in_words(shown: Shown, pattern: np.ndarray) -> str:
    row = shown.cell[0]
    heaviest = int(pattern[row].argmax())
    return (
        f"Layer {shown.layer}, head {shown.head}. Row {shown.offset + row}, {_code(shown.labels[row])}, looks most "
        f"at {_code(shown.labels[heaviest])} at place {shown.offset + heaviest}, with weight "
        f"{pattern[row, heaviest]:.3f}. "
        "Click a cell to see its arithmetic below."
    )


def _code(label: str) -> str:
    return f"`` {label} ``" if "`" in label else f"`{label}`"


def _arithmetic(found: ScoreArithmetic, d_head: int, shown: Shown, row: int, column: int) -> str:
    query, key = _code(shown.labels[row]), _code(shown.labels[column])
    lines = [
        f"The query of {query} at place {shown.offset + row} meets the key of {key} at place {shown.offset + column}:",
        "",
        f"1. **q · k** = the sum of {d_head} products = **{found.raw:.5f}**",
        f"2. **÷ √d_head** = {found.raw:.5f} ÷ √{d_head} = {found.raw:.5f} ÷ {math.sqrt(d_head):.5f} "
        f"= **{found.scaled:.5f}**",
    ]
    if not found.visible:
        return "\n".join([*lines, "3. **mask**: the key comes after the query, so its score becomes **−∞**",
                          "4. **softmax**: exp(−∞) = 0, so the weight is **0**"])  # fmt: skip
    return "\n".join(
        [
            *lines,
            "3. **mask**: the key is not after the query, so the score stays",
            f"4. **exp**(score − the row's largest) = exp({found.scaled:.5f} − {found.row_maximum:.5f}) "
            f"= **{found.exponential:.5f}**",
            f"5. **÷ the row's sum** of such exponentials = {found.exponential:.5f} ÷ {found.row_sum:.5f} "
            f"= **{found.weight:.5f}**, the weight in the heatmap",
        ]
    )


def _products(shown: Shown, query: int, key: int) -> dict[str, np.ndarray]:
    q, k = shown.steps.queries[query, shown.head], shown.steps.keys[key, shown.head]
    return {"dimension": np.arange(len(q)), "query": q, "key": k, "query × key": q * k}
