"""Draws the part of the page Masks about predictions with and without the causal mask.

Dimensions: pos.
"""

import numpy as np
import streamlit as st

from pages.ui.computations import masked_predictions
from pages.ui.computations.masked_predictions import TextPredictions
from pages.ui.frame.page import Session
from pages.ui.markdown import code
from pages.ui.models import library
from pages.ui.number_format import percent
from pages.ui.views.two_readings import ALIKE, ROUNDING_ERROR, Readings, by_position, compare_losses, how_many
from transformer import Intervention, Without, in_window

MASK = Without("mask")
WITH, WITHOUT = "with the mask", "without it"


def _read(session: Session) -> Readings:
    """Have the model read its text in both ways. What else a visitor has changed in it is changed in both."""
    text, seen = _whole_text(session), _decoded(session)
    tokens = library.window(session.name, seen)
    offset = len(seen) - len(tokens)
    following = text[offset + 1 :]
    kept = in_window(tuple(change for change in session.interventions if not _takes_mask(change)), offset)
    masked, free = (
        masked_predictions.predict_text(session.name, tokens, following, session.source, changes)
        for changes in (kept, (*kept, MASK))
    )
    labels, after = map(session.tokenizer.labels, (tokens, following))
    after = [*after, "?"][: len(tokens)]
    return Readings(tokens, offset, labels, (WITH, WITHOUT), masked, free, after)


def _takes_mask(change: Intervention) -> bool:
    """Whether a change takes the causal mask away, somewhere or everywhere."""
    return isinstance(change, Without) and change.rule == "mask"


def every_prediction(session: Session) -> None:
    """The two readings over the whole text: their losses, and probability and entropy by position."""
    reading = _read(session)
    st.markdown(_how_it_is_done(session))
    _verdict(reading)
    if len(reading.tokens) > 1:
        first = max(len(reading.tokens) - how_many(len(reading.tokens), "positions_shown"), 0)
        caption = "The probability, after each token, of the token that really came next."
        by_position(session, reading, caption, "without-mask", first)


def _how_it_is_done(session: Session) -> str:
    where = "the decoder's attention to its own tokens" if session.source else "attention"
    whose = ""
    if session.source:
        written = session.tokenizer.decode(_decoded(session)[1:])
        origin = "was written" if session.text.written else "the model would write"
        whose = f" The text is what {origin}: {code(written)}." if written else ""
    layers = session.config.n_layers
    every = "its one layer" if layers == 1 else f"all {layers} layers"
    is_changed = any(not _takes_mask(change) for change in session.interventions)
    changes = " What else is changed in it is changed both times." if is_changed else ""
    return (
        f"The same model reads the same text twice. The second time every token sees every other in {where}, in "
        f"{every}; nothing else differs.{changes}{whose} It was trained with the mask, so it "
        "has not learned to use what it now sees. *Trained* without a mask, it would copy the next token from the next "
        "position, and could not write."
    )


def _decoded(session: Session) -> tuple[int, ...]:
    """What the decoder reads: the text without its end token, from which nothing is looked up."""
    text, end = _whole_text(session), library.model(session.name).card.end_token_id
    return text[:-1] if len(text) > 1 and text[-1] == end else text


def _whole_text(session: Session) -> tuple[int, ...]:
    """The prompt, or all that was written; of an encoder–decoder what was written, or what it would write."""
    is_prompt = not session.source and session.state.scope == "prompt"
    return session.text.prompt if is_prompt else session.text.whole()


def _verdict(reading: Readings) -> None:
    if len(reading.tokens) == 1:
        st.info("A single token has no future to hide. Type a longer text.")
    if not len(reading.own.probability):
        return
    compare_losses(reading)
    st.markdown(f"{verdict_in_words(reading.own, reading.other)} {_largest_change(reading)}")


def verdict_in_words(masked: TextPredictions, free: TextPredictions) -> str:
    """Whether the text is predicted better or worse without the mask, and how often."""
    change, known = float(free.loss.mean() - masked.loss.mean()), len(masked.probability)
    better = int((free.probability > masked.probability + ROUNDING_ERROR).sum())
    worse = int((free.probability < masked.probability - ROUNDING_ERROR).sum())
    verdict = "worse than with it" if change > 0 else "better than with it"
    if abs(change) < ALIKE:
        verdict = "about as well as with it"
    which = "the one token" if known == 1 else f"the {known} tokens"
    return (
        f"The loss is −ln of the probability of the token that really came next, the mean of {which} whose next is "
        f"known. Without its mask the model predicts this text **{verdict}**. The right token got "
        f"less probability {_times(worse)} and more {_times(better)}."
    )


def _largest_change(reading: Readings) -> str:
    masked, free = reading.own.probability, reading.other.probability
    change = np.abs(free - masked)
    position = int(change.argmax())
    if change[position] < ROUNDING_ERROR:
        return ""
    return (
        f"The largest change is after {code(reading.labels[position])} at position {reading.offset + position}: from "
        f"{percent(masked[position])} to {percent(free[position])} for {code((reading.after or [])[position])}."
    )


def _times(count: int) -> str:
    return {0: "nowhere", 1: "at 1 position"}.get(count, f"at {count} positions")
