"""What each part is needed for: the effect of taking it away, or of putting another text's in its place.

All parts of a layer are changed in one batched pass, a row of the batch each.
Shapes: part, layer, pos, vocab.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from ..model.models import DecoderOnly, EncoderDecoder
from ..model.registry import attention_modules, hook_points
from .interventions import Intervention, Scaled, hooks_of

AT_ONCE = 4_000_000
"""Numbers of the widest tensor that one batch may have."""
SITES = ("stream", "attention", "feed-forward")
"""What activation patching replaces, position by position: the residual stream as it enters a layer, and what the
layer's sublayers add to it."""


@dataclass(frozen=True)
class Effects:
    """What silencing one part at a time does to a text."""

    parts: tuple[Scaled, ...]
    """Every head of every attention, and every feed-forward layer, in the order of the pass."""
    plain: Tensor
    """(pos, vocab): the logits with every part in its place."""
    logits: Tensor
    """(part, pos, vocab): those without that part."""

    def loss(self, tokens: Sequence[int]) -> Tensor:
        """How much the mean cross-entropy of the text, in nats, rises without each part: (part,).

        tokens: the text that was read; each but the first is predicted by those before it.
        Raises: ValueError for a text of fewer than two tokens, of which nothing is predicted.
        """
        if len(tokens) < 2:
            raise ValueError("A text of one token has no loss: nothing comes before it to predict it from.")
        right = torch.as_tensor(tokens)[1:]
        every = torch.cat([self.plain[None], self.logits])[:, :-1]
        losses = F.cross_entropy(every.flatten(0, 1), right.repeat(len(every)), reduction="none")
        means = losses.view(len(every), -1).mean(1)
        return means[1:] - means[0]

    def logit(self, position: int, token: int) -> Tensor:
        """How much a token's logit at a position rises without each part: (part,)."""
        return self.logits[:, position, token] - self.plain[position, token]


@dataclass(frozen=True)
class Patching:
    """How much of the difference between two texts each place carries: 0 for none, 1 for all of it."""

    sites: tuple[str, ...]
    """Those of `SITES` that the model has."""
    restored: Tensor
    """(site, layer, pos): (patched − corrupted) / (clean − corrupted), of the logit difference."""
    clean: float
    corrupted: float
    """The logit difference of the two texts by themselves."""


@torch.no_grad()
def silencing(
    model: DecoderOnly | EncoderDecoder,
    tokens: Sequence[int],
    source: Sequence[int] = (),
    interventions: Sequence[Intervention] = (),
) -> Effects:
    """Silence each head and each feed-forward layer, one at a time. Put the model into evaluation mode first.

    interventions: what is changed in every pass, the one that the others are compared with included.
    """
    plain = model.run_with_hooks(*_inputs(tokens, source), fwd_hooks=hooks_of(interventions, model))[0]
    parts: list[Scaled] = []
    found = [plain[None][:0]]
    for batch, logits in silenced_in_batches(model, tokens, source, interventions):
        parts += batch
        found.append(logits)
    return Effects(tuple(parts), plain, torch.cat(found))


