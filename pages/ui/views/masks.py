"""The parts of the page Masks about the prompt on screen: three masks, and what is predicted without one.

Dimensions: pos, query, key, vocab.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from pages.ui.components.masks import Panel, masks
from pages.ui.figures import masks as mask_figures
from pages.ui.figures.axes import labelling_note
from pages.ui.figures.palette import CATEGORICAL
from pages.ui.frame import widgets
from pages.ui.frame.page import Session
from pages.ui.markdown import code, counted
from pages.ui.models import activations, library, masking
from pages.ui.models.masking import Predicted
from pages.ui.tables import matrix_table, offer_data
from pages.ui.views import prompt_batch as batches
from pages.ui.views.attention import SCOPES
from pages.ui.views.charts import chart
from pages.ui.views.prompt_batch import PADDING
from pages.ui.views.side_by_side import side_by_side
from transformer import Intervention, ModelConfig, Without, in_window

SHORTEST = 32
"""Tokens of a picture that are always drawn; of a longer text, as many as are asked for."""
MOST = 96
"""A longer mask looks the same, and its table takes long to make."""
CANDIDATES = 5
ALIKE = 0.02
"""Nats of mean loss, and less, that make no difference worth a word."""
UNMOVED = 1e-5
"""A change of probability this small is rounding."""
WITH, WITHOUT = "with the mask", "without it"


@dataclass(frozen=True)
class Reading:
    """A text as a decoder reads it: all of it, or past the context its window."""

    tokens: tuple[int, ...]
    following: tuple[int, ...]
    """What came after each of them; after the last one nothing may have come yet."""
    offset: int
    """The first one's place in the whole text."""


def three_masks(session: Session) -> None:
    """Causal, padding and none, side by side."""
    st.header("Three masks", anchor=False)
    source, target = session.source, _text(session)
    text = source or target
    longest = max(len(library.window(session.name, each)) for each in (text, target))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        widgets.slider("Padding tokens after the prompt", 0, 8, "filler", width=240)
        shown = _how_many(min(longest, MOST), "masks_shown")
    panels = [
        _causal_panel(session, target, shown),
        _padding_panel(session, text, shown),
        _open_panel(session, text, shown),
    ]
    show_panels(panels, "prompt")
    offer_data(lambda: pd.concat(
        matrix_table({"visible": panel.mask}, panel.labels, panel.labels, panel.offset).assign(mask=panel.title)
        for panel in panels
    ), "These masks as a table", f"{session.file_name}-masks.csv")  # fmt: skip


def show_panels(panels: Sequence[Panel], name: str) -> None:
    """Masks beside one another, with what to say about each."""
    masks([replace(panel, words=f"{panel.words} {_hidden(panel.mask)}") for panel in panels], key=f"mask_panels_{name}")


def _hidden(mask: np.ndarray) -> str:
    return f"In this picture it hides {int((~mask).sum()):,} of {counted(mask.size, 'cell')}."


def show(figure: go.Figure, name: str) -> None:
    """A figure of this page."""
    chart(figure, f"masks_{name}")


def without_mask(session: Session) -> None:
    """The model's predictions with its causal mask beside those with every position visible."""
    st.header("What the model predicts without its causal mask", anchor=False)
    if not session.config.n_layers:
        st.info("This model has no layers, and so no attention and no mask to take away: "
                "it goes straight from a token to the next one's odds.")  # fmt: skip
        return
    if not session.source:
        widgets.segmented_control("Text", SCOPES, "scope", SCOPES.get, disabled=not session.text.written)
    reading = _reading(session)
    with_mask = tuple(change for change in session.interventions if not _takes_mask(change))
    both = [masking.predicted(session.name, reading.tokens, reading.following, session.source, masked=masked,
                              interventions=in_window(with_mask, reading.offset))
            for masked in (True, False)]  # fmt: skip
    st.markdown(_how_it_is_done(session, is_changed=bool(with_mask)))
    if changed := _taken_away(session):
        st.info(f"{changed.strip()} Here the first reading has the whole mask all the same, to compare with.")
    _verdict(session, reading, *both)
    if len(reading.tokens) > 1:
        _by_position(session, reading, *both)
    _last_token(session, reading, *both)


def _text(session: Session) -> tuple[int, ...]:
    """What the decoder reads: the prompt; of an encoder–decoder what was written, or what it would write."""
    if not session.source:
        return session.text.prompt
    text = session.text.tokens
    if not session.text.written:
        text += activations.answer(session.name, text, session.source, session.interventions)
    return text[:-1] if text[-1] == _end(session) else text  # nothing is looked up from the end token


def _end(session: Session) -> int | None:
    return library.model(session.name).card.end_token_id


def _reading(session: Session) -> Reading:
    text = session.text.tokens
    if not session.source and session.visitor.scope == "prompt":
        text = session.text.prompt
    if session.source and not session.text.written:
        text += activations.answer(session.name, text, session.source, session.interventions)
    read = text[:-1] if len(text) > 1 and text[-1] == _end(session) else text
    tokens = library.window(session.name, read)
    offset = len(read) - len(tokens)
    return Reading(tokens, text[offset + 1 :], offset)


