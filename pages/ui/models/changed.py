"""What changes make of a model: what it writes, and what each part is needed for.

Asked and answered as in `activations`. Dimensions: part, pos, vocab.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from pages.ui.models.cache import remembered
from transformer import Checkpoint, Sampling, generate
from transformer.inference.effects import silenced_in_batches
from transformer.inference.interventions import Intervention, Scaled, hooks_of
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
    force = in_window(interventions, begin)
    plain = _logits(checkpoint, tokens, source, force)
    parts: list[Scaled] = []
    logits, after = [plain[:0]], [torch.empty(0)]
    for batch, found in silenced_in_batches(checkpoint.model, tokens, source, force):
        parts += batch
        logits.append(found[:, place].clone())
        after.append(_losses(found, tokens))
    kept, before = plain[place].repeat(len(parts), 1), _losses(plain[None], tokens).repeat(len(parts))
    for row, part in enumerate(parts):
        if part in interventions:  # it is silenced already: what it is compared to is the model that has it back
            others = tuple(each for each in interventions if each != part)
            restored = _logits(checkpoint, tokens, source, in_window(others, begin))
            kept[row], before[row] = restored[place], _losses(restored[None], tokens)[0]
    loss = None if len(tokens) < 2 else (torch.cat(after) - before).numpy()
    return Needed(tuple(parts), loss, torch.cat(logits).numpy(), kept.numpy())


def _losses(logits: Tensor, tokens: tuple[int, ...]) -> Tensor:
    """The mean cross-entropy of a text, in nats, of each row: (row,). logits: (row, pos, vocab)."""
    right = torch.tensor(tokens[1:], dtype=torch.long).repeat(len(logits), 1)
    return F.cross_entropy(logits[:, :-1].transpose(1, 2), right, reduction="none").mean(1)


def _logits(
    checkpoint: Checkpoint, tokens: tuple[int, ...], source: tuple[int, ...], interventions: Interventions
) -> Tensor:
    model = checkpoint.model
    inputs = [torch.tensor([part]) for part in (source, tokens) if part]
    with torch.no_grad():
        return model.run_with_hooks(*inputs, fwd_hooks=hooks_of(interventions, model))[0]
