"""A trained model as a folder: weights, configuration, tokenizer, and a card that says where it comes from.

No pickle is ever read. What a file claims is checked against its size before any memory is taken for it.
"""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from ..config import ModelConfig
from ..data.tokenizers import Tokenizer
from ..model.models import DecoderOnly, EncoderDecoder, build_model, make_model
from .card import Card

WEIGHTS, CONFIG, TOKENIZER, CARD = "model.safetensors", "config.json", "tokenizer.json", "card.json"
STORED_AS = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
LARGEST_JSON = 8_000_000
"""Bytes; a tokenizer of a large vocabulary stays below it."""


class CheckpointError(Exception):
    """A checkpoint can't be read; the message says which file, and what is wrong with it."""


@dataclass(frozen=True)
class Checkpoint:
    """A model in evaluation mode, its tokenizer and its card."""

    model: DecoderOnly | EncoderDecoder
    tokenizer: Tokenizer
    card: Card


@dataclass(frozen=True)
class CheckpointEntry:
    """A folder found by `list_checkpoints`: its card and configuration, or what is wrong with it."""

    name: str
    path: Path
    card: Card | None = None
    config: ModelConfig | None = None
    problem: str | None = None


def save_checkpoint(path: str | Path, checkpoint: Checkpoint, dtype: torch.dtype | None = None) -> None:
    """Write a checkpoint folder, whole or not at all: into a temporary sibling, then renamed.

    dtype: to store the weights in half the bytes, say; None keeps them as they are.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent))
    try:
        _write(partial, checkpoint, dtype)
        previous = _previous(path)
        if path.exists():
            shutil.rmtree(previous, ignore_errors=True)
            path.rename(previous)  # a crash from here on leaves it there, where `_recover` finds it
        partial.rename(path)
        shutil.rmtree(previous, ignore_errors=True)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def load_checkpoint(path: str | Path) -> Checkpoint:
    """Read a checkpoint folder; the weights become float32, the model is in evaluation mode.

    Raises: CheckpointError for a folder that is missing, incomplete, damaged, or claims more than it holds.
    """
    path = Path(path)
    entry = inspect_checkpoint(path)
    if entry.problem:
        raise CheckpointError(entry.problem)
    _check_size(path, TOKENIZER)
    try:
        tokenizer = Tokenizer.from_file(path / TOKENIZER)
    except ValueError as error:
        raise CheckpointError(f"{path.name}: {error}") from None
    if tokenizer.vocab_size > entry.config.vocab_size:
        raise CheckpointError(
            f"{path.name}: {TOKENIZER} has {tokenizer.vocab_size} tokens, but the model only {entry.config.vocab_size}."
        )
    model = build_model(entry.config, seed=0)
    try:
        weights = load_file(path / WEIGHTS)
    except Exception as error:
        raise CheckpointError(f"{path.name}: {WEIGHTS} can't be read ({error}).") from None
    if odd := sorted({str(tensor.dtype) for tensor in weights.values()} - {str(dtype) for dtype in STORED_AS}):
        raise CheckpointError(f"{path.name}: {WEIGHTS} holds {odd[0]}, which no weights are stored as.")
    if not all(tensor.isfinite().all() for tensor in weights.values()):
        raise CheckpointError(f"{path.name}: {WEIGHTS} holds numbers that are infinite or not numbers at all.")
    if entry.config.tie_embeddings:
        weights["unembed.weight"] = weights["embed.weight"]
    model.load_state_dict({name: tensor.float() for name, tensor in weights.items()})
    return Checkpoint(model.eval(), tokenizer, entry.card)


def list_checkpoints(folder: str | Path) -> list[CheckpointEntry]:
    """Every checkpoint folder inside `folder`, by name; a damaged one is listed with what is wrong.

    Reads cards and headers only, no weights. A folder that doesn't exist holds none.
    """
    folder = Path(folder)
    if not folder.is_dir():
        return []
    for previous in folder.glob(".*.previous"):
        _recover(folder / previous.name[1:].removesuffix(".previous"))
    names = sorted(child.name for child in folder.iterdir() if child.is_dir() and not child.name.startswith("."))
    return [inspect_checkpoint(folder / name) for name in names]


def inspect_checkpoint(path: str | Path) -> CheckpointEntry:
    """A checkpoint's card and configuration, checked against the header of its weights, without reading them."""
    path = Path(path)
    try:
        _recover(path)
        if not path.is_dir():
            raise CheckpointError(f"There is no checkpoint folder {path.name!r}.")
        if missing := [name for name in (WEIGHTS, CONFIG, TOKENIZER, CARD) if not (path / name).is_file()]:
            raise CheckpointError(f"{path.name}: {' and '.join(missing)} is missing.")
        card = _parse(path, CARD, Card.from_dict)
        config = _parse(path, CONFIG, ModelConfig.from_dict)
        _check_special_tokens(path, card, config)
        _check_header(path, config)
    except CheckpointError as error:
        return CheckpointEntry(path.name, path, problem=str(error))
    return CheckpointEntry(path.name, path, card, config)


