"""Draws the part of the page Masks about an encoder's predictions, with its own mask and with a causal one.

Dimensions: pos.
"""

import numpy as np
import streamlit as st

from pages.ui.computations import masked_predictions
from pages.ui.frame.page import Session
from pages.ui.markdown import code
from pages.ui.models import library
from pages.ui.number_format import percent
from pages.ui.views.two_readings import ROUNDING_ERROR, SHORTEST, Readings, by_position, compare_losses
from transformer import Without
from transformer.api.predictions import most_masked

MOST_SHOWN = 96
"""Tokens that are masked in turn, as many as the masks above show."""
OWN, CAUSAL = "with its own mask", "with a causal mask"


def every_prediction(session: Session) -> None:
    """The two readings over the text: their losses, and probability and entropy by position."""
    reading = _read(session)
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


def _read(session: Session) -> Readings:
    """Have the model read the text in both ways. What a visitor has changed in it is changed in both."""
    tokens, checkpoint = session.text.prompt, library.model(session.name)
    most = min(len(tokens), MOST_SHOWN, most_masked(checkpoint, len(tokens)))
    shown = most if most <= SHORTEST else min(session.state.masks_shown, most)
    begin = min(len(tokens) - shown, max(checkpoint.predicted_position(tokens) - shown // 2, 0))  # the mask is there
    own, causal = (
        masked_predictions.predict_masked(session.name, tokens, begin, begin + shown, made)
        for made in (session.interventions, (*session.interventions, Without("later")))
    )
    part = tokens[begin : begin + shown]
    return Readings(part, begin, session.tokenizer.labels(part), (OWN, CAUSAL), own, causal)
