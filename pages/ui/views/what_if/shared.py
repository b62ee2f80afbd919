"""Defines what the views of the page What if share: the model's input, and distances of distributions."""

from dataclasses import dataclass

import numpy as np
import streamlit as st

from pages.ui.computations import activations
from pages.ui.frame import widgets
from pages.ui.frame.model_picker import choose_model
from pages.ui.frame.page import Session
from pages.ui.frame.page_text import SCOPES
from pages.ui.frame.widgets import Binding
from pages.ui.markdown import code, plain
from pages.ui.models import library
from transformer import ModelConfig

TOO_LARGE = "With these changes the model's numbers overflow. Turn a change off."


@dataclass(frozen=True)
class ModelInput:
    """A text as the model reads it: all of it, or past the context its window."""

    tokens: tuple[int, ...]
    source: tuple[int, ...]
    begin: int
    """The first token's position in the whole text."""
    position: int
    """Of the token, among `tokens`, after which the next one is looked at; of an encoder, of the predicted one."""
    before: tuple[int, ...]
    """The whole text up to that token; of an encoder all of it."""


def choose_input(session: Session) -> ModelInput:
    """The text that is asked about, and the dial that chooses it where there is a choice.

    For an encoder–decoder it is what was written, or, with nothing written, what the unchanged model would write, and
    any of its tokens can be looked at; for others it is the prompt, or all there is, and the last one, or an encoder's
    first mask.
    """
    if session.source:
        return _read_answer(session)
    if session.text.written:
        widgets.segmented_control("Text", SCOPES, "scope", SCOPES.__getitem__)
    text = session.text.prompt if session.visitor.scope == "prompt" else session.text.tokens
    tokens = library.window(session.name, text)
    position = library.model(session.name).predicted_position(tokens)
    return ModelInput(tokens, (), len(text) - len(tokens), position, text)


def _read_answer(session: Session) -> ModelInput:
    text = session.text.tokens
    if not session.text.written:
        text += activations.answer(session.name, text, session.source)
    tokens = text[: session.config.context_length]
    end = library.model(session.name).card.end_token_id
    positions = range(len(tokens) - (len(tokens) > 1 and tokens[-1] == end))
    labels = library.tokenizer(session.name).labels(tokens)
    position = 0
    if len(positions) > 1:
        position = widgets.select_slider(
            "What comes after", positions, Binding("place", default=0), lambda at: f"{at} · {labels[at]}"
        )
    return ModelInput(tokens, session.source, 0, position, tokens[: position + 1])


def after_what(session: Session, model_input: ModelInput) -> str:
    """The last token before the one that is predicted, or of an encoder that one, in words."""
    label = code(library.tokenizer(session.name).label(model_input.tokens[model_input.position]))
    position = model_input.begin + model_input.position
    return f"after {label} at position {position}" if session.config.is_causal else f"at {label}, position {position}"


def predicted_heading(config: ModelConfig) -> str:
    """What a model predicts, as a heading."""
    return "Next token" if config.is_causal else "Predicted token"


def divergence(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """KL(one ‖ other) in nats, along the last axis, of log-probabilities. Source: Kullback and Leibler 1951."""
    return (np.exp(one) * (one - other)).sum(-1)


def suggest_attention_model(session: Session) -> None:
    """Of a model without layers: say that there is nothing to take away, and lead on to one with attention."""
    what = "the next token from one token alone" if session.config.is_causal else "each token from itself"
    st.info(f"This model has no layers, and so no attention and nothing to ablate: it predicts {what}.")
    models = library.usable()
    own = models[session.name].card.group
    able = [name for name, entry in models.items() if entry.config.n_layers and entry.config.attention == "softmax"]
    if able:
        name = min(able, key=lambda name: (models[name].card.group != own, name))
        widgets.button(f"Go on to {plain(models[name].card.title)}", choose_model, name, type="primary")
