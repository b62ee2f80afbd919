"""The models that can be picked: those that ship, loaded once for everybody, and the visitor's own."""

from __future__ import annotations

import os
from pathlib import Path

import streamlit as st
import torch

from pages.ui.models.own_models import own_entries, own_models
from transformer import Checkpoint, CheckpointEntry, ModelConfig, Tokenizer, list_checkpoints, load_checkpoint

# Tiny tensors gain nothing from several threads, and the threads of visitors served at once would wait for each other.
torch.set_num_threads(1)

FOLDER = Path(os.environ.get("HEADSUP_CHECKPOINTS") or Path(__file__).parents[3] / "checkpoints")


@st.cache_data(ttl=10, show_spinner=False)
def catalogue() -> list[CheckpointEntry]:
    """Every checkpoint folder, the damaged ones with what is wrong."""
    return list_checkpoints(FOLDER)


def usable() -> dict[str, CheckpointEntry]:
    """The checkpoints that can be picked, by name: the visitor's own, and everybody's."""
    return {entry.name: entry for entry in catalogue() if not entry.problem} | own_entries()


def model(name: str) -> Checkpoint:
    """A checkpoint: the visitor's own, or one that is loaded once and shared. Raises CheckpointError if it can't be."""
    own = own_models()
    return own[name] if name in own else _model(name, changed_at(name))


def config(name: str) -> ModelConfig:
    """A model's configuration."""
    return model(name).model.config


def tokenizer(name: str) -> Tokenizer:
    """A model's tokenizer."""
    return model(name).tokenizer


def window(name: str, tokens: tuple[int, ...]) -> tuple[int, ...]:
    """The last tokens, as many as the model's context holds."""
    return tokens[-config(name).context_length :]


def changed_at(name: str) -> float:
    """When a checkpoint was last written: part of every cache key, so that a new one is noticed."""
    path = FOLDER / name / "model.safetensors"
    return path.stat().st_mtime if path.is_file() else 0.0


@st.cache_resource(max_entries=12, show_spinner="Opening the model …")
def _model(name: str, changed: float) -> Checkpoint:
    return load_checkpoint(FOLDER / name)
