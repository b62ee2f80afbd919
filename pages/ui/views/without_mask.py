"""Draws the part of the page Masks about predictions with and without the causal mask.

Dimensions: pos, vocab.
"""

import numpy as np
import streamlit as st

from pages.ui.components.masks import Predictions
from pages.ui.computations import masked_predictions
from pages.ui.computations.masked_predictions import TextPredictions
from pages.ui.frame.page import Session
from pages.ui.markdown import code, counted
from pages.ui.models import library
from pages.ui.number_format import percent
from pages.ui.views.two_readings import (
    ALIKE,
    ROUNDING_ERROR,
    Readings,
    both_likeliest,
    by_position,
    compare_losses,
    every,
    how_many,
    layers_by_window,
    layers_in_words,
    places_of,
)
from transformer import Intervention, ModelConfig, Without, in_window

SEEN = 0.01
"""A change of probability that can be seen in bars."""
MASK = Without("mask")
WITH, WITHOUT = "with the mask", "without it"


def read(session: Session) -> Readings:
    """Have the model read its text in both ways. What else a visitor has changed in it is changed in both."""
    text, seen = _whole_text(session), decoded(session)
    tokens = library.window(session.name, seen)
    offset = len(seen) - len(tokens)
    following = text[offset + 1 :]
    kept = in_window(tuple(change for change in session.interventions if not takes_mask(change)), offset)
    masked, free = (
        masked_predictions.predict_text(session.name, tokens, following, session.source, changes)
        for changes in (kept, (*kept, MASK))
    )
    labels, after = map(library.tokenizer(session.name).labels, (tokens, following))
    after = [*after, "?"][: len(tokens)]
    return Readings(tokens, offset, labels, (WITH, WITHOUT), masked, free, following, after)


def takes_mask(change: Intervention) -> bool:
    """Whether a change takes the causal mask away, somewhere or everywhere."""
    return isinstance(change, Without) and change.rule == "mask"


def predictions(session: Session, reading: Readings, shown: int) -> Predictions:
    """What the model expects after each of the last `shown` tokens; at first after the one where the mask matters most.

    That is where the token that really came next loses most probability; where none loses any, the middle one.
    """
    label = library.tokenizer(session.name).label
    masked, free = reading.own, reading.other
    rows = both_likeliest(label, reading)
    right = places_of([*(reading.following or ()), None][: len(rows)], reading)
    first = max(len(rows) - shown, 0)
    lost = (masked.probability - free.probability)[first : len(rows) - 1]
    matters = lost.max(initial=0.0) >= SEEN
    row = int(lost.argmax()) if matters else len(lost) // 2
    words = last_token_in_words(session.config, len(rows), masked, free)
    sees = [
        f"{seen - first} of {counted(len(rows) - first, 'key')} visible{_local(session.config, seen)}."
        for seen in range(first + 1, len(rows) + 1)
    ]
    if len(lost):
        sees[row] += (
            " This row is shown first because the token that came next (✓) loses most probability here."
            if matters
            else " This row is shown first because it is the middle one: no token loses much probability."
        )
    return Predictions(
        ("With the mask", "Without the mask, unlike in training"), rows[first:], right[first:], sees, row, words
    )


def _local(config: ModelConfig, seen: int) -> str:
    """The layers that hide the distant past as well from a token that sees so many, with what they leave of it."""
    groups = reversed(layers_by_window(config, seen).items())
    return "".join(f"; in {layers_in_words(layers)} the last {size}" for size, layers in groups if size)


def every_prediction(session: Session, reading: Readings) -> None:
    """The two readings over the whole text: their losses, and probability and entropy by position."""
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
        written = library.tokenizer(session.name).decode(decoded(session)[1:])
        origin = "was written" if session.text.written else "the model would write"
        whose = f" The text is what {origin}: {code(written)}." if written else ""
    is_changed = any(not takes_mask(change) for change in session.interventions)
    changes = " What else is changed in it is changed both times." if is_changed else ""
    return (
        f"The same model reads the same text twice. The second time every token sees every other in {where}, in "
        f"{every(session.config.n_layers)}; nothing else differs.{changes}{whose} It was trained with the mask, so it "
        "has not learned to use what it now sees. *Trained* without a mask, it would copy the next token from the next "
        "position, and could not write."
    )


def decoded(session: Session) -> tuple[int, ...]:
    """What the decoder reads: the text without its end token, from which nothing is looked up."""
    text, end = _whole_text(session), library.model(session.name).card.end_token_id
    return text[:-1] if len(text) > 1 and text[-1] == end else text


def _whole_text(session: Session) -> tuple[int, ...]:
    """The prompt, or all that was written; of an encoder–decoder what was written, or what it would write."""
    is_prompt = not session.source and session.visitor.scope == "prompt"
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


def last_token_in_words(config: ModelConfig, tokens: int, masked: TextPredictions, free: TextPredictions) -> str:
    """Why the prediction after the last token changes, or doesn't, although the mask hides nothing from it."""
    moved = float(np.abs(masked.last - free.last).max())
    change = f"the largest change of a probability here is {100 * moved:.3g} percentage points"
    if moved < ROUNDING_ERROR:
        change = "no probability changes here"
    if tokens == 1:
        return f"The last token is the only one: {change}."
    if 0 < config.window(0) < tokens:
        return (
            "The last token comes after all others, but in layer 0 the mask leaves it only the last "
            f"{counted(config.window(0), 'token')}: {change}."
        )
    first = "The last token comes after all others, so the mask hides nothing from it, and its first layer is the same."
    if config.n_layers == 1:
        return f"{first} This model has no other layer: {change}."
    return (
        f"{first} But the tokens before it have looked ahead in that layer, and from the second layer on it reads "
        f"what they made of it: {change}."
    )
