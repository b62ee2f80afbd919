"""Draws the first part of the page Masks for an encoder: its mask, and what it predicts with a causal mask put on.

Dimensions: pos, query, key.
"""

import numpy as np
import streamlit as st

from pages.ui.components.masks import MaskPanel, Predictions
from pages.ui.computations import masked_predictions
from pages.ui.computations.masked_predictions import SetEncoderMask
from pages.ui.frame.page import Session
from pages.ui.markdown import code, counted
from pages.ui.models import library
from pages.ui.number_format import percent
from pages.ui.tables import offer_data
from pages.ui.views.masks import MAX_TOKENS, levels_in_words, show_panels, table_of
from pages.ui.views.prompt_batch import hides_distant, hides_future
from pages.ui.views.two_readings import (
    ROUNDING_ERROR,
    Readings,
    both_likeliest,
    by_position,
    compare_losses,
    every,
    how_many,
    layers_by_window,
    layers_in_words,
    offer_candidates,
    places_of,
)

OWN, CAUSAL = "with its own mask", "with a causal mask"


def show(session: Session) -> Readings | None:
    """The encoder's mask and a decoder's, and what it predicts with either; returns the two readings."""
    st.markdown(
        "An encoder reads a text that is all there, and predicts what is masked in it. Nothing else has to be hidden, "
        "so it has **no causal mask**: every token sees those after it, too."
    )
    picture = st.container()
    tokens = session.text.prompt
    most = min(MAX_TOKENS, masked_predictions.most_masked(session.name, len(tokens)))
    shown = min(how_many(min(len(tokens), most), "masks_shown", "Tokens shown, around the mask"), most, len(tokens))
    reading = _read(session, tokens, shown) if session.config.n_layers else None
    with picture:
        if reading is None:
            st.info("This model has no layers, and so no attention and no mask: it predicts each token from itself.")
            return None
        panels = _panels(session, len(tokens), reading)
        show_panels(panels, "causal", _predictions(session, reading))
    offer_data(lambda: table_of(panels), "These masks as a table", f"{session.file_name}-masks-of-attention.csv")
    offer_candidates(session, reading, "causal-mask")
    return reading


def every_prediction(session: Session, reading: Readings) -> None:
    """The two readings over the text: their losses, and probability and entropy by position."""
    changed = " What is changed in it is changed both times." if session.interventions else ""
    st.markdown(
        "Each token is masked, one at a time, and predicted from all others, then once more under a causal mask, from "
        f"those before it alone. In its training the encoder always saw both sides.{changed}"
    )
    own, causal = reading.own.probability, reading.other.probability
    if np.isnan(own).all():
        st.info("Every token of this text is masked, so no prediction can be right or wrong.")
        return
    compare_losses(reading)
    change = np.nan_to_num(np.abs(causal - own))
    words = "The loss is −ln of the probability of the token that stands there."
    if change[place := int(change.argmax())] >= ROUNDING_ERROR:
        words += (
            f" The largest change is at position {reading.offset + place}: from {percent(own[place])} to "
            f"{percent(causal[place])} for {code(reading.labels[place])}."
        )
    st.markdown(words)
    by_position(session, reading, "The probability of each token where it is masked.", "masked-in-turn")


def _read(session: Session, tokens: tuple[int, ...], shown: int) -> Readings:
    """Have the model read the text in both ways. What a visitor has changed in it is changed in both."""
    at = library.model(session.name).predicted_position(tokens)
    begin = min(len(tokens) - shown, max(at - shown // 2, 0))  # the mask is among them
    changes = session.interventions
    own, causal = (
        masked_predictions.predict_masked(session.name, tokens, begin, begin + shown, made)
        for made in (changes, (*changes, SetEncoderMask(causal=True)))
    )
    part = tokens[begin : begin + shown]
    labels = library.tokenizer(session.name).labels(part)
    return Readings(part, begin, labels, (OWN, CAUSAL), own, causal, row=at - begin)


def _panels(session: Session, length: int, reading: Readings) -> list[MaskPanel]:
    """The encoder's own mask and a causal one, over the same tokens. length: of all the text that is read."""
    groups, size = layers_by_window(session.config, length), len(reading.tokens)
    sizes = [(window, layers) for window, layers in reversed(groups.items()) if window]
    narrow = ", ".join(f"in {layers_in_words(layers)} than {counted(window - 1, 'token')}" for window, layers in sizes)
    near = f" A sliding window hides what is further away: {narrow}." if narrow else ""
    own = f"In {every(session.config.n_layers)} and every head, a token sees what comes before it and after it."
    causal = "It hides from each token what comes after it, which a decoder has to predict."
    return [
        MaskPanel(
            title,
            reading.labels,
            np.sum([visible(size, window).astype(int) for window in groups], axis=0),
            reading.offset,
            words,
            levels_in_words(groups),
        )
        for title, visible, words in (
            ("This encoder's mask", hides_distant, f"{own}{near}"),
            ("A decoder's causal mask", hides_future, causal),
        )
    ]


def _predictions(session: Session, reading: Readings) -> Predictions:
    """What the encoder expects at each token where it is masked; at first at the first mask."""
    label, mask = library.tokenizer(session.name).label, library.model(session.name).card.mask_token_id
    count = len(reading.tokens)
    rows = both_likeliest(label, reading)
    right = places_of([None if token == mask else token for token in reading.tokens], reading)
    sees = [
        f"{count} of {counted(count, 'key')} visible, {at + 1} of them under a causal mask."
        + ("" if token == mask else " Here this token is masked, too; ✓ marks it.")
        for at, token in enumerate(reading.tokens)
    ]
    if reading.tokens[reading.row] == mask:
        sees[reading.row] += " This row is shown first because it is the first mask."
    names = ("With its own mask", "With a causal mask, unlike in training")
    return Predictions(names, rows, right, sees, reading.row, _last_in_words(session, reading), "Predicted at")


def _last_in_words(session: Session, reading: Readings) -> str:
    """Why the prediction at the last token changes, or doesn't, although a causal mask hides nothing from it."""
    moved = float(np.abs(reading.own.last - reading.other.last).max())
    first = "The last token comes after all others, so a causal mask hides nothing from it in the first layer."
    if session.config.n_layers == 1:
        return f"{first} This model has no other."
    return (
        f"{first} But the tokens before it don't look ahead there any more, and from the second layer on it reads what "
        f"they made of it: the largest change of a probability here is {100 * moved:.3g} percentage points."
    )
