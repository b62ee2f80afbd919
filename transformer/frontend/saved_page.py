"""Saves a view as one HTML page, for a notebook, slides or a handout; it needs no server and no network.

    tokens = checkpoint.tokenizer.encode("To be, or")
    recording = record_pass(checkpoint.model, tokens, labels=checkpoint.tokenizer.labels)
    show(recording)                           # the whole pass
    show(recording, "self", layer=1, head=3)  # where each token looks

Where scripts don't run, a still picture is seen.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from ..config import ModelConfig
from ..inference.attention_outline import names_around, outline, outline_of_layer
from ..inference.circuits import circuits_of
from ..inference.inputs import predicted_position
from ..inference.pass_outline import tensors_of
from ..inference.pass_recording import (
    Fit,
    circuit_bytes,
    fitted,
    is_whole,
    pass_of,
    record_pass,
    view_bytes,
    whole_view,
)
from ..inference.recording import Recording
from ..model.equations import PROBABILITIES
from ..model.registry import attention_modules
from .html_page import HEADS, SavedPage, assembled, picture_of, picture_of_pass
from .live_model import Checkpoint
from .live_page import View, live_page, too_large

MOST_BYTES = 48_000_000
"""Of the numbers in a page, which then is a third larger; of larger passes a part is left out."""
COMPARED = (
    "hook_raw_scores",
    "hook_scaled_scores",
    "hook_capped_scores",
    "hook_attn_scores",
    "hook_pattern",
    "hook_z",
    "hook_result",
)
"""What a page derives of an attention, and compares with the model's own where that is there."""

CHOICES = ("layer", "head", "query", "key", "stage", "zoom", "without", "order", "direction", "derivation")
"""What an instrument of attention can be told to look at first."""
INSIDE: Mapping[str, Any] = {
    "open": "",
    "token": None,
    "source": None,
    "head": None,
    "cell": None,
    "moment": None,
    "folds": (),
    "candidate": None,
    "circuit": None,
}
"""What that of a whole pass can be told, and what it looks at if it isn't."""


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
        unless it would take more than 10 MB. Of a recording the same as `kind`.
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
    return _show_recording(shown, kind or of, title, chosen)


def _show_model(
    checkpoint: Checkpoint, text: str, view: View, kind: str | None, title: str, chosen: Mapping[str, Any]
) -> SavedPage:
    model, tokenizer, card = checkpoint.model, checkpoint.tokenizer, checkpoint.card
    kinds = attention_modules(model.config)
    kind = kind or next(reversed(kinds), None)
    if view == "attention" and kind not in kinds:
        raise ValueError(f"This model has no attention {kind or ''}; it has {', '.join(kinds) or 'none'}.")
    known = CHOICES if view == "attention" else INSIDE if view == "inside" else ()
    if unknown := sorted(set(chosen) - set(known)):
        raise ValueError(f"{unknown[0]!r} is nothing that can be looked at first; that is {', '.join(known)}.")
    tokens, source = tokenizer.encode(text), []
    if not tokens:
        raise ValueError("The text is empty; a model reads at least one token.")
    if model.config.architecture == "encoder-decoder":
        tokens, source = list(card.start_tokens), tokens
    first = {**INSIDE, **chosen} if view == "inside" else chosen
    if (
        live := live_page(checkpoint, view, tokens, source, title=title, text=text, kind=kind, chosen=first)
    ) is not None:
        return live
    note = too_large(model) or ""
    if view == "generation":
        raise ValueError(note)
    recorded = record_pass(model, tokens, source, labels=tokenizer.labels, mask_token_id=card.mask_token_id)
    return _show_recording(recorded, kind if view == "attention" else None, title, {**chosen, "note": note})


