"""One visitor's own models: trained on the page Train or uploaded, and seen by nobody else."""

from __future__ import annotations

import secrets
from pathlib import Path

from pages.ui.models.belongings import belongings
from transformer import Checkpoint, CheckpointEntry

PREFIX = "own-"
MOST, LARGEST_TOGETHER = 8, 128_000_000
"""Models a visitor can have at once, and bytes of all their weights; with one more, the oldest go."""


def own_models() -> dict[str, Checkpoint]:
    """The visitor's own models by name, oldest first."""
    return belongings().models


def keep(checkpoint: Checkpoint) -> str:
    """Put a model among the visitor's own; returns the name it can be picked by, which nobody else can guess."""
    name = PREFIX + secrets.token_hex(8)
    models = {**own_models(), name: checkpoint}
    while len(models) > 1 and (len(models) > MOST or sum(map(_size, models.values())) > LARGEST_TOGETHER):
        del models[next(iter(models))]
    belongings().models = models
    return name


def own_entries() -> dict[str, CheckpointEntry]:
    """The visitor's own models as `list_checkpoints` would list them."""
    return {
        name: CheckpointEntry(name, Path(name), checkpoint.card, checkpoint.model.config)
        for name, checkpoint in own_models().items()
    }


def _size(checkpoint: Checkpoint) -> int:
    """Bytes of a model's weights."""
    return sum(weight.nbytes for weight in checkpoint.model.parameters())
