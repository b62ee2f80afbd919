"""Draws the page Inside: the choice of text, the instrument, and its numbers as a file."""

import streamlit as st

from pages.ui.components.instruments import asks_server_first, instrument, request_of
from pages.ui.computations import activations
from pages.ui.expanders import drawer
from pages.ui.frame import changes, widgets
from pages.ui.frame.page import Session
from pages.ui.frame.page_text import PassInput
from pages.ui.frame.saved_view import open_with_lesson_view
from pages.ui.frame.selection import Selection, is_cell, is_circuit
from pages.ui.markdown import code, counted
from pages.ui.models import library
from pages.ui.views import python_lines
from transformer import attention_modules
from transformer.api import exports
from transformer.api.outlines import outline
from transformer.api.tensors import infos_of
from transformer.inference.context_windows import window_start

KEY = "inside"
REPRODUCE = """from pathlib import Path
import numpy as np
from transformer import {imports}

checkpoint = load_checkpoint({path!r})
trace = trace_pass(checkpoint.model, {texts}{option})
saved = Recording.from_bytes(Path("{file}").read_bytes())
for name, array in saved.tensors.items():
    print(name, array.shape, np.allclose(trace.tensors[name], array, atol=1e-5))"""


def explain(session: Session, inputs: PassInput) -> None:
    """For an encoder–decoder: where the decoder's text comes from; of a long text, what of it is here."""
    if inputs.begin:
        end, context = inputs.begin + len(inputs.tokens), session.config.context_length
        first = next(length for length in range(end + 1) if window_start(length, context) == inputs.begin)
        older = (
            f" Logits before position {first} came from earlier windows and differ." if session.config.is_causal else ""
        )
        st.caption(
            f"The text is longer than the context, so the model reads its last {counted(len(inputs.tokens), 'token')}, "
            f"from position {inputs.begin} on.{older if first > inputs.begin + 1 else ''}"
        )
    if inputs.source:
        written = library.tokenizer(session.name).decode(inputs.tokens[1:])
        whose = (
            "" if session.text.written else " No text has been generated yet, so this is what the model would generate."
        )
        st.caption(f"The decoder has read: {code(written)}.{whose}")


def compute_ahead(inputs: PassInput) -> None:
    """Have what the browser will ask for first computed, while it still loads what draws it."""
    if asks_server_first(inputs.model):
        activations.compute_ahead(outline, *inputs.passed, inputs.interventions)


def show(session: Session, inputs: PassInput) -> None:
    compute_ahead(inputs)
    instrument(
        "inside",
        key=KEY,
        model=inputs.model,
        request=request_of(*inputs.passed, session.interventions, inputs.begin),
        about={
            "offset": inputs.begin,
            "prompt": len(session.text.prompt),
            "title": session.file_name,
            "model": changes.model_id(session.name),
            "interventions": changes.listed(session.interventions),
        },
        on_change=lambda wish: changes.take(wish, session.name, session.config),
        on_navigate=open_with_lesson_view,
    )


def offer_numbers(session: Session, inputs: PassInput) -> None:
    """The numbers of the view as a file for Python, and the lines that compute them again."""
    drawer("Export these numbers", "drawer_numbers", lambda: _show_export(session, inputs), icon=":material/download:")


def _show_export(session: Session, inputs: PassInput) -> None:
    current, file = session.visitor, f"{session.file_name}-inside.safetensors"
    if problem := exports.too_much(*inputs.passed, current.inside):
        st.markdown(problem)
        return
    st.markdown(
        "A safetensors file of what is open: of a layer or a sublayer all tensors and weights; of the whole model "
        "the residual stream, what is added to it, the attention weights, logits and probabilities. To read it, "
        "and to compute it again:"
    )
    imported, texts = ("Recording", "load_checkpoint", "trace_pass"), texts_as_code(session, inputs)
    python_lines.show(
        python_lines.written(REPRODUCE, session.name, inputs.interventions, *imported, texts=texts, file=file)
    )
    # When it is pressed, not before; and of what was opened since.
    widgets.download_button(
        "Save these numbers",
        lambda: exports.file_of(*inputs.passed, current.inside, inputs.interventions).to_bytes(),
        file,
        key="save_inside",
    )


def texts_as_code(session: Session, inputs: PassInput) -> str:
    """Arguments for the texts' tokens: the text itself, encoded, or their numbers where that gives others."""
    return ", ".join(_as_code(session, tokens) for tokens in (inputs.tokens, inputs.source) if tokens)


def _as_code(session: Session, tokens: tuple[int, ...]) -> str:
    tokenizer = library.tokenizer(session.name)
    for text in (tokenizer.decode(tokens), session.visitor.prompt or ""):  # decoded, a text lacks its masks
        if not tokenizer.unknown_pieces(text) and tuple(tokenizer.encode(text)) == tokens:
            return f"checkpoint.tokenizer.encode({text!r})"
    return repr(list(tokens))


def selection_of(session: Session, inputs: PassInput) -> Selection:
    """What the visitor looks at, in tokens of this pass; what it doesn't have is forgotten."""
    current, config = session.visitor, inputs.model.checkpoint.model.config
    infos = infos_of(config, len(inputs.tokens), len(inputs.source))
    if current.inside and not any(f"{name}.".startswith(f"{current.inside}.") for name in infos):
        current.inside, current.cell, current.moment = "", None, None
    sizes = infos[current.inside].sizes if current.inside in infos else ()
    if current.cell is not None and not is_cell(current.cell, sizes):
        current.cell = None
    if current.place is not None and not 0 <= current.place - inputs.begin < len(inputs.tokens):
        current.place = None
    if current.source_place is not None and not current.source_place < len(inputs.source):
        current.source_place = None
    if current.candidate is not None and not current.candidate < config.vocab_size:
        current.candidate = None
    if current.circuit is not None and not is_circuit(current.circuit, config):
        current.circuit = None
    return Selection(
        open=current.inside,
        token=None if current.place is None else current.place - inputs.begin,
        source=current.source_place,
        head=current.head if current.heads == "one" and attention_modules(config) else None,
        cell=current.cell,
        moment=current.moment,
        folds=current.folds,
        candidate=current.candidate,
        circuit=current.circuit,
    )
