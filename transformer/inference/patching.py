"""Activation patching: runs one prompt with one activation at a time taken from another prompt.

An activation affects neither lower layers nor, under a causal mask, earlier positions. So a patched pass begins at the
patched layer, and at the first position of its batch, which patches one position in each row.
Shapes: site, layer, row, pos, d_model, vocab.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..choice_checks import check_index
from ..hooks import ForwardHook
from ..model.caches import KeyValues
from ..model.models import EncoderDecoder, EncoderOnly, Model
from ..model.registry import attention_modules, hook_points
from .analysis import check_logits
from .context_windows import looks_ahead
from .inputs import inputs_of
from .interventions import Intervention, hooks_of

SITES = {
    "stream": "hook_resid_pre",
    "attention": "hook_attn_out",
    "cross-attention": "hook_cross_attn_out",
    "feed-forward": "hook_mlp_out",
}
"""The sites to patch at each position, with the ending of their hook points: the residual stream before a layer, and
the outputs of its sublayers."""
STACKS = {"self": "", "encoder": "encoder.", "decoder": "decoder."}
"""The stacks to patch, by kind of attention, with the beginning of their hook points."""
ROWS = 16
"""Positions in a batch. Fewer skip more of the text before them; more save calls."""


@dataclass(frozen=True)
class Patching:
    """How much of the logit difference each activation restores: 0 for none, 1 for all of it."""

    sites: tuple[str, ...]
    """The model's `SITES`."""
    points: tuple[tuple[str, ...], ...]
    """Their hook points, by site and layer."""
    restored: Tensor
    """(site, layer, pos): (patched − corrupted) / (clean − corrupted), of the logit difference."""
    clean: float
    corrupted: float
    """The logit differences without patching."""