def _write(folder: Path, checkpoint: Checkpoint, dtype: torch.dtype | None) -> None:
    weights = checkpoint.model.state_dict()
    if checkpoint.model.config.tie_embeddings:
        del weights["unembed.weight"]  # the same tensor as embed.weight
    weights = {name: tensor.detach().cpu().to(dtype or tensor.dtype).contiguous() for name, tensor in weights.items()}
    save_file(weights, folder / WEIGHTS)
    checkpoint.tokenizer.save(folder / TOKENIZER)
    _dump(folder / CONFIG, checkpoint.model.config.to_dict())
    _dump(folder / CARD, dataclasses.asdict(checkpoint.card))
    for file in folder.iterdir():
        file.chmod(0o644)  # a temporary folder and the weights in it start out private
        _flush_to_disk(file)
    folder.chmod(0o755)


def _dump(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _flush_to_disk(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _previous(path: Path) -> Path:
    return path.with_name(f".{path.name}.previous")


def _recover(path: Path) -> None:
    """Put back the old checkpoint if a crash struck between the two renames of a save."""
    if not path.exists() and _previous(path).is_dir():
        _previous(path).rename(path)


def _parse(path: Path, name: str, build: Any) -> Any:
    _check_size(path, name)
    try:
        return build(json.loads((path / name).read_text(encoding="utf-8")))
    except (ValueError, TypeError, RecursionError) as error:
        raise CheckpointError(f"{path.name}: {name} can't be used: {error}") from None


def _check_special_tokens(path: Path, card: Card, config: ModelConfig) -> None:
    for name in ("start_token_id", "end_token_id"):
        token = getattr(card, name)
        if token is not None and not 0 <= token < config.vocab_size:
            raise CheckpointError(f"{path.name}: {CARD} has {name} {token}; there are {config.vocab_size} tokens.")
    if config.architecture == "encoder-decoder" and card.start_token_id is None:
        raise CheckpointError(f"{path.name}: {CARD} lacks start_token_id, which an encoder–decoder begins with.")


def _check_size(path: Path, name: str) -> None:
    if (path / name).stat().st_size > LARGEST_JSON:
        raise CheckpointError(f"{path.name}: {name} is larger than any such file should be.")


def _check_header(path: Path, config: ModelConfig) -> None:
    """Compare the header of the weights with what the configuration needs, before any of it is allocated."""
    try:
        with safe_open(path / WEIGHTS, framework="pt") as file:
            found = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
    except Exception as error:
        raise CheckpointError(f"{path.name}: {WEIGHTS} is damaged ({error}).") from None
    needed = _needed_shapes(path, config, at_most=len(found))
    for name in sorted(needed.keys() | found.keys()):
        if found.get(name) != needed.get(name):
            raise CheckpointError(
                f"{path.name}: {WEIGHTS} and {CONFIG} don't fit: {name} is {_shape(found.get(name))} in one, "
                f"{_shape(needed.get(name))} in the other."
            )


def _needed_shapes(path: Path, config: ModelConfig, at_most: int) -> dict[str, tuple[int, ...]]:
    """The shape of every weight that a model of this configuration has, from one block that stands for all.

    Raises: CheckpointError for sizes beyond counting, or if the blocks alone have more than `at_most` weights.
    """
    depths = {"blocks": config.n_layers}
    if config.architecture == "encoder-decoder":
        depths = {"encoder.blocks": config.n_encoder_layers, "decoder.blocks": config.n_layers}
    shallow = dataclasses.replace(
        config, n_layers=min(config.n_layers, 1), n_encoder_layers=min(config.n_encoder_layers, 1)
    )
    try:
        with torch.device("meta"):  # shapes alone, no memory
            weights = make_model(shallow).state_dict()
    except (RuntimeError, TypeError):  # PyTorch can't count that far
        raise CheckpointError(f"{path.name}: {CONFIG} claims sizes that no model can have.") from None
    if config.tie_embeddings:
        del weights["unembed.weight"]
    shapes = {name: tuple(tensor.shape) for name, tensor in weights.items()}
    for blocks, depth in depths.items():
        first = f"{blocks}.0."
        of_block = {name.removeprefix(first): shapes.pop(name) for name in list(shapes) if name.startswith(first)}
        if depth * len(of_block) > at_most:
            raise CheckpointError(f"{path.name}: {CONFIG} claims {depth} layers; {WEIGHTS} has fewer.")
        for layer in range(depth):
            shapes |= {f"{blocks}.{layer}.{name}": shape for name, shape in of_block.items()}
    return shapes


def _shape(shape: tuple[int, ...] | None) -> str:
    return "absent" if shape is None else " × ".join(map(str, shape))