def _how_many(longest: int, field: str) -> int:
    """How many tokens are shown, from the end: SHORTEST of them, or as many as the visitor asks for."""
    if longest <= SHORTEST:
        return SHORTEST
    return widgets.slider("Tokens shown, from the end", 8, longest, field, width=240)


def _causal_panel(session: Session, text: tuple[int, ...], shown: int) -> Panel:
    mask = batches.hides_future(len(library.window(session.name, text)[-shown:]))
    used = "It has no attention, so it uses none." if not session.config.n_layers else (
        f"This model's {'decoder' if session.source else 'attention'} uses it in "
        f"{_every(session.config.n_layers)} and every head.{_windows(session.config)}")  # fmt: skip
    whose = " Its rows are what the decoder reads." if session.source else ""
    words = (
        "Hides the future: a token sees itself and what came before it. In training every token is followed by the "
        f"right answer; without this mask the model could read it there. {used}{_taken_away(session)}{whose}"
    )
    return _panel(session, "Causal mask", text, mask, shown, words)


def _windows(config: ModelConfig) -> str:
    """Where a mask hides the distant past as well, as a sentence; empty if nowhere."""
    narrow = [f"{window} in layer {layer}" for layer in range(config.n_layers) if (window := config.window(layer))]
    if not narrow:
        return ""
    return f" Some layers hide the distant past as well, which is not drawn: a token sees the last {', '.join(narrow)}."


def _taken_away(session: Session) -> str:
    """What a visitor has changed in the causal mask, as a sentence; empty if nothing."""
    words = [str(each) for each in session.interventions if _takes_mask(each)]
    return f" It is changed now: {'; '.join(words)}." if words else ""


def _takes_mask(change: Intervention) -> bool:
    return isinstance(change, Without) and change.rule == "mask"


def _padding_panel(session: Session, text: tuple[int, ...], shown: int) -> Panel:
    filler, pad = session.visitor.filler, batches.padding_id(session.config)
    tokens = (*library.window(session.name, text), *[pad] * filler)
    mask = batches.hides_padding(np.array([tokens]), pad)[0]
    start = max(len(tokens) - filler - shown, 0)
    words = (
        f"Hides filler: {PADDING} stands for a padding token. It only makes the texts of a batch equally long, so "
        "that they fit into one rectangle, and no token may look at it."
    )
    labels = batches.token_labels(tokens[start:], library.tokenizer(session.name), pad)
    return Panel("Padding mask", labels, mask[start:, start:], len(text) + filler - len(labels), words)


def _open_panel(session: Session, text: tuple[int, ...], shown: int) -> Panel:
    size = len(library.window(session.name, text)[-shown:])
    own = "This model's encoder looks this way." if session.source else "This model has no encoder."
    words = (
        "Hides nothing: every token sees every other, in both directions. That suits an encoder, which reads a text "
        f"that is all there, and never has to guess what comes next. {own}"
    )
    return _panel(session, "No mask", text, np.ones((size, size), dtype=bool), shown, words)


def _panel(session: Session, title: str, text: tuple[int, ...], mask: np.ndarray, shown: int, words: str) -> Panel:
    labels = library.tokenizer(session.name).labels(library.window(session.name, text)[-shown:])
    return Panel(title, labels, mask, len(text) - len(labels), words)


def _every(layers: int) -> str:
    return "its one layer" if layers == 1 else f"all {layers} layers"


def _how_it_is_done(session: Session, *, is_changed: bool) -> str:
    """is_changed: whether more is changed in the model than its mask."""
    config: ModelConfig = session.config
    where = "the decoder's attention to its own tokens" if session.source else "attention"
    whose = ""
    if session.source:
        written = library.tokenizer(session.name).decode(_text(session)[1:])
        origin = "was written" if session.text.written else "the model would write"
        whose = f" The text is what {origin}: {code(written)}." if written else ""
    changes = " What else is changed in it is changed both times." if is_changed else ""
    return (
        f"The same model reads the same text twice. The second time every token may see every other in {where}, "
        f"in {_every(config.n_layers)}; nothing else differs.{changes}{whose} The model was trained with the mask, "
        "so what now comes from the future is foreign to it. A model that was *trained* without a mask would simply "
        "copy the next token from the next position, and could not write."
    )


def _verdict(session: Session, reading: Reading, masked: Predicted, free: Predicted) -> None:
    known = len(masked.probability)
    if len(reading.tokens) == 1:
        st.info("A single token has no future: with the mask or without it, it sees only itself. "
                "A longer text shows the difference.")  # fmt: skip
    if not known:
        return
    before, after = float(masked.loss.mean()), float(free.loss.mean())
    with st.container(horizontal=True):
        st.metric("Mean loss with the mask", f"{before:.4f} nats", width=220)
        st.metric("Mean loss without it", f"{after:.4f} nats", delta=f"{after - before:+.4f} nats",
                  delta_color="off" if abs(after - before) < ALIKE else "inverse", width=220)  # fmt: skip
    tokenizer = library.tokenizer(session.name)
    largest = _largest_change(tokenizer.labels(reading.tokens), tokenizer.labels(reading.following), reading.offset,
                              masked, free)  # fmt: skip
    st.markdown(f"{_verdict_in_words(masked, free)} {largest}")


