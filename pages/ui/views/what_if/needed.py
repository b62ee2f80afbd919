"""The map of ablations: the effect of silencing each head and each feed-forward layer, one at a time.

Dimensions: part, vocab; a picture has a row a layer and a column a head, and the feed-forward layer's after them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pandas as pd
import streamlit as st

from pages.ui.components.effects import Cell, Matrix, effects
from pages.ui.frame import changes, widgets
from pages.ui.frame.page import Session
from pages.ui.frame.widgets import Tie
from pages.ui.markdown import code
from pages.ui.models import activations, library
from pages.ui.tables import offer_data
from pages.ui.views.what_if.patience import computed
from pages.ui.views.what_if.reading import TOO_LARGE, Read, after_what
from transformer.api.effects import CHOOSABLE, Ablation
from transformer.inference.interventions import Scaled, part_in_words, place_in_words

EFFECTS = {"loss": "The loss of the text", "logit": "The logit of a token"}
MOST_OF_THEM = 0.95
"""The share of the effects whose colours differ."""
UNMOVED = 5e-5
"""An effect this small isn't worth a word."""
ACTS = ("silence it", "bring it back")
TALL, LEAST_PITCH, MOST_PITCH = 216, 20, 44
"""Pixels: the map's height, and the least and the most that one of its rows has of it."""


@dataclass(frozen=True)
class Placed:
    """A picture, and the parts that its cells stand for."""

    matrix: Matrix
    parts: dict[tuple[int, int], Scaled]


@dataclass(frozen=True)
class Mapped:
    """What the map shows. token: whose logit; None for the loss."""

    found: Ablation
    values: np.ndarray
    """(part,)."""
    token: int | None


def show(session: Session, reading: Read) -> Mapped | None:
    """The map, and the dials that say of what; None while there is none, after saying why."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.header("Which parts matter", anchor=False, width="content")
        on = widgets.segmented_control("Effect on", EFFECTS, "effect", EFFECTS.get, label_visibility="collapsed")
        waits = st.container()
        with waits:
            found = needed_here(session, reading)
        if found is None:
            return None
        token = _token(session, found) if on == "logit" else None
    if on == "loss" and found.loss is None:
        st.info(
            "A single token has no loss: nothing comes before it to predict it from. Type a longer prompt, or look "
            "at the logit of a token."
        )
        return None
    values = found.loss if token is None else (found.logits - found.kept)[:, _column(found, token)]
    if not np.isfinite(values).all():
        st.warning(TOO_LARGE)
        return None
    st.markdown(_how(session, reading, token))
    limit = colour_limit(values)
    placed = place(found.parts, values, session.interventions)
    what = "the loss is {value} nats" if token is None else f"the logit of {_quoted(session, token)} is {{value}}"

    def choose(cell: Cell) -> None:
        part = placed[cell.matrix].parts[cell.row, cell.column]
        if part in session.interventions:
            changes.without([part])
        else:
            changes.add(part)

    effects(
        [each.matrix for each in placed],
        key="what_if_needed",
        name="What each part is needed for",
        says=(f"Without {{cell}}, {what} higher.", f"Without {{cell}}, {what} lower."),
        acts=ACTS,
        limit=limit,
        pitch=min(max(TALL // len(placed[0].matrix.rows), LEAST_PITCH), MOST_PITCH),
        on_choose=choose,
    )
    beyond = " The strongest share the last colour." if np.abs(values).max() > limit else ""
    kept = " What is changed already stays changed." if session.interventions else ""
    st.caption(f"{_verdict(found, values, 'nats' if token is None else '')}{beyond}{kept}")
    return Mapped(found, values, token)


def offer_table(session: Session, mapped: Mapped) -> None:
    """The numbers, to be read and saved."""
    offer_data(
        lambda: _table(session, mapped.found, mapped.token),
        "These effects as a table",
        f"{session.file_name}-needed.csv",
    )


def needed_here(session: Session, reading: Read) -> Ablation | None:
    """What each part is needed for; of a large model None until it has been asked for and computed."""
    return computed(
        activations.ablation,
        session.name,
        reading.tokens,
        reading.source,
        reading.place,
        reading.begin,
        session.interventions,
        ask="Silence one part after another",
        does="Every head and every feed-forward layer is silenced by itself, and the text read again.",
    )


def colour_limit(values: np.ndarray) -> float:
    """Where the colours end: beyond most effects, so that a single large one doesn't make all others pale."""
    sizes = np.abs(values)
    return float(max(np.quantile(sizes, MOST_OF_THEM), sizes.max() / 50)) or 1.0


