"""Exports the page Attention: a layer's numbers, the view as HTML, and the code that makes both."""

import streamlit as st

from pages.ui.expanders import drawer
from pages.ui.frame import widgets
from pages.ui.frame.page import Session
from pages.ui.views import python_lines
from transformer import attention_modules
from transformer.api import exports
from transformer.api.pass_inputs import PassInputs
from transformer.frontend.saved_model import LIVE, too_large
from transformer.frontend.saved_recording import attention_fits

LINES = """import torch
from transformer import {imports}

checkpoint = {loaded}
model, labels = checkpoint.model, checkpoint.tokenizer.labels
text, source = {text}, {source}
inputs = [torch.tensor([tokens]) for tokens in (source, text) if tokens]
labelled = {{"text": labels(text), "source": labels(source)}}
recording = record(model, inputs, model.hook_names(), labels=labelled{option})
print(recording.tensors[{pattern!r}][{head}])  # the weights of the head above: (query, key)
show(recording, {kind!r}, layer={layer}, head={head}{query})  # in a notebook, the picture above"""


def offer_files(session: Session, inputs: PassInputs, kind: str) -> None:
    """Everything this attention computed, for Python and for people. It is made when it is asked for, not before."""
    drawer("Export these numbers", "drawer_numbers", lambda: _show(session, inputs, kind), icon=":material/download:")


def text_of(session: Session) -> tuple[int, ...]:
    """What the decoder has before it."""
    is_prompt = not session.source and session.state.scope == "prompt"
    return session.text.prompt if is_prompt else session.text.read()


def _show(session: Session, inputs: PassInputs, kind: str) -> None:
    current, title = session.state, session.file_name
    if attention_fits(session.config, kind, len(inputs.tokens), len(inputs.source)):
        computes = too_large(inputs.model.checkpoint.model) or LIVE
        st.markdown(f"All layers and heads as one HTML page that works offline. {computes}")
        widgets.download_button(
            "Save as a page",
            lambda: _page(session, inputs, kind),
            f"{title}-attention.html",
            key="save_page",
            icon="html",
        )
    else:
        st.markdown("This attention has too many numbers for one page. Shorten the text to save it.")
    st.markdown(
        "Every step of this layer, all heads, from queries to what each adds: safetensors, which "
        "`Recording.from_bytes` reads."
    )
    widgets.download_button(
        "Save this layer",
        lambda: exports.whole_layer(inputs, kind, current.layer or 0).to_bytes(),
        f"{title}-attention.safetensors",
        key="save_recording",
    )
    st.markdown("In Python:")
    python_lines.show(lines(session, inputs, kind))


def lines(session: Session, inputs: PassInputs, kind: str) -> str:
    """A program that records this pass again, from `transformer` alone."""
    current = session.state
    module = attention_modules(session.config)[kind][current.layer or 0]
    checkpoint = inputs.model.checkpoint
    query = "" if session.config.is_causal else f", query={checkpoint.predicted_position(inputs.tokens)}"
    return python_lines.written(
        LINES,
        session,
        inputs.interventions,
        "load_checkpoint",
        "record",
        "show",
        text=list(inputs.tokens),
        source=list(inputs.source),
        kind=kind,
        layer=current.layer,
        head=current.head,
        query=query,
        pattern=f"{module}.hook_pattern",
    )


def _page(session: Session, inputs: PassInputs, kind: str) -> bytes:
    current = session.state
    return exports.attention_page(
        inputs,
        kind,
        title=f"{session.file_name}-attention",
        layer=current.layer,
        head=current.head,
        next=_next_labels(session, inputs, kind),
    ).encode()


def _next_labels(session: Session, inputs: PassInputs, kind: str) -> list[str] | None:
    """In cross-attention, the token that each query chose: what the model, or the visitor, has put there."""
    if kind != "cross":
        return None
    chosen = session.text.whole()[inputs.begin + 1 : inputs.begin + len(inputs.tokens) + 1]
    return session.tokenizer.labels(chosen)
