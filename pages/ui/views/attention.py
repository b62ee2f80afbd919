"""The parts of the page Attention: which head, its weights, the steps they come from, and one cell by hand.

Dimensions: layer, head, query, key, d_head.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from pages.ui.components.head_grid import head_grid
from pages.ui.figures import attention as figures
from pages.ui.figures.axes import labelling_note
from pages.ui.markdown import code
from pages.ui.models import activations, library, places
from pages.ui.shell import widgets
from pages.ui.shell.sidebar import Session
from pages.ui.shell.state import visitor
from pages.ui.shell.widgets import Tie
from pages.ui.tables import matrix_table, offer_data
from pages.ui.views.side_by_side import side_by_side
from transformer import ScoreArithmetic

SHORTEST = 48
"""Rows and columns of a heatmap that are always drawn; of a longer text, as many as are asked for."""
STAGES = {"raw": "q · k", "scaled": "q · k ÷ √d_head"}
SCOPES = {"prompt": "The prompt", "all": "The prompt and what was written"}
KINDS = {
    "encoder": "Encoder: the source looks at itself",
    "decoder": "Decoder: the text looks back at itself",
    "cross": "Cross: the text looks at the source",
}
"""The attentions of an encoder–decoder."""
MASKS = {
    "causal": ("Causal mask", "The same in every head: query i sees key j only if j is not after i. Without it a model "
                              "in training could read the answer off the next token."),
    "encoder": ("No mask", "The whole source is there from the start, so every token may see every other. Only "
                           "padding would be hidden, and one text has none."),
    "cross": ("No mask", "The whole source is there before the first word is written, so every query may see all of "
                         "it. Only padding would be hidden, and one source has none."),
}  # fmt: skip
"""What each mask is called, and why it is as it is."""
STAYS = {
    "causal": "the key is not after the query",
    "encoder": "an encoder hides nothing",
    "cross": "nothing of the source is hidden",
}


@dataclass(frozen=True)
class Stretch:
    """Tokens that the model reads, and which of them are drawn."""

    tokens: tuple[int, ...]
    first: int
    """The first of them that is drawn."""
    offset: int
    """Its place in the whole text."""
    labels: list[str]
    """Of those that are drawn."""


@dataclass(frozen=True)
class Shown:
    """What the page is about: one head of one attention, its queries and keys, and a cell (row, column) as drawn."""

    kind: str
    """As in `attention_modules`."""
    rows: Stretch
    columns: Stretch
    layer: int
    head: int
    steps: activations.Steps
    cell: tuple[int, int]

    def cut(self, matrix: np.ndarray) -> np.ndarray:
        """The drawn part of a matrix (…, query, key)."""
        return matrix[..., self.rows.first :, self.columns.first :]

    @property
    def file_name(self) -> str:
        """What a file with these numbers is called, without model and ending."""
        return f"{'' if self.kind == 'self' else self.kind + '-'}layer{self.layer}-head{self.head}"


def choose(session: Session, kind: str) -> Shown:
    """The dials of the page, and what they choose. kind: as in `attention_modules`."""
    config, current = session.config, session.visitor
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if kind != "self":
            kinds = [other for other in KINDS if other in places.attentions(config)]
            if current.attention not in kinds:
                current.attention = kind
            widgets.selectbox("Attention", kinds, Tie("attention", after=_forget_cell), KINDS.get, width=300)
        widgets.selectbox("Layer", range(places.depth(config, kind)), "layer", width=110)
        widgets.selectbox("Head", range(config.n_heads), "head", width=110)
        if kind == "self":
            widgets.segmented_control("Text", SCOPES, "scope", SCOPES.get, disabled=not session.writer.written)
        text = _text(session)
        if kind == "encoder":
            rows = columns = _stretch(session, session.source, "Tokens shown, from the end", "source_shown")
        else:
            rows = columns = _stretch(session, text, "Tokens shown, from the end", "shown")
        if kind == "cross":
            columns = _stretch(session, session.source, "Of the source, from the end", "source_shown")
    read = text if kind == "encoder" else rows.tokens
    steps = activations.steps(session.name, read, current.layer, session.source, kind)
    cell = _cell(steps.pattern[current.head][rows.first :, columns.first :], rows.offset, columns.offset)
    return Shown(kind, rows, columns, current.layer, current.head, steps, cell)


def explain(session: Session, shown: Shown) -> None:
    """For an encoder–decoder: what looks at what, and where the text comes from."""
    if shown.kind == "self":
        return
    written = library.tokenizer(session.name).decode(_text(session)[1:])
    words = {
        "encoder": "Every token of the source sees every other, in both directions: there is no causal mask.",
        "decoder": "Each row is a token the decoder has written, the start token first; it sees itself and what came "
                   "before it.",
        "cross": "Each row is a token the decoder has written, the start token first; each column is a token of the "
                 "source. A row shows where in the source the decoder looked to choose the *next* token.",
    }  # fmt: skip
    whose = "" if session.writer.written else " Nothing is written yet, so this is what the model would write."
    st.caption(f"{words[shown.kind]} The text: {code(written)}.{whose}")


def heads(session: Session, shown: Shown) -> None:
    """All heads of the layer, or of the model, to pick one from."""
    everything = widgets.toggle("All layers", "all_layers", help="Off: the heads of this layer alone.")
    read = _text(session) if shown.kind == "encoder" else shown.rows.tokens
    patterns = shown.cut(activations.patterns(session.name, read, session.source, shown.kind))
    layers = list(range(len(patterns))) if everything else [shown.layer]
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
    left, right = side_by_side("weights", 2)
    pattern, mask = shown.cut(shown.steps.pattern[shown.head]), shown.cut(shown.steps.mask)
    labels, options = (shown.rows.labels, shown.columns.labels), _options(session, shown)
    with left:
        st.header("Attention weights", anchor=False)
        figure = figures.attention_heatmap(pattern, *labels, mask=mask, **options)
        _clickable(figure, "weights", shown)
        st.caption(f"{_in_words(shown, pattern)} {labelling_note(figure)}")
    with right:
        if shown.steps.scores is None:
            st.header("No scores", anchor=False)
            st.info("This attention is uniform: it has no queries and keys to choose with. Every visible token gets "
                    "the same weight, one divided by how many there are.")  # fmt: skip
            return
        st.header("Masked scores", anchor=False)
        scores = shown.cut(shown.steps.scores.masked[shown.head])
        figure = figures.scores_heatmap(scores, *labels, **options)
        _clickable(figure, "scores", shown)
        st.caption("The scores that softmax turns into weights, row by row. Hidden keys are −∞, so their weight is 0. "
                   f"{labelling_note(figure)}")  # fmt: skip


def by_hand(session: Session, shown: Shown) -> None:
    """One weight, from the query and the key to the number in the heatmap."""
    if shown.steps.scores is None:
        return
    row, column = shown.cell
    query, key = row + shown.rows.first, column + shown.columns.first
    with st.container(border=True):
        st.header("By hand", anchor=False)
        with st.container(horizontal=True):
            _cell_dial("Query (row)", "query", shown.rows, row)
            _cell_dial("Key (column)", "key", shown.columns, column)
        found = activations.arithmetic(shown.steps, shown.head, query, key)
        st.markdown(_arithmetic(found, session.config.d_head, shown, row, column))
        with st.expander("Every product of the query and the key"):
            st.dataframe(_products(shown, query, key), hide_index=True, height=280)


def steps_before(session: Session, shown: Shown) -> None:
    """The mask, and the scores before and after scaling."""
    left, right = side_by_side("before", 2)
    labels, options = (shown.rows.labels, shown.columns.labels), _options(session, shown)
    title, why = MASKS["causal" if shown.kind in ("self", "decoder") else shown.kind]
    with left:
        st.header(title, anchor=False)
        figure = figures.mask_heatmap(shown.cut(shown.steps.mask), *labels, **options)
        _plain(figure, "mask")
        st.caption(f"{why} {labelling_note(figure)}")
    if shown.steps.scores is None:
        return
    with right:
        st.header("Scores before the mask", anchor=False)
        which = widgets.segmented_control("Scores", STAGES, "stage", STAGES.get, label_visibility="collapsed")
        scores = shown.steps.scores.raw if which == "raw" else shown.steps.scores.scaled
        figure = figures.scores_heatmap(shown.cut(scores[shown.head]), *labels, **options)
        _plain(figure, "before")
        st.caption(f"How well each query fits each key, hidden ones included. Dividing by √d_head = "
                   f"√{session.config.d_head} keeps the spread from growing with the width of the head. "
                   f"{labelling_note(figure)}")  # fmt: skip


def table(session: Session, shown: Shown) -> None:
    """All the matrices as one table."""
    steps, head = shown.steps, shown.head
    columns = {"visible": steps.mask, "weight": steps.pattern[head]}
    if steps.scores:
        scores = steps.scores
        columns = {
            "q·k": scores.raw[head],
            "q·k/√d_head": scores.scaled[head],
            "visible": steps.mask,
            "masked score": scores.masked[head],
            "weight": steps.pattern[head],
        }
    cells = {name: shown.cut(matrix) for name, matrix in columns.items()}
    offer_data(
        matrix_table(cells, shown.rows.labels, shown.columns.labels, shown.rows.offset, shown.columns.offset),
        "These heatmaps as a table",
        f"{session.name}-{shown.file_name}.csv",
    )


def _text(session: Session) -> tuple[int, ...]:
    """What the decoder has before it; for an encoder–decoder what was written, or what the model would write."""
    writer, text = session.writer, session.writer.tokens
    if not session.source:
        return text if session.visitor.scope == "all" else writer.prompt
    if not writer.written:
        text += activations.answer(session.name, writer.prompt, session.source)
    text = library.window(session.name, text)
    end = library.model(session.name).card.end_token_id
    return text[:-1] if text[-1] == end else text  # nothing is looked up from the end token


def _stretch(session: Session, text: tuple[int, ...], label: str, field: str) -> Stretch:
    tokens = library.window(session.name, text)
    first = 0
    if len(tokens) > SHORTEST:
        first = len(tokens) - widgets.slider(label, 8, len(tokens), field, width=240)
    labels = library.tokenizer(session.name).labels(tokens[first:])
    return Stretch(tokens, first, len(text) - len(tokens) + first, labels)


def _cell(pattern: np.ndarray, row_offset: int, column_offset: int) -> tuple[int, int]:
    """The chosen cell as (row, column); without a choice, the last query and the key it weighs most."""
    current = visitor()
    rows, columns = pattern.shape
    row = rows - 1 if current.query is None else current.query - row_offset
    if not 0 <= row < rows:
        current.query, row = None, rows - 1
    column = int(pattern[row].argmax()) if current.key is None else current.key - column_offset
    if not 0 <= column < columns:
        current.key, column = None, int(pattern[row].argmax())
    return row, column


def _forget_cell() -> None:
    """Another attention has other queries and keys."""
    visitor().query = visitor().key = None


def _options(session: Session, shown: Shown) -> figures.Options:
    return {
        "theme": session.theme,
        "selected": shown.cell,
        "query_offset": shown.rows.offset,
        "key_offset": shown.columns.offset,
    }


def _clickable(figure: go.Figure, name: str, shown: Shown) -> None:
    def select(row: int, column: int) -> None:
        current = visitor()
        current.query, current.key = shown.rows.offset + row, shown.columns.offset + column

    cells = len(shown.rows.labels), len(shown.columns.labels)
    widgets.clickable_chart(figure, f"clicked_{name}", cells, select, theme=None, width="stretch",
                            config={"displaylogo": False})  # fmt: skip


def _plain(figure: go.Figure, name: str) -> None:
    st.plotly_chart(figure, key=f"plain_{name}", theme=None, width="stretch", config={"displaylogo": False})


def _select_head(layer: int, head: int) -> None:
    current = visitor()
    current.layer, current.head = layer, head


def _cell_dial(label: str, name: str, stretch: Stretch, at: int) -> None:
    """A picker of one place in the text, which follows the cell on screen until the visitor chooses."""
    labels = dict(enumerate(stretch.labels, start=stretch.offset))
    widgets.selectbox(label, labels, Tie(name, value=stretch.offset + at), lambda place: f"{place}: {labels[place]}",
                      width=160)  # fmt: skip


def _in_words(shown: Shown, pattern: np.ndarray) -> str:
    row, rows, columns = shown.cell[0], shown.rows, shown.columns
    heaviest = int(pattern[row].argmax())
    return (
        f"Layer {shown.layer}, head {shown.head}. Row {rows.offset + row}, {code(rows.labels[row])}, looks most "
        f"at {code(columns.labels[heaviest])} at place {columns.offset + heaviest}, with weight "
        f"{pattern[row, heaviest]:.3f}. "
        "Click a cell to see its arithmetic below."
    )


def _arithmetic(found: ScoreArithmetic, d_head: int, shown: Shown, row: int, column: int) -> str:
    rows, columns = shown.rows, shown.columns
    query, key = code(rows.labels[row]), code(columns.labels[column])
    lines = [
        f"The query of {query} at place {rows.offset + row} meets the key of {key} at place {columns.offset + column}:",
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
            f"3. **mask**: {STAYS['causal' if shown.kind in ('self', 'decoder') else shown.kind]}, so the score stays",
            f"4. **exp**(score − the row's largest) = exp({found.scaled:.5f} − {found.row_maximum:.5f}) "
            f"= **{found.exponential:.5f}**",
            f"5. **÷ the row's sum** of such exponentials = {found.exponential:.5f} ÷ {found.row_sum:.5f} "
            f"= **{found.weight:.5f}**, the weight in the heatmap",
        ]
    )


def _products(shown: Shown, query: int, key: int) -> dict[str, np.ndarray]:
    q, k = shown.steps.scores.queries[query, shown.head], shown.steps.scores.keys[key, shown.head]
    return {"dimension": np.arange(len(q)), "query": q, "key": k, "query × key": q * k}