def _verdict_in_words(masked: Predicted, free: Predicted) -> str:
    change, known = float(free.loss.mean() - masked.loss.mean()), len(masked.probability)
    better = int((free.probability > masked.probability + UNMOVED).sum())
    worse = int((free.probability < masked.probability - UNMOVED).sum())
    verdict = "about as well as with it" if abs(change) < ALIKE else (
        "worse than with it" if change > 0 else "better than with it")  # fmt: skip
    places = "the one token" if known == 1 else f"the {known} tokens"
    return (
        f"The loss is −ln of the probability given to the token that really came next, here on average over {places} "
        f"whose successor is known. Without its mask the model predicts this text **{verdict}**. The right token got "
        f"less probability {_times(worse)} and more {_times(better)}."
    )


def _largest_change(
    labels: Sequence[str], following: Sequence[str], offset: int, masked: Predicted, free: Predicted
) -> str:
    change = np.abs(free.probability - masked.probability)
    place = int(change.argmax())
    if change[place] < UNMOVED:
        return ""
    return (
        f"The largest change is after {code(labels[place])} at position {offset + place}: from "
        f"{masked.probability[place]:.1%} to {free.probability[place]:.1%} for {code(following[place])}."
    )


def _times(count: int) -> str:
    return {0: "nowhere", 1: "at 1 place"}.get(count, f"at {count} places")


def _by_position(session: Session, reading: Reading, masked: Predicted, free: Predicted) -> None:
    tokenizer, count = library.tokenizer(session.name), len(reading.tokens)
    labels = tokenizer.labels(reading.tokens)
    following = [*tokenizer.labels(reading.following), "?"][:count]
    first = max(count - _how_many(count, "positions_shown"), 0)
    left, right = side_by_side("positions", 2)
    options = dict(theme=session.theme, offset=reading.offset + first)
    with left:
        values = {WITH: masked.probability[first:], WITHOUT: free.probability[first:]}
        figure = mask_figures.lines_by_position(values, labels[first:], following[first:], unit="probability",
                                                top=1.0, **options)  # fmt: skip
        show(figure, "probability")
        st.caption("The probability that the model gave, after each token, to the token that really came next. "
                   f"{labelling_note(figure)}")  # fmt: skip
    with right:
        values = {WITH: masked.entropy[first:], WITHOUT: free.entropy[first:]}
        figure = mask_figures.lines_by_position(values, labels[first:], following[first:], unit="entropy (nats)",
                                                **options)  # fmt: skip
        show(figure, "entropy")
        st.caption("How unsure the model was, whatever came next: 0 is certain, "
                   f"ln {session.config.vocab_size} = {np.log(session.config.vocab_size):.2f} means that every token "
                   f"was equally likely. {labelling_note(figure)}")  # fmt: skip

    def table() -> pd.DataFrame:
        made = pd.DataFrame({"position": range(reading.offset, reading.offset + count), "token": labels,
                             "next token": following})  # fmt: skip
        for name, found in ((WITH, masked), (WITHOUT, free)):
            made[f"probability {name}"] = pd.Series(found.probability)
            made[f"loss {name} (nats)"] = pd.Series(found.loss)
            made[f"entropy {name} (nats)"] = found.entropy
        return made

    offer_data(table, "These predictions as a table", f"{session.file_name}-without-mask.csv")


def _last_token(session: Session, reading: Reading, masked: Predicted, free: Predicted) -> None:
    tokenizer = library.tokenizer(session.name)
    last, place = tokenizer.label(reading.tokens[-1]), reading.offset + len(reading.tokens) - 1
    st.markdown(f"**What comes after the last token, {code(last)} at position {place}**")
    limit = float(max(masked.last.max(), free.last.max()))
    tables = []
    places = side_by_side("candidates", 2)
    for column, name, found, color in zip(places, (WITH, WITHOUT), (masked, free), CATEGORICAL, strict=False):
        order = np.argsort(-found.last, kind="stable")[:CANDIDATES]
        labels, odds = tokenizer.labels(order.tolist()), found.last[order]
        with column:
            show(mask_figures.candidate_bars(labels, odds, limit=limit, color=color, theme=session.theme),
                 f"candidates_{len(tables)}")  # fmt: skip
            st.caption(f"The {len(order)} likeliest tokens {name}.")
        tables.append({"mask": name, "rank": range(1, len(order) + 1), "token": labels, "probability": odds})
    st.markdown(_last_token_in_words(session.config, len(reading.tokens), masked, free))
    offer_data(lambda: pd.concat(map(pd.DataFrame, tables)), "These candidates as a table",
               f"{session.file_name}-candidates-without-mask.csv")  # fmt: skip


def _last_token_in_words(config: ModelConfig, tokens: int, masked: Predicted, free: Predicted) -> str:
    moved = float(np.abs(masked.last - free.last).max())
    change = "no probability changes here" if moved < UNMOVED else (
        f"the largest change of a probability here is {100 * moved:.3g} percentage points")
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
