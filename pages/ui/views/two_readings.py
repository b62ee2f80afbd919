"""Shows two readings of one text, with the model's own mask and with another: losses, probabilities, tables.

Dimensions: pos, vocab.
"""

import functools
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
from pages.ui.tables import offer_data
from pages.ui.views.charts import chart
from pages.ui.views.side_by_side import side_by_side

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
    after: list[str] | None = None
    """Labels of what came after each token, a question mark for what hasn't come. None where tokens are predicted in
    their own places."""

    @property
    def by_name(self) -> dict[str, TextPredictions]:
        return dict(zip(self.names, (self.own, self.other), strict=True))


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


def how_many(longest: int, field: str) -> int:
    """How many tokens are shown: SHORTEST of them, or as many as the visitor asks for."""
    if longest <= SHORTEST:
        return SHORTEST
    return widgets.slider("Tokens shown, from the end", 8, longest, field, width=240)
