"""Draws the causal mask of the prompt, and the other masks, on the page Masks.

Dimensions: pos, query, key.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import streamlit as st

from pages.ui.components.masks import Panel, Predictions, masks
from pages.ui.frame import widgets
from pages.ui.frame.page import Session
from pages.ui.markdown import counted
from pages.ui.models import library
from pages.ui.tables import matrix_table, offer_data
from pages.ui.views import prompt_batch as batches
from pages.ui.views import without_mask
from pages.ui.views.attention import SCOPES
from pages.ui.views.prompt_batch import PADDING
from pages.ui.views.without_mask import SHORTEST, Reading, decoded, how_many

MAX_TOKENS = 96
"""A longer mask looks the same, and its table takes long to make."""


def causal(session: Session) -> Reading | None:
    """The causal mask of the text, and what the model predicts with it and without; returns the two readings.

    None for a model without attention, whose mask is drawn all the same.
    """
    if changed := _taken_away(session):
        with_it = " Here the first reading has the whole mask all the same, to compare with."
        st.info(changed + (with_it if session.config.n_layers else ""))
    picture = st.container()
    if not session.source and session.text.written:
        widgets.segmented_control("Text", SCOPES, "scope", SCOPES.get)
    if session.config.n_layers:
        reading = without_mask.read(session)
        tokens, end = reading.tokens, reading.offset + len(reading.tokens)
    else:
        reading, tokens, end = None, library.window(session.name, decoded(session)), len(decoded(session))
    shown = how_many(min(len(tokens), MAX_TOKENS), "masks_shown")
    panel = _causal_panel(session, tokens[-shown:], end)
    with picture:
        if reading is None:
            st.info(
                "This model has no layers, and so no attention and no mask to take away: it predicts the next token "
                "from one token alone."
            )
        show_panels([panel], "causal", reading and without_mask.predictions(session, reading, shown))
    offer_data(lambda: _table([panel]), "This mask as a table", f"{session.file_name}-causal-mask.csv")
    if reading is not None:
        offer_data(
            lambda: without_mask.candidates_table(session, reading),
            "These predictions as a table",
            f"{session.file_name}-candidates-without-mask.csv",
        )
    return reading


def other_masks(session: Session) -> None:
    """A padding mask and none, side by side, for what an encoder would read."""
    text = session.source or decoded(session)
    widgets.slider("Padding tokens after the prompt", 0, 8, "filler", width=240)
    length = len(library.window(session.name, text))
    shown = length if length <= SHORTEST else min(session.visitor.masks_shown, MAX_TOKENS)
    panels = [_padding_panel(session, text, shown), _open_panel(session, text, shown)]
    show_panels(panels, "prompt")
    offer_data(lambda: _table(panels), "These masks as a table", f"{session.file_name}-masks.csv")


def show_panels(panels: Sequence[Panel], name: str, predictions: Predictions | None = None) -> None:
    """Masks beside one another, with what to say about each, and how much it hides."""
    said = [replace(panel, words=f"{panel.words} {_hidden(panel.mask)}") for panel in panels]
    masks(said, key=f"mask_panels_{name}", predictions=predictions)


def _table(panels: Sequence[Panel]) -> pd.DataFrame:
    return pd.concat(
        matrix_table({"visible": panel.mask}, panel.labels, panel.labels, panel.offset).assign(mask=panel.title)
        for panel in panels
    )


def _hidden(mask: np.ndarray) -> str:
    return f"It hides {int((~mask).sum()):,} of {counted(mask.size, 'cell')} here."


def _causal_panel(session: Session, tokens: tuple[int, ...], end: int) -> Panel:
    """end: how many tokens the text has up to the last of these."""
    used = (
        "It has no attention, so it uses none."
        if not session.config.n_layers
        else (
            f"This model's {'decoder' if session.source else 'attention'} uses it in "
            f"{without_mask.every(session.config.n_layers)} and every head."
            + (
                " Layers with a window hide what is further back as well."
                if any(session.config.attention_windows)
                else ""
            )
        )
    )
    words = (
        "A token sees itself and what came before it; the next token, which it is trained to predict, is hidden. "
        f"{used}{' Its rows are what the decoder reads.' if session.source else ''}"
    )
    labels = library.tokenizer(session.name).labels(tokens)
    return Panel("Causal mask", labels, batches.hides_future(len(labels)), end - len(labels), words)


def _taken_away(session: Session) -> str:
    """What a visitor has changed in the causal mask, as a sentence; empty if nothing."""
    words = [str(each) for each in session.interventions if without_mask.takes_mask(each)]
    return f"It is changed now: {'; '.join(words)}." if words else ""


def _padding_panel(session: Session, text: tuple[int, ...], shown: int) -> Panel:
    filler, pad = session.visitor.filler, batches.padding_id(session.config)
    tokens = (*library.window(session.name, text), *[pad] * filler)
    mask = batches.hides_padding(np.array([tokens]), pad)[0]
    start = max(len(tokens) - filler - shown, 0)
    words = f"{PADDING} is a padding token: it makes the texts of a batch equally long, and no token may look at it."
    labels = batches.token_labels(tokens[start:], library.tokenizer(session.name), pad)
    return Panel("Padding mask", labels, mask[start:, start:], len(text) + filler - len(labels), words)


def _open_panel(session: Session, text: tuple[int, ...], shown: int) -> Panel:
    labels = library.tokenizer(session.name).labels(library.window(session.name, text)[-shown:])
    own = "This model's encoder looks this way." if session.source else "This model has no encoder."
    words = (
        "Every token sees every other. That suits an encoder, which reads a text that is all there and never has to "
        f"predict what comes next. {own}"
    )
    return Panel("No mask", labels, np.ones((len(labels),) * 2, dtype=bool), len(text) - len(labels), words)
