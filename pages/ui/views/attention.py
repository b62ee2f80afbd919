"""Draws the page Attention: the choice of text, and the instrument.

Dimensions: layer, head, query, key.
"""

import streamlit as st

from pages.ui.components.instruments import asks_server_first, instrument, request_of
from pages.ui.computations import activations
from pages.ui.frame import changes, widgets
from pages.ui.frame import selection_sync as held
from pages.ui.frame.page import Session
from pages.ui.frame.page_text import PassInput
from pages.ui.frame.saved_view import open_with_lesson_view
from pages.ui.frame.widgets import Binding
from pages.ui.markdown import code
from pages.ui.models import attention_kinds, library
from transformer.api.outlines import overview

KEY = "attention"
SCOPES = {"prompt": "The prompt", "all": "Prompt and generated text"}
KINDS = {
    "encoder": "Encoder: the source attends to itself",
    "decoder": "Decoder: the text attends to itself",
    "cross": "Cross: the text attends to the source",
}
"""The attentions of an encoder–decoder."""


def choose(session: Session, kind: str) -> PassInput:
    """The dials of the page, and the text that they choose. kind: as in `attention_modules`."""
    if kind != "self":
        held.request()  # an attention may have been opened on the page Inside
        kinds = [other for other in KINDS if other in attention_kinds.kinds_of(session.config)]
        if session.visitor.attention not in kinds:
            session.visitor.attention = kind
        # Another attention has other queries and keys.
        binding = Binding("attention", after=lambda: held.reset(session.visitor, "query", "key", "zoom"))
        kind = widgets.selectbox("Attention", kinds, binding, KINDS.__getitem__, label_visibility="collapsed")
    return session.text.pass_over(text_of(session), kind)


def next_labels(session: Session, inputs: PassInput) -> list[str] | None:
    """In cross-attention, the token that each query chose: what the model, or the visitor, has put there."""
    if inputs.kind != "cross":
        return None
    chosen = session.text.whole()[inputs.begin + 1 : inputs.begin + len(inputs.tokens) + 1]
    return library.tokenizer(session.name).labels(chosen)


def choose_text(session: Session) -> None:
    """Which text: below the picture, as it matters once something is written, which an encoder never does."""
    if not session.config.is_causal:
        return
    widgets.segmented_control(
        "Text", SCOPES, "scope", SCOPES.__getitem__, disabled=not session.text.written, label_visibility="collapsed"
    )


def explain(session: Session, inputs: PassInput) -> None:
    """For an encoder–decoder: what looks at what, and where the text comes from."""
    written = library.tokenizer(session.name).decode(text_of(session)[1:])
    words = {
        "encoder": "Every token of the source attends to every other: there is no causal mask.",
        "decoder": "Each token of the decoder attends to itself and to those before it.",
        "cross": "A row shows what the decoder attended to in the source when it chose the token after the arrow.",
    }
    whose = "" if session.text.written else " It isn't written yet: the model would write it."
    st.caption(f"{words[inputs.kind]} The text: {code(written)}.{whose}")


def compute_ahead(inputs: PassInput) -> None:
    """Have what the browser will ask for first computed, while it still loads what draws it."""
    if asks_server_first(inputs.model):
        activations.compute_ahead(overview, *inputs.passed, inputs.kind, inputs.interventions)


def show(session: Session, inputs: PassInput) -> None:
    compute_ahead(inputs)
    current = session.visitor
    instrument(
        "attention",
        key=KEY,
        model=inputs.model,
        request=request_of(*inputs.passed, session.interventions, inputs.begin),
        about={
            "kind": inputs.kind,
            "offsets": inputs.offsets,
            "begin": session.text.pass_over(session.text.read()).begin,
            "opening": {"layer": current.layer or 0, "head": current.head or 0},
            "next": next_labels(session, inputs),
            "title": session.file_name,
            "model": changes.model_id(session.name),
            "interventions": changes.listed(session.interventions),
        },
        on_change=lambda wish: changes.take(wish, session.name, session.config),
        on_navigate=open_with_lesson_view,
    )


def text_of(session: Session) -> tuple[int, ...]:
    """What the decoder has before it."""
    is_prompt = not session.source and session.visitor.scope == "prompt"
    return session.text.prompt if is_prompt else session.text.read()
