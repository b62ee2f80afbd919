"""Ablation: zeroes one head or feed-forward layer at a time, and measures the effect on the output.

One batched pass ablates all parts of a layer, one in each row. Lower layers aren't affected, so the pass begins at that
layer.
Shapes: part, pos, d_model, vocab.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import torch
import torch.nn.functional as F
from torch import Tensor

from ..choice_checks import check_count, check_index, checked_tokens
from ..hooks import ForwardHook
from ..model.layers import widened
from ..model.models import EncoderDecoder, EncoderOnly, Model
from ..model.registry import hook_points
from .inputs import inputs_of
from .interventions import Intervention, Scale, hooks_of

AT_ONCE = 4_000_000
"""The most numbers in a batch's widest tensor."""


@dataclass(frozen=True)
class AblationEffects:
    """The effects of ablating one part at a time on a text."""

    parts: tuple[Scale, ...]
    """Every head of every attention, and every feed-forward layer, in the order of the pass."""
    plain: Tensor
    """(pos, vocab): the logits without ablation."""
    logits: Tensor
    """(part, pos, vocab): the logits without each part."""
    predicts_next: bool = True
    """Whether logits predict the next token, rather than the one at each position."""

    def loss(self, tokens: Sequence[int]) -> Tensor:
        """How much the mean cross-entropy of the text, in nats, rises without each part: (part,).

        tokens: the same text; each token but the first is predicted from those before it.
        Raises: ValueError for fewer than two tokens, unknown ones, or an encoder, which doesn't predict tokens that it
            reads.
        """
        if not self.predicts_next:
            raise ValueError("This model predicts what is masked, so a text has no loss; ask for a logit at a mask.")
        if len(tokens) < 2:
            raise ValueError("A text of one token has no loss: nothing comes before it to predict it from.")
        check_count(tokens, len(self.plain))
        right = checked_tokens(tokens, self.plain.shape[-1]).to(self.plain.device)[1:]
        every = torch.cat([self.plain[None], self.logits])[:, :-1]
        losses = F.cross_entropy(every.flatten(0, 1), right.repeat(len(every)), reduction="none")
        means = losses.view(len(every), -1).mean(1)
        return means[1:] - means[0]

    def logit(self, position: int, token: int) -> Tensor:
        """How much a token's logit at a position rises without each part: (part,). Raises: ValueError for an unknown
        token or position."""
        check_index("position", position, len(self.plain))
        check_index("token", token, self.plain.shape[-1])
        return self.logits[:, position, token] - self.plain[position, token]


@torch.no_grad()
def ablation(
    model: Model, tokens: Sequence[int], source: Sequence[int] = (), interventions: Sequence[Intervention] = ()
) -> AblationEffects:
    """Ablate each head and each feed-forward layer, one at a time. Put the model into evaluation mode first.

    Keeps all logits, which don't fit into memory for a large vocabulary: `ablated_in_batches` doesn't.
    interventions: applied in every pass, also in the one that the others are compared with.
    """
    plain = widened(
        model.run_with_hooks(*inputs_of(model, tokens, source), fwd_hooks=hooks_of(interventions, model))[0]
    )
    logits = [plain[None][:0]]
    for _, streams in ablated_in_batches(model, tokens, source, interventions):
        logits.append(widened(model.unembed(streams)))
    return AblationEffects(tuple(parts_of(model)), plain, torch.cat(logits), model.config.is_causal)


def ablated_in_batches(
    model: Model, tokens: Sequence[int], source: Sequence[int] = (), interventions: Sequence[Intervention] = ()
) -> Iterator[tuple[list[Scale], Tensor]]:
    """The unembedding's input without each part, (part, pos, d_model): a few of `parts_of` at a time, in its order.

    Between batches the caller can report progress, or stop.
    """
    length = max(len(tokens), len(source))
    widest = length * max(model.config.d_ff, model.config.d_model, model.config.n_heads * length)
    run = _Passes(model, tokens, source, interventions)
    for batch in _batches(parts_of(model), AT_ONCE // widest):
        yield batch, run.ablated(batch)


def parts_of(model: Model) -> list[Scale]:
    """Every head of every attention, and every feed-forward layer, ablated, in the order of the pass."""
    points = hook_points(model.config)
    parts = [Scale(name, head) for name in points if name.endswith("hook_z") for head in range(model.config.n_heads)]
    parts += [Scale(name) for name in points if name.endswith("hook_mlp_out")]
    order = list(points)
    return sorted(parts, key=lambda part: order.index(part.point))


class _Passes:
    """Passes over one text with ablated parts, each from the first ablated block on."""

    def __init__(
        self, model: Model, tokens: Sequence[int], source: Sequence[int], interventions: Sequence[Intervention]
    ) -> None:
        self.model, self.inputs = model, inputs_of(model, tokens, source)
        self.changed = hooks_of(interventions, model)
        self.entering: list[Tensor] = []
        """The input of each block of a model with one stack, (1, pos, d_model)."""
        if not isinstance(model, EncoderDecoder):
            self.padding = model.padding(self.inputs[0])
            with torch.no_grad(), model.hooked(self.changed):
                x = model.embed_tokens(self.inputs[0])
                for block in model.blocks:
                    self.entering.append(x)
                    x = block(x, self.padding)

    @torch.no_grad()
    def ablated(self, parts: Sequence[Scale]) -> Tensor:
        """(part, pos, d_model)."""
        zeroing: list[ForwardHook] = [(part.point, _zero_row(row, part.head)) for row, part in enumerate(parts)]
        with self.model.hooked([*self.changed, *zeroing]):
            if isinstance(self.model, EncoderDecoder):
                return self.model.stream(*(ids.expand(len(parts), -1) for ids in self.inputs))
            first = _block_of(parts[0])
            x = self.entering[first].expand(len(parts), -1, -1)
            for block in self.model.blocks[first:]:
                x = block(x, self.padding)
            x = self.model.ln_final(x)
            return self.model.head(x) if isinstance(self.model, EncoderOnly) else x


def _block_of(part: Scale) -> int:
    """The index of a part's block in its stack."""
    return int(part.point.partition("blocks.")[2].partition(".")[0])


def _batches(parts: list[Scale], size: int) -> list[list[Scale]]:
    """Parts of one block each, at most `size` of them."""
    size = max(size, 1)
    blocks = [
        list(block_parts)
        for _, block_parts in groupby(parts, lambda part: part.point.partition("blocks.")[0] + str(_block_of(part)))
    ]
    return [block[start : start + size] for block in blocks for start in range(0, len(block), size)]


def _zero_row(row: int, head: int | None) -> Callable[[Tensor, object], None]:
    def zero(tensor: Tensor, hook: object) -> None:
        (tensor if head is None else tensor[:, :, head])[row] = 0.0

    return zero
