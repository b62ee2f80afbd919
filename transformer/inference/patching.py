"""Activation patching: runs one prompt with one activation at a time taken from another prompt.

An activation affects nothing before it, neither lower in the model nor, under a causal mask, earlier in the text. So a
patched pass begins at the layer that is patched, and at the first of the positions that a batch patches: a row each.
Shapes: site, layer, row, pos, d_model, vocab.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ..hooks import ForwardHook
from ..model.caches import KeyValues
from ..model.models import DecoderOnly, EncoderDecoder
from ..model.registry import attention_modules, hook_points
from .context_windows import looks_ahead
from .inputs import inputs_of
from .interventions import Intervention, hooks_of

SITES = {
    "stream": "hook_resid_pre",
    "attention": "hook_attn_out",
    "cross-attention": "hook_cross_attn_out",
    "feed-forward": "hook_mlp_out",
}
"""What is patched, position by position: the residual stream as it enters a layer, and what the layer's sublayers add
to it; and the ending of its hook points."""
STACKS = {"self": "", "encoder": "encoder.", "decoder": "decoder."}
"""The stacks that can be patched, by their kind of attention, and the beginning of their hook points."""
ROWS = 16
"""Positions that a batch patches. Fewer leave out more of the text before them; more waste less time on each call."""


@dataclass(frozen=True)
class Patching:
    """How much of the difference between two texts each activation carries: 0 for none, 1 for all of it."""

    sites: tuple[str, ...]
    """Those of `SITES` that the model has."""
    points: tuple[tuple[str, ...], ...]
    """Their hook points, by site and layer."""
    restored: Tensor
    """(site, layer, pos): (patched − corrupted) / (clean − corrupted), of the logit difference."""
    clean: float
    corrupted: float
    """The logit difference of the two texts by themselves."""


@torch.no_grad()
def patching(
    model: DecoderOnly | EncoderDecoder,
    clean: Sequence[int],
    corrupted: Sequence[int],
    answer: int,
    against: int,
    source: Sequence[int] = (),
    corrupted_source: Sequence[int] = (),
    *,
    stack: str = "",
    interventions: Sequence[Intervention] = (),
    on_progress: Callable[[float], None] = lambda share: None,
) -> Patching:
    """Run the corrupted text with one activation at a time from the clean one; what it restores is what it carries.

    answer, against: two tokens, whose difference of logits after the last token is what comes back: the right one on
    the clean text, and the one on the corrupted. source, corrupted_source: what an encoder reads of each.
    stack: which stack is patched, one of `STACKS`; if empty, in the encoder of a model that has one.
    interventions: what is changed in every pass, the clean one too. Put the model into evaluation mode first.
    on_progress: called with the share of the passes that are done, 0 to 1; what it raises ends them.
    Raises: ValueError, saying what would do, for texts of unequal length or without a difference to explain.
    Source: Vig et al. 2020; Meng et al. 2022, §2, *causal tracing*.
    """
    for name, one, other in (("texts", clean, corrupted), ("sources", source, corrupted_source)):
        if len(one) != len(other):
            raise ValueError(
                f"The {name} have {len(one)} and {len(other)} tokens; patching replaces one position by another, so "
                "they must be of one length. Change one of them until they are."
            )
    kind = stack or ("self" if model.config.architecture == "decoder-only" else "encoder")
    sites = _sites(model, kind)
    names = [name for layers in sites.values() for name in layers]
    hooks = hooks_of(interventions, model)
    inputs = [inputs_of(model, *text) for text in ((clean, source), (corrupted, corrupted_source))]
    logits, cache = model.run_with_cache(*inputs[0], names_filter=names, fwd_hooks=hooks, newest=True)
    with model.hooked(hooks):
        base = model(*inputs[1], newest=True)

    def difference(found: Tensor) -> Tensor:
        return (found[..., -1, answer] - found[..., -1, against]).cpu().double()

    top, bottom = float(difference(logits)[0]), float(difference(base)[0])
    if abs(top - bottom) < 1e-6:
        raise ValueError("Both texts say the same of these two tokens, so there is no difference to trace.")
    reads_back = kind == "self" and not model.is_hooked and not any(map(looks_ahead, interventions))
    length = len(source) if kind == "encoder" else len(clean)
    first = _first_difference(clean, corrupted) if reads_back else 0
    run = _Corrupted(model, kind, inputs[1], hooks)
    restored = torch.zeros(len(sites), len(names) // len(sites), length)  # before the first difference nothing changes
    for start in range(first, length, ROWS):
        rows, begin = range(start, min(start + ROWS, length)), start if reads_back else 0
        changes = hooks_of(interventions, model, lambda begin=begin: begin)
        for site, layers in enumerate(sites.values()):
            for layer, name in enumerate(layers):
                put_in = name, _put_in(cache[name][0], rows, begin)
                patched = run.rerun(layer, len(rows), begin, [*changes, put_in])
                shares = (difference(patched) - bottom) / (top - bottom)
                restored[site, layer, rows.start : rows.stop] = shares
                done = (start - first) * len(names) + len(rows) * (site * len(layers) + layer + 1)
                on_progress(done / ((length - first) * len(names)))
    return Patching(tuple(sites), tuple(map(tuple, sites.values())), restored, top, bottom)


class _Corrupted:
    """The corrupted text as a stack reads it: what enters each of its blocks, and the way from there to the logits."""

    def __init__(
        self, model: DecoderOnly | EncoderDecoder, kind: str, inputs: Sequence[Tensor], hooks: Sequence[ForwardHook]
    ) -> None:
        self.model, self.kind = model, kind
        self.stack = model.get_submodule(STACKS[kind].rstrip("."))
        *source, target = inputs
        self.source, self.target = (source[0] if source else target), target
        tokens = self.source if kind == "encoder" else target
        self.padding = self.stack.padding(tokens)
        self.past = [KeyValues() for _ in self.stack.blocks]
        self.entering: list[Tensor] = []
        """What enters each block, (1, pos, d_model)."""
        with model.hooked(hooks):
            self.memory = model.encode(self.source) if kind == "decoder" else None
            x = self.stack.embed_tokens(tokens)
            for layer, past in enumerate(self.past):
                self.entering.append(x)
                x = self._block(layer, x, past, 0)

    def rerun(self, layer: int, rows: int, begin: int, hooks: Sequence[ForwardHook]) -> Tensor:
        """The last logits, (row, 1, vocab), of passes that begin at a block and a position, with hooks in force."""
        x = self.entering[layer][:, begin:].expand(rows, -1, -1)
        with self.model.hooked(hooks):
            for index in range(layer, len(self.entering)):
                past = KeyValues(*(each[:, :begin].expand(rows, -1, -1, -1) for each in self._kept(index)))
                x = self._block(index, x, past if begin else None, begin)
            x = self.stack.ln_final(x)
            if self.kind != "encoder":
                return self.model.unembed(x[:, -1:])
            return self.model.decode(self.target.expand(rows, -1), x, self.padding)[:, -1:]

    def _kept(self, layer: int) -> tuple[Tensor, ...]:
        past = self.past[layer]
        return () if past.keys is None or past.values is None else (past.keys, past.values)

    def _block(self, layer: int, x: Tensor, past: KeyValues | None, begin: int) -> Tensor:
        block = self.stack.blocks[layer]
        if self.memory is None:
            return block(x, self.padding, past, begin)
        memory = self.memory.expand(len(x), -1, -1)
        return block(x, memory, self.padding, self.model.encoder.padding(self.source), past, None, begin)


def _first_difference(one: Sequence[int], other: Sequence[int]) -> int:
    return next(position for position, (here, there) in enumerate(zip(one, other, strict=True)) if here != there)


def _sites(model: DecoderOnly | EncoderDecoder, kind: str) -> dict[str, list[str]]:
    """The points of each of `SITES` that a stack of the model has, by layer."""
    points = hook_points(model.config)
    depth = len(attention_modules(model.config).get(kind, ()))
    blocks = [f"{STACKS[kind]}blocks.{layer}" for layer in range(depth)]
    named = {site: [f"{block}.{ending}" for block in blocks] for site, ending in SITES.items()}
    found = {site: names for site, names in named.items() if names and names[0] in points}
    if not found:
        raise ValueError("This model has no layers, so there is nothing to patch.")
    return found


def _put_in(clean: Tensor, rows: Sequence[int], begin: int) -> Callable[[Tensor, object], None]:
    """In each row of a batch, one position as it is on the clean text.

    clean: (pos, d_model), of the whole text. rows: the position of each row. begin: the batch's first position.
    """

    def change(tensor: Tensor, hook: object) -> None:
        for row, position in enumerate(rows):
            tensor[row, position - begin] = clean[position]

    return change
