"""What changes make of a model: what it writes, and what each part is needed for.

Asked and answered as in `activations`. Dimensions: part, pos, vocab; token, those of the vocabulary that are kept.
"""

from __future__ import annotations

from pages.ui.models.cache import remembered
from pages.ui.models.jobs import progress
from transformer import Checkpoint, Sampling, generate
from transformer.api.effects import Ablation, ablation
from transformer.inference.interventions import Intervention

Interventions = tuple[Intervention, ...]


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
    room = checkpoint.model.config.context_length - len(tokens) if source else count
    steps = generate(
        checkpoint.model,
        tokens,
        source=source or None,
        max_new_tokens=max(min(count, room), 0),
        sampling=sampling,
        stop_tokens=checkpoint.card.stop_tokens,
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
) -> Ablation:
    """What each part is needed for: as in `ablation`."""
    return ablation(checkpoint.model, tokens, source, place, begin, interventions, progress)
