"""Ablation and activation patching for the API and the pages: limited in size, with progress, cancellable.

Shapes: part, site, layer, pos, vocab; token, those of the vocabulary that are kept.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..inference.ablation import ablated_in_batches, parts_of
from ..inference.analysis import check_logits
from ..inference.context_windows import in_window, looks_ahead
from ..inference.interventions import Intervention, Scale, hooks_of
from ..inference.logits import losses_in_pieces, stream_of
from ..inference.patching import Patching
from ..jobs import progress
from ..model.layers import widened
from ..model.models import Model
from ..model.registry import attention_modules
from .errors import ApiError
from .outlines import LARGEST_VOCABULARY

MOST_WORK = 1_000_000_000_000
"""The most multiplications of one answer: about a minute on one core."""
CHOOSABLE = 300
"""Tokens of a large vocabulary whose logits are kept: all would take a hundred megabytes."""
ROWS = 16
"""Distributions that are compared at a time."""


@dataclass(frozen=True)
class Ablation:
    """The effects of ablating one part at a time on a text, with all other changes in force."""

    parts: tuple[Scale, ...]
    """Every head and every feed-forward layer, in the order of the pass."""
    loss: np.ndarray | None
    """(part,): how much the text's mean loss rises without it, in nats; None if nothing of the text is predicted, as
    by an encoder."""
    tokens: np.ndarray
    """(token,): the tokens whose logits are kept: all, or the likeliest of a large vocabulary."""
    logits: np.ndarray
    """(part, token): the logits at the chosen position, without the part."""
    kept: np.ndarray
    """(part, token): the logits there with it."""
    totals: np.ndarray
    """(2, part): log-sum-exp over the whole vocabulary, with the part and without."""
    moved: np.ndarray
    """(part,): KL(with it ‖ without it) in nats, over the whole vocabulary."""

    @property
    def log_probabilities(self) -> np.ndarray:
        """(2, part, token): log-probabilities with each part, and without."""
        return np.stack([self.kept, self.logits]).astype(np.float64) - self.totals[..., None]


@torch.no_grad()
def ablation(
    model: Model,
    tokens: Sequence[int],
    source: Sequence[int] = (),
    position: int = -1,
    begin: int = 0,
    interventions: Sequence[Intervention] = (),
) -> Ablation:
    """Ablate one part at a time, with all other changes in force, and compare the text without it to the text with it.

    tokens: no more than the context holds. position: whose logits are compared. begin: the first token's
    position in the whole text, from whose start the interventions count. Reports progress to the job that runs it.
    Raises: ValueError for a model without layers; LogitsError for logits that are not numbers.
    """
    if not parts_of(model):
        raise ValueError("This model has no layers, so there is nothing to ablate.")
    force = in_window(interventions, begin)
    right = torch.tensor(tokens[1:], dtype=torch.long)

    def outputs(streams: Tensor) -> tuple[Tensor, Tensor]:
        """The logits after the position, (row, vocab), and the mean loss, (row,), of streams (row, pos, d_model)."""
        before = streams[:, :-1].flatten(0, 1)
        losses = losses_in_pieces(model, before, right.repeat(len(streams)))
        return widened(model.unembed(streams[:, position])), losses.view(len(streams), -1).mean(1)

    batches: list[tuple[Tensor, ...]] = []
    plain, loss = outputs(stream_of(model, tokens, source, hooks_of(force, model))[None])
    check_logits(float(plain.max()))
    shown = torch.arange(plain.shape[1])  # the tokens whose logits are kept
    if len(shown) > LARGEST_VOCABULARY:
        shown = plain[0].sort(descending=True, stable=True).indices[:CHOOSABLE]
    parts: list[Scale] = []
    for batch, streams in ablated_in_batches(model, tokens, source, force):
        (without, after), (with_it, before) = (outputs(streams), (plain.repeat(len(batch), 1), loss.repeat(len(batch))))
        for row, part in enumerate(batch):
            if part in interventions:  # it is ablated already: compared with the model that has it back
                others = in_window(tuple(other for other in interventions if other != part), begin)
                with_it[row], before[row] = outputs(stream_of(model, tokens, source, hooks_of(others, model))[None])
        parts += batch
        batches.append((after - before, with_it[:, shown], without[:, shown], *_compared(with_it, without)))
        progress(len(parts) / len(parts_of(model)))
    rises, kept, logits, one, other, moved = (torch.cat(column).numpy() for column in zip(*batches, strict=True))
    known = rises if len(tokens) > 1 and model.config.is_causal else None
    return Ablation(tuple(parts), known, shown.numpy(), logits, kept, np.stack([one, other]), moved)


def _compared(with_it: Tensor, without: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The log-sum-exp of two logits (part, vocab), and their divergence in nats, (part,) each."""
    batches = []
    for pair in zip(with_it.split(ROWS), without.split(ROWS), strict=True):
        both = torch.stack(pair).double()
        totals = both.logsumexp(-1)
        logs = both - totals[..., None]
        batches.append((*totals, (logs[0].exp() * (logs[0] - logs[1])).sum(-1)))
    one, other, moved = (torch.cat(column) for column in zip(*batches, strict=True))
    return one, other, moved


