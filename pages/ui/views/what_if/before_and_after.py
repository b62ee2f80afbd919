"""Draws the predicted token and the text that is written or filled in, with and without the changes.

Dimensions: vocab, part.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import streamlit as st

from pages.ui.components.text_comparison import Version, text_comparison
from pages.ui.computations import activations, masked_predictions
from pages.ui.computations.activations import log_softmax
from pages.ui.figures.bars import paired_bars
from pages.ui.frame import changes, widgets
from pages.ui.frame.page import Session
from pages.ui.markdown import code, counted, nats
from pages.ui.models import library
from pages.ui.number_format import percent
from pages.ui.tables import offer_data
from pages.ui.views.charts import chart
from pages.ui.views.two_readings import ROUNDING_ERROR
from pages.ui.views.what_if.shared import TOO_LARGE, ModelInput, after_what, divergence, predicted_heading
from transformer.api.ablation_and_patching import Ablation
from transformer.inference.plain_names import describe_part

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


@dataclass(frozen=True)
class NextTokenPair:
    """What the model predicts: log-probabilities (vocab,), as it is and as it is changed."""

    unchanged: np.ndarray
    changed: np.ndarray


def next_token_pair(session: Session, model_input: ModelInput) -> NextTokenPair | None:
    """The two distributions; None after saying that there are none.

    Raises: LogitsError for a model whose logits are not numbers as it is.
    """
    logits = [
        activations.next_token(session.name, model_input.before, model_input.source, interventions=changes_made)
        for changes_made in ((), session.interventions)
    ]
    unchanged = log_softmax(logits[0])
    if not np.isfinite(logits[1]).all():
        st.warning(TOO_LARGE)
        return None
    return NextTokenPair(unchanged, log_softmax(logits[1]))


def next_token(session: Session, model_input: ModelInput, pair: NextTokenPair) -> None:
    """The likeliest tokens; once something is changed, two distributions on one axis."""
    st.header(predicted_heading(session.config), anchor=False)
    tokenizer, is_changed = library.tokenizer(session.name), bool(session.interventions)
    old, new = np.exp(pair.unchanged), np.exp(pair.changed)
    moved = f" **KL divergence** {nats(float(divergence(pair.unchanged, pair.changed)))}: how far the changes move it."
    after = after_what(session, model_input)
    st.caption(f"{after[0].upper()}{after[1:]}.{moved if is_changed else ''}")
    union = np.union1d(*(np.argsort(-probabilities, kind="stable")[:CANDIDATES] for probabilities in (old, new)))
    shown = union[np.argsort(-old[union], kind="stable")]
    figure = paired_bars(
        tokenizer.labels(shown.tolist()), old[shown], new[shown] if is_changed else None, theme=session.theme
    )
    chart(figure, "what_if_next")


def suggest_ablations(session: Session, model_input: ModelInput, effects: Ablation) -> None:
    """Nothing is changed: the parts that move the next token most when they are ablated, one press each."""
    (with_it, without), moved = effects.log_probabilities, effects.moved
    likeliest = int(with_it[0].argmax())
    label = code(library.tokenizer(session.name).label(int(effects.tokens[likeliest])))
    for rank, row in enumerate(np.argsort(-moved, kind="stable")[:SUGGESTED]):
        part = effects.parts[row]
        was, becomes = np.exp([with_it[row, likeliest], without[row, likeliest]])
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            widgets.button(f"Ablate {describe_part(part)}", changes.add, part, key=f"suggested_{rank}")
            st.markdown(f"{label}: {percent(was)} → {percent(becomes)}", width="content")
    if moved.max() < NOTICEABLE:
        st.caption("No single part has a large effect. Ablate several together.")


def offer_table(session: Session, pair: NextTokenPair) -> None:
    labels = library.tokenizer(session.name).labels(range(len(pair.unchanged)))

    def table() -> pd.DataFrame:
        return pd.DataFrame(
            {
                "token id": range(len(labels)),
                "token": labels,
                "probability unchanged": np.exp(pair.unchanged),
                "probability changed": np.exp(pair.changed),
                "ln unchanged": pair.unchanged,
                "ln changed": pair.changed,
            }
        ).sort_values("probability unchanged", ascending=False)

    offer_data(table, "Both distributions as a table", f"{session.file_name}-before-and-after.csv")


def what_changed(session: Session, model_input: ModelInput, pair: NextTokenPair) -> None:
    """What gained most and what lost most."""
    old, new = np.exp(pair.unchanged), np.exp(pair.changed)
    change = new - old
    if float(np.abs(change).max()) < ROUNDING_ERROR:
        st.markdown(f"These changes move no probability {after_what(session, model_input)}.")
        return
    labels = library.tokenizer(session.name).labels
    lines = ["What changed most:"]
    for word, sign in (("Less likely", -1), ("Likelier", 1)):
        order = [
            token
            for token in map(int, np.argsort(-sign * change, kind="stable")[:MAX_NAMED])
            if sign * change[token] > ROUNDING_ERROR and percent(old[token]) != percent(new[token])
        ]
        named = [
            f"{code(label)} {percent(old[token])} → {percent(new[token])}"
            for token, label in zip(order, labels(order), strict=True)
        ]
        lines.append(f"- **{word}:** {', '.join(named)}" if named else f"- **{word}:** none")
    st.markdown("\n".join(lines))


def generated_text(session: Session, model_input: ModelInput) -> None:
    """The text that both models write, with the first difference marked."""
    st.header("Generated text", anchor=False)
    sampling = session.visitor.sampling
    both = [
        activations.written(session.name, model_input.before, model_input.source, sampling, LENGTH, changes_made)
        for changes_made in ((), session.interventions)
    ]
    text, tokenizer = model_input.before, library.tokenizer(session.name)
    before, stops = tokenizer.decode(text), library.model(session.name).card.stop_tokens
    same = next((at for at, (one, other) in enumerate(zip(*both, strict=False)) if one != other), min(map(len, both)))
    text_comparison(
        key="what_if_versions",
        versions=[
            _version(
                title,
                before,
                tokenizer.pieces((*text, *tokens))[len(text) :],
                same,
                ends=bool(tokens) and tokens[-1] in stops,
            )
            for title, tokens in zip(("Unchanged", "Changed"), both, strict=True)
        ],
    )
    dials = f"temperature {sampling.temperature:g}, seed {sampling.seed}: the same random numbers for both"
    if sampling.temperature == 0:
        dials = "always the likeliest token"
    sentence = f"They differ after {counted(same, 'token')}." if same else "They differ from the first token on."
    if len(set(both)) == 1:
        sentence = "Both write the same."
    end = " to the end of the text" if session.source else ""
    st.caption(f"{sentence} Up to {LENGTH} tokens{end}, with {dials}.")


def filled_text(session: Session, model_input: ModelInput) -> None:
    """The text with its masks filled by both models, with the first difference marked."""
    st.header("Masks filled", anchor=False)
    tokenizer = library.tokenizer(session.name)
    text, mask = model_input.tokens, library.model(session.name).card.mask_token_id
    if mask not in text:
        st.caption("This encoder writes no text: it fills masks, and the prompt has none.")
        return
    both = [masked_predictions.filled(session.name, text, changes_made) for changes_made in ((), session.interventions)]
    masks = [at for at, token in enumerate(text) if token == mask]
    differing = [at for at in masks if both[0][at] != both[1][at]]
    same = min(differing, default=len(text)) - masks[0]
    text_comparison(
        key="what_if_versions",
        versions=[
            _version(title, "".join(pieces[: masks[0]]), pieces[masks[0] :], same)
            for title, pieces in zip(("Unchanged", "Changed"), map(tokenizer.pieces, both), strict=True)
        ],
    )
    filled = ", ".join(code(tokenizer.label(both[0][at])) for at in masks)
    sentence = f"They differ at {len(differing)} of {counted(len(masks), 'mask')}."
    order = " The surest mask is filled first, and the others knowing it." if len(masks) > 1 else ""
    st.caption(f"{sentence if differing else f'Both fill in {filled}.'}{order} Always the likeliest token.")


def _version(title: str, before: str, pieces: list[str], same: int, *, ends: bool = False) -> Version:
    """What one of the models writes or fills in after a text. same: how many pieces the other has, too."""
    before = before if len(before) <= LONGEST else f"…{before[-LONGEST:]}"
    parts = pieces[:same], pieces[same : same + 1], pieces[same + 1 :]
    return Version(title, before, *map("".join, parts), ends=ends)
