"""Saves a view as one HTML page, for a notebook, slides or a handout; it needs no server and no network.

    tokens = checkpoint.tokenizer.encode("To be, or")
    recording = record_pass(checkpoint.model, tokens, labels=checkpoint.tokenizer.labels)
    show(recording)                           # the whole pass
    show(recording, "self", layer=1, head=3)  # where each token looks

Where scripts don't run, a still picture is seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..checkpoints.checkpoint import Checkpoint
from ..inference.pass_recording import record_pass
from ..inference.recording import Recording
from ..model.registry import attention_modules
from .html_page import SavedPage
from .saved_model import View, model_page, too_large
from .saved_recording import CHOICES, INSIDE, check_names, recorded_page


def show(
    shown: Recording | Checkpoint,
    of: str | None = None,
    *,
    kind: str | None = None,
    view: View = "inside",
    title: str | None = None,
    **chosen: Any,
) -> SavedPage:
    """A pass as the app shows it: all of it, as on the page Inside, or its attention; of a model, one that computes.

    shown: a checkpoint, or a recording as `record_pass` makes it. For attention a recording needs no more than
        `hook_pattern`, `hook_mask`, `hook_v` and, where they exist, queries and keys (rotated ones, for rotary
        positions) of every layer. Of a whole pass the page takes these alone; whatever else a smaller recording has of
        this attention, and of `attn.out.weight`, is compared with what the page derives, while there is room.
    of: of a checkpoint the text that it reads; then the page holds the model, and another text can be typed into it,
        unless it would take more than 12 MB. Of a recording the same as `kind`.
    kind: of attention, as in `attention_modules`; None for all of a whole pass, and for the model's first attention
        where the recording is of something less.
    view: of a checkpoint, what the page shows: "inside", "attention", or "generation", which of a model that reads in
        both directions is how it fills masks.
    chosen: what is looked at first. Of a pass: open="blocks.1.attn.hook_z", token=4, head=2, cell=(4, 2, 7), and what
        else `inside_page` names; of attention: layer=1, head=0.
    title: what files that are saved from the page are called.
    Raises: ValueError for a recording that lacks what is needed, a model without attention of this kind, or something
        to be looked at that isn't there; a text that the model can't read; or what is too large for a page; TypeError
        for something else, such as an `ActivationCache`, which has neither text nor weights.
    """
    if not isinstance(shown, Recording) and not (hasattr(shown, "model") and hasattr(shown, "tokenizer")):
        raise TypeError(
            f"show takes a recording or a checkpoint, and nothing of type {type(shown).__name__}; "
            "record_pass(model, tokens) makes a recording of what a model computes."
        )
    if not isinstance(shown, Recording):
        return _show_model(shown, of or "", view, kind, title or view, chosen)
    return recorded_page(shown, kind or of, title, **chosen)


def _show_model(
    checkpoint: Checkpoint, text: str, view: View, kind: str | None, title: str, chosen: Mapping[str, Any]
) -> SavedPage:
    checkpoint = checkpoint.with_new_words([text])
    model, tokenizer, card = checkpoint.model, checkpoint.tokenizer, checkpoint.card
    kinds = attention_modules(model.config)
    kind = kind or next(reversed(kinds), None)
    if view == "attention" and kind not in kinds:
        raise ValueError(f"This model has no attention {kind or ''}; it has {', '.join(kinds) or 'none'}.")
    check_names(chosen, CHOICES if view == "attention" else INSIDE if view == "inside" else ())
    tokens, source = tokenizer.encode(text), []
    if not tokens:
        raise ValueError("The text is empty; a model reads at least one token.")
    if model.config.architecture == "encoder-decoder":
        tokens, source = list(card.start_tokens), tokens
    first = {**INSIDE, **chosen} if view == "inside" else chosen
    about = {"title": title, "text": text, "kind": kind, "chosen": first}
    if (page := model_page(checkpoint, view, tokens, source, **about)) is not None:
        return page
    note = too_large(model) or ""
    if view == "generation":
        raise ValueError(note)
    recorded = record_pass(model, tokens, source, labels=tokenizer.labels, mask_token_id=card.mask_token_id)
    return recorded_page(recorded, kind if view == "attention" else None, title, **chosen, note=note)
