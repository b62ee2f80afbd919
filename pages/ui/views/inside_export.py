"""Exports the view of the page Inside as HTML, its numbers as a file, and both as code."""

import dataclasses

import streamlit as st

from pages.ui.expanders import drawer
from pages.ui.frame import widgets
from pages.ui.frame.page import Session
from pages.ui.views import python_lines
from pages.ui.views.inside_selection import Selection, selection_of
from transformer.api import exports
from transformer.api.outlines import outline
from transformer.api.pass_inputs import PassInputs
from transformer.api.tensors import infos_of
from transformer.frontend.html_page import in_words
from transformer.frontend.saved_model import LIVE, too_large
from transformer.frontend.saved_recording import page_fit, page_size

LINES = """from transformer import {imports}

checkpoint = {loaded}
recording = record_pass(checkpoint.model, {texts}, labels=checkpoint.tokenizer.labels{mask}{option})
print({numbers})
show(recording{chosen})  # in a notebook, the picture above"""
REPRODUCE = """from pathlib import Path
import numpy as np
from transformer import {imports}

checkpoint = {loaded}
trace = trace_pass(checkpoint.model, {texts}{option})
saved = Recording.from_bytes(Path("{file}").read_bytes())
for name, array in saved.tensors.items():
    print(name, array.shape, np.allclose(trace.tensors[name], array, atol=1e-5))"""
LEFT_OUT = {
    "weights": "the matrices of weights",
    "hook_result": "what each head adds to the stream (`hook_result`)",
    "hook_raw_scores": "q · k (`hook_raw_scores`)",
    "hook_scaled_scores": "q · k ÷ √d_head (`hook_scaled_scores`)",
    "hook_attn_scores": "the masked scores (`hook_attn_scores`)",
    "hook_capped_scores": "the capped scores (`hook_capped_scores`)",
    "hook_position_bias": "the position bias (`hook_position_bias`)",
}
"""What a page can lack, in words."""
SHORTER = "This pass has too many numbers for one page. Shorten the text to save it."
TOO_MANY = (
    "This model's numbers are too many for one page, however short the text. Those of a part of it can be "
    "saved below, for Python."
)


def offer_page(session: Session, inputs: PassInputs) -> None:
    """The view as an HTML file, and the lines of Python. Both are made when they are asked for, not before."""
    drawer("Export this view", "drawer_page", lambda: _show(session, inputs), icon=":material/html:")


def offer_numbers(session: Session, inputs: PassInputs) -> None:
    """The numbers of the view as a file for Python, and the lines that compute them again."""
    drawer("Export these numbers", "drawer_numbers", lambda: _show_numbers(session, inputs), icon=":material/download:")


def _show(session: Session, inputs: PassInputs) -> None:
    title = f"{session.file_name}-inside"
    fit = page_fit(session.config, len(inputs.tokens), len(inputs.source))
    if (too_large_to_compute := too_large(inputs.model.checkpoint.model)) is None:
        st.markdown(f"The view above as one HTML page that works offline. {LIVE}")
        _button("Save as a page", session, inputs, title)
    elif fit is None:
        can_be = page_fit(session.config, 1, min(len(inputs.source), 1)) is not None
        st.markdown(SHORTER if can_be else TOO_MANY)
    else:
        st.markdown(f"The view above as one HTML page that works offline.{_said_of(fit.kinds)}")
        st.markdown(too_large_to_compute)
        size = page_size(session.config, outline(*inputs.passed, inputs.interventions), fit)
        _button(f"Save as a page ({in_words(size)})", session, inputs, title)
    st.markdown("In Python, without the app:")
    python_lines.show(lines(session, inputs))


def _button(label: str, session: Session, inputs: PassInputs, title: str) -> None:
    widgets.download_button(
        label, lambda: _page(session, inputs, title), f"{title}.html", key="save_inside_page", icon="html"
    )


def lines(session: Session, inputs: PassInputs) -> str:
    """A program that shows this view again, from `transformer` alone."""
    chosen = selection_of(session, inputs)
    fields = {field.name: getattr(chosen, field.name) for field in dataclasses.fields(chosen)}
    kept = {name: value for name, value in fields.items() if value not in (None, "", ())}
    mask = "" if session.config.is_causal else ", mask_token_id=checkpoint.card.mask_token_id"
    return python_lines.written(
        LINES,
        session,
        inputs.interventions,
        "load_checkpoint",
        "record_pass",
        "show",
        texts=_texts_as_code(session, inputs),
        mask=mask,
        numbers=_numbers(inputs, chosen),
        chosen="".join(f", {name}={value!r}" for name, value in kept.items()),
    )


def _numbers(inputs: PassInputs, chosen: Selection) -> str:
    """An expression for what is open: a tensor, or a cell of it; the logits where it is no tensor."""
    infos = infos_of(inputs.model.checkpoint.model.config, len(inputs.tokens), len(inputs.source))
    info = infos.get(chosen.open, infos["logits"])
    tensor = f"recording.tensors[{info.name!r}]"
    if chosen.cell is None:
        return tensor
    if info.kind == "parameter" and len(info.sizes) > 2:  # which holds several matrices
        tensor += f".reshape{info.sizes}"
    return f"{tensor}[{', '.join(map(str, chosen.cell))}]"


def _page(session: Session, inputs: PassInputs, title: str) -> bytes:
    return exports.inside_view(inputs, title=title, **dataclasses.asdict(selection_of(session, inputs))).encode()


def _said_of(kinds: tuple[str, ...]) -> str:
    if not kinds:
        return " It contains every number of the pass and the model's weights."
    *others, last = (LEFT_OUT[kind] for kind in kinds)
    listed = f"{', '.join(others)} and {last}" if others else last
    return f" To limit its size, it leaves out {listed}."


def _show_numbers(session: Session, inputs: PassInputs) -> None:
    opened, file = selection_of(session, inputs).open, f"{session.file_name}-inside.safetensors"
    if problem := exports.too_much(inputs, opened):
        st.markdown(problem)
        return
    st.markdown(
        "A safetensors file of what is open: of a layer or a sublayer all tensors and weights; of the whole model "
        "the residual stream, what is added to it, the attention weights, logits and probabilities. To read it, "
        "and to compute it again:"
    )
    imported, texts = ("Recording", "load_checkpoint", "trace_pass"), _texts_as_code(session, inputs)
    python_lines.show(python_lines.written(REPRODUCE, session, inputs.interventions, *imported, texts=texts, file=file))
    # When it is pressed, not before; and of what was opened since.
    widgets.download_button(
        "Save these numbers", lambda: exports.file_of(inputs, opened).to_bytes(), file, key="save_inside"
    )


def _texts_as_code(session: Session, inputs: PassInputs) -> str:
    """Arguments for the texts' tokens: the text itself, encoded, or their numbers where that gives others."""
    return ", ".join(_as_code(session, tokens) for tokens in (inputs.tokens, inputs.source) if tokens)


def _as_code(session: Session, tokens: tuple[int, ...]) -> str:
    tokenizer = session.tokenizer
    for text in (tokenizer.decode(tokens), session.state.prompt or ""):  # decoded, a text lacks its masks
        if not tokenizer.unknown_pieces(text) and tuple(tokenizer.encode(text)) == tokens:
            return f"checkpoint.tokenizer.encode({text!r})"
    return repr(list(tokens))
