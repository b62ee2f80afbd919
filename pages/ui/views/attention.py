"""Draws the page Attention: the choice of text, and the instrument.

Dimensions: layer, head, query, key.
"""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from pages.ui.components.instruments import instrument, request_of
from pages.ui.frame import changes, widgets
from pages.ui.frame import selection_sync as held
from pages.ui.frame.page import Session
from pages.ui.frame.saved_view import open_with_lesson_view
from pages.ui.frame.state import visitor
from pages.ui.frame.widgets import Binding
from pages.ui.markdown import code
from pages.ui.models import activations, attention_kinds, library
from pages.ui.models.library import OpenModel
from transformer import Intervention, in_window
from transformer.api.outlines import overview

KEY = "attention"
SCOPES = {"prompt": "The prompt", "all": "Prompt and generated text"}
KINDS = {
    "encoder": "Encoder: the source attends to itself",
    "decoder": "Decoder: the text attends to itself",
    "cross": "Cross: the text attends to the source",
}
"""The attentions of an encoder–decoder."""


@dataclass(frozen=True)
class AttentionInput:
    """A text as the model reads it, and the attention that is looked at; what a run of the fragment needs, too."""

    model: OpenModel
    tokens: tuple[int, ...]
    source: tuple[int, ...]
    kind: str
    """As in `attention_modules`."""
    query_offset: int
    """The place of the first query in the whole text: the model reads the last of a long one."""
    key_offset: int
    next_labels: tuple[str, ...] | None
    """In cross-attention, the token that each query chose."""
    interventions: tuple[Intervention, ...] = ()
    """What is changed in this pass, at positions that count from its first token."""

    begin: int = 0
    """The place of the decoder's first token in the whole text."""

    @property
    def read(self) -> tuple[OpenModel, tuple[int, ...], tuple[int, ...], str, tuple[Intervention, ...]]:
        """What its recordings are asked for by."""
        return self.model, self.tokens, self.source, self.kind, self.interventions


def choose(session: Session, kind: str) -> AttentionInput:
    """The dials of the page, and the text that they choose. kind: as in `attention_modules`."""
    if kind != "self":
        held.request()  # an attention may have been opened on the page Inside
        kinds = [other for other in KINDS if other in attention_kinds.kinds_of(session.config)]
        if session.visitor.attention not in kinds:
            session.visitor.attention = kind
        binding = Binding("attention", after=_forget_cell)
        kind = widgets.selectbox("Attention", kinds, binding, KINDS.__getitem__, label_visibility="collapsed")
    text = _text(session)
    tokens = library.window(session.name, text)
    offset = len(text) - len(tokens)
    labels = library.tokenizer(session.name).labels
    return AttentionInput(
        model=library.opened(session.name),
        tokens=tokens,
        source=session.source,
        kind=kind,
        query_offset=0 if kind == "encoder" else offset,
        key_offset=offset if kind in ("self", "decoder") else 0,
        next_labels=tuple(labels(_chosen_next(session, offset, text))) if kind == "cross" else None,
        interventions=in_window(session.interventions, offset),
        begin=offset,
    )


def choose_text(session: Session) -> None:
    """Which text: below the picture, as it matters once something is written, which an encoder never does."""
    if not session.config.is_causal:
        return
    widgets.segmented_control(
        "Text", SCOPES, "scope", SCOPES.__getitem__, disabled=not session.text.written, label_visibility="collapsed"
    )


def explain(session: Session, inputs: AttentionInput) -> None:
    """For an encoder–decoder: what looks at what, and where the text comes from."""
    written = library.tokenizer(session.name).decode(_text(session)[1:])
    words = {
        "encoder": "Every token of the source attends to every other: there is no causal mask.",
        "decoder": "Each token of the decoder attends to itself and to those before it.",
        "cross": "A row shows what the decoder attended to in the source when it chose the token after the arrow.",
    }
    whose = "" if session.text.written else " It isn't written yet: the model would write it."
    st.caption(f"{words[inputs.kind]} The text: {code(written)}.{whose}")


def show(session: Session, inputs: AttentionInput) -> None:
    """The instrument."""
    activations.compute_ahead(overview, *inputs.read)
    current = session.visitor
    text = whole_text(session)
    read = len(text) - len(library.window(session.name, text))
    request = request_of(inputs.model, inputs.tokens, inputs.source, session.interventions, inputs.begin)
    instrument(
        "attention",
        key=KEY,
        model=inputs.model,
        request=request,
        about={
            "kind": inputs.kind,
            "offsets": {"queries": inputs.query_offset, "keys": inputs.key_offset},
            "begin": read,
            "opening": {"layer": current.layer or 0, "head": current.head or 0},
            "next": inputs.next_labels,
            "title": session.file_name,
            "model": changes.model_id(session.name),
            "interventions": changes.listed(session.interventions),
        },
        on_change=lambda wish: changes.take(wish, session.name, session.config),
        on_navigate=open_with_lesson_view,
        on_select=held.listener(current, bool(st.session_state.get("drawer_numbers"))),
    )


def whole_text(session: Session) -> tuple[int, ...]:
    """Prompt and generated text after it; for an encoder–decoder what was written, or what it would write."""
    if not session.source:
        return session.text.tokens
    text = _whole_answer(session)
    end = library.model(session.name).card.end_token_id
    return text[:-1] if text[-1] == end else text  # nothing is looked up from the end token


def _text(session: Session) -> tuple[int, ...]:
    """What the decoder has before it."""
    is_prompt = not session.source and session.visitor.scope == "prompt"
    return session.text.prompt if is_prompt else whole_text(session)


def _whole_answer(session: Session) -> tuple[int, ...]:
    text = session.text
    if text.written:
        return text.tokens
    return text.tokens + activations.answer(session.name, text.prompt, session.source, session.interventions)


def _chosen_next(session: Session, offset: int, text: tuple[int, ...]) -> tuple[int, ...]:
    """The token after each of a text's from `offset` on: what the model, or the visitor, has put there."""
    return _whole_answer(session)[offset + 1 : len(text) + 1]


def _forget_cell() -> None:
    """Another attention has other queries and keys."""
    held.reset(visitor(), "query", "key", "zoom")
