"""Draws the view Ladder: one prompt on every rung, with its loss, next token and generated text."""

import numpy as np
import pandas as pd
import streamlit as st

from pages.ui.computations import rung_results
from pages.ui.computations.rung_results import GENERATED_TOKENS, RungResult
from pages.ui.figures.bars import loss_bars
from pages.ui.frame import widgets
from pages.ui.frame.model_picker import choose_model
from pages.ui.frame.page import Session
from pages.ui.frame.state import visitor
from pages.ui.markdown import code, plain
from pages.ui.models import library
from pages.ui.number_format import percent
from pages.ui.tables import offer_data
from pages.ui.views.charts import chart
from pages.ui.views.side_by_side import side_by_side
from pages.ui.views.what_if.other_prompt import read_text
from transformer import CheckpointEntry
from transformer.training.presets import LADDERS

TITLES = {"first": "From a bigram to a transformer", "since-2017": "Since 2017"}
INTRODUCTIONS = {
    "first": "Your prompt on models that add one part at a time. "
    "Where the loss falls, the part helps on this text; where it rises, it doesn't.",
    "since-2017": "The decoder of 2017, then modern changes, one per rung. Some save time or memory instead.",
}
LIKELIEST = 3
"""Next tokens that are named of each rung."""


def show(session: Session) -> None:
    ladders = {which: rung_results.rungs(group) for which, group in LADDERS.items()}
    ladders = {which: rungs for which, rungs in ladders.items() if rungs}
    if not ladders:
        st.info("There is no ladder here: its models are missing.")
        return
    which = next(iter(ladders))
    if len(ladders) > 1:
        which = widgets.segmented_control("Ladder", ladders, "ladder", TITLES.__getitem__, label_visibility="collapsed")
    rungs = ladders[which]
    if not session.config.is_causal:
        st.info("The models of a ladder write a text on; this one fills what is masked in it. Choose one of them.")
        _offer_last(rungs)
        return
    st.markdown(f"{INTRODUCTIONS[which]}{_trained_on(session, rungs)}")
    if session.interventions:
        st.caption("The ladder shows the models without your changes.")
    tokens = read_text(next(iter(rungs)), session.prompt, "On the ladder, your prompt")
    if tokens is None:
        _offer_last(rungs)
        return
    stands = {name: rung_results.rung_result(name, tokens, session.visitor.sampling) for name in rungs}
    _losses(session, rungs, stands)
    before = None
    for column, (name, result) in zip(side_by_side("ladder", len(rungs)), stands.items(), strict=True):
        with column:
            _rung(session, rungs, name, result, before)
        before = result
    offer_data(lambda: _table(rungs, stands), "The ladder as a table", f"ladder-{which}.csv")


def _offer_last(rungs: dict[str, CheckpointEntry]) -> None:
    """The way to the highest rung, for those whose prompt can't be read there."""
    name = list(rungs)[-1]
    go_on = f"Go on to {plain(rungs[name].card.title)}, and its own prompt"
    widgets.button(go_on, choose_model, name, type="primary")


def _trained_on(session: Session, rungs: dict[str, CheckpointEntry]) -> str:
    """That the rungs were trained on another text than the selected model, if they were."""
    corpus = next(iter(rungs.values())).card.corpus
    if session.name in rungs or corpus.get("name") == library.model(session.name).card.corpus.get("name"):
        return ""
    return f" They were trained on a different text from your model's: {plain(corpus.get('title', 'a different one'))}."


def _losses(session: Session, rungs: dict[str, CheckpointEntry], stands: dict[str, RungResult]) -> None:
    losses = np.array([np.nan if result.loss is None else result.loss for result in stands.values()])
    usual = np.array([entry.card.validation_loss or np.nan for entry in rungs.values()], dtype=float)
    names = list(rungs)
    chosen = names.index(session.name) if session.name in names else None
    figure = loss_bars([entry.card.title for entry in rungs.values()], losses, usual, chosen, theme=session.theme)
    chart(figure, "what_if_ladder")
    context = min(entry.config.context_length for entry in rungs.values())
    one = "" if np.isfinite(losses).any() else " A single token has no loss."
    st.caption(
        f"The mean loss of your prompt's tokens, each predicted from at most {context} before it, beside that of the "
        "text held out from training. A short prompt can be easier, or harder, than the rest."
        f"{one}"
    )


def _rung(
    session: Session, rungs: dict[str, CheckpointEntry], name: str, result: RungResult, before: RungResult | None
) -> None:
    """One rung: what it has more than the last, what it says next, what it writes, and the way to it."""
    entry, labels = rungs[name], library.tokenizer(name).labels
    with st.container(border=True, key=f"view_{name}"):
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
            st.markdown(f"**{plain(entry.card.title)}**", width="content")
            if name == session.name:
                st.markdown(":material/check: This is the selected model.", width="content")
            else:
                widgets.button("Choose this rung", _choose, name, session.prompt, key=f"rung_{name}")
        order = [*map(int, np.argsort(-result.probabilities, kind="stable")[:LIKELIEST])]
        named = ", ".join(
            f"{code(label)} {percent(result.probabilities[token])}"
            for token, label in zip(order, labels(order), strict=True)
        )
        st.markdown(f"{plain(entry.card.summary, 200)} {_loss_in_words(result, before)} Next token: {named}.")
        st.caption(f"It writes {GENERATED_TOKENS} more characters:")
        st.code(session.prompt + result.text, language=None, wrap_lines=True)
        if name == session.name and (higher := _first_with_attention(rungs, name)):
            title = plain(rungs[higher].card.title)
            st.caption("It has no softmax attention.")
            widgets.button(f"Go on to {title}", _choose, higher, session.prompt, key="to_attention", type="primary")


def _loss_in_words(result: RungResult, before: RungResult | None) -> str:
    if result.loss is None:
        return ""
    pair = f"Loss {result.loss:.3f} nats"
    if before is None or before.loss is None:
        return f"{pair}."
    change = result.loss - before.loss
    return f"{pair}, {abs(change):.3f} {'more' if change > 0 else 'less'} than the rung before it."


def _first_with_attention(rungs: dict[str, CheckpointEntry], name: str) -> str | None:
    """The lowest rung with attention by queries and keys, above one that has none."""
    able = [rung for rung, entry in rungs.items() if entry.config.n_layers and entry.config.attention == "softmax"]
    return next((rung for rung in able if rung > name), None) if name not in able else None


def _choose(name: str, prompt: str) -> None:
    choose_model(name)
    visitor().prompt = prompt


def _table(rungs: dict[str, CheckpointEntry], stands: dict[str, RungResult]) -> pd.DataFrame:
    rows = []
    for name, result in stands.items():
        card, best = rungs[name].card, int(result.probabilities.argmax())
        losses, label = (result.loss, card.validation_loss), library.tokenizer(name).label(best)
        rows.append((card.title, card.parameters, *losses, label, result.probabilities[best], result.text))
    columns = ["rung", "parameters", "loss (nats)", "validation loss (nats)", "next token", "probability", "writes"]
    return pd.DataFrame(rows, columns=columns)