def check_work(work: float) -> None:
    """Raises: ApiError 413 for more multiplications than one answer may take."""
    if work > MOST_WORK:
        raise ApiError(
            413,
            f"This would take about {work / MOST_WORK:,.1f} times as long as one answer may; take a "
            "shorter text, or a smaller model.",
            "text",
        )


def work_of_ablation(model: Model, tokens: int, source: int) -> float:
    """About how many multiplications: each part takes a pass from its layer on."""
    return len(parts_of(model)) * (tokens + source) * model.parameter_count() / 2


def work_of_patching(
    model: Model, clean: Sequence[int], corrupted: Sequence[int], source: int, interventions: Sequence[Intervention]
) -> float:
    """The same for patching: each site of each layer takes a pass for each position, from there on."""
    config = model.config
    kinds, length = attention_modules(config), len(clean)
    layers = max((len(kinds.get(kind, ())) for kind in ("self", "encoder", "decoder")), default=0)
    if config.architecture == "decoder-only" and not any(map(looks_ahead, interventions)):
        differ = (position for position, pair in enumerate(zip(clean, corrupted, strict=False)) if pair[0] != pair[1])
        patched = length - next(differ, length)
        read = patched * patched / 2
    else:
        read = max(length, source) * (length + source)
    return 4 * layers * read * model.parameter_count() / 2


def ablation_json(ablation: Ablation, token: int | None) -> dict[str, Any]:
    """The answer of `/ablation`. token: whose logit is compared; None for the likeliest.

    Raises: ValueError for a token whose logits weren't kept.
    """
    where = np.flatnonzero(ablation.tokens == token) if token is not None else [int(ablation.kept[0].argmax())]
    if not len(where):
        raise ValueError("Of so large a vocabulary only the likeliest tokens are compared; take one of those.")
    column = int(where[0])
    rises = ablation.logits[:, column].astype(np.float64) - ablation.kept[:, column]
    with_it, without = np.exp(ablation.log_probabilities[..., column])
    return {
        "parts": [{"point": part.point, "head": part.head} for part in ablation.parts],
        "loss": None if ablation.loss is None else _finite(ablation.loss),
        "token": int(ablation.tokens[column]),
        "logit": _finite(rises),
        "with": _finite(with_it),
        "without": _finite(without),
        "divergence": _finite(ablation.moved),
    }


def _finite(values: np.ndarray) -> list[float | None]:
    """Numbers as JSON has them, which knows no infinity."""
    return [value if np.isfinite(value) else None for value in values.tolist()]


def patching_json(patching: Patching) -> dict[str, Any]:
    """The answer of `/patching`."""
    return vars(patching) | {"restored": patching.restored.tolist()}