@torch.no_grad()
def patching(
    model: Model,
    clean: Sequence[int],
    corrupted: Sequence[int],
    answer: int,
    against: int,
    source: Sequence[int] = (),
    corrupted_source: Sequence[int] = (),
    *,
    stack: str = "",
    position: int = -1,
    interventions: Sequence[Intervention] = (),
    on_progress: Callable[[float], None] = lambda share: None,
) -> Patching:
    """Run the corrupted text with one activation at a time from the clean one; what it restores is what it carries.

    answer, against: the tokens whose logit difference after the last token is measured: the right one on the clean
    text, and the one on the corrupted. source, corrupted_source: the encoder's texts.
    stack: the stack to patch, one of `STACKS`; if empty, the encoder of an encoder–decoder.
    position: in an encoder-only model, the position of the mask in both texts, where logits are compared.
    interventions: applied in every pass, also the clean one. Put the model into evaluation mode first.
    on_progress: called with the finished share of the passes, 0 to 1; an exception from it ends them.
    Raises: ValueError, saying what would do, for texts of unequal length or without a difference to explain;
        LogitsError for logits that are not numbers.
    Source: Vig et al. 2020; Meng et al. 2022, §2, *causal tracing*.
    """
    if isinstance(model, EncoderOnly):
        if not -len(clean) <= position < len(clean):
            raise ValueError(f"The text has {len(clean)} tokens, and none at position {position}.")
    elif position not in (-1, len(clean) - 1):
        raise ValueError("What comes next is compared after the last token; leave the position out.")
    for token in (answer, against):
        check_index("token", token, model.config.vocab_size)
    for name, one, other in (("texts", clean, corrupted), ("sources", source, corrupted_source)):
        if len(one) != len(other):
            raise ValueError(
                f"The {name} have {len(one)} and {len(other)} tokens; patching replaces one position by another, so "
                "they must be of one length. Change one of them until they are."
            )
    kind = stack or ("encoder" if isinstance(model, EncoderDecoder) else "self")
    sites = _sites(model, kind)
    names = [name for layers in sites.values() for name in layers]
    hooks = hooks_of(interventions, model)
    inputs = [inputs_of(model, *text) for text in ((clean, source), (corrupted, corrupted_source))]
    newest: dict[str, Any] = {} if isinstance(model, EncoderOnly) else {"newest": True}
    logits, cache = model.run_with_cache(*inputs[0], names_filter=names, fwd_hooks=hooks, **newest)
    with model.hooked(hooks):
        base = model(*inputs[1], **newest)

    def difference(logits: Tensor) -> Tensor:
        return (logits[:, answer] - logits[:, against]).cpu().double()

    top, bottom = (float(difference(read[:, position if not newest else -1])) for read in (logits, base))
    check_logits([top, bottom])
    if abs(top - bottom) < 1e-6:
        raise ValueError("Both texts say the same of these two tokens, so there is no difference to trace.")
    is_causal = model.config.is_causal and not any(map(looks_ahead, interventions))
    reads_back = kind == "self" and is_causal and not model.is_hooked
    length = len(source) if kind == "encoder" else len(clean)
    first = _first_difference(clean, corrupted) if reads_back else 0
    run = _Corrupted(model, kind, position, inputs[1], hooks)
    restored = torch.zeros(len(sites), len(names) // len(sites), length)  # zeros before the first difference
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
    """The corrupted text in a stack: the input of each block, and the rest of the pass from there to the logits."""

    def __init__(
        self, model: Model, kind: str, position: int, inputs: Sequence[Tensor], hooks: Sequence[ForwardHook]
    ) -> None:
        self.model, self.kind, self.position = model, kind, position
        if isinstance(model, EncoderDecoder):
            self.stack = model.encoder if kind == "encoder" else model.decoder
        else:
            self.stack = model
        *source, target = inputs
        self.source, self.target = (source[0] if source else target), target
        tokens = self.source if kind == "encoder" else target
        self.padding = self.stack.padding(tokens)
        self.past = [KeyValues() for _ in self.stack.blocks]
        self.entering: list[Tensor] = []
        """The input of each block, (1, pos, d_model)."""
        self.memory = self.memory_padding = None
        with model.hooked(hooks):
            if kind == "decoder" and isinstance(model, EncoderDecoder):
                self.memory, self.memory_padding = model.encode(self.source), model.encoder.padding(self.source)
            x = self.stack.embed_tokens(tokens)
            for layer, past in enumerate(self.past):
                self.entering.append(x)
                x = self._block(layer, x, past, 0)

    def rerun(self, layer: int, rows: int, begin: int, hooks: Sequence[ForwardHook]) -> Tensor:
        """The compared logits, (row, vocab), of passes from a block and a position on, with hooks."""
        x = self.entering[layer][:, begin:].expand(rows, -1, -1)
        with self.model.hooked(hooks):
            for index in range(layer, len(self.entering)):
                past = KeyValues(
                    tuple(tensor[:, :begin].expand(rows, -1, -1, -1) for tensor in self.past[index].tensors)
                )
                x = self._block(index, x, past if begin else None, begin)
            x = self.stack.ln_final(x)
            if isinstance(self.model, EncoderOnly):
                return self.model.unembed(self.model.head(x[:, self.position]))
            if self.kind == "encoder" and isinstance(self.model, EncoderDecoder):
                return self.model.decode(self.target.expand(rows, -1), x, self.padding)[:, -1]
            return self.model.unembed(x[:, -1])

    def _block(self, layer: int, x: Tensor, past: KeyValues | None, begin: int) -> Tensor:
        block = self.stack.blocks[layer]
        if self.memory is None:
            return block(x, self.padding, past, begin)
        memory = self.memory.expand(len(x), -1, -1)
        return block(x, memory, self.padding, self.memory_padding, past, None, begin)


def _first_difference(one: Sequence[int], other: Sequence[int]) -> int:
    return next(position for position, (here, there) in enumerate(zip(one, other, strict=True)) if here != there)


def _sites(model: Model, kind: str) -> dict[str, list[str]]:
    """The hook points of a stack's `SITES`, by layer."""
    points, modules = hook_points(model.config), attention_modules(model.config)
    if modules and kind not in STACKS.keys() & modules.keys():
        there = " or ".join(repr(each) for each in STACKS if each in modules)
        raise ValueError(f"This model has no stack {kind!r} to patch; it has {there}.")
    depth = len(modules.get(kind, ()))
    blocks = [f"{STACKS[kind]}blocks.{layer}" for layer in range(depth)]
    named = {site: [f"{block}.{ending}" for block in blocks] for site, ending in SITES.items()}
    sites = {site: names for site, names in named.items() if names and names[0] in points}
    if not sites:
        raise ValueError("This model has no layers, so there is nothing to patch.")
    return sites


def _put_in(clean: Tensor, rows: Sequence[int], begin: int) -> Callable[[Tensor, object], None]:
    """Replace one position in each row of a batch by the clean text's.

    clean: (pos, d_model), of the whole text. rows: the position of each row. begin: the batch's first position.
    """

    def change(tensor: Tensor, hook: object) -> None:
        for row, position in enumerate(rows):
            tensor[row, position - begin] = clean[position]

    return change
