"""Draws the causal mask of the prompt, and the other masks, on the page Masks.

Dimensions: pos, query, key.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

import numpy as np
import pandas as pd
import streamlit as st

from pages.ui.components.masks import MaskPanel, Predictions, masks
from pages.ui.frame import widgets
from pages.ui.frame.page import Session
from pages.ui.frame.page_text import SCOPES
from pages.ui.markdown import counted
from pages.ui.models import library
from pages.ui.tables import matrix_table, offer_data
from pages.ui.views import prompt_batch as batches
from pages.ui.views import without_mask
from pages.ui.views.prompt_batch import PADDING
from pages.ui.views.two_readings import (
    SHORTEST,
    Readings,
    every,
    how_many,
    layers_by_window,
    layers_in_words,
    offer_candidates,
)

MAX_TOKENS, MOST_OUTSIDE = 96, 8
"""Tokens of a mask, a longer one looks the same; and tokens outside the context that are drawn before it."""


def causal(session: Session) -> Readings | None:
    """The causal mask of the text, and what the model predicts with it and without; returns the two readings.

    None for a model without attention, whose mask is drawn all the same.
    """
    if changed := [str(change) for change in session.interventions if without_mask.takes_mask(change)]:
        with_it = " Here the first reading has the whole mask all the same, to compare with."
        st.info(f"It is changed now: {'; '.join(changed)}.{with_it if session.config.n_layers else ''}")
    picture = st.container()
    if not session.source and session.text.written:
        widgets.segmented_control("Text", SCOPES, "scope", SCOPES.__getitem__)
    reading = without_mask.read(session) if session.config.n_layers else None
    text = without_mask.decoded(session)
    length = len(library.window(session.name, text))
    shown = min(how_many(min(length, MAX_TOKENS), "masks_shown"), length)
    panel = _causal_panel(session, text, length, shown)
    with picture:
        if reading is None:
            st.info(
                "This model has no layers, and so no attention and no mask to take away: it predicts the next token "
                "from one token alone."
            )
        show_panels([panel], "causal", reading and without_mask.predictions(session, reading, shown))
    offer_data(lambda: table_of([panel]), "This mask as a table", f"{session.file_name}-causal-mask.csv")
    if reading is not None:
        offer_candidates(session, reading, "without-mask")
    return reading


def other_masks(session: Session) -> None:
    """A padding mask and none, side by side, for what an encoder would read; for an encoder-only model the first."""
    text = session.source or session.text.prompt
    widgets.slider("Padding tokens after the prompt", 0, 8, "filler", width=240)
    length = len(library.window(session.name, text))
    shown = length if length <= SHORTEST else min(session.visitor.masks_shown, MAX_TOKENS)
    panels = [_padding_panel(session, text, shown)]
    if session.config.is_causal:
        panels.append(_open_panel(session, text, shown))
    show_panels(panels, "prompt")
    offer_data(lambda: table_of(panels), "These masks as a table", f"{session.file_name}-masks.csv")


def show_panels(panels: Sequence[MaskPanel], name: str, predictions: Predictions | None = None) -> None:
    """Masks beside one another, with what to say about each, and how much it hides."""
    described = [panel if panel.before else replace(panel, words=f"{panel.words} {_hidden(panel)}") for panel in panels]
    masks(described, key=f"mask_panels_{name}", predictions=predictions)


def table_of(panels: Sequence[MaskPanel]) -> pd.DataFrame:
    """Masks as numbers: a row for each query and key."""
    return pd.concat(
        matrix_table(
            {"visible": panel.mask > 0, "where": np.array(["hidden", *panel.levels])[panel.mask.astype(int)]},
            panel.labels,
            panel.labels,
            panel.offset,
        ).assign(mask=panel.title)
        for panel in panels
    )


def _hidden(panel: MaskPanel) -> str:
    hidden, where = int((panel.mask == 0).sum()), " in every layer" if len(panel.levels) > 1 else ""
    return f"Of {counted(panel.mask.size, 'cell')} here, {hidden:,} are hidden{where}."


def _causal_panel(session: Session, text: tuple[int, ...], length: int, shown: int) -> MaskPanel:
    """The mask of the last `shown` tokens of a text, of which the context holds the last `length`."""
    groups, label = layers_by_window(session.config, length), library.tokenizer(session.name).labels
    outside = len(text) - length
    return MaskPanel(
        "Causal mask with sliding windows" if any(groups) else "Causal mask",
        label(text[-shown:]),
        np.sum([batches.hides_future(length, size)[-shown:, -shown:].astype(int) for size in groups], axis=0),
        len(text) - shown,
        _causal_words(session, groups, outside),
        levels_in_words(groups),
        label(text[max(outside - MOST_OUTSIDE, 0) : outside]) if shown == length else (),
    )


def levels_in_words(groups: dict[int, list[int]]) -> tuple[str, ...]:
    """Where a key can be visible, as `MaskPanel.levels` has it. groups: as in `layers_by_window`."""
    widest = [f"visible in {layers_in_words(sorted(layers))}" for layers in accumulate(groups.values())][:-1]
    return (*widest, "visible in every layer" if widest else "visible")


def _causal_words(session: Session, groups: dict[int, list[int]], outside: int) -> str:
    """outside: how many tokens of the text the context has no room for."""
    layers, reader = session.config.n_layers, "decoder" if session.source else "attention"
    words = [
        "A token sees itself and what came before it; the next token, which it is trained to predict, is hidden.",
        f"This model's {reader} uses it in {every(layers)} and every head."
        if layers
        else "This model has no attention, so it uses none.",
    ]
    if narrow := [f"{layers_in_words(layers)} the last {size}" for size, layers in reversed(groups.items()) if size]:
        words.append(f"A sliding window hides what is further back: in {', in '.join(narrow)} tokens are visible.")
    if session.source:
        words.append("Its rows are what the decoder reads.")
    if outside:
        words.append(
            f"The context holds {counted(session.config.context_length, 'token')}: tokens before position {outside} "
            "are outside it, so no query sees them."
        )
    return " ".join(words)


def _padding_panel(session: Session, text: tuple[int, ...], shown: int) -> MaskPanel:
    filler, pad = session.visitor.filler, batches.padding_id(session.config)
    tokens = (*library.window(session.name, text), *[pad] * filler)
    mask = batches.hides_padding(np.array([tokens]), pad)[0]
    start = max(len(tokens) - filler - shown, 0)
    words = f"{PADDING} is a padding token: it makes the texts of a batch equally long, and no token may look at it."
    labels = batches.token_labels(tokens[start:], library.tokenizer(session.name), pad)
    return MaskPanel("Padding mask", labels, mask[start:, start:], len(text) + filler - len(labels), words)


def _open_panel(session: Session, text: tuple[int, ...], shown: int) -> MaskPanel:
    labels = library.tokenizer(session.name).labels(library.window(session.name, text)[-shown:])
    own = "This model's encoder looks this way." if session.source else "This model has no encoder."
    words = (
        "Every token sees every other. That suits an encoder, which reads a text that is all there and never has to "
        f"predict what comes next. {own}"
    )
    return MaskPanel("No mask", labels, np.ones((len(labels),) * 2, dtype=bool), len(text) - len(labels), words)
