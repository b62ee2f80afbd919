"""Draws the part of the page Masks about predictions with and without the causal mask.

Dimensions: pos, vocab.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import streamlit as st

from pages.ui.components.masks import Predictions
from pages.ui.figures.axes import labelling_note
from pages.ui.figures.lines import lines_by_position
from pages.ui.frame import widgets
from pages.ui.frame.page import Session
from pages.ui.markdown import code, counted
from pages.ui.models import activations, library, masked_predictions
from pages.ui.models.masked_predictions import TextPredictions
from pages.ui.number_format import percent
from pages.ui.tables import offer_data
from pages.ui.views.charts import chart
from pages.ui.views.side_by_side import side_by_side
from transformer import Intervention, ModelConfig, Without, in_window

SHORTEST = 32
"""Tokens of a picture that are always drawn; of a longer text, as many as are asked for."""
ALIKE = 0.02
"""Nats of mean loss, and less, that make no difference worth a word."""
ROUNDING_ERROR = 1e-5
"""A change of probability this small is rounding."""
SEEN = 0.01
"""A change of probability that can be seen in bars."""
MASK = Without("mask")
WITH, WITHOUT = "with the mask", "without it"


@dataclass(frozen=True)
class Reading:
    """A text as a decoder reads it, all of it or past the context its window, with its mask and without."""

    tokens: tuple[int, ...]
    following: tuple[int, ...]
    """What came after each of them; after the last one nothing may have come yet."""
    offset: int
    """The first one's position in the whole text."""
    labels: list[str]
    after: list[str]
    """The labels of `following`."""
    masked: TextPredictions
    free: TextPredictions


def read(session: Session) -> Reading:
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
    return Reading(tokens, following, offset, labels, after, masked, free)


def takes_mask(change: Intervention) -> bool:
    """Whether a change takes the causal mask away, somewhere or everywhere."""
    return isinstance(change, Without) and change.rule == "mask"


def predictions(session: Session, reading: Reading, shown: int) -> Predictions:
    """What the model expects after each of the last `shown` tokens; at first after the one where the mask matters most.

    That is where the token that really came next loses most probability; where none loses any, the middle one.
    """
    label = library.tokenizer(session.name).label
    masked, free = reading.masked, reading.free
    rows = [(likeliest(label, masked, at), likeliest(label, free, at)) for at in range(len(reading.tokens))]
    after = [*reading.following, None][: len(rows)]
    right = [
        (place_of(token, masked.top_tokens[at]), place_of(token, free.top_tokens[at])) for at, token in enumerate(after)
    ]
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


def layers_by_window(config: ModelConfig, seen: int) -> dict[int, list[int]]:
    """The layers by how many of the last `seen` tokens their window holds, widest first; 0: all of them."""
    windows = [size if 0 < (size := config.window(layer)) < seen else 0 for layer in range(config.n_layers)]
    widest_first = sorted({*windows} or {0}, key=lambda size: -size or -seen)
    return {size: [layer for layer, window in enumerate(windows) if window == size] for size in widest_first}


def layers_in_words(layers: Sequence[int]) -> str:
    return f"layer{'s'[: len(layers) > 1]} {', '.join(map(str, layers))}"


def likeliest(label: Callable[[int], str], predictions: TextPredictions, at: int) -> list[tuple[str, float]]:
    """The likeliest tokens of a prediction, by their labels, and how likely they are."""
    top = zip(predictions.top_tokens[at], predictions.top_probabilities[at], strict=True)
    return [(label(int(token)), float(probability)) for token, probability in top]


def place_of(token: int | None, tokens: np.ndarray) -> int | None:
    """Where a token is among others, or None."""
    positions = np.flatnonzero(tokens == token)
    return int(positions[0]) if len(positions) else None


def _local(config: ModelConfig, seen: int) -> str:
    """The layers that hide the distant past as well from a token that sees so many, with what they leave of it."""
    groups = reversed(layers_by_window(config, seen).items())
    return "".join(f"; in {layers_in_words(layers)} the last {size}" for size, layers in groups if size)


def candidates_table(session: Session, reading: Reading) -> pd.DataFrame:
    """The likeliest tokens after each token: a row each."""
    label = library.tokenizer(session.name).label
    rows = [
        (name, reading.offset + at, reading.labels[at], rank, *candidate)
        for name, predictions in ((WITH, reading.masked), (WITHOUT, reading.free))
        for at in range(len(reading.tokens))
        for rank, candidate in enumerate(likeliest(label, predictions, at), start=1)
    ]
    return pd.DataFrame(rows, columns=["mask", "position", "token", "rank", "next token", "probability"])


def every_prediction(session: Session, reading: Reading) -> None:
    """The two readings over the whole text: their losses, and probability and entropy by position."""
    st.markdown(_how_it_is_done(session))
    _verdict(reading)
    if len(reading.tokens) > 1:
        _by_position(session, reading)


