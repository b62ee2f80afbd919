"""What changes make of a model: what it writes, and what each part is needed for.

Asked and answered as in `activations`. Dimensions: part, pos, vocab; token, those of the vocabulary that are kept.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from pages.ui.models.activations import LARGEST_VOCABULARY
from pages.ui.models.cache import remembered
from pages.ui.models.jobs import progress
from transformer import Checkpoint, Sampling, generate
from transformer.inference.effects import parts_of, silenced_in_batches
from transformer.inference.interventions import Intervention, Scaled, hooks_of
from transformer.inference.logits import losses_in_pieces, stream_of
from transformer.inference.windows import in_window

Interventions = tuple[Intervention, ...]
CHOOSABLE = 300
"""Tokens of a large vocabulary whose logits are kept of every part: all of them would be a hundred megabytes."""
ROWS = 16
"""Distributions that are compared at a time."""


@dataclass(frozen=True)
class Needed:
    """What silencing one part at a time does to a text, beside whatever else is changed."""

    parts: tuple[Scaled, ...]
    """Every head and every feed-forward layer, in the order of the pass."""
    loss: np.ndarray | None
    """(part,): how much the text's mean loss rises without it, in nats; None if nothing of the text is predicted."""
    tokens: np.ndarray
    """(token,): the tokens whose logits are here: all, or of a large vocabulary the likeliest."""
    logits: np.ndarray
    """(part, token): what comes next, at the place that was asked for, without it."""
    kept: np.ndarray
    """(part, token): the same with it."""
    totals: np.ndarray
    """(2, part): the logarithm of the sum of all exponentials, of the whole vocabulary: with it, and without."""
    moved: np.ndarray
    """(part,): KL(with it ‖ without it) in nats, over the whole vocabulary."""

    @property
    def odds(self) -> np.ndarray:
        """(2, part, token): log-probabilities with each part, and without."""
        return np.stack([self.kept, self.logits]).astype(np.float64) - self.totals[..., None]


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

    found: list[tuple[Tensor, ...]] = []
    with torch.no_grad():
        plain, loss = said(stream_of(model, tokens, source, hooks_of(force, model))[None])
        shown = _shown(plain[0])
        parts: list[Scaled] = []
        for batch, streams in silenced_in_batches(model, tokens, source, force):
            (without, after), (with_it, before) = said(streams), (plain.repeat(len(batch), 1), loss.repeat(len(batch)))
            for row, part in enumerate(batch):
                if part in interventions:  # it is silenced already: compared with the model that has it back
                    others = in_window(tuple(each for each in interventions if each != part), begin)
                    with_it[row], before[row] = said(stream_of(model, tokens, source, hooks_of(others, model))[None])
            parts += batch
            found.append((after - before, with_it[:, shown], without[:, shown], *_compared(with_it, without)))
            progress(len(parts) / len(parts_of(model)))
    rises, kept, logits, one, other, moved = (torch.cat(each).numpy() for each in zip(*found, strict=True))
    return Needed(tuple(parts), None if len(tokens) < 2 else rises, shown.numpy(), logits, kept,
                  np.stack([one, other]), moved)  # fmt: skip


def _shown(logits: Tensor) -> Tensor:
    """The tokens whose logits are kept: all, in their order, or of a large vocabulary the likeliest."""
    if len(logits) <= LARGEST_VOCABULARY:
        return torch.arange(len(logits))
    return logits.sort(descending=True, stable=True).indices[:CHOOSABLE]


def _compared(with_it: Tensor, without: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Of logits (part, vocab): the logarithm of either's sum of exponentials, and their divergence in nats, (part,)."""
    found = []
    for pair in zip(with_it.split(ROWS), without.split(ROWS), strict=True):
        both = torch.stack(pair).double()
        totals = both.logsumexp(-1)
        logs = both - totals[..., None]
        found.append((*totals, (logs[0].exp() * (logs[0] - logs[1])).sum(-1)))
    one, other, moved = (torch.cat(each) for each in zip(*found, strict=True))
    return one, other, moved
