"""Exports the page Attention: a layer's numbers, the view as HTML, and the code that makes both."""

from __future__ import annotations

import streamlit as st

from pages.ui.frame import selection_sync as looked_at
from pages.ui.frame.page import Session
from pages.ui.models.changes import as_python
from pages.ui.views.attention import AttentionInput
from transformer import attention_modules
from transformer.api import exports
from transformer.api.open_models import OpenModel
from transformer.frontend.live_page import LIVE, too_large
from transformer.frontend.saved_page import attention_fits

LINES = """import torch
from transformer import {names}

checkpoint = load_checkpoint({path!r})
model, labels = checkpoint.model, checkpoint.tokenizer.labels
text, source = {text}, {source}
inputs = [torch.tensor([tokens]) for tokens in (source, text) if tokens]
labelled = {{"text": labels(text), "source": labels(source)}}
recording = record(model, inputs, model.hook_names(), labels=labelled{changes})
print(recording.tensors[{pattern!r}][{head}])  # the weights of the head above: (query, key)
show(recording, {kind!r}, layer={layer}, head={head}{query})  # in a notebook, the picture above"""


def offer_files(session: Session, inputs: AttentionInput) -> None:
    """Everything this attention computed, for Python and for people. It is made when it is asked for, not before."""
    current, title = session.visitor, session.file_name
    # Opening it runs the page: what is looked at may have changed since in the browser, and code that nobody sees
    # takes it as long as a chart.
    opened = st.expander("Export these numbers", icon=":material/download:", key="drawer_numbers", on_change="rerun")
    if not opened.open:
        return
    looked_at.request()
    with opened:
        if attention_fits(session.config, inputs.kind, len(inputs.tokens), len(inputs.source)):
            st.markdown(f"All layers and heads as one HTML page that works offline. {live_or_not(inputs.model)}")
            st.download_button(
                "Save as a page",
                lambda: _page(session, inputs).encode(),
                f"{title}-attention.html",
                key="save_page",
                on_click="ignore",
                icon=":material/html:",
            )
        else:
            st.markdown("This attention has too many numbers for one page. Shorten the text to save it.")
        st.markdown(
            "Every step of this layer, all heads, from queries to what each adds: safetensors, which "
            "`Recording.from_bytes` reads."
        )
        st.download_button(
            "Save this layer",
            lambda: exports.whole_layer(
                inputs.model, inputs.tokens, inputs.source, inputs.kind, current.layer or 0, inputs.interventions
            ).to_bytes(),
            f"{title}-attention.safetensors",
            key="save_recording",
            on_click="ignore",
            icon=":material/download:",
        )
        st.markdown("In Python:")
        st.code(lines(session, inputs), language=None, wrap_lines=True)


def live_or_not(model: OpenModel) -> str:
    """Whether a page that is saved computes, in a sentence."""
    return too_large(model.checkpoint.model) or LIVE


def lines(session: Session, inputs: AttentionInput) -> str:
    """A program that records this pass again, from `transformer` alone."""
    current = session.visitor
    module = attention_modules(session.config)[inputs.kind][current.layer or 0]
    names, changed = as_python(inputs.interventions)
    checkpoint, is_own = inputs.model.checkpoint, inputs.model.is_own
    query = "" if session.config.is_causal else f", query={checkpoint.predicted_position(inputs.tokens)}"
    return LINES.format(
        path="the folder of your model" if is_own else f"checkpoints/{session.name}",
        text=list(inputs.tokens),
        source=list(inputs.source),
        kind=inputs.kind,
        layer=current.layer,
        head=current.head,
        query=query,
        pattern=f"{module}.hook_pattern",
        names=", ".join(sorted([*names, "load_checkpoint", "record", "show"])),
        changes=f", interventions={changed}" if names else "",
    )


def _page(session: Session, inputs: AttentionInput) -> str:
    current = session.visitor
    return exports.attention_page(
        *inputs.read,
        inputs.begin,
        title=f"{session.file_name}-attention",
        layer=current.layer,
        head=current.head,
        next=inputs.next_labels,
    )
