"""Draws the first part of the page Masks for an encoder: its mask, and what it predicts with a causal mask put on.

Dimensions: pos, query, key.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
import pandas as pd
import streamlit as st

from pages.ui.components.masks import MaskPanel, Predictions
from pages.ui.figures.axes import labelling_note
from pages.ui.figures.lines import lines_by_position
from pages.ui.frame.page import Session
from pages.ui.markdown import code, counted
from pages.ui.models import library, masked_predictions
from pages.ui.models.masked_predictions import SetEncoderMask, TextPredictions
from pages.ui.number_format import percent
from pages.ui.tables import offer_data
from pages.ui.views.charts import chart
from pages.ui.views.masks import MAX_TOKENS, levels_in_words, show_panels, table_of
from pages.ui.views.prompt_batch import hides_distant, hides_future
from pages.ui.views.side_by_side import side_by_side
from pages.ui.views.without_mask import (
    ALIKE,
    ROUNDING_ERROR,
    every,
    how_many,
    layers_by_window,
    layers_in_words,
    likeliest,
    place_of,
)

OWN, CAUSAL = "with its own mask", "with a causal mask"


@dataclass(frozen=True)
class Reading:
    """Part of a text, its tokens masked in turn, as the encoder reads it with its own mask and with a causal one."""

    tokens: tuple[int, ...]
    offset: int
    """The first one's position in the text."""
    labels: list[str]
    row: int
    """The first mask among them, or else the last one."""
    own: TextPredictions
    causal: TextPredictions


def show(session: Session) -> Reading | None:
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
    offer_data(
        lambda: _candidates(session, reading),
        "These predictions as a table",
        f"{session.file_name}-candidates-causal-mask.csv",
    )
    return reading


def every_prediction(session: Session, reading: Reading) -> None:
    """The two readings over the text: their losses, and probability and entropy by position."""
    st.markdown(
        "Each token is masked, one at a time, and predicted from all others, then once more under a causal mask, from "
        f"those before it alone. In its training the encoder always saw both sides.{_changes(session)}"
    )
    own, causal = reading.own.probability, reading.causal.probability
    if np.isnan(own).all():
        st.info("Every token of this text is masked, so no prediction can be right or wrong.")
        return
    before, after = (float(np.nanmean(predictions.loss)) for predictions in (reading.own, reading.causal))
    with st.container(horizontal=True):
        st.metric("Mean loss with its own mask", f"{before:.4f} nats", width=220)
        st.metric(
            "Mean loss with a causal mask",
            f"{after:.4f} nats",
            delta=f"{after - before:+.4f} nats",
            delta_color="off" if abs(after - before) < ALIKE else "inverse",
            width=220,
        )
    change = np.nan_to_num(np.abs(causal - own))
    words = "The loss is −ln of the probability of the token that stands there."
    if change[place := int(change.argmax())] >= ROUNDING_ERROR:
        words += (
            f" The largest change is at position {reading.offset + place}: from {percent(own[place])} to "
            f"{percent(causal[place])} for {code(reading.labels[place])}."
        )
    st.markdown(words)
    left, right = side_by_side("positions", 2)
    draw = functools.partial(lines_by_position, theme=session.theme, offset=reading.offset)
    with left:
        figure = draw({OWN: own, CAUSAL: causal}, reading.labels, None, unit="probability", top=1.0)
        chart(figure, "masks_probability")
        st.caption(f"The probability of each token where it is masked. {labelling_note(figure)}")
    with right:
        values = {OWN: reading.own.entropy, CAUSAL: reading.causal.entropy}
        figure = draw(values, reading.labels, None, unit="entropy (nats)")
        chart(figure, "masks_entropy")
        size = session.config.vocab_size
        st.caption(
            f"How unsure the model was: 0 is certain, ln {size} = {np.log(size):.2f} means that every token was "
            f"equally likely. {labelling_note(figure)}"
        )
    offer_data(lambda: _by_position(reading), "These predictions as a table", f"{session.file_name}-masked-in-turn.csv")


def _read(session: Session, tokens: tuple[int, ...], shown: int) -> Reading:
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
    return Reading(part, begin, labels, at - begin, own, causal)


def _changes(session: Session) -> str:
    return " What is changed in it is changed both times." if session.interventions else ""


def _panels(session: Session, length: int, reading: Reading) -> list[MaskPanel]:
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


def _predictions(session: Session, reading: Reading) -> Predictions:
    """What the encoder expects at each token where it is masked; at first at the first mask."""
    label, mask = library.tokenizer(session.name).label, library.model(session.name).card.mask_token_id
    both, count = (reading.own, reading.causal), len(reading.tokens)
    rows = [(likeliest(label, reading.own, at), likeliest(label, reading.causal, at)) for at in range(count)]
    right = [
        (None, None)
        if token == mask
        else (place_of(token, reading.own.top_tokens[at]), place_of(token, reading.causal.top_tokens[at]))
        for at, token in enumerate(reading.tokens)
    ]
    sees = [
        f"{count} of {counted(count, 'key')} visible, {at + 1} of them under a causal mask."
        + ("" if token == mask else " Here this token is masked, too; ✓ marks it.")
        for at, token in enumerate(reading.tokens)
    ]
    if reading.tokens[reading.row] == mask:
        sees[reading.row] += " This row is shown first because it is the first mask."
    names = ("With its own mask", "With a causal mask, unlike in training")
    return Predictions(names, rows, right, sees, reading.row, _last_in_words(session, both), "Predicted at")


def _last_in_words(session: Session, both: tuple[TextPredictions, TextPredictions]) -> str:
    """Why the prediction at the last token changes, or doesn't, although a causal mask hides nothing from it."""
    moved = float(np.abs(both[0].last - both[1].last).max())
    first = "The last token comes after all others, so a causal mask hides nothing from it in the first layer."
    if session.config.n_layers == 1:
        return f"{first} This model has no other."
    return (
        f"{first} But the tokens before it don't look ahead there any more, and from the second layer on it reads what "
        f"they made of it: the largest change of a probability here is {100 * moved:.3g} percentage points."
    )


def _candidates(session: Session, reading: Reading) -> pd.DataFrame:
    """The likeliest tokens at each position: a row each."""
    label = library.tokenizer(session.name).label
    rows = [
        (name, reading.offset + at, reading.labels[at], rank, *candidate)
        for name, predictions in ((OWN, reading.own), (CAUSAL, reading.causal))
        for at in range(len(reading.tokens))
        for rank, candidate in enumerate(likeliest(label, predictions, at), start=1)
    ]
    return pd.DataFrame(rows, columns=["mask", "position", "token", "rank", "predicted token", "probability"])


def _by_position(reading: Reading) -> pd.DataFrame:
    made = pd.DataFrame({"position": reading.offset + np.arange(len(reading.tokens)), "token": reading.labels})
    for name, predictions in ((OWN, reading.own), (CAUSAL, reading.causal)):
        made[f"probability {name}"] = predictions.probability
        made[f"loss {name} (nats)"] = predictions.loss
        made[f"entropy {name} (nats)"] = predictions.entropy
    return made
