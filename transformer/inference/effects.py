"""What each part is needed for: the effect of taking it away.

All parts of a layer are changed in one batched pass, a row of the batch each.
Shapes: part, pos, vocab.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from ..model.models import DecoderOnly, EncoderDecoder
from ..model.registry import hook_points
from .interventions import Intervention, Scaled, hooks_of

AT_ONCE = 4_000_000
"""Numbers of the widest tensor that one batch may have."""


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
