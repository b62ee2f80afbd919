"""Describes hook points and interventions in plain words: a block, an attention, a head at a position."""

from __future__ import annotations

import re
from typing import Protocol

_OF_A_BLOCK = {
    "cross_attn": ", cross-attention",
    "ln1": ", first norm",
    "ln_cross": ", norm of cross-attention",
    "ln2": ", norm of feed-forward",
}
_WHOLE = {
    "attn_out": "attention of",
    "cross_attn_out": "cross-attention of",
    "mlp_out": "feed-forward of",
    "resid_pre": "the stream before",
    "resid_mid": "the stream after the attention of",
    "resid_cross": "the stream after the cross-attention of",
    "resid_post": "the stream after",
}
_NAMED = {
    "q": "queries",
    "k": "keys",
    "v": "values",
    "rot_q": "rotated queries",
    "rot_k": "rotated keys",
    "pre": "before the activation",
    "post": "after the activation",
    "normalized": "output",
    "result": "what each head adds",
    "z": "all heads",
}
"""Parts of a block, and points of them, in plain words."""


class Part(Protocol):
    """A hook point, one head of it or all (None), at one position or all."""

    @property
    def point(self) -> str: ...
    @property
    def head(self) -> int | None: ...
    @property
    def position(self) -> int | None: ...


def describe_module(name: str) -> str:
    """A block, an attention or a norm in plain words: "decoder layer 1"."""
    found = re.search(r"(?:(encoder|decoder)\.)?blocks\.(\d+)\.?(\w*)", name)
    if not found:
        side = {"encoder.": "the encoder", "decoder.": "the decoder"}.get(name, name)
        return side if "ln_final" not in name else "the last norm"
    side, layer, part = found.groups()
    words = f"{side} layer {layer}" if side else f"layer {layer}"
    return words + _OF_A_BLOCK.get(part, "")


def describe_part(change: Part) -> str:
    """What is changed, in plain words: "layer 0, head 0", "feed-forward of layer 2 at position 3"."""
    where = describe_module(change.point)
    last = change.point.rpartition(".")[2].removeprefix("hook_")
    whole = f"{_WHOLE[last]} {where}" if last in _WHOLE else f"{where}, {_NAMED.get(last, last)}"
    if last in ("embed", "pos_embed"):
        side = f"the {change.point.partition('.')[0]}'s" if "." in change.point else "the"
        whole = f"{side} {'positions' if last == 'pos_embed' else 'embedding'}"
    if change.head is not None:
        whole = f"{where}, head {change.head}{'' if last == 'z' else f', {_NAMED.get(last, last)}'}"
    return whole if change.position is None else f"{whole} at position {change.position}"