def how_many(longest: int, field: str, label: str = "Tokens shown, from the end") -> int:
    """How many tokens are shown: SHORTEST of them, or as many as the visitor asks for."""
    return SHORTEST if longest <= SHORTEST else widgets.slider(label, 8, longest, field, width=240)


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
    text = session.text.tokens
    if not session.source:
        return session.text.prompt if session.visitor.scope == "prompt" else text
    if session.text.written:
        return text
    return text + activations.answer(session.name, text, session.source, session.interventions)


def every(layers: int) -> str:
    """So many layers, in words: all of a model's."""
    return "its one layer" if layers == 1 else f"all {layers} layers"


def _verdict(reading: Reading) -> None:
    masked, free = reading.masked, reading.free
    if len(reading.tokens) == 1:
        st.info("A single token has no future to hide. Type a longer text.")
    if not len(masked.probability):
        return
    before, after = float(masked.loss.mean()), float(free.loss.mean())
    with st.container(horizontal=True):
        st.metric("Mean loss with the mask", f"{before:.4f} nats", width=220)
        st.metric(
            "Mean loss without it",
            f"{after:.4f} nats",
            delta=f"{after - before:+.4f} nats",
            delta_color="off" if abs(after - before) < ALIKE else "inverse",
            width=220,
        )
    st.markdown(f"{verdict_in_words(masked, free)} {_largest_change(reading)}")


def verdict_in_words(masked: TextPredictions, free: TextPredictions) -> str:
    """Whether the text is predicted better or worse without the mask, and how often."""
    change, known = float(free.loss.mean() - masked.loss.mean()), len(masked.probability)
    better = int((free.probability > masked.probability + ROUNDING_ERROR).sum())
    worse = int((free.probability < masked.probability - ROUNDING_ERROR).sum())
    verdict = (
        "about as well as with it"
        if abs(change) < ALIKE
        else ("worse than with it" if change > 0 else "better than with it")
    )
    which = "the one token" if known == 1 else f"the {known} tokens"
    return (
        f"The loss is −ln of the probability of the token that really came next, the mean of {which} whose next is "
        f"known. Without its mask the model predicts this text **{verdict}**. The right token got "
        f"less probability {_times(worse)} and more {_times(better)}."
    )


def _largest_change(reading: Reading) -> str:
    masked, free = reading.masked.probability, reading.free.probability
    change = np.abs(free - masked)
    position = int(change.argmax())
    if change[position] < ROUNDING_ERROR:
        return ""
    return (
        f"The largest change is after {code(reading.labels[position])} at position {reading.offset + position}: from "
        f"{percent(masked[position])} to {percent(free[position])} for {code(reading.after[position])}."
    )


def _times(count: int) -> str:
    return {0: "nowhere", 1: "at 1 position"}.get(count, f"at {count} positions")


def _by_position(session: Session, reading: Reading) -> None:
    masked, free, count = reading.masked, reading.free, len(reading.tokens)
    labels, following = reading.labels, [*reading.after, "?"][:count]
    first = max(count - how_many(count, "positions_shown"), 0)
    left, right = side_by_side("positions", 2)
    draw = functools.partial(lines_by_position, theme=session.theme, offset=reading.offset + first)
    with left:
        values = {WITH: masked.probability[first:], WITHOUT: free.probability[first:]}
        figure = draw(values, labels[first:], following[first:], unit="probability", top=1.0)
        chart(figure, "masks_probability")
        st.caption(f"The probability, after each token, of the token that really came next. {labelling_note(figure)}")
    with right:
        values = {WITH: masked.entropy[first:], WITHOUT: free.entropy[first:]}
        figure = draw(values, labels[first:], following[first:], unit="entropy (nats)")
        chart(figure, "masks_entropy")
        st.caption(
            "How unsure the model was: 0 is certain, "
            f"ln {session.config.vocab_size} = {np.log(session.config.vocab_size):.2f} means that every token "
            f"was equally likely. {labelling_note(figure)}"
        )

    def table() -> pd.DataFrame:
        made = pd.DataFrame(
            {"position": range(reading.offset, reading.offset + count), "token": labels, "next token": following}
        )
        for name, predictions in ((WITH, masked), (WITHOUT, free)):
            made[f"probability {name}"] = pd.Series(predictions.probability)
            made[f"loss {name} (nats)"] = pd.Series(predictions.loss)
            made[f"entropy {name} (nats)"] = predictions.entropy
        return made

    offer_data(table, "These predictions as a table", f"{session.file_name}-without-mask.csv")


def last_token_in_words(config: ModelConfig, tokens: int, masked: TextPredictions, free: TextPredictions) -> str:
    """Why the prediction after the last token changes, or doesn't, although the mask hides nothing from it."""
    moved = float(np.abs(masked.last - free.last).max())
    change = (
        "no probability changes here"
        if moved < ROUNDING_ERROR
        else (f"the largest change of a probability here is {100 * moved:.3g} percentage points")
    )
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
