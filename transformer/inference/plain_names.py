"""Describes hook points and interventions in plain words: a block, an attention, a head at a position."""

from __future__ import annotations

import re
from typing import Protocol

_OF_A_BLOCK = {
    "cross_attn": ", cross-attention",
    "ln1": ", first norm",
    "ln1_post": ", norm of attention's output",
    "ln2_post": ", norm of feed-forward's output",
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
_OF_THE_MODEL = {
    "unembed.uncapped": "the logits before they are capped",
    "ln_embed.out": "the embedding after its norm",
}
_NAMED = {
    "q": "queries",
    "k": "keys",
    "v": "values",
    "rot_q": "rotated queries",
    "rot_k": "rotated keys",
    "pre": "pre-activation",
    "post": "post-activation",
    "out": "output",
    "result": "what each head adds",
    "z": "all heads",
    "q_norm.out": "normalised queries",
    "k_norm.out": "normalised keys",
    "attn.out": "attention before its norm",
    "mlp.out": "feed-forward before its norm",
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
    match = re.search(r"(?:(encoder|decoder)\.)?blocks\.(\d+)\.?(\w*)", name)
    if not match:
        side = {"encoder.": "the encoder", "decoder.": "the decoder"}.get(name, name)
        return side if "ln_final" not in name else "the last norm"
    side, layer, part = match.groups()
    words = f"{side} layer {layer}" if side else f"layer {layer}"
    return words + _OF_A_BLOCK.get(part, "")


def describe_part(change: Part) -> str:
    """What is changed, in plain words: "layer 0, head 0", "feed-forward of layer 2 at position 3"."""
    where = describe_module(change.point)
    last = change.point.rpartition(".")[2].removeprefix("hook_")
    owned = f"{change.point.split('.')[-2]}.{last}" if "." in change.point else last
    named = _NAMED.get(owned, _NAMED.get(last, last))
    whole = f"{_WHOLE[last]} {where}" if last in _WHOLE else f"{where}, {named}"
    whole = _OF_THE_MODEL.get(owned, whole)
    if last in ("embed", "pos_embed"):
        side = f"the {change.point.partition('.')[0]}'s" if "." in change.point else "the"
        whole = f"{side} {'positions' if last == 'pos_embed' else 'embedding'}"
    if change.head is not None:
        whole = f"{where}, head {change.head}{'' if last == 'z' else f', {named}'}"
    return whole if change.position is None else f"{whole} at position {change.position}"
