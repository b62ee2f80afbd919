"""One visitor's own models: trained on the page Train or uploaded, kept in the session and seen by nobody else."""

from __future__ import annotations

import secrets
from pathlib import Path

import streamlit as st

from transformer import Checkpoint, CheckpointEntry

PREFIX = "own-"
MOST = 8
"""Models a visitor can have at once; with one more, the oldest goes."""


def own_models() -> dict[str, Checkpoint]:
    """The visitor's own models by name, oldest first."""
    return st.session_state.get("own_models", {})


def keep(checkpoint: Checkpoint) -> str:
    """Put a model among the visitor's own; returns the name it can be picked by.

    The name can't be guessed: what is computed with a model is cached for all visitors, under its name.
    """
    name = PREFIX + secrets.token_hex(8)
    models = {**own_models(), name: checkpoint}
    while len(models) > MOST:
        del models[next(iter(models))]
    st.session_state["own_models"] = models
    return name


def own_entries() -> dict[str, CheckpointEntry]:
    """The visitor's own models as `list_checkpoints` would list them."""
    return {
        name: CheckpointEntry(name, Path(name), checkpoint.card, checkpoint.model.config)
        for name, checkpoint in own_models().items()
    }