def place(parts: tuple[Scaled, ...], values: np.ndarray, interventions: tuple) -> list[Placed]:
    """A picture for each stack of attentions, in the order of the pass. values: (part,)."""
    stacks: dict[str, dict[tuple[int, int], int]] = {}
    heads = max((part.head for part in parts if part.head is not None), default=-1) + 1
    for index, part in enumerate(parts):
        side, layer, cross = re.match(r"(?:(\w+)\.)?blocks\.(\d+)\.(cross_)?", part.point).groups()
        title = "Cross-attention" if cross else {"encoder": "Encoder", "decoder": "Decoder"}.get(side, "")
        stacks.setdefault(title, {})[int(layer), heads if part.head is None else part.head] = index
    found = []
    for title, cells in stacks.items():
        rows, columns = max(row for row, _ in cells) + 1, max(column for _, column in cells) + 1
        grid = np.full((rows, columns), np.nan)
        for cell, index in cells.items():
            grid[cell] = values[index]
        names = {row: place_in_words(parts[index].point) for (row, _), index in cells.items()}
        matrix = Matrix(
            title,
            grid,
            rows=[names[row] for row in range(rows)],
            columns=[f"head {column}" if column < heads else "feed-forward" for column in range(columns)],
            row_labels=[f"layer {row}" for row in range(rows)],
            marked=[cell for cell, index in cells.items() if parts[index] in interventions],
        )
        found.append(Placed(matrix, {cell: parts[index] for cell, index in cells.items()}))
    return found


def _token(session: Session, found: Ablation) -> int:
    """The token whose logit is looked at, and the dial that chooses it: the likeliest next one unless it is chosen."""
    tokenizer, chosen = library.tokenizer(session.name), session.visitor.token
    order = found.tokens[np.argsort(-found.kept[0], kind="stable")[:CHOOSABLE]].tolist()
    if chosen is not None and chosen not in found.tokens:
        if chosen < session.config.vocab_size:
            st.warning(
                f"Of this model the {len(found.tokens)} likeliest tokens can be chosen, and "
                f"{code(tokenizer.label(chosen))} isn't among them; the likeliest is taken."
            )
        session.visitor.token = chosen = None
    if chosen is not None and chosen not in order:
        order.append(chosen)
    return widgets.selectbox("Token", order, Tie("token", default=order[0]), tokenizer.label, width=200)


def _column(found: Ablation, token: int) -> int:
    """Where a token's logits are."""
    return int(np.flatnonzero(found.tokens == token)[0])


def _quoted(session: Session, token: int) -> str:
    return f"‘{library.tokenizer(session.name).label(token)}’"


def _how(session: Session, reading: Read, token: int | None) -> str:
    """What the numbers are, and what a click does."""
    if token is not None:
        label = code(library.tokenizer(session.name).label(token))
        what = f"How much the logit of {label} rises {after_what(session, reading)}"
    else:
        what = "How much the loss rises (nats per token)"
    whose = ""
    if token is None and session.source:
        text = code(library.tokenizer(session.name).decode(reading.tokens[1:]))
        origin = "was written" if session.text.written else "the unchanged model would write"
        whose = f" The text is what {origin}: {text}."
    return f"{what} without each part alone. Click one to silence it.{whose}"


def _verdict(found: Ablation, values: np.ndarray, unit: str) -> str:
    """The parts with the largest effects, either way."""
    told = []
    for word, index in (("rises most", int(values.argmax())), ("falls most", int(values.argmin()))):
        value = float(values[index])
        if (value if word == "rises most" else -value) > UNMOVED:
            told.append(f"it {word} without {part_in_words(found.parts[index])}, by {abs(value):.3g} {unit}".rstrip())
    if not told:
        return "No single part makes a difference here."
    return f"{', and '.join(told)}.".replace("it", "It", 1)


def _table(session: Session, found: Ablation, token: int | None) -> pd.DataFrame:
    made = pd.DataFrame(
        {
            "part": [part_in_words(part) for part in found.parts],
            "hook point": [part.point for part in found.parts],
            "head": pd.array([part.head for part in found.parts], dtype="Int64"),
            "silenced": [part in session.interventions for part in found.parts],
        }
    )
    if found.loss is not None:
        made["rise of the loss (nats)"] = found.loss
    column = int(found.kept[0].argmax()) if token is None else _column(found, token)
    label = library.tokenizer(session.name).label(int(found.tokens[column]))
    made[f"rise of the logit of {label}"] = (found.logits - found.kept)[:, column]
    for word, odds in zip(("with", "without"), found.odds, strict=True):
        made[f"probability of {label} {word} it"] = np.exp(odds)[:, column]
    return made
