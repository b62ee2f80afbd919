"""Draws the view Comparison: next token, attention and logit lens of two prompts or models.

Dimensions: vocab, height, query, key.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import streamlit as st

from pages.ui.figures.axes import labelling_note
from pages.ui.figures.comparison import Line, attention_panel, lens_lines
from pages.ui.figures.what_if import paired_bars, percent
from pages.ui.frame import widgets
from pages.ui.frame.page import Session
from pages.ui.markdown import code, nats, plain
from pages.ui.models import attention_kinds, comparison, library
from pages.ui.models.comparison import LayerPredictions
from pages.ui.tables import matrix_table, offer_data
from pages.ui.views.attention import KINDS
from pages.ui.views.charts import chart
from pages.ui.views.side_by_side import side_by_side
from pages.ui.views.what_if import comparison_sides, python_code
from pages.ui.views.what_if.comparison_sides import Side
from pages.ui.views.what_if.shared import TOO_LARGE, divergence, log_softmax
from transformer import attention_modules, causal_mask
from transformer.api.tensors import tensor
from transformer.inference.windows import in_window

CANDIDATES = 6
"""The likeliest of each side that are drawn, as far as they can be seen."""
UNSEEN = 5e-4
MOVED = 3
"""Tokens of which it is said how much likelier or less likely they are."""
MAX_TOKENS = 64
"""Tokens of a picture of attention, from the end of a longer text."""
ROUNDING_ERROR = 1e-5
"""A change of probability this small isn't worth a word."""


@dataclass(frozen=True)
class Panel:
    """A head's weights over one text, or the difference of two."""

    title: str
    weights: np.ndarray
    """(query, key)."""
    hidden: np.ndarray
    """(query, key): what the mask hides."""
    queries: list[str]
    keys: list[str]
    offsets: tuple[int, int]
    words: str


def show(session: Session) -> None:
    """The view."""
    both = comparison_sides.choose(session)
    if both is None:
        return
    found = [
        comparison.logit_lens_at(side.name, side.tokens, side.source, side.place, side.begin, side.interventions)
        for side in both
    ]
    if not all(np.isfinite(each.logits).all() for each in found):
        st.warning(TOO_LARGE)
        return
    _next_token(session, both, found)
    _attention(session, both)
    _lens(session, both, found)
    python_code.comparison(both)


def _next_token(session: Session, both: tuple[Side, Side], found: list[LayerPredictions]) -> None:
    st.header("Next token", anchor=False)
    logs = [log_softmax(each.logits[-1]) for each in found]
    shared = comparison.same_vocabulary(both[0].name, both[1].name)
    labels = [comparison.vocabulary(side.name) for side in both]
    probabilities = [
        dict(zip(names, np.exp(log).tolist(), strict=True)) for names, log in zip(labels, logs, strict=True)
    ]
    st.markdown(" ".join(_likeliest(side, names, log) for side, names, log in zip(both, labels, logs, strict=True)))
    best = [
        names[token]
        for names, log in zip(labels, logs, strict=True)
        for rank, token in enumerate(np.argsort(-log, kind="stable")[:CANDIDATES])
        if rank == 0 or log[token] > np.log(UNSEEN)
    ]
    drawn = sorted(dict.fromkeys(best), key=lambda name: -max(each.get(name, 0.0) for each in probabilities))
    values = [np.array([each.get(name, np.nan) for name in drawn]) for each in probabilities]
    chart(paired_bars(drawn, *values, names=(both[0].title, both[1].title), theme=session.theme), "what_if_beside_next")
    unknown = "" if shared else " Tokens that a model doesn't know have no bar."
    st.caption(f"The likeliest next tokens of both, at most {CANDIDATES} each.{unknown}")
    if shared:
        st.markdown(_difference(both, labels[0], *logs))

    def table() -> pd.DataFrame:
        every = list(dict.fromkeys([*labels[0], *labels[1]]))
        columns = {
            f"probability: {side.title}": [each.get(name, np.nan) for name in every]
            for side, each in zip(both, probabilities, strict=True)
        }
        if shared:
            columns["difference"] = [probabilities[1][name] - probabilities[0][name] for name in every]
        return pd.DataFrame({"token": every, **columns})

    offer_data(table, "Both distributions as a table", f"{session.file_name}-beside.csv")


def _likeliest(side: Side, labels: Sequence[str], log: np.ndarray) -> str:
    best = int(log.argmax())
    after = library.tokenizer(side.name).label(side.tokens[side.place])
    probabilities = percent(float(np.exp(log[best])))
    return f"**{plain(side.title)}:** after {code(after)} comes {code(labels[best])}, {probabilities}."


def _difference(both: tuple[Side, Side], labels: Sequence[str], one: np.ndarray, other: np.ndarray) -> str:
    """What differs most, for two sides that have the same tokens."""
    change = np.exp(other) - np.exp(one)
    if np.abs(change).max() < ROUNDING_ERROR:
        return "Both predict the same, or very nearly."
    order = [
        token for token in np.argsort(-np.abs(change), kind="stable")[:MOVED] if abs(change[token]) > ROUNDING_ERROR
    ]
    named = ", ".join(f"{code(labels[token])} {100 * change[token]:+.3f}" for token in order)
    first, second = (plain(side.title) for side in both)
    return (
        f"From the first to the second, in percentage points: {named}. "
        f"KL({first} ‖ {second}): {nats(float(divergence(one, other)))}."
    )


