"""Builds the checkpoint that tests save and damage."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.helpers import tiny_model
from transformer import Checkpoint, CheckpointError, ModelCard, Tokenizer, list_checkpoints, load_checkpoint

FILES = ("model.safetensors", "config.json", "tokenizer.json", "card.json")
ALPHABET = "abcdefghij "
CARD = ModelCard(
    title="A title",
    summary="ñandú 日 🙂",
    corpus={"name": "none", "sha256": "0" * 64},
    training={"betas": [0.9, 0.99]},
    parameters=12,
    validation_loss=1.25,
    examples=["ab", "c\n"],
    start_token_id=1,
)


def checkpoint(card: ModelCard = CARD, **fields) -> Checkpoint:
    if fields.get("architecture") == "encoder-only":
        card = replace(card, mask_token_id=2)
    return Checkpoint(tiny_model(**fields), Tokenizer.of_characters(ALPHABET), card)


def refused(folder: Path, *words: str) -> None:
    """Loading says which folder and file are wrong; and the list, wherever it can tell, that something is."""
    with pytest.raises(CheckpointError) as caught:
        load_checkpoint(folder)
    message = str(caught.value)
    for word in (folder.name, *words):
        assert word in message
    assert "Traceback" not in message
    (entry,) = (entry for entry in list_checkpoints(folder.parent) if entry.name == folder.name)
    # None where only loading can tell: numbers and vocabularies are not looked at before.
    assert entry.problem is None or entry.problem.startswith(f"{folder.name}: ")
