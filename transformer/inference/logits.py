"""Computes the logits of many positions in pieces, so that a large vocabulary doesn't fill the memory.

Shapes: row (positions, of one text or of several), d_model, vocab.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from ..hooks import ForwardHook
from ..model.layers import widened
from ..model.models import Model
from .inputs import inputs_of

AT_ONCE = 2_000_000
"""Logits to hold at once: 8 MB."""


def logits_in_pieces(model: Model, stream: Tensor, at_once: int = AT_ONCE) -> Iterator[tuple[slice, Tensor]]:
    """The logits of the stream, (row, d_model), in pieces: the rows, and their logits (row, vocab), in order, in
    float32 at least."""
    size = max(1, at_once // model.config.vocab_size)
    for start in range(0, len(stream), size):
        rows = slice(start, min(start + size, len(stream)))
        with torch.no_grad():  # not while the caller holds the iterator
            logits = widened(model.unembed(stream[rows]))
        yield rows, logits


def probabilities_of(logits: Tensor) -> Tensor:
    """The softmax of logits, (row, vocab).

    Computed in float64, a few rows at a time: in float32 a sum over 50,000 tokens is off by more than 1e-5.
    """
    probabilities = torch.empty_like(logits, dtype=widened(logits[:0]).dtype)
    size = max(1, AT_ONCE // logits.shape[-1])
    for part, rows in zip(probabilities.split(size), logits.split(size), strict=True):
        part.copy_(rows.cpu().double().softmax(-1))
    return probabilities


def stream_of(
    model: Model, tokens: Sequence[int], source: Sequence[int] = (), hooks: Sequence[ForwardHook] = ()
) -> Tensor:
    """The unembedding's input at each position of one text, (pos, d_model). hooks: as in `run_with_hooks`."""
    with torch.no_grad(), model.hooked(hooks):
        return model.stream(*inputs_of(model, tokens, source))[0]


def losses_in_pieces(model: Model, stream: Tensor, right: Tensor) -> Tensor:
    """The cross-entropy of each row's right token, in nats, (row,). stream: (row, d_model); right: (row,), ids."""
    losses = torch.empty(len(stream))
    for rows, logits in logits_in_pieces(model, stream):
        losses[rows] = torch.nn.functional.cross_entropy(logits, right[rows].to(logits.device), reduction="none")
    return losses