def silenced_in_batches(
    model: DecoderOnly | EncoderDecoder,
    tokens: Sequence[int],
    source: Sequence[int] = (),
    interventions: Sequence[Intervention] = (),
) -> Iterator[tuple[list[Scaled], Tensor]]:
    """What `silencing` puts together: some parts at a time, with the logits without each of them: (part, pos, vocab).

    For those who don't keep all the logits, which for a large vocabulary don't fit into memory.
    """
    config = model.config
    points = hook_points(config)
    parts = [Scaled(name, head) for name in points if name.endswith("hook_z") for head in range(config.n_heads)]
    parts += [Scaled(name) for name in points if name.endswith("hook_mlp_out")]
    order = list(points)
    parts.sort(key=lambda part: order.index(part.point))
    length = max(len(tokens), len(source))
    widest = length * max(config.d_ff, config.d_model, config.n_heads * length, config.vocab_size)
    changed, inputs = hooks_of(interventions, model), _inputs(tokens, source)
    for batch in _batches(parts, AT_ONCE // widest):
        hooks = [(part.point, _silence(row, part.head)) for row, part in enumerate(batch)]
        repeated = [each.expand(len(batch), -1) for each in inputs]
        with torch.no_grad():
            logits = model.run_with_hooks(*repeated, fwd_hooks=[*changed, *hooks])
        yield batch, logits


@torch.no_grad()
def patching(
    model: DecoderOnly | EncoderDecoder,
    clean: Sequence[int],
    corrupted: Sequence[int],
    answer: int,
    against: int,
    source: Sequence[int] = (),
    corrupted_source: Sequence[int] = (),
) -> Patching:
    """Run the corrupted text with one place at a time as it is on the clean one: what then comes back is carried there.

    answer, against: two tokens, whose difference of logits after the last token is what comes back: the right one on
    the clean text, and the one on the corrupted. source, corrupted_source: what an encoder reads; if given, places are
    patched in the encoder, else in the (decoder's) text. Put the model into evaluation mode first.
    Raises: ValueError, saying what would do, for texts of unequal length or without a difference to explain.
    Source: Vig et al. 2020; Meng et al. 2022, §2, *causal tracing*.
    """
    pairs = [("texts", clean, corrupted), ("sources", source, corrupted_source)]
    for name, one, other in pairs:
        if len(one) != len(other):
            raise ValueError(
                f"The {name} have {len(one)} and {len(other)} tokens; patching puts one place in for another, so "
                "they must be of one length. Change one of them until they are."
            )
    good, bad = _inputs(clean, source), _inputs(corrupted, corrupted_source)
    prefix = "encoder." if source else ""
    sites = _sites(model, prefix)
    names = [name for layers in sites.values() for name in layers]
    logits, cache = model.run_with_cache(*good, names_filter=names)

    def difference(found: Tensor) -> Tensor:
        return found[..., -1, answer] - found[..., -1, against]

    top, bottom = float(difference(logits)[0]), float(difference(model(*bad))[0])
    if abs(top - bottom) < 1e-6:
        raise ValueError("Both texts say the same of these two tokens, so there is no difference to trace.")
    length = len(source or clean)
    restored = []
    for layers in sites.values():
        rows = []
        for name in layers:
            repeated = [each.expand(length, -1) for each in bad]
            patched = model.run_with_hooks(*repeated, fwd_hooks=[(name, _put_in(cache[name][0]))])
            rows.append((difference(patched) - bottom) / (top - bottom))
        restored.append(torch.stack(rows))
    return Patching(tuple(sites), torch.stack(restored), top, bottom)


def _sites(model: DecoderOnly | EncoderDecoder, prefix: str) -> dict[str, list[str]]:
    """The points of each of `SITES` that the model has, by layer."""
    config = model.config
    points = hook_points(config)
    if config.architecture == "encoder-decoder":
        prefix = prefix or "decoder."
    kind = {"": "self", "encoder.": "encoder", "decoder.": "decoder"}[prefix]
    depth = len(attention_modules(config).get(kind, ()))
    endings = {"stream": "hook_resid_pre", "attention": "hook_attn_out", "feed-forward": "hook_mlp_out"}
    named = {site: [f"{prefix}blocks.{layer}.{ending}" for layer in range(depth)] for site, ending in endings.items()}
    found = {site: names for site, names in named.items() if names and names[0] in points}
    if not found:
        raise ValueError("This model has no layers, so there is nothing to patch.")
    return found


def _inputs(tokens: Sequence[int], source: Sequence[int]) -> list[Tensor]:
    return [torch.tensor([list(each)]) for each in (source, tokens) if len(each)]


def _batches(parts: list[Scaled], size: int) -> list[list[Scaled]]:
    size = max(size, 1)
    return [parts[start : start + size] for start in range(0, len(parts), size)]


def _silence(row: int, head: int | None) -> Callable[[Tensor, object], Tensor]:
    def change(tensor: Tensor, hook: object) -> Tensor:
        changed = tensor.clone()
        changed[row] = 0.0 if head is None else changed[row].index_fill(1, torch.tensor([head]), 0.0)
        return changed

    return change


def _put_in(clean: Tensor) -> Callable[[Tensor, object], Tensor]:
    """In row p of the batch, position p as it is on the clean text. clean: (pos, d_model)."""

    def change(tensor: Tensor, hook: object) -> Tensor:
        places = torch.arange(len(clean))
        changed = tensor.clone()
        changed[places, places] = clean
        return changed

    return change
