"""Draws the first part of the page Positions: predictions for the prompt and for its shuffled tokens.

Dimensions: order, way, vocab.
"""

import numpy as np
import pandas as pd
import streamlit as st

from pages.ui.components.word_orders import word_orders
from pages.ui.computations import token_order
from pages.ui.computations.token_order import OrderComparison
from pages.ui.frame.page import Session
from pages.ui.markdown import POSITIONS, plain
from pages.ui.models import library
from pages.ui.tables import offer_data
from pages.ui.views.two_readings import ROUNDING_ERROR
from transformer import attention_modules, in_window

LONGEST = 48
"""Tokens of a prompt that are read, from the end: what can be taken in at a glance."""
CANDIDATES = 3
TEXTS = ("Original", "Shuffled")


def show(session: Session) -> None:
    """The prompt as it is and in another order, and what is predicted for each; before it, what the model uses."""
    kind = POSITIONS[session.config.positions].removesuffix(" positions")
    uses = f"**{plain(library.model(session.name).card.title, 100)}** uses **{kind}** positions."
    first = st.empty()
    first.markdown(uses)
    if session.tokens is None:
        return
    text = session.source or session.text.prompt
    checkpoint, window = library.model(session.name), library.window(session.name, text)
    begin = max(len(window) - LONGEST, 0)
    if not session.config.is_causal:
        begin = min(begin, max(checkpoint.predicted_position(window) - LONGEST // 2, 0))  # the mask is among them
    read = window[begin : begin + LONGEST]
    moves = range(len(read)) if session.source else token_order.movable(checkpoint, read)
    if len({read[at] for at in moves}) < 2:
        st.info("This prompt is too short to be shuffled. Type a longer one.")
        return
    changes = in_window(session.interventions, 0 if session.source else len(text) - len(window) + begin)
    source, tokens = (read, session.text.prompt) if session.source else ((), read)
    compared = token_order.compare_orders(session.name, tokens, source, changes)
    label = library.tokenizer(session.name).label
    best = np.argsort(-compared.probabilities, kind="stable")[..., :CANDIDATES]
    cells = [
        [
            [(label(int(token)), float(row[token])) for token in tokens]
            for row, tokens in zip(rows, likeliest, strict=True)
        ]
        for rows, likeliest in zip(compared.probabilities, best, strict=True)
    ]
    table = [
        (name, variant, rank, *likeliest)
        for name, ways in zip(TEXTS, cells, strict=True)
        for variant, way in zip(compared.variants, ways, strict=True)
        for rank, likeliest in enumerate(way, start=1)
    ]
    texts = [(name, [label(token) for token in tokens]) for name, tokens in zip(TEXTS, compared.texts, strict=True)]
    first.markdown(f"{uses} {_in_words(session, compared)}")
    word_orders(compared.variants, texts, cells, compared.largest_change.tolist(), key="two_orders")
    st.caption(_how_it_is_done(session, compared, len(text) > len(read)))
    offer_data(
        lambda: pd.DataFrame(table, columns=["order", "reads", "rank", "token", "probability"]),
        "These predictions as a table",
        f"{session.file_name}-order.csv",
    )


def _in_words(session: Session, compared: OrderComparison) -> str:
    is_causal = session.config.is_causal
    if not attention_modules(session.config):
        which = "the last token" if is_causal else "one token"
        return f"Without attention it reads {which} alone, so order doesn't matter."
    if compared.largest_change[-1] < ROUNDING_ERROR:
        if is_causal:
            return "Without positions and mask it predicts **the same next token for both orders**."
        windows = " and windows" if "windows" in compared.variants[-1] else ""
        return f"Without positions{windows} it predicts **the same token for both orders**."
    return "This model gets the order from something other than positions."


def _how_it_is_done(session: Session, compared: OrderComparison, is_cut: bool) -> str:
    masks = compared.texts[0].count(library.model(session.name).card.mask_token_id)
    staying = ("the last token stays where it is", "the mask stays where it is", "the masks stay where they are")
    stays = "" if session.source else f"; {staying[min(masks, 2)]}"
    which = "a random order"
    if compared.shuffles > 1:
        which = f"of {compared.shuffles} random orders, the one that changes the prediction most"
    sentences = [f"*Shuffled*: {which}{stays}."]
    if is_cut:
        part = f"the last {LONGEST}" if session.config.is_causal else str(LONGEST)
        sentences.append(f"Only {part} tokens of the prompt are read.")
    if not session.source and session.config.is_causal and session.config.n_layers > 1:
        sentences.append("The causal mask also reveals the order, so the last column has no mask either.")
    if any("windows" in variant for variant in compared.variants):
        sentences.append("Sliding windows also reveal what is near, so the last column has none of them either.")
    if any(token_order.removes_order(change) for change in session.interventions):
        kept = "positions and mask" if session.config.is_causal else "positions"
        sentences.append(f"The first column has {kept} even if you have removed them.")
    return " ".join(sentences)
