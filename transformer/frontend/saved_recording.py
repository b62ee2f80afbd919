"""Saves a recorded pass as one HTML page, which shows what was recorded and computes nothing new."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from ..config import ModelConfig
from ..inference.attention_outline import names_around, outline, outline_of_layer
from ..inference.circuits import circuits_of
from ..inference.inputs import predicted_position
from ..inference.pass_outline import tensors_of
from ..inference.pass_recording import Fit, circuit_bytes, fitted, is_whole, pass_of, view_bytes, whole_view
from ..inference.recording import Recording
from ..model.equations import PROBABILITIES
from ..model.registry import attention_modules
from .html_page import HEADS, SavedPage, assembled, picture_of, picture_of_pass

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


def recorded_page(recording: Recording, kind: str | None, title: str | None, **chosen: Any) -> SavedPage:
    """The page of a recording, as `show` describes it. kind: of attention; None for a whole pass where it is one."""
    if kind is None and is_whole(recording):
        return inside_page(recording, title=title or "inside", **chosen)
    config = ModelConfig.from_dict(recording.metadata["config"])
    kinds = attention_modules(config)
    kind = kind or next(iter(kinds), None)
    if kind not in kinds:
        pass_name = f"attention {kind}" if kind else "attention"
        raise ValueError(f"This model has no {pass_name}; it has {', '.join(kinds) or 'none'}.")
    beginning = _outline(recording, config, kind)
    check_names(chosen.keys() - {"note"}, CHOICES)
    layers, heads = beginning.tensors["overview"].shape[:2]
    sizes = {"layer": layers, "head": heads, "query": beginning.metadata["queries"], "key": beginning.metadata["keys"]}
    for name, size in sizes.items():
        _check_index(name, chosen.get(name), size)
    if is_whole(recording):
        recording = _cut(recording, attention_points(_sizes(recording), beginning.metadata))
    return attention_page(beginning, recording, title=title or "attention", **chosen)


def attention_page(
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
    elements = {"outline": Recording(beginning.tensors, about), "whole": _cut(whole, points)}
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


def _cut(recording: Recording, names: Sequence[str]) -> Recording:
    return Recording({name: recording.tensors[name] for name in names}, {})


def inside_page(recording: Recording, *, title: str, offset: int = 0, note: str = "", **chosen: Any) -> SavedPage:
    """A whole pass as the page Inside shows it, from what `record_pass` recorded. title: as in `show`.

    offset: the position of the first token in the text. note: a sentence below the instrument. chosen, all that the
    view is told to look at first:
        open: a tensor, a sublayer or a block, empty for the whole;
        token, source, head: None for the predicted position, none, and all;
        cell: an index of the tensor that is open;
        moment: where Play stands;
        folds: what is unfolded below, of "lens", "who", "checks" and "circuits";
        candidate: the token whose logit is asked about, None for the likeliest;
        circuit: ("qk", "blocks.1.attn", 2, 0) is that of head 2 at distance 0, with two more numbers for a cell of it.
    Of a large pass a part is left out, as `page_fit` says.
    Raises: ValueError for a recording of less than the whole pass, for something to look at that the model or the pass
        doesn't have, or a pass that is too large.
    """
    check_names(chosen, INSIDE)
    chosen = {**INSIDE, **chosen}
    trace = pass_of(recording)
    infos = tensors_of(trace.config, len(trace.tokens), len(trace.source))
    open, cell, circuit = chosen["open"], chosen["cell"], chosen["circuit"]
    if open and not any(name == open or name.startswith(f"{open}.") for name in infos):
        raise ValueError(f"This model has no {open}; it has {', '.join(list(infos)[:3])} and so on.")
    heads = trace.config.n_heads
    of_pass = {"token": len(trace.tokens), "source": len(trace.source), "candidate": trace.config.vocab_size}
    for name, size in {**of_pass, "head": heads}.items():
        _check_index(name, chosen[name], size)
    if circuit is not None:
        kind, module, head = circuit[:3]
        if kind not in circuits_of(trace.config, module):
            raise ValueError(f"There is no circuit {kind!r} of {module!r} in this model.")
        _check_index("head", head, heads)
    sizes = infos[open].sizes if open in infos else ()
    if cell is not None and not _is_cell(cell, sizes):
        raise ValueError(f"There is no cell {tuple(cell)} in {open or 'the model'}: its shape is {sizes}.")
    fit = page_fit(trace.config, len(trace.tokens), len(trace.source))
    if fit is None:
        raise ValueError("This pass is too large for a page of its own; take a shorter text.")
    labels, changed = recording.metadata["vocabulary"], recording.metadata.get("changed", [])
    beginning, whole = whole_view(trace, labels, fit.names, changed, recording.metadata.get("mask_token_id"))
    about = {"id": title, "title": title, "offset": offset, "complete": True, "chosen": chosen}
    picture = picture_of_pass(beginning, trace.tensors[PROBABILITIES].detach().float().numpy())
    what = f"a whole pass over {len(trace.tokens)} tokens, {len(infos)} tensors"
    elements = {"outline": Recording(beginning.tensors, {**beginning.metadata, **about}), "whole": whole}
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


def check_names(chosen: Iterable[str], known: Iterable[str]) -> None:
    """Raise ValueError for what a view can't be told to look at first."""
    if unknown := sorted(set(chosen) - set(known)):
        raise ValueError(f"{unknown[0]!r} is nothing that can be looked at first; that is {', '.join(known)}.")


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
        layers.append(outline_of_layer(pattern, mask, ids, words))
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
