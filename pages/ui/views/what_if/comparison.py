"""Draws the view Comparison: predicted token, attention and logit lens of two prompts or models.

Dimensions: vocab, depth, query, key.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import streamlit as st

from pages.ui.components.matrix import matrix
from pages.ui.computations import comparable_models
from pages.ui.computations.activations import log_softmax
from pages.ui.computations.comparable_models import LayerPredictions
from pages.ui.figures.bars import paired_bars
from pages.ui.figures.lines import Line, lens_lines
from pages.ui.frame import widgets
from pages.ui.frame.page import Session
from pages.ui.markdown import code, nats, plain, signed
from pages.ui.models import attention_kinds, library
from pages.ui.models.attention_kinds import KINDS
from pages.ui.number_format import percent
from pages.ui.tables import matrix_table, offer_data
from pages.ui.views.charts import chart
from pages.ui.views.side_by_side import side_by_side
from pages.ui.views.two_readings import ROUNDING_ERROR
from pages.ui.views.what_if import comparison_sides, python_code
from pages.ui.views.what_if.comparison_sides import Side
from pages.ui.views.what_if.shared import TOO_LARGE, divergence, predicted_heading
from transformer import attention_modules, causal_mask
from transformer.api.tensors import tensor
from transformer.inference.context_windows import in_window
from transformer.model.masks import full_mask

CANDIDATES = 6
"""The likeliest of each side that are drawn, as far as they can be seen."""
UNSEEN = 5e-4
MOVED = 3
"""Tokens of which it is said how much likelier or less likely they are."""
MAX_TOKENS = 64
"""Tokens of a picture of attention, from the end of a longer text."""


@dataclass(frozen=True)
class AttentionPanel:
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
    both = comparison_sides.choose(session)
    if both is None:
        return
    predictions = [
        comparable_models.logit_lens_at(
            side.name, side.tokens, side.source, side.position, side.begin, side.interventions
        )
        for side in both
    ]
    if not all(np.isfinite(side_predictions.logits).all() for side_predictions in predictions):
        st.warning(TOO_LARGE)
        return
    _next_token(session, both, predictions)
    _attention(session, both)
    _lens(session, both, predictions)
    python_code.comparison(both)


def _next_token(session: Session, both: tuple[Side, Side], predictions: list[LayerPredictions]) -> None:
    is_causal = session.config.is_causal
    st.header(predicted_heading(session.config), anchor=False)
    logs = [log_softmax(side_predictions.logits[-1]) for side_predictions in predictions]
    shared = comparable_models.same_vocabulary(both[0].name, both[1].name)
    labels = [comparable_models.vocabulary(side.name) for side in both]
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
    drawn = sorted(dict.fromkeys(best), key=lambda name: -max(shares.get(name, 0.0) for shares in probabilities))
    values = [np.array([shares.get(name, np.nan) for name in drawn]) for shares in probabilities]
    chart(
        paired_bars(drawn, *values, names=(both[0].title, both[1].title), theme=session.theme),
        "what_if_comparison_next",
    )
    unknown = (
        "" if shared else " The two models have different vocabularies. Tokens that a model doesn't know have no bar."
    )
    st.caption(f"The likeliest {'next ' if is_causal else ''}tokens of both, at most {CANDIDATES} each.{unknown}")
    if shared:
        st.markdown(_difference(both, labels[0], *logs))

    def table() -> pd.DataFrame:
        every = list(dict.fromkeys([*labels[0], *labels[1]]))
        columns = {
            f"probability: {side.title}": [shares.get(name, np.nan) for name in every]
            for side, shares in zip(both, probabilities, strict=True)
        }
        if shared:
            columns["difference"] = [probabilities[1][name] - probabilities[0][name] for name in every]
        return pd.DataFrame({"token": every, **columns})

    offer_data(table, "Both distributions as a table", f"{session.file_name}-comparison.csv")


def _likeliest(side: Side, labels: Sequence[str], log: np.ndarray) -> str:
    best = int(log.argmax())
    after = library.tokenizer(side.name).label(side.tokens[side.position])
    probabilities = percent(float(np.exp(log[best])))
    where = f"after {code(after)} comes" if side.config.is_causal else f"at {code(after)} it predicts"
    return f"**{plain(side.title)}:** {where} {code(labels[best])}, {probabilities}."


def _difference(both: tuple[Side, Side], labels: Sequence[str], one: np.ndarray, other: np.ndarray) -> str:
    """What differs most, for two sides that have the same tokens."""
    change = np.exp(other) - np.exp(one)
    if np.abs(change).max() < ROUNDING_ERROR:
        return "Both predict the same, or very nearly."
    moved = map(int, np.argsort(-np.abs(change), kind="stable")[:MOVED])
    order = [token for token in moved if abs(change[token]) > ROUNDING_ERROR]
    named = ", ".join(f"{code(labels[token])} {signed(100 * change[token], 1)}" for token in order)
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
            widgets.selectbox("Attention", kinds, "attention", KINDS.__getitem__, width=320)
        kind = attention_kinds.shown_kind(first, session.visitor.attention, kinds or None) or ""
        layer = widgets.selectbox("Layer", range(attention_kinds.layer_count(first, kind)), "layer", width=120)
        head = widgets.selectbox("Head", range(first.n_heads), "head", width=120)
    if layer >= (shared_layers := min(attention_kinds.layer_count(side.config, kind) for side in able)):
        st.caption(f"One model has fewer layers; of it, layer {shared_layers - 1} is drawn, its last.")
    panels = [_panel(side, kind, layer, head) for side in able]
    if len(panels) == 2 and panels[0].weights.shape == panels[1].weights.shape:
        panels.append(_less(*panels))
    count = max(len(panels), 2)
    for number, (column, panel) in enumerate(zip(side_by_side("comparison", count), panels, strict=False)):
        with column:
            st.markdown(f"**{plain(panel.title)}**")
            matrix(
                np.where(panel.hidden, -np.inf, panel.weights),
                key=f"what_if_comparison_head_{number}",
                name=panel.title,
                across="keys",
                down="queries",
                unit="weight" if number < 2 else "difference",
                kind="weights" if number < 2 else "scores",
                square=True,
                labels=(panel.queries, panel.keys),
                offsets=panel.offsets,
            )
            if panel.words:
                st.caption(panel.words)
    offer_data(
        lambda: pd.concat(
            matrix_table({"weight": panel.weights}, panel.queries, panel.keys).assign(side=panel.title)
            for panel in panels
        ),
        "These weights as a table",
        f"{session.file_name}-comparison-attention.csv",
    )


def _panel(side: Side, wish: str, layer: int, head: int) -> AttentionPanel:
    """A head's weights; of a model that has fewer layers or heads, the last it has."""
    kind = attention_kinds.shown_kind(side.config, wish) or ""
    layer, head = min(layer, attention_kinds.layer_count(side.config, kind) - 1), min(head, side.config.n_heads - 1)
    name = f"{attention_modules(side.config)[kind][layer]}.hook_pattern[{head}]"
    changes = in_window(side.interventions, side.begin)
    weights = tensor(library.opened(side.name), side.tokens, side.source, name, changes)
    window = side.config.window(layer) if kind == "self" else 0
    is_causal = kind == "decoder" or (kind == "self" and side.config.is_causal)
    hidden = ~(causal_mask if is_causal else full_mask)(*weights.shape, window=window).numpy()
    hidden &= weights == 0  # without its mask, nothing is
    (queries, keys), offsets = side.labels(kind), side.offsets(kind)
    first = [max(size - MAX_TOKENS, 0) for size in weights.shape]
    words = f"Only the last {MAX_TOKENS} tokens are drawn." if any(first) else ""
    return AttentionPanel(
        f"{side.title}, layer {layer}, head {head}",
        weights[first[0] :, first[1] :],
        hidden[first[0] :, first[1] :],
        queries[first[0] :],
        keys[first[1] :],
        (offsets[0] + first[0], offsets[1] + first[1]),
        words,
    )


