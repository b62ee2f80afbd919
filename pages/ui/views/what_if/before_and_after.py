"""Draws the next token and the generated text, with and without the changes.

Dimensions: vocab, part.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import streamlit as st

from pages.ui.components.versions import Version, text_comparison
from pages.ui.figures.what_if import paired_bars, percent
from pages.ui.frame import changes
from pages.ui.frame.page import Session
from pages.ui.markdown import code, counted, nats
from pages.ui.models import activations, library
from pages.ui.tables import offer_data
from pages.ui.views.charts import chart
from pages.ui.views.what_if.shared import TOO_LARGE, ModelInput, after_what, divergence, log_softmax
from transformer.api.ablation_and_patching import Ablation
from transformer.inference.interventions import describe_part

CANDIDATES = 5
"""Tokens of each distribution that have bars."""
MAX_NAMED = 5
"""Tokens named among those that gained most, and that lost most."""
SUGGESTED = 3
LENGTH = 60
"""Tokens that each of the two models writes."""
LONGEST = 120
"""Characters shown of what stands before them."""
NOTICEABLE = 0.01
"""A divergence, in nats, of less isn't far."""
ROUNDING_ERROR = 1e-5
"""A change of probability this small is rounding."""


@dataclass(frozen=True)
class NextTokenPair:
    """What the model says next: log-probabilities (vocab,), as it is and as it is changed."""

    unchanged: np.ndarray
    changed: np.ndarray


def next_token_pair(session: Session, model_input: ModelInput) -> NextTokenPair | None:
    """The two distributions; None after saying that there are none."""
    logits = [
        activations.next_token(session.name, model_input.before, model_input.source, interventions=each)
        for each in ((), session.interventions)
    ]
    if not np.isfinite(logits[1]).all():
        st.warning(TOO_LARGE)
        return None
    return NextTokenPair(*map(log_softmax, logits))


def next_token(session: Session, model_input: ModelInput, found: NextTokenPair) -> None:
    """The likeliest next tokens; once something is changed, two distributions on one axis."""
    st.header("Next token", anchor=False)
    tokenizer, is_changed = library.tokenizer(session.name), bool(session.interventions)
    old, new = np.exp(found.unchanged), np.exp(found.changed)
    moved = (
        f" **KL divergence** {nats(float(divergence(found.unchanged, found.changed)))}: how far the changes move it."
    )
    after = after_what(session, model_input)
    st.caption(f"{after[0].upper()}{after[1:]}.{moved if is_changed else ''}")
    union = np.union1d(*(np.argsort(-probabilities, kind="stable")[:CANDIDATES] for probabilities in (old, new)))
    shown = union[np.argsort(-old[union], kind="stable")]
    figure = paired_bars(
        tokenizer.labels(shown.tolist()), old[shown], new[shown] if is_changed else None, theme=session.theme
    )
    chart(figure, "what_if_next")


def suggest_ablations(session: Session, model_input: ModelInput, found: Ablation) -> None:
    """Nothing is changed: the parts that move the next token most when they are ablated, one press each."""
    (with_it, without), moved = found.log_probabilities, found.moved
    likeliest = int(with_it[0].argmax())
    label = code(library.tokenizer(session.name).label(int(found.tokens[likeliest])))
    for rank, row in enumerate(np.argsort(-moved, kind="stable")[:SUGGESTED]):
        part = found.parts[row]
        was, becomes = np.exp([with_it[row, likeliest], without[row, likeliest]])
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.button(f"Ablate {describe_part(part)}", key=f"suggested_{rank}", on_click=changes.add, args=(part,))
            st.markdown(f"{label}: {percent(was)} → {percent(becomes)}", width="content")
    if moved.max() < NOTICEABLE:
        st.caption("No single part has a large effect. Ablate several together.")


def what_changed(session: Session, model_input: ModelInput, found: NextTokenPair) -> None:
    """What gained most and what lost most."""
    st.markdown(_in_words(session, model_input, np.exp(found.unchanged), np.exp(found.changed)))


def offer_table(session: Session, found: NextTokenPair) -> None:
    """Both distributions, to be read and saved."""
    labels = library.tokenizer(session.name).labels(range(len(found.unchanged)))

    def table() -> pd.DataFrame:
        return pd.DataFrame(
            {
                "token id": range(len(labels)),
                "token": labels,
                "probability unchanged": np.exp(found.unchanged),
                "probability changed": np.exp(found.changed),
                "ln unchanged": found.unchanged,
                "ln changed": found.changed,
            }
        ).sort_values("probability unchanged", ascending=False)

    offer_data(table, "Both distributions as a table", f"{session.file_name}-before-and-after.csv")


def _in_words(session: Session, model_input: ModelInput, old: np.ndarray, new: np.ndarray) -> str:
    """What gained most and what lost most."""
    change = new - old
    if float(np.abs(change).max()) < ROUNDING_ERROR:
        return f"These changes move no probability {after_what(session, model_input)}."
    labels = library.tokenizer(session.name).labels
    told = ["What changed most:"]
    for word, sign in (("Less likely", -1), ("Likelier", 1)):
        order = [
            token
            for token in np.argsort(-sign * change, kind="stable")[:MAX_NAMED]
            if sign * change[token] > ROUNDING_ERROR and percent(old[token]) != percent(new[token])
        ]
        named = [
            f"{code(label)} {percent(old[token])} → {percent(new[token])}"
            for token, label in zip(order, labels(order), strict=True)
        ]
        told.append(f"- **{word}:** {', '.join(named)}" if named else f"- **{word}:** none")
    return "\n".join(told)


def generated_text(session: Session, model_input: ModelInput) -> None:
    """The text that both models write, with the first difference marked."""
    st.header("Generated text", anchor=False)
    sampling = session.visitor.sampling
    both = [
        activations.written(session.name, model_input.before, model_input.source, sampling, LENGTH, each)
        for each in ((), session.interventions)
    ]
    same = next((at for at, (one, other) in enumerate(zip(*both, strict=False)) if one != other), min(map(len, both)))
    text_comparison(
        key="what_if_versions",
        versions=[
            _version(session, title, model_input.before, tokens, same)
            for title, tokens in zip(("Unchanged", "Changed"), both, strict=True)
        ],
    )
    dials = (
        "always the likeliest token"
        if sampling.temperature == 0
        else (f"temperature {sampling.temperature:g}, seed {sampling.seed}: the same random numbers for both")
    )
    told = (
        "Both write the same."
        if len(set(both)) == 1
        else ("They differ from the first token on." if same == 0 else f"They differ after {counted(same, 'token')}.")
    )
    end = " to the end of the text" if session.source else ""
    st.caption(f"{told} Up to {LENGTH} tokens{end}, with {dials}.")


def _version(session: Session, title: str, text: tuple[int, ...], tokens: tuple[int, ...], same: int) -> Version:
    """What one of the models writes after a text. same: how many tokens the other writes, too."""
    tokenizer = library.tokenizer(session.name)
    before = tokenizer.decode(text)
    before = before if len(before) <= LONGEST else f"…{before[-LONGEST:]}"
    pieces = tokenizer.pieces((*text, *tokens))[len(text) :]
    ends = library.model(session.name).card.stop_tokens
    parts = pieces[:same], pieces[same : same + 1], pieces[same + 1 :]
    return Version(title, before, *map("".join, parts), ends=bool(tokens) and tokens[-1] in ends)
