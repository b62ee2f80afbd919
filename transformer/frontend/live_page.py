"""Saves a model as one HTML page that computes: its prompt, its sampling and its heads can be changed without a server.

show(checkpoint, "To be, or")                     # the whole pass
show(checkpoint, "To be, or", view="attention")   # where each token looks
show(checkpoint, "To be, or", view="generation")  # what the model writes, or fills in where words are masked
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from ..inference.context_windows import WindowedIntervention
from ..inference.intervention_codes import to_code
from ..inference.interventions import Intervention
from ..inference.pattern_pooling import pool, quantise
from ..inference.recording import Recording
from ..model.effective_weights import merged
from ..model.models import Model
from . import FOLDER
from .html_page import HEADS, SavedPage, assembled, in_words, picture_of
from .html_scripts import as_json
from .live_model import Checkpoint, about_model, sample_of, weights_of
from .module_bundle import bundle

MOST_BYTES = 10_000_000
"""Of a page, model included; learning platforms take files of this size."""
BESIDE = 900_000
"""Bytes of scripts, styles and what is said of the model, about."""
LIVE = "It holds the model: in it another prompt can be typed, and heads can be ablated."
"""What such a page is good for."""
View = Literal["attention", "inside", "generation"]


def model_bytes(model: Model) -> int:
    """What a model takes in a page, about."""
    numbers = sum(weight.numel() for weight in {id(weight): weight for weight in model.parameters()}.values())
    return numbers * 2 * 4 // 3


def too_large(model: Model) -> str | None:
    """Why a page can't hold a model; None where it can."""
    size = model_bytes(model) + BESIDE
    if size <= MOST_BYTES:
        return None
    return (
        f"With its model this page would take {in_words(size)}, and it should take at most {in_words(MOST_BYTES)}: "
        "it shows the text that it was saved with, and computes nothing new."
    )


def live_page(
    checkpoint: Checkpoint,
    view: View,
    tokens: Sequence[int],
    source: Sequence[int] = (),
    *,
    title: str,
    text: str | None = None,
    interventions: Sequence[Intervention] = (),
    begin: int = 0,
    next: Sequence[str] | None = None,
    kind: str | None = None,
    chosen: Mapping[str, Any] | None = None,
) -> SavedPage | None:
    """A page that shows a pass, or a text that is continued or filled in, and computes another when it is asked to.

    tokens: of an encoder–decoder that begins with its start tokens alone, the page has it write the others. text: the
    prompt as it was typed, that of the tokens if it is left out. interventions: their positions count from the start of
    the text, of which the pass begins with the token at `begin`. next: of an encoder–decoder, the label of the token
    that was chosen after each. kind: of attention. chosen: what is looked at first.
    Returns: None where the page would take more than `MOST_BYTES`.
    """
    model, tokenizer = checkpoint.model, checkpoint.tokenizer
    if too_large(model):
        return None
    reading = {
        "text": tokenizer.decode(source or tokens) if text is None else text,
        "tokens": list(tokens),
        "source": list(source),
        "begin": begin,
        "next": list(next or ()),
        "changes": [to_code(_of_text(intervention)) for intervention in interventions],
    }
    about = {
        "about": about_model(merged(model)[0], tokenizer, checkpoint.card),
        "tokenizer": json.loads(tokenizer.to_json()),
        "reads_names": tokenizer.reads_names,
        "title": title,
        "reading": reading,
        "kind": kind,
        "chosen": chosen or {},
    }
    sample = sample_of(model, tokens, source)
    worker = bundle(FOLDER / "engine" / "worker.js")
    elements = {"sample": sample, "worker": worker, "weights": weights_of(model)}
    elements = {"model": as_json(about), **elements}
    folder = "filling" if view == "generation" and not model.config.is_causal else view
    title_of_page = f"{checkpoint.card.title}, computed in the browser"
    page = assembled(f"{folder}/live.js", title, elements, title_of_page, _picture(sample))
    return page if len(page.html.encode()) <= MOST_BYTES else None


def _of_text(intervention: Intervention) -> Intervention:
    """An intervention as it counts from the start of the text."""
    while isinstance(intervention, WindowedIntervention):
        intervention = intervention.intervention
    return intervention


def _picture(sample: Recording) -> str:
    """A still picture of a sample's attention weights."""
    heads = [quantise(*pool(array, None)) for name, array in sample.tensors.items() if name.endswith("hook_pattern")]
    return picture_of(heads, HEADS) if heads else ""
