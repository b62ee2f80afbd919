"""What changes make of a model: what it writes, and what each part is needed for.

Asked and answered as in `activations`. Dimensions: part, pos, vocab.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from pages.ui.models.cache import remembered
from pages.ui.models.jobs import progress
from transformer import Checkpoint, Sampling, generate
from transformer.inference.effects import parts_of, silenced_in_batches
from transformer.inference.interventions import Intervention, Scaled, hooks_of
from transformer.inference.logits import losses_in_pieces, stream_of
from transformer.inference.windows import in_window

Interventions = tuple[Intervention, ...]


@dataclass(frozen=True)
class Needed:
    """What silencing one part at a time does to a text, beside whatever else is changed."""

    parts: tuple[Scaled, ...]
    """Every head and every feed-forward layer, in the order of the pass."""
    loss: np.ndarray | None
    """(part,): how much the text's mean loss rises without it, in nats; None if nothing of the text is predicted."""
    logits: np.ndarray
    """(part, vocab): what comes next, at the place that was asked for, without it."""
    kept: np.ndarray
    """(part, vocab): the same with it."""


@remembered
def written(
    checkpoint: Checkpoint,
    tokens: tuple[int, ...],
    source: tuple[int, ...],
    sampling: Sampling,
    count: int,
    interventions: Interventions = (),
) -> tuple[int, ...]:
    """What the model writes after a text, the end token included where it writes one."""
    end = checkpoint.card.end_token_id
    room = checkpoint.model.config.context_length - len(tokens) if source else count
    steps = generate(
        checkpoint.model,
        tokens,
        source=source or None,
        max_new_tokens=max(min(count, room), 0),
        sampling=sampling,
        stop_tokens=() if end is None else (end,),
        interventions=interventions,
    )
    return tuple(step.token_id for step in steps)


@remembered
def needed(
    checkpoint: Checkpoint,
    tokens: tuple[int, ...],
    source: tuple[int, ...] = (),
    place: int = -1,
    begin: int = 0,
    interventions: Interventions = (),
) -> Needed:
    """What each part is needed for: with all other changes in force, the text without it, compared to with it.

    tokens: no more than the context holds. place: the one after which logits are compared. begin: the first token's
    place in the whole text, from whose start the interventions count.
    """
    model, force = checkpoint.model, in_window(interventions, begin)
    right = torch.tensor(tokens[1:], dtype=torch.long)

    def said(streams: Tensor) -> tuple[Tensor, Tensor]:
        """The logits after the place, (row, vocab), and the mean loss, (row,), of streams (row, pos, d_model)."""
        before = streams[:, :-1].flatten(0, 1)
        losses = losses_in_pieces(model, before, right.repeat(len(streams)))
        return model.unembed(streams[:, place]), losses.view(len(streams), -1).mean(1)

    with torch.no_grad():
        plain, loss = said(stream_of(model, tokens, source, hooks_of(force, model))[None])
        parts: list[Scaled] = []
        logits, after = [plain[:0]], [loss[:0]]
        for batch, streams in silenced_in_batches(model, tokens, source, force):
            parts += batch
            for found, each in zip((logits, after), said(streams), strict=True):
                found.append(each)
            progress(len(parts) / len(parts_of(model)))
        kept, before = plain.repeat(len(parts), 1), loss.repeat(len(parts))
        for row, part in enumerate(parts):
            if part in interventions:  # it is silenced already: what it is compared to is the model that has it back
                others = in_window(tuple(each for each in interventions if each != part), begin)
                kept[row], before[row] = said(stream_of(model, tokens, source, hooks_of(others, model))[None])
    loss = None if len(tokens) < 2 else (torch.cat(after) - before).numpy()
    return Needed(tuple(parts), loss, torch.cat(logits).numpy(), kept.numpy())
