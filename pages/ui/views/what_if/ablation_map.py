"""Draws the effect of ablating each head and feed-forward layer, one at a time.

Dimensions: part, vocab; a picture has a row a layer and a column a head, and the feed-forward layer's after them.
"""

import re
from dataclasses import dataclass

import numpy as np
import pandas as pd
import streamlit as st

from pages.ui.components.effect_heatmaps import Matrix, effect_heatmaps
from pages.ui.computations import activations
from pages.ui.frame import changes, widgets
from pages.ui.frame.page import Session
from pages.ui.frame.widgets import Binding
from pages.ui.markdown import code
from pages.ui.models import library
from pages.ui.tables import offer_data
from pages.ui.views.what_if.long_computation import compute_with_progress
from pages.ui.views.what_if.shared import TOO_LARGE, ModelInput
from transformer.api.ablation_and_patching import CHOOSABLE, Ablation
from transformer.inference.interventions import Scale
from transformer.inference.plain_names import describe_module, describe_part

EFFECTS = {"probability": "Probability", "logit": "Logit", "loss": "Loss"}
UNITS = {"probability": " percentage points", "logit": "", "loss": " nats"}
USUAL, BEYOND, LEAST = 0.9, 3.0, 0.02
"""The share of the effects that are usual; colours end at so many times the largest of these, but at no less than this
share of the largest of all."""
FAINTEST = 1.0
"""Percentage points of a probability that colours go to at the least: less is next to nothing."""
UNMOVED, SLIGHT = 5e-5, 0.01
"""An effect this small, or this share of the largest, isn't worth a word."""
ACTIONS = ("ablate it", "bring it back")
TALL, LEAST_PITCH, MAX_PITCH = 216, 20, 44
"""Pixels: the map's height, and the least and the most that one of its rows has of it."""


@dataclass(frozen=True)
class Placed:
    """A picture, and the parts that its cells stand for."""

    matrix: Matrix
    parts: dict[tuple[int, int], Scale]


@dataclass(frozen=True)
class AblationMap:
    """What the map shows, of `EFFECTS`. token: whose probability or logit; None for the loss."""

    ablation: Ablation
    effect: str
    token: int | None

    @property
    def values(self) -> np.ndarray:
        """(part,): how much larger it is without each part."""
        if self.token is None:
            assert self.ablation.loss is not None
            return self.ablation.loss
        column = _column(self.ablation, self.token)
        if self.effect == "logit":
            return (self.ablation.logits - self.ablation.kept)[:, column]
        with_it, without = np.exp(self.ablation.log_probabilities[..., column])
        return 100 * (without - with_it)


