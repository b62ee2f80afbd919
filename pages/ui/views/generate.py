"""Draws the page Generate; the tab keeps its text, branches and sampling settings."""

from typing import Any

import streamlit as st

from pages.ui.components.events import session_id
from pages.ui.components.instruments import instrument, request_of
from pages.ui.frame.page import Session
from pages.ui.frame.saved_view import open_with_lesson_view
from pages.ui.frame.state import restored_texts
from pages.ui.frame.visitor_choices import PACES
from pages.ui.models import attention_kinds
from transformer import attention_modules

KEY = "generation"
ARROW = " → "
"""Stands for the start token, between the source and what is written from it."""
LOOKS_AT = {"cross": "at the source", "decoder": "at its own words"}
"""The attentions of an encoder–decoder that choose the next token."""


def show(session: Session) -> None:
    current, text, config = session.visitor, session.text, session.config
    begins = _begins(session)
    kind = begins["attention"]
    choosable = [value for value in LOOKS_AT if session.source and kind]
    checkpoint = text.model.checkpoint

    instrument(
        "generation",
        key=KEY,
        model=text.model,
        request=request_of(text.model, text.prompt, text.source, text.interventions, 0),
        about={
            "id": text.identity,
            "prompt": text.prompt,
            "source": text.source,
            **begins,
            "restored": [session_id(), restored_texts()],
            "vocabulary": config.vocab_size,
            "context": config.context_length,
            "ends": checkpoint.card.stop_tokens,
            "arrow": ARROW,
            "frozen": session.prompt != current.prompt,
            "title": session.file_name,
            "modules": {name: modules for name, modules in attention_modules(config).items() if name != "encoder"},
            "choices": {
                "layers": attention_kinds.layer_count(config, kind or ""),
                "heads": config.n_heads if kind else 0,
                "attentions": [[value, LOOKS_AT[value]] for value in choosable],
                "paces": [[pace, _in_words(pace)] for pace in PACES],
            },
        },
        on_navigate=open_with_lesson_view,
    )


def _begins(session: Session) -> dict[str, Any]:
    """What the instrument begins a text with. From then on the tab has it, and what it tells begins nothing anew."""
    current, text = session.visitor, session.text
    of = text.identity, restored_texts()
    if st.session_state.get("text_begun_of") != of:
        st.session_state["text_begun_of"] = of
        st.session_state["text_begins"] = {
            "written": ".".join(map(str, text.written)),
            "attention": attention_kinds.shown_kind(session.config, current.attention, ("self", *reversed(LOOKS_AT))),
            "opening": {"layer": current.layer or 0, "head": current.head or 0},
        }
    return st.session_state["text_begins"]


def _in_words(pace: str) -> str:
    return "as fast as it can" if PACES[pace] == float("inf") else f"{PACES[pace]:.0f} tokens a second"