def _attention(session: Session, both: tuple[Side, Side]) -> None:
    st.header("Attention of one head", anchor=False)
    able = [side for side in both if side.config.n_layers]
    for side in both:
        if side not in able:
            st.info(f"{plain(side.title)}: this model has no layers, and so no attention to look at.")
    if not able:
        return
    kinds = [kind for kind in KINDS if all(kind in attention_kinds.kinds_of(side.config) for side in able)]
    first = able[0].config
    with st.container(horizontal=True):
        if kinds:
            widgets.selectbox("Attention", kinds, "attention", KINDS.get, width=320)
        kind = attention_kinds.shown_kind(first, session.visitor.attention, kinds or None) or ""
        layer = widgets.selectbox("Layer", range(attention_kinds.layer_count(first, kind)), "layer", width=120)
        head = widgets.selectbox("Head", range(first.n_heads), "head", width=120)
    panels = [_panel(side, kind, layer, head) for side in able]
    if len(panels) == 2 and _is_alike(*panels):
        panels.append(_less(*panels))
    count = max(len(panels), 2)
    for number, (place, panel) in enumerate(zip(side_by_side("beside", count), panels, strict=False)):
        with place:
            st.markdown(f"**{plain(panel.title)}**")
            figure = attention_panel(
                panel.weights,
                panel.queries,
                panel.keys,
                panel.hidden,
                offsets=panel.offsets,
                is_difference=number == 2,
                theme=session.theme,
            )
            chart(figure, f"what_if_beside_head_{number}")
            st.caption(f"{panel.words} {labelling_note(figure)}")
    offer_data(
        lambda: pd.concat(
            matrix_table({"weight": panel.weights}, panel.queries, panel.keys).assign(side=panel.title)
            for panel in panels
        ),
        "These weights as a table",
        f"{session.file_name}-beside-attention.csv",
    )


def _panel(side: Side, wish: str, layer: int, head: int) -> Panel:
    """A head's weights; of a model that has fewer layers or heads, the last it has."""
    kind = attention_kinds.shown_kind(side.config, wish) or ""
    layer, head = min(layer, attention_kinds.layer_count(side.config, kind) - 1), min(head, side.config.n_heads - 1)
    name = f"{attention_modules(side.config)[kind][layer]}.hook_pattern[{head}]"
    changes = in_window(side.interventions, side.begin)
    weights = tensor(library.opened(side.name), side.tokens, side.source, name, changes)
    window = side.config.window(layer) if kind == "self" else 0
    is_causal = kind in ("self", "decoder")
    hidden = ~causal_mask(*weights.shape, window=window).numpy() if is_causal else np.zeros(weights.shape, bool)
    hidden &= weights == 0  # without its mask, nothing is
    (queries, keys), offsets = side.labels(kind), side.offsets(kind)
    first = [max(size - MAX_TOKENS, 0) for size in weights.shape]
    words = "Rows are queries, columns are keys; a row sums to one."
    if any(first):
        words += f" Only the last {MAX_TOKENS} tokens are drawn."
    return Panel(
        f"{side.title}, layer {layer}, head {head}",
        weights[first[0] :, first[1] :],
        hidden[first[0] :, first[1] :],
        queries[first[0] :],
        keys[first[1] :],
        (offsets[0] + first[0], offsets[1] + first[1]),
        words,
    )


def _is_alike(one: Panel, other: Panel) -> bool:
    """Whether the weights of two panels can be taken from one another: their texts are cut into as many tokens."""
    return one.weights.shape == other.weights.shape


def _less(one: Panel, other: Panel) -> Panel:
    """The second panel less the first, by position."""
    queries, keys = (
        [a if a == b else f"{a}|{b}" for a, b in zip(*pair, strict=True)]
        for pair in ((one.queries, other.queries), (one.keys, other.keys))
    )
    return Panel(
        "The difference",
        other.weights - one.weights,
        one.hidden & other.hidden,
        queries,
        keys,
        one.offsets,
        "The second less the first: red where the second gives more weight, blue where it gives less.",
    )


def _lens(session: Session, both: tuple[Side, Side], found: list[LayerPredictions]) -> None:
    """What each height would have said, had the model ended there."""
    st.header("Logit lens", anchor=False)
    probabilities = [np.exp(log_softmax(each.logits)) for each in found]
    best = [int(each[-1].argmax()) for each in probabilities]
    labels = [library.tokenizer(side.name).labels for side in both]
    pair = [names(each.argmax(1).tolist()) for names, each in zip(labels, probabilities, strict=True)]
    shared = comparison.same_vocabulary(both[0].name, both[1].name)
    drawn = {}
    for side, each, token, names, says in zip(both, probabilities, best, labels, pair, strict=True):
        drawn[f"{side.title}: {names([token])[0]}"] = Line(each[:, token], says)
    if shared and best[0] != best[1]:
        for side, each, token, names, says in zip(both, probabilities, best[::-1], labels, pair, strict=True):
            drawn[f"{side.title}: {names([token])[0]}"] = Line(each[:, token], says)
    chart(lens_lines(drawn, theme=session.theme), "what_if_beside_lens")
    crossed = " and that of the other's" if len(drawn) > 2 else ""
    st.caption(f"The probability of each side's likeliest next token{crossed}, had the model ended after that layer.")
    offer_data(
        lambda: pd.concat(
            pd.DataFrame(
                {
                    "side": side.title,
                    "height": each.names,
                    "likeliest": says,
                    "probability": side_probabilities.max(1),
                    "probability of its last": side_probabilities[:, token],
                }
            )
            for side, each, says, side_probabilities, token in zip(both, found, pair, probabilities, best, strict=True)
        ),
        "The heights as a table",
        f"{session.file_name}-beside-heights.csv",
    )
