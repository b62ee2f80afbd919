"""Shows two readings of one text, with the model's own mask and with another: losses, probabilities, tables.

Dimensions: pos, vocab.
"""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
import streamlit as st

from pages.ui.computations.masked_predictions import TextPredictions
from pages.ui.figures.axes import labelling_note
from pages.ui.figures.lines import lines_by_position
from pages.ui.frame import widgets
from pages.ui.frame.page import Session
from pages.ui.models import library
from pages.ui.tables import offer_data
from pages.ui.views.charts import chart
from pages.ui.views.side_by_side import side_by_side
from transformer import ModelConfig

SHORTEST = 32
"""Tokens of a picture that are always drawn; of a longer text, as many as are asked for."""
ALIKE = 0.02
"""Nats of mean loss, and less, that make no difference worth a word."""
ROUNDING_ERROR = 1e-5
"""A change of probability this small is rounding."""


@dataclass(frozen=True)
class Readings:
    """A text, or the part of it that a model reads, and what the model predicts of it under its mask and another."""

    tokens: tuple[int, ...]
    offset: int
    """The first one's position in the whole text."""
    labels: list[str]
    names: tuple[str, str]
    """What the two readings are called."""
    own: TextPredictions
    other: TextPredictions
    following: tuple[int, ...] | None = None
    """What came after each token; after the last one nothing may have come yet. None where tokens are predicted in
    their own places."""
    after: list[str] | None = None
    """The labels of `following`, and a question mark for what hasn't come."""
    row: int = -1
    """The token that is shown first, where the text decides it."""

    @property
    def by_name(self) -> dict[str, TextPredictions]:
        return dict(zip(self.names, (self.own, self.other), strict=True))


def offer_candidates(session: Session, reading: Readings, mask: str) -> None:
    """The likeliest tokens at each position: a row each. mask: what the file is called by."""

    def table() -> pd.DataFrame:
        label = library.tokenizer(session.name).label
        rows = [
            (name, reading.offset + at, reading.labels[at], rank, *candidate)
            for name, predictions in reading.by_name.items()
            for at in range(len(reading.tokens))
            for rank, candidate in enumerate(likeliest(label, predictions, at), start=1)
        ]
        predicted = "predicted token" if reading.after is None else "next token"
        return pd.DataFrame(rows, columns=["mask", "position", "token", "rank", predicted, "probability"])

    offer_data(table, "These predictions as a table", f"{session.file_name}-candidates-{mask}.csv")


def compare_losses(reading: Readings) -> None:
    """The mean loss of either."""
    before, after = (float(np.nanmean(predictions.loss)) for predictions in reading.by_name.values())
    color: Literal["off", "inverse"] = "off" if abs(after - before) < ALIKE else "inverse"
    name_before, name_after = reading.names
    with st.container(horizontal=True):
        st.metric(f"Mean loss {name_before}", f"{before:.4f} nats", width=220)
        change = f"{after - before:+.4f} nats"
        st.metric(f"Mean loss {name_after}", f"{after:.4f} nats", delta=change, delta_color=color, width=220)


def by_position(session: Session, reading: Readings, caption: str, file: str, first: int = 0) -> None:
    """Probability and entropy of both, a line each, and their numbers. first: the first token that is drawn."""
    left, right = side_by_side("positions", 2)
    after = None if reading.after is None else reading.after[first:]
    draw = functools.partial(lines_by_position, theme=session.theme, offset=reading.offset + first)
    size = session.config.vocab_size
    unsure = (
        f"How unsure the model was: 0 is certain, ln {size} = {np.log(size):.2f} means that every token was equally "
        "likely."
    )
    for column, what, unit, top, words in (
        (left, "probability", "probability", 1.0, caption),
        (right, "entropy", "entropy (nats)", None, unsure),
    ):
        values = {name: getattr(predictions, what)[first:] for name, predictions in reading.by_name.items()}
        with column:
            figure = draw(values, reading.labels[first:], after, unit=unit, top=top)
            chart(figure, f"masks_{what}")
            st.caption(f"{words} {labelling_note(figure)}")
    offer_data(lambda: _table(reading), "These predictions as a table", f"{session.file_name}-{file}.csv")


def _table(reading: Readings) -> pd.DataFrame:
    made = pd.DataFrame({"position": reading.offset + np.arange(len(reading.tokens)), "token": reading.labels})
    if reading.after is not None:
        made["next token"] = reading.after
    for name, predictions in reading.by_name.items():
        made[f"probability {name}"] = pd.Series(predictions.probability)
        made[f"loss {name} (nats)"] = pd.Series(predictions.loss)
        made[f"entropy {name} (nats)"] = predictions.entropy
    return made


def both_likeliest(label: Callable[[int], str], reading: Readings) -> list[tuple[list, list]]:
    """The likeliest tokens at each position, in either reading."""
    return [
        (likeliest(label, reading.own, at), likeliest(label, reading.other, at)) for at in range(len(reading.tokens))
    ]


def places_of(tokens: Sequence[int | None], reading: Readings) -> list[tuple[int | None, int | None]]:
    """Where each of these, one a position, is among the likeliest of either reading; None where it isn't."""
    return [
        (_place_of(token, reading.own.top_tokens[at]), _place_of(token, reading.other.top_tokens[at]))
        for at, token in enumerate(tokens)
    ]


def likeliest(label: Callable[[int], str], predictions: TextPredictions, at: int) -> list[tuple[str, float]]:
    """The likeliest tokens of a prediction, by their labels, and how likely they are."""
    top = zip(predictions.top_tokens[at], predictions.top_probabilities[at], strict=True)
    return [(label(int(token)), float(probability)) for token, probability in top]


def _place_of(token: int | None, tokens: np.ndarray) -> int | None:
    positions = np.flatnonzero(tokens == token)
    return int(positions[0]) if len(positions) else None


def layers_by_window(config: ModelConfig, seen: int) -> dict[int, list[int]]:
    """The layers by how many of the last `seen` tokens their window holds, widest first; 0: all of them."""
    windows = [size if 0 < (size := config.window(layer)) < seen else 0 for layer in range(config.n_layers)]
    widest_first = sorted({*windows} or {0}, key=lambda size: -size or -seen)
    return {size: [layer for layer, window in enumerate(windows) if window == size] for size in widest_first}


def layers_in_words(layers: Sequence[int]) -> str:
    """Some layers, by their numbers."""
    return f"layer{'s'[: len(layers) > 1]} {', '.join(map(str, layers))}"


def every(layers: int) -> str:
    """So many layers, in words: all of a model's."""
    return "its one layer" if layers == 1 else f"all {layers} layers"


def how_many(longest: int, field: str, label: str = "Tokens shown, from the end") -> int:
    """How many tokens are shown: SHORTEST of them, or as many as the visitor asks for."""
    return SHORTEST if longest <= SHORTEST else widgets.slider(label, 8, longest, field, width=240)
