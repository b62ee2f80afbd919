"""Saves a model as one HTML page that computes: its prompt, its sampling and its heads can be changed without a server.

show(checkpoint, "To be, or")                     # the whole pass
show(checkpoint, "To be, or", view="attention")   # where each token looks
show(checkpoint, "To be, or", view="generation")  # what the model writes, or fills in where words are masked
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal
from urllib.parse import urlencode

from ..checkpoints.checkpoint import Checkpoint
from ..inference.context_windows import WindowedIntervention
from ..inference.intervention_codes import to_code
from ..inference.interventions import Intervention
from ..inference.pattern_pooling import pool, quantise
from ..inference.recording import Recording
from ..model.models import Model
from . import FOLDER
from .html_page import HEADS, SavedPage, assembled, in_words, picture_of
from .html_scripts import as_json
from .live_model import in_one_element, sample_of
from .module_bundle import bundle
from .page_titles import SENTENCES

MOST_BYTES = 12_000_000
"""Of a page, model included; learning platforms take files of this size. A model of 3.4 million parameters and 4,096
tokens makes one of 10.8 MB."""
BESIDE = 900_000
"""Bytes of scripts, styles and what is said of the model, about."""
LIVE = "It holds the model: in it another prompt can be typed, and heads can be ablated."
"""What such a page is good for."""
View = Literal["attention", "inside", "generation"]
PAGES: Mapping[View, str] = {"attention": "Attention", "inside": "Inside", "generation": "Generate"}
NAME = "model"
"""What the model is called in such a page, which has no other."""
NAMES_IN_LINKS = {"open": "inside", "token": "place", "source": "source_place"}
"""What `chosen` calls otherwise."""
BETWEEN = "!"
"""Two changes in a link."""


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


def model_page(
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
    model, tokenizer, card = checkpoint.model, checkpoint.tokenizer, checkpoint.card
    if too_large(model):
        return None
    if source:
        tokens, written, read = card.start_tokens, _written(checkpoint, tokens, next), source
    else:
        written, read = [], tokens
    prompt = tokenizer.decode(read) if text is None else text
    state = {
        "model": NAME,
        "prompt": prompt,
        "written": ".".join(map(str, written)),
        "changes": BETWEEN.join(to_code(_of_text(intervention)) for intervention in interventions),
        "attention": kind if view == "attention" and kind != "self" else "",
        "scope": "all",
        **_looked_at(view, kind, begin, chosen or {}),
    }
    title_of_page = f"{card.title}, computed in the browser"
    name = PAGES[view]
    page = {
        "page": {"title": name, "sentence": SENTENCES[name]},
        "link": urlencode({name: value for name, value in state.items() if value not in ("", None)}),
        "fileName": title,
        "text": {
            "prompt": prompt,
            "read": {
                "tokens": list(read),
                "labels": tokenizer.labels(read),
                "new_words": list(tokenizer.new_words),
                "unknown": [],
                "begin": begin,
            },
        },
        "models": [{"name": NAME, "title": card.title, "group": "", "examples": []}],
    }
    sample = sample_of(model, tokens, source)
    elements = {
        "page": as_json(page),
        f"model-{NAME}": in_one_element(checkpoint),
        "sample": sample,
        "worker": bundle(FOLDER / "engine" / "worker.js"),
    }
    made = assembled(f"hosts/saved_{view}.js", title, elements, title_of_page, _picture(sample))
    return made if len(made.html.encode()) <= MOST_BYTES else None


def _written(checkpoint: Checkpoint, tokens: Sequence[int], next: Sequence[str] | None) -> list[int]:
    """What an encoder–decoder has written after its start tokens; with the end token if that was chosen last."""
    written = list(tokens)[len(checkpoint.card.start_tokens) :]
    last = [
        token for token in checkpoint.card.stop_tokens if next and checkpoint.tokenizer.labels([token])[0] == next[-1]
    ]
    return written + last[:1] if written else []


def _looked_at(view: View, kind: str | None, begin: int, chosen: Mapping[str, Any]) -> dict[str, str]:
    """What is looked at first, as parameters of a link: there positions count from the start of the text."""
    chosen = {name: value for name, value in chosen.items() if value is not None}
    first = {"query": 0 if kind == "encoder" else begin, "key": begin if kind in ("self", "decoder") else 0}
    first |= {"token": begin}
    if "derivation" in chosen:
        chosen["derivation"] = "open" if chosen["derivation"] else "closed"
    if view == "inside" and "head" in chosen:
        chosen["heads"] = "one"
    shifted = {name: value + first[name] if name in first else value for name, value in chosen.items()}
    return {NAMES_IN_LINKS.get(name, name): _as_text(value) for name, value in shifted.items()}


def _as_text(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _of_text(intervention: Intervention) -> Intervention:
    """An intervention as it counts from the start of the text."""
    while isinstance(intervention, WindowedIntervention):
        intervention = intervention.intervention
    return intervention


def _picture(sample: Recording) -> str:
    """A still picture of a sample's attention weights."""
    heads = [quantise(*pool(array, None)) for name, array in sample.tensors.items() if name.endswith("hook_pattern")]
    return picture_of(heads, HEADS) if heads else ""