def _show_recording(recording: Recording, kind: str | None, title: str | None, chosen: dict[str, Any]) -> SavedPage:
    if kind is None and is_whole(recording):
        return inside_page(recording, title=title or "inside", **chosen)
    config = ModelConfig.from_dict(recording.metadata["config"])
    kinds = attention_modules(config)
    kind = kind or next(iter(kinds), None)
    if kind not in kinds:
        pass_name = f"attention {kind}" if kind else "attention"
        raise ValueError(f"This model has no {pass_name}; it has {', '.join(kinds) or 'none'}.")
    beginning = _outline(recording, config, kind)
    _check_chosen({name: value for name, value in chosen.items() if name != "note"}, beginning)
    if is_whole(recording):
        recording = Recording(_cut(recording, attention_points(_sizes(recording), beginning.metadata)), {})
    return page(beginning, recording, title=title or "attention", **chosen)


def page(
    beginning: Recording,
    whole: Recording,
    *,
    title: str,
    offsets: Mapping[str, int] | None = None,
    next: Sequence[str] | None = None,
    note: str = "",
    **chosen: Any,
) -> SavedPage:
    """A page from an outline, as `inference.attention_outline` makes it, and the recording its parts are cut from.

    offsets: the positions of the first of `queries` and `keys` in the text; None where it begins with them. next: the
    token that each query chose. note: a sentence below the instrument. title, chosen: as in `show`.
    Raises: ValueError for more numbers than a page holds.
    """
    about = {"offsets": offsets or {"queries": 0, "keys": 0}, "next": next, "title": title, "chosen": chosen}
    about = {**beginning.metadata, **about, "complete": True}
    sizes, cells = _sizes(whole), beginning.tensors["overview"]
    points = _read_points(sizes, about)
    if sum(sizes[name] for name in points) > MOST_BYTES:
        points = attention_points(sizes, about)
    if (size := sum(sizes[name] for name in points)) > MOST_BYTES:
        raise ValueError(
            f"The queries, keys and values of this attention take {size / 1e6:,.0f} MB, and a page holds at most "
            f"{MOST_BYTES / 1e6:,.0f} MB; take a shorter text."
        )
    layers, heads = cells.shape[:2]
    what = f"attention ({about['kind']}) over {about['queries']} tokens, {layers} × {heads} heads"
    whole = Recording(_cut(whole, points), {})
    elements = {"outline": Recording(beginning.tensors, about), "whole": whole}
    return assembled("hosts/recorded_attention.js", title, elements, what, picture_of(list(cells), HEADS), note)


def attention_fits(config: ModelConfig, kind: str, tokens: int, source: int = 0) -> bool:
    """Whether `page` has room for an attention over so many tokens."""
    sizes = {name: 4 * math.prod(info.sizes) for name, info in tensors_of(config, tokens, source).items()}
    modules = attention_modules(config)[kind]
    about = {"modules": modules, "names": [names_around(config, kind, layer) for layer in range(len(modules))]}
    return sum(sizes[name] for name in attention_points(sizes, about)) <= MOST_BYTES


def attention_points(sizes: Mapping[str, int], about: Mapping[str, Any]) -> list[str]:
    """What a page needs at least, of the tensors that there are: what the picture of an attention is derived from, and
    the model's own weights or z, whichever is smaller, to compare it with; both where something was set by hand.

    sizes: bytes by name. about: metadata of an outline.
    """
    points = []
    for module, around in zip(about["modules"], about["names"], strict=True):
        points += [around[name] for name in "qkv" if around[name]]
        points += [name for name in (f"{module}.relative_bias.weight",) if name in sizes]
        own = [name for name in (f"{module}.hook_pattern", f"{module}.hook_z") if name in sizes]
        is_set = any(change["point"].startswith(f"{module}.") for change in about.get("changed", ()))
        points += own if is_set else sorted(own, key=sizes.__getitem__)[:1]
    return points


def _read_points(sizes: Mapping[str, int], about: Mapping[str, Any]) -> list[str]:
    """All that a page can make use of, of the tensors that there are."""
    names = [
        f"{module}.{point}"
        for module in about["modules"]
        for point in (*COMPARED, "out.weight", "relative_bias.weight")
    ]
    names += [name for around in about["names"] for name in around.values()]
    return [name for name in dict.fromkeys(names) if name in sizes]