def _less(one: AttentionPanel, other: AttentionPanel) -> AttentionPanel:
    """The second panel minus the first, by position."""
    queries, keys = (
        [a if a == b else f"{a}|{b}" for a, b in zip(*pair, strict=True)]
        for pair in ((one.queries, other.queries), (one.keys, other.keys))
    )
    return AttentionPanel(
        "The difference",
        other.weights - one.weights,
        one.hidden & other.hidden,
        queries,
        keys,
        one.offsets,
        "Second minus first: red where the second gives more weight, blue where it gives less.",
    )


def _lens(session: Session, both: tuple[Side, Side], predictions: list[LayerPredictions]) -> None:
    """What each layer predicts, had the model ended there."""
    st.header("Logit lens", anchor=False)
    probabilities = [np.exp(log_softmax(side_predictions.logits)) for side_predictions in predictions]
    best = [int(by_layer[-1].argmax()) for by_layer in probabilities]
    labels = [comparable_models.vocabulary(side.name) for side in both]
    pair = [[names[token] for token in rows.argmax(1)] for names, rows in zip(labels, probabilities, strict=True)]
    shared = comparable_models.same_vocabulary(both[0].name, both[1].name)
    drawn = {
        f"{side.title}: {names[token]}": Line(by_layer[:, token], says)
        for tokens in ([best, best[::-1]] if shared else [best])
        for side, by_layer, token, names, says in zip(both, probabilities, tokens, labels, pair, strict=True)
    }
    chart(lens_lines(drawn, theme=session.theme), "what_if_comparison_lens")
    crossed = " and that of the other's" if len(drawn) > 2 else ""
    what = "next token" if session.config.is_causal else "token"
    st.caption(f"The probability of each side's likeliest {what}{crossed}, had the model ended after that layer.")
    offer_data(
        lambda: pd.concat(
            pd.DataFrame(
                {
                    "side": side.title,
                    "after": lens.names,
                    "likeliest": says,
                    "probability": shares.max(1),
                    "probability of its last": shares[:, token],
                }
            )
            for side, lens, says, shares, token in zip(both, predictions, pair, probabilities, best, strict=True)
        ),
        "The logit lens as a table",
        f"{session.file_name}-comparison-lens.csv",
    )
