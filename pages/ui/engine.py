"""The models, as pages see them: cached, keyed by name and tokens, answered in NumPy.

One model instance serves every visitor. Whatever is asked of it is computed once for the same question.
Dimensions: layer, head, query, key, pos, d_head, vocab.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import streamlit as st
import torch

from transformer import (
    Checkpoint,
    CheckpointEntry,
    ModelConfig,
    ScoreArithmetic,
    Tokenizer,
    list_checkpoints,
    load_checkpoint,
    score_arithmetic,
    token_statistics,
)

# Tiny tensors gain nothing from several threads, and the threads of visitors served at once would wait for each other.
torch.set_num_threads(1)

FOLDER = Path(os.environ.get("HEADSUP_CHECKPOINTS") or Path(__file__).parents[2] / "checkpoints")


@dataclass(frozen=True)
class Steps:
    """The steps from queries and keys to weights, of all heads of one layer: (head, query, key) each."""

    raw: np.ndarray
    scaled: np.ndarray
    mask: np.ndarray
    """(query, key), True where visible."""
    scores: np.ndarray
    pattern: np.ndarray
    queries: np.ndarray
    """(pos, head, d_head), rotated where positions are rotary."""
    keys: np.ndarray


@dataclass(frozen=True)
class Scored:
    """What the model thought of each token of a text, before it saw it; index 0 of the text has no prediction."""

    probability: np.ndarray
    rank: np.ndarray
    entropy: np.ndarray


@st.cache_data(ttl=10, show_spinner=False)
def catalogue() -> list[CheckpointEntry]:
    """Every checkpoint folder, the damaged ones with what is wrong."""
    return list_checkpoints(FOLDER)


def usable() -> dict[str, CheckpointEntry]:
    """The checkpoints that can be picked, by name."""
    return {entry.name: entry for entry in catalogue() if not entry.problem}


def model(name: str) -> Checkpoint:
    """A checkpoint, loaded once and shared. Raises CheckpointError if it can't be."""
    return _model(name, _changed(name))


def config(name: str) -> ModelConfig:
    """A model's configuration."""
    return model(name).model.config


def tokenizer(name: str) -> Tokenizer:
    """A model's tokenizer."""
    return model(name).tokenizer


def window(name: str, tokens: tuple[int, ...]) -> tuple[int, ...]:
    """The last tokens, as many as the model's context holds."""
    return tokens[-config(name).context_length :]


def steps(name: str, tokens: tuple[int, ...], layer: int) -> Steps:
    """The four steps of attention in one layer. tokens: no more than the context holds."""
    return _steps(name, _changed(name), tokens, layer)


def patterns(name: str, tokens: tuple[int, ...]) -> np.ndarray:
    """Attention weights of all layers and heads: (layer, head, query, key)."""
    return _patterns(name, _changed(name), tokens)


def next_token(name: str, tokens: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """What follows a text: logits (vocab,), and where its last token looked, (layer, head, key)."""
    return _next_token(name, _changed(name), window(name, tokens))


def scored(name: str, tokens: tuple[int, ...]) -> Scored:
    """How likely each token was, given those before it that its context holds."""
    return _scored(name, _changed(name), tokens)


def arithmetic(found: Steps, head: int, query: int, key: int) -> ScoreArithmetic:
    """One cell of a head's pattern, recomputed number by number."""
    q, k, mask = (torch.from_numpy(a) for a in (found.queries[:, head], found.keys[:, head], found.mask))
    return score_arithmetic(q, k, mask, query, key)


def position_table(name: str) -> np.ndarray | None:
    """The table that a model adds to its embeddings, (position, d_model); None if it adds none."""
    shape = config(name)
    if shape.positions not in ("learned", "sinusoidal"):
        return None
    return model(name).model.position_rows(0, shape.context_length).detach().numpy()


def _changed(name: str) -> float:
    """When a checkpoint was last written: part of every cache key, so that a new one is noticed."""
    path = FOLDER / name / "model.safetensors"
    return path.stat().st_mtime if path.is_file() else 0.0


@st.cache_resource(max_entries=12, show_spinner="Opening the model …")
def _model(name: str, changed: float) -> Checkpoint:
    return load_checkpoint(FOLDER / name)


@st.cache_data(max_entries=24, show_spinner=False)
def _steps(name: str, changed: float, tokens: tuple[int, ...], layer: int) -> Steps:
    transformer = model(name).model
    rotated = "rot_" if transformer.config.positions == "rotary" else ""
    places = {
        "raw": "hook_raw_scores",
        "scaled": "hook_scaled_scores",
        "mask": "hook_mask",
        "scores": "hook_attn_scores",
        "pattern": "hook_pattern",
        "queries": f"hook_{rotated}q",
        "keys": f"hook_{rotated}k",
    }
    names = {field: f"blocks.{layer}.attn.{point}" for field, point in places.items()}
    _, cache = _run(name, tokens, list(names.values()))
    tensors = {field: cache[point].numpy() for field, point in names.items()}
    mask = tensors.pop("mask")  # (query, key): one text has no padding
    return Steps(mask=mask, **{field: tensor[0] for field, tensor in tensors.items()})


@st.cache_data(max_entries=12, show_spinner=False)
def _patterns(name: str, changed: float, tokens: tuple[int, ...]) -> np.ndarray:
    _, cache = _run(name, tokens, lambda point: point.endswith("hook_pattern"))
    return np.stack([pattern[0].numpy() for pattern in cache.values()])


@st.cache_data(max_entries=512, show_spinner=False)
def _next_token(name: str, changed: float, tokens: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    logits, cache = _run(name, tokens, lambda point: point.endswith("hook_pattern"))
    rows = np.array([pattern[0, :, -1].numpy() for pattern in cache.values()])  # empty without layers
    return logits[0, -1].numpy().copy(), rows


@st.cache_data(max_entries=64, show_spinner=False)
def _scored(name: str, changed: float, tokens: tuple[int, ...]) -> Scored:
    context = config(name).context_length
    logits = list(_run(name, tokens[:context], ())[0][0])
    for end in range(context + 1, len(tokens)):
        logits.append(_run(name, tokens[end - context : end], ())[0][0, -1])
    found = [token_statistics(row, token) for row, token in zip(logits, tokens[1:], strict=False)]
    probability, rank, entropy = (np.array(column) for column in zip(*found, strict=True)) if found else ([], [], [])
    return Scored(np.array(probability), np.array(rank), np.array(entropy))


def _run(name: str, tokens: tuple[int, ...], names_filter):
    with torch.no_grad():
        return model(name).model.run_with_cache(torch.tensor([tokens]), names_filter=names_filter)