def _sizes(recording: Recording) -> dict[str, int]:
    return {name: array.nbytes for name, array in recording.tensors.items()}


def _cut(recording: Recording, names: Sequence[str]) -> dict[str, np.ndarray]:
    return {name: recording.tensors[name] for name in names}


def inside_page(
    recording: Recording,
    *,
    title: str,
    offset: int = 0,
    open: str = "",
    token: int | None = None,
    source: int | None = None,
    head: int | None = None,
    cell: Sequence[int] | None = None,
    moment: float | None = None,
    folds: Sequence[str] = (),
    candidate: int | None = None,
    circuit: Sequence[str | int] | None = None,
    note: str = "",
) -> SavedPage:
    """A whole pass as the page Inside shows it, from what `record_pass` recorded. title: as in `show`.

    offset: the position of the first token in the text. open: a tensor, a sublayer or a block, empty for the whole;
    token, source, head: those that are looked at, None for the predicted position, none, and all; cell: an index of the
    tensor that is open; moment: where Play stands; folds: what is unfolded below, of "lens", "who", "checks" and
    "circuits"; candidate: the token whose logit is asked about, None for the likeliest; circuit: ("qk",
    "blocks.1.attn", 2, 0) is that of head 2 at distance 0, with two more numbers for a cell of it. note: a
    sentence below the instrument.
    Of a large pass a part is left out, as `page_fit` says.
    Raises: ValueError for a recording of less than the whole pass, a module or tensor that the model doesn't have, a
        cell that the tensor doesn't have, or a pass that is too large.
    """
    trace = pass_of(recording)
    infos = tensors_of(trace.config, len(trace.tokens), len(trace.source))
    if open and not any(name == open or name.startswith(f"{open}.") for name in infos):
        raise ValueError(f"This model has no {open}; it has {', '.join(list(infos)[:3])} and so on.")
    _check_index("token", token, len(trace.tokens))
    _check_index("source", source, len(trace.source))
    _check_index("head", head, trace.config.n_heads)
    _check_index("candidate", candidate, trace.config.vocab_size)
    if circuit is not None:
        kind, module, of_head = circuit[:3]
        if kind not in circuits_of(trace.config, str(module)):
            raise ValueError(f"There is no circuit {kind!r} of {module!r} in this model.")
        _check_index("head", int(of_head), trace.config.n_heads)
    sizes = infos[open].sizes if open in infos else ()
    if cell is not None and not _is_cell(cell, sizes):
        raise ValueError(f"There is no cell {tuple(cell)} in {open or 'the model'}: its shape is {sizes}.")
    chosen = {
        "open": open,
        "token": token,
        "source": source,
        "head": head,
        "cell": cell,
        "moment": moment,
        "folds": folds,
        "candidate": candidate,
        "circuit": circuit,
    }
    fit = page_fit(trace.config, len(trace.tokens), len(trace.source))
    if fit is None:
        raise ValueError("This pass is too large for a page of its own; take a shorter text.")
    labels, changed = recording.metadata["vocabulary"], recording.metadata.get("changed", [])
    beginning, whole = whole_view(trace, labels, fit.names, changed, recording.metadata.get("mask_token_id"))
    about = {"id": title, "title": title, "offset": offset, "complete": True, "chosen": chosen}
    picture = picture_of_pass(beginning, trace.tensors[PROBABILITIES].detach().float().numpy())
    what = f"a whole pass over {len(trace.tokens)} tokens, {len(infos)} tensors"
    outlined = Recording(beginning.tensors, {**beginning.metadata, **about})
    elements = {"outline": outlined, "whole": whole}
    return assembled("hosts/recorded_inside.js", title, elements, what, picture, note)


