"""Draws the first part of the page Positions: predictions for the prompt and for its shuffled tokens.

Dimensions: order, way, vocab.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from pages.ui.components.two_orders import two_orders
from pages.ui.frame.page import Session
from pages.ui.markdown import plain
from pages.ui.models import library, token_order
from pages.ui.models.token_order import OrderComparison
from pages.ui.tables import offer_data
from transformer import attention_modules, in_window

LONGEST = 48
"""Tokens of a prompt that are read, from the end: what can be taken in at a glance."""
CANDIDATES = 3
ROUNDING_ERROR = 1e-5
"""A change of probability this small is rounding."""
TEXTS = ("Original", "Shuffled")


def _positions_in_words(session: Session) -> str:
    """What the selected model uses, in one line."""
    kind = session.config.positions.replace("none", "no")
    return f"**{plain(library.model(session.name).card.title, 100)}** uses **{kind}** positions."


def show(session: Session) -> None:
    """The prompt as it is and in another order, and what follows each; before it, what the model uses."""
    first = st.empty()
    first.markdown(_positions_in_words(session))
    if session.tokens is None:
        return
    text = session.source or session.text.prompt
    read = library.window(session.name, text)[-LONGEST:]
    if len(set(read[: None if session.source else -1])) < 2:
        st.info("This prompt is too short to be shuffled. Type a longer one.")
        return
    changes = in_window(session.interventions, 0 if session.source else len(text) - len(read))
    source, tokens = (read, session.text.prompt) if session.source else ((), read)
    found = token_order.compare_orders(session.name, tokens, source, changes)
    label = library.tokenizer(session.name).label
    tables, cells = [], []
    for name, rows in zip(TEXTS, found.probabilities, strict=True):
        cells.append([])
        for variant, probabilities in zip(found.variants, rows, strict=True):
            best = np.argsort(-probabilities, kind="stable")[:CANDIDATES]
            labels = [label(int(token)) for token in best]
            cells[-1].append(list(zip(labels, probabilities[best].tolist(), strict=True)))
            tables.append(
                {
                    "order": name,
                    "reads": variant,
                    "rank": range(1, len(best) + 1),
                    "token": labels,
                    "probability": probabilities[best],
                }
            )
    texts = [(name, [label(token) for token in each]) for name, each in zip(TEXTS, found.texts, strict=True)]
    first.markdown(f"{_positions_in_words(session)} {_in_words(session, found)}")
    two_orders(found.variants, texts, cells, found.largest_change.tolist(), key="two_orders")
    st.caption(_how_it_is_done(session, found.shuffles, len(text) > len(read)))
    offer_data(
        lambda: pd.concat(map(pd.DataFrame, tables)), "These predictions as a table", f"{session.file_name}-order.csv"
    )


def _in_words(session: Session, found: OrderComparison) -> str:
    if not attention_modules(session.config):
        return "Without attention it reads the last token alone, so order doesn't matter."
    if found.largest_change[-1] < ROUNDING_ERROR:
        return (
            "**Attention alone can't tell the order**: without positions and mask it predicts the same next token for "
            "both orders."
        )
    return "This model gets the order from something other than positions."


def _how_it_is_done(session: Session, shuffles: int, is_cut: bool) -> str:
    stays = "." if session.source else "; the last token stays where it is."
    which = (
        f"of {shuffles} random orders, the one that changes the prediction most" if shuffles > 1 else "a random order"
    )
    said = [f"*Shuffled*: {which}{stays}"]
    if is_cut:
        said.append(f"Only the last {LONGEST} tokens of the prompt are read.")
    if not session.source and session.config.n_layers > 1:
        said.append("The causal mask also reveals the order, so the last column has no mask either.")
    if any(token_order.removes_order(change) for change in session.interventions):
        said.append("The first column has positions and mask even if you have removed them.")
    return " ".join(said)