def show(session: Session, model_input: ModelInput, answer: int | None) -> AblationMap | None:
    """The map, and the dials that say of what; None while there is none, after saying why.

    answer: the unchanged model's likeliest token, if it is known; the map is of that one at first.
    """
    effects = [effect for effect in EFFECTS if effect != "loss" or session.config.is_causal]
    if session.visitor.effect not in effects:  # of an encoder, which predicts none of the tokens that it reads
        session.visitor.effect = effects[0]
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.header("Which parts matter", anchor=False, width="content")
        effect = widgets.segmented_control(
            "Effect on", effects, "effect", EFFECTS.__getitem__, label_visibility="collapsed"
        )
        dial = st.container(width=140, key="effect_token")
    ablation = ablated(session, model_input)
    if ablation is None:
        return None
    token = None
    if effect != "loss":
        with dial:
            token = _token(session, ablation, answer)
    if effect == "loss" and ablation.loss is None:
        st.info("A single token has no loss. Type a longer prompt.")
        return None
    mapped = AblationMap(ablation, effect, token)
    if not np.isfinite(mapped.values).all():
        st.warning(TOO_LARGE)
        return None
    st.caption(_how(session, model_input, mapped))
    placed = matrices_of(ablation.parts, mapped.values, session.interventions)
    left = np.array([part not in session.interventions for part in ablation.parts])
    what = f"the {effect}" if token is None else f"the {effect} of “{library.tokenizer(session.name).label(token)}”"
    unit = UNITS[effect]
    effect_heatmaps(
        [panel.matrix for panel in placed],
        key="what_if_ablation",
        name="Which parts matter",
        sentences=(
            f"Without {{cell}}, {what} is {{value}}{unit} higher.",
            f"Without {{cell}}, {what} is {{value}}{unit} lower.",
        ),
        actions=ACTIONS,
        limit=max(colour_limit(mapped.values[left]), FAINTEST if effect == "probability" else 0.0),
        pitch=min(max(TALL // len(placed[0].matrix.rows), LEAST_PITCH), MAX_PITCH),
        on_choose=lambda cell: changes.switch(placed[cell.matrix].parts[cell.row, cell.column]),
    )
    st.caption(_verdict(mapped, left))
    return mapped


def offer_table(session: Session, mapped: AblationMap) -> None:
    offer_data(lambda: _table(session, mapped), "These effects as a table", f"{session.file_name}-ablation.csv")


def ablated(session: Session, model_input: ModelInput) -> Ablation | None:
    """The ablation of each part; of a large model None until it has been asked for and computed."""
    return compute_with_progress(
        activations.ablation,
        session.name,
        model_input.tokens,
        model_input.source,
        model_input.position,
        model_input.begin,
        session.interventions,
        ask="Ablate each part",
        does="Each head and each feed-forward layer is ablated in turn.",
    )


def colour_limit(values: np.ndarray) -> float:
    """Where the colours end: a few effects that are far beyond the others don't make these all pale."""
    sizes = np.abs(values)
    if not sizes.size:
        return 1.0
    return float(max(min(BEYOND * np.quantile(sizes, USUAL), sizes.max()), LEAST * sizes.max())) or 1.0


def matrices_of(parts: tuple[Scale, ...], values: np.ndarray, interventions: tuple) -> list[Placed]:
    """A picture for each stack of attentions, in the order of the pass. values: (part,)."""
    stacks: dict[str, dict[tuple[int, int], int]] = {}
    heads = max((part.head for part in parts if part.head is not None), default=-1) + 1
    for index, part in enumerate(parts):
        side, layer, cross = re.findall(r"(?:(\w+)\.)?blocks\.(\d+)\.(cross_)?", part.point)[0]
        title = "Cross-attention" if cross else {"encoder": "Encoder", "decoder": "Decoder"}.get(side, "")
        stacks.setdefault(title, {})[int(layer), heads if part.head is None else part.head] = index
    matrices = []
    for title, cells in stacks.items():
        rows, columns = max(row for row, _ in cells) + 1, max(column for _, column in cells) + 1
        grid = np.full((rows, columns), np.nan)
        for cell, index in cells.items():
            grid[cell] = values[index]
        names = {row: describe_module(parts[index].point) for (row, _), index in cells.items()}
        matrix = Matrix(
            title,
            grid,
            rows=[names[row] for row in range(rows)],
            columns=[f"head {column}" if column < heads else "feed-forward" for column in range(columns)],
            row_labels=[f"layer {row}" for row in range(rows)],
            marked=[cell for cell, index in cells.items() if parts[index] in interventions],
        )
        matrices.append(Placed(matrix, {cell: parts[index] for cell, index in cells.items()}))
    return matrices


def _token(session: Session, ablation: Ablation, answer: int | None) -> int:
    """The token that is looked at, and the dial that chooses it: the answer, unless another is chosen."""
    tokenizer, chosen = library.tokenizer(session.name), session.visitor.token
    order = ablation.tokens[np.argsort(-ablation.kept[0], kind="stable")[:CHOOSABLE]].tolist()
    default = answer if answer in ablation.tokens else order[0]
    if chosen is not None and chosen not in ablation.tokens:
        if chosen < session.config.vocab_size:
            st.warning(
                f"Of this model the {len(ablation.tokens)} likeliest tokens can be chosen, and "
                f"{code(tokenizer.label(chosen))} isn't among them; the likeliest is taken."
            )
        session.visitor.token = chosen = None
    order = list(dict.fromkeys([*order, default, *([] if chosen is None else [chosen])]))
    return widgets.selectbox(
        "Token", order, Binding("token", default=default), tokenizer.label, label_visibility="collapsed"
    )


def _column(ablation: Ablation, token: int) -> int:
    """Where a token's logits are."""
    return int(np.flatnonzero(ablation.tokens == token)[0])


def _how(session: Session, model_input: ModelInput, mapped: AblationMap) -> str:
    """What the numbers are of, and what a click does."""
    if mapped.token is None:
        of = "**Average over the text:** change in the loss, in nats per token"
    else:
        label = code(library.tokenizer(session.name).label(mapped.token))
        unit = f", in{UNITS[mapped.effect]}" if UNITS[mapped.effect] else ""
        of = f"**For this answer:** change in the {mapped.effect} of {label}{unit}"
    whose = ""
    if mapped.token is None and session.source:
        text = code(library.tokenizer(session.name).decode(model_input.tokens[1:]))
        origin = "was written" if session.text.written else "the unchanged model would write"
        whose = f" The text is what {origin}: {text}."
    act = "Each cell ablates one part. Click one to keep it ablated and measure the map again."
    if session.interventions:
        act = "Measured with your changes: each cell ablates one part more than those crossed out."
    return f"{of}.{whose}  \n{act}"


def _verdict(mapped: AblationMap, left: np.ndarray) -> str:
    """The parts with the largest effects, either way. left: (part,), False for those that are ablated already."""
    values, sentences = np.where(left, mapped.values, 0.0), []
    for word, index, sign in (("fall", int(values.argmin()), "−"), ("rise", int(values.argmax()), "+")):
        size = float(values[index]) * (1 if sign == "+" else -1)
        if size > max(UNMOVED, SLIGHT * np.abs(values).max()):
            part = describe_part(mapped.ablation.parts[index])
            sentences.append(f"Largest {word}: {part}, {sign}{size:.3g}{UNITS[mapped.effect]}.")
    return " ".join(sentences) or "No single part makes a difference here."


def _table(session: Session, mapped: AblationMap) -> pd.DataFrame:
    ablation = mapped.ablation
    made = pd.DataFrame(
        {
            "part": [describe_part(part) for part in ablation.parts],
            "hook point": [part.point for part in ablation.parts],
            "head": pd.array([part.head for part in ablation.parts], dtype="Int64"),
            "ablated": [part in session.interventions for part in ablation.parts],
        }
    )
    if ablation.loss is not None:
        made["rise of the loss (nats)"] = ablation.loss
    column = int(ablation.kept[0].argmax()) if mapped.token is None else _column(ablation, mapped.token)
    label = library.tokenizer(session.name).label(int(ablation.tokens[column]))
    made[f"rise of the logit of {label}"] = (ablation.logits - ablation.kept)[:, column]
    for word, log_probabilities in zip(("with", "without"), ablation.log_probabilities, strict=True):
        made[f"probability of {label} {word} it"] = np.exp(log_probabilities)[:, column]
    return made