def page_fit(config: ModelConfig, tokens: int, source: int = 0) -> Fit | None:
    """What `inside_page` leaves out of a pass over so many tokens; None where even the rest is too large for a page."""
    circuits = circuit_bytes(config)
    fit = fitted(tensors_of(config, tokens, source), MOST_BYTES - circuits)
    return replace(fit, size=fit.size + circuits) if fit.size + circuits <= MOST_BYTES else None


def page_size(config: ModelConfig, outlined: Recording, fit: Fit) -> int:
    """Bytes of what `inside_page` makes of a pass, to about a hundredth, without making it.

    outlined: the outline of the pass, as `whole_view` has it. fit: as `page_fit` gives it.
    """
    ids = outlined.metadata["ids"]
    whole = view_bytes(config, len(ids["text"]), len(ids["source"]), fit)
    elements = {"outline": outlined, "whole": Recording({}, {})}
    frame = assembled("hosts/recorded_inside.js", "", elements, "", picture_of_pass(outlined, None))
    return len(frame.html.encode()) + whole * 4 // 3


def _check_chosen(chosen: Mapping[str, Any], beginning: Recording) -> None:
    """Raise ValueError for what an instrument of attention doesn't ask for, or hasn't got. beginning: its outline."""
    if unknown := sorted(set(chosen) - set(CHOICES)):
        raise ValueError(f"{unknown[0]!r} is nothing that can be looked at first; that is {', '.join(CHOICES)}.")
    layers, heads = beginning.tensors["overview"].shape[:2]
    sizes = {"layer": layers, "head": heads, "query": beginning.metadata["queries"], "key": beginning.metadata["keys"]}
    for name, size in sizes.items():
        _check_index(name, chosen.get(name), size)


def _check_index(name: str, index: int | None, size: int) -> None:
    if index is not None and index not in range(size):
        there = f"from 0 to {size - 1}" if size else "none"
        raise ValueError(f"There is no {name} {index}; of those, this pass has {there}.")


def _is_cell(cell: Sequence[int], sizes: Sequence[int]) -> bool:
    return len(cell) == len(sizes) > 0 and all(at in range(size) for at, size in zip(cell, sizes, strict=True))


def _outline(recording: Recording, config: ModelConfig, kind: str) -> Recording:
    labels = _labels(recording, config)
    words = labels["source" if kind == "encoder" else "text"]
    ids = None if kind == "cross" else torch.tensor([sorted(set(words)).index(word) for word in words])
    layers = []
    for module in attention_modules(config)[kind]:
        pattern, mask = (torch.tensor(_needed(recording, f"{module}.hook_{name}")) for name in ("pattern", "mask"))
        layers.append(outline_of_layer(pattern, mask, ids))
    cells, measures = zip(*layers, strict=True)
    read, mask = recording.metadata.get("ids"), recording.metadata.get("mask_token_id")
    looks_first = predicted_position(config, read["text"], mask) if read and kind != "encoder" else None
    beginning = outline(config, kind, labels, cells, measures, predicted_position=looks_first)
    beginning = Recording(beginning.tensors, {**beginning.metadata, "changed": recording.metadata.get("changed", [])})
    for names in beginning.metadata["names"]:
        for name in (names["q"], names["k"], names["v"]):
            if name:
                _needed(recording, name)
    return beginning


def _labels(recording: Recording, config: ModelConfig) -> Mapping[str, list[str]]:
    """The printable tokens; where the recording has none, their positions."""
    labels = {"text": [], "source": [], **recording.metadata.get("labels", {})}
    prefixes = {"text": ""} if config.architecture != "encoder-decoder" else {"text": "decoder.", "source": "encoder."}
    for text, prefix in prefixes.items():
        length = len(_needed(recording, f"{prefix}hook_embed"))
        if len(labels[text]) != length:
            labels[text] = [str(position) for position in range(length)]
    return labels


def _needed(recording: Recording, name: str) -> np.ndarray:
    if name not in recording.tensors:
        raise ValueError(f"The recording lacks {name}; record every point of the model, with names=None.")
    return recording.tensors[name]
