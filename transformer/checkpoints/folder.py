"""Saves and loads a checkpoint: a folder of weights, configuration, tokenizer and model card.

It never reads a pickle, and checks a file's claims against its size before allocating memory.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import torch
from safetensors import safe_open
from safetensors.torch import save, save_file
from torch import Tensor

from ..config import ModelConfig
from ..data.tokenizers import Tokenizer
from ..model.effective_weights import merged
from ..model.models import Model, shapes_alone
from .atomic_folders import NoFolderError, current, folder_names, replacing, steadily
from .checkpoint import Checkpoint, CheckpointError
from .file_checks import checked, read_json, reason
from .memory_limit import check_fits
from .model_card import ModelCard
from .weight_numbers import STORED_AS, Header, header_of, is_finite, name_of, weight_dtype

WEIGHTS, CONFIG, TOKENIZER, CARD = FILES = "model.safetensors", "config.json", "tokenizer.json", "card.json"
MAPPED_FROM = 64_000_000
"""The largest file of weights, in bytes."""
_TOKENS = ("start_token_id", "end_token_id", "mask_token_id")
T = TypeVar("T")


@dataclass(frozen=True)
class CheckpointEntry:
    """A folder found by `list_checkpoints`, with its card and configuration."""

    name: str
    path: Path
    card: ModelCard
    config: ModelConfig
    problem: None = None


@dataclass(frozen=True)
class UnreadableCheckpoint:
    """An unusable folder found by `list_checkpoints`, and its problem."""

    name: str
    path: Path
    problem: str


def save_checkpoint(path: str | Path, checkpoint: Checkpoint, dtype: torch.dtype | None = None) -> None:
    """Write a checkpoint folder atomically; saves into one folder wait for each other.

    dtype: the type to store the weights in, say in half the bytes; None keeps theirs.
    Raises: CheckpointError if the disk is full, or `load_checkpoint` would refuse the result; the old folder stays.
    """
    path = Path(path)
    try:
        with replacing(path) as folder:
            _write(folder, checkpoint, dtype)
            _tokenizer(folder, _inspect(folder)[1])  # checks that it can be read again
    except Exception as error:  # the writing libraries have their own errors
        raise CheckpointError(f"{path.name} can't be saved: {reason(error).rstrip('.')}.") from error


def load_checkpoint(path: str | Path) -> Checkpoint:
    """Read a checkpoint folder, in the type of `weight_dtype`; the model is in evaluation mode.

    Raises: CheckpointError for a folder that is missing, incomplete, damaged, or claims more than it holds, and for
        weights that take more memory than models may (`memory_limit`).
    """
    return _read(Path(path), _load)


def list_checkpoints(folder: str | Path) -> list[CheckpointEntry | UnreadableCheckpoint]:
    """Every checkpoint folder inside `folder`, by name; a damaged one is listed with its problem.

    Reads cards and headers only, no weights, and changes nothing. A folder that doesn't exist holds none.
    """
    folder = Path(folder)
    if not folder.is_dir():
        return []
    entries = []
    for name in folder_names(folder):
        try:
            entries.append(_entry(folder / name))
        except NoFolderError:  # its first save is in progress, or it was removed
            continue
    return entries


def checkpoint_stamp(path: str | Path) -> tuple[int, ...]:
    """A value that changes whenever one of a checkpoint's files does; empty if there is no such folder."""
    try:
        found = [(current(Path(path)) / name).stat() for name in FILES]
    except OSError:
        return ()
    return tuple(number for file in found for number in (file.st_ino, file.st_mtime_ns, file.st_size))


def number_of_weights(config: ModelConfig) -> int:
    """The number of parameters of a model of this configuration; a tied table counts once."""
    return sum(map(math.prod, _needed_shapes(config, at_most=10**6).values()))


def weight_bytes(path: str | Path) -> int:
    """The bytes of a checkpoint's weights once it is open. Raises: as `load_checkpoint`."""
    return _read(Path(path), lambda folder: _bytes(folder, _inspect(folder)[1]))


def weight_shapes(folder: Path) -> dict[str, tuple[int, ...]]:
    """The shape of each weight of a checkpoint folder, from the header of the file.

    Raises: CheckpointError for a file that is damaged.
    """
    return {name: shape for name, (shape, _) in _stored(folder).items()}


def _stored(folder: Path) -> dict[str, Header]:
    """The shape and type of each weight, from the header of the file."""
    try:
        with safe_open(folder / WEIGHTS, framework="pt") as file:
            return {name: header_of(file, name) for name in file.keys()}  # noqa: SIM118
    except Exception as error:
        raise CheckpointError(f"{WEIGHTS} is damaged ({reason(error)}).") from None


def _bytes(folder: Path, config: ModelConfig) -> int:
    """The bytes of the loaded weights. Raises: CheckpointError if models may not take so much."""
    size = weight_dtype(_stored(folder).values()).itemsize * number_of_weights(config)
    check_fits(size)
    return size


def _entry(path: Path) -> CheckpointEntry | UnreadableCheckpoint:
    try:
        card, config = _read(path, _inspect)
    except CheckpointError as error:
        if isinstance(error.__cause__, NoFolderError):
            raise error.__cause__ from None
        return UnreadableCheckpoint(path.name, path, str(error))
    return CheckpointEntry(path.name, path, card, config)


def _read(path: Path, read: Callable[[Path], T]) -> T:
    """The result of `read` on the folder; any error becomes a CheckpointError that names the folder."""
    try:
        return steadily(path, read)
    except CheckpointError as error:
        raise CheckpointError(f"{path.name}: {error}") from None
    except NoFolderError as error:
        raise CheckpointError(_no_folder(path)) from error
    except Exception as error:  # a file vanished, is unreadable, or changed in place
        raise CheckpointError(f"{path.name}: it can't be read ({reason(error)}).") from None


def _no_folder(path: Path) -> str:
    return f"There is no checkpoint folder {path.name!r}."


def _inspect(folder: Path) -> tuple[ModelCard, ModelConfig]:
    if missing := [name for name in FILES if not (folder / name).is_file()]:
        if CARD in missing and CONFIG not in missing and "model_type" in read_json(folder / CONFIG):
            raise CheckpointError(
                "It is a folder in Hugging Face layout; load_pretrained reads it, and `python -m transformer import` "
                "makes a checkpoint of it."
            )
        raise CheckpointError(f"{' and '.join(missing)} is missing.")
    card = _parse(folder, CARD, ModelCard.from_dict)
    config = _parse(folder, CONFIG, ModelConfig.from_dict)
    _check_special_tokens(card, config)
    _check_shapes(weight_shapes(folder), config)
    return card, config


def _load(folder: Path) -> Checkpoint:
    card, config = _inspect(folder)
    _bytes(folder, config)
    tokenizer = _tokenizer(folder, config)
    return Checkpoint(with_weights(config, _weights(folder)).eval(), tokenizer, card)


def _tokenizer(folder: Path, config: ModelConfig) -> Tokenizer:
    try:
        tokenizer = Tokenizer.from_file(checked(folder / TOKENIZER))
    except ValueError as error:
        raise CheckpointError(reason(error)) from None
    if tokenizer.vocab_size > config.vocab_size:
        raise CheckpointError(f"{TOKENIZER} has {tokenizer.vocab_size} tokens, but the model only {config.vocab_size}.")
    return tokenizer


def with_weights(config: ModelConfig, weights: Mapping[str, Tensor]) -> Model:
    """A model of these weights by name, without copying them.

    weights: every parameter's, without `unembed.weight` if embeddings are tied.
    """
    model = shapes_alone(config)
    tied = {"unembed.weight": weights["embed.weight"]} if config.tie_embeddings else {}
    model.load_state_dict({**weights, **tied}, assign=True)
    if model.embed is not None and config.tie_embeddings:
        model.unembed.weight = model.embed.weight  # one parameter again, which counts once
    return model


def _weights(folder: Path) -> dict[str, Tensor]:
    """Every weight of a checkpoint folder, in the type of `weight_dtype`.

    A large file's weights of that type stay mapped until they are needed. A small file's are copied: reading a mapped
    file that somebody has truncated kills the process.
    """
    found, dtype = {}, weight_dtype(_stored(folder).values())
    try:
        is_small = (folder / WEIGHTS).stat().st_size < MAPPED_FROM
        file = safe_open(folder / WEIGHTS, framework="pt")
    except Exception as error:
        raise CheckpointError(f"{WEIGHTS} can't be read ({reason(error)}).") from None
    with file:
        for name in file.keys():  # noqa: SIM118
            stored = file.get_tensor(name)
            _check_stored(stored)
            found[name] = stored.to(dtype, copy=is_small)
            _check_finite(found[name])
    return found


def _check_stored(weight: Tensor) -> None:
    if weight.dtype not in STORED_AS.values():
        raise CheckpointError(f"{WEIGHTS} holds {weight.dtype}, which no weights are stored as.")


def _check_finite(weight: Tensor) -> None:
    if not is_finite(weight):
        raise CheckpointError(
            f"{WEIGHTS} holds numbers that are infinite or not numbers at all, as {name_of(weight.dtype)}."
        )


def _write(folder: Path, checkpoint: Checkpoint, dtype: torch.dtype | None) -> None:
    config, weights = _stored_of(checkpoint, dtype)
    save_file(weights, folder / WEIGHTS)
    for name, content in _texts_of(checkpoint, config).items():
        (folder / name).write_text(content, encoding="utf-8")
    for file in folder.iterdir():
        file.chmod(0o644)  # temporary files are created private
        _flush_to_disk(file)
    folder.chmod(0o755)


def files_of(checkpoint: Checkpoint) -> dict[str, bytes]:
    """The files that `save_checkpoint` would write, by name. Raises: CheckpointError for a card that can't be saved."""
    try:
        config, weights = _stored_of(checkpoint)
        texts = {name: content.encode() for name, content in _texts_of(checkpoint, config).items()}
    except ValueError as error:
        raise CheckpointError(f"The model can't be saved: {reason(error)}.") from error
    return {WEIGHTS: save(weights), **texts}


def _stored_of(checkpoint: Checkpoint, dtype: torch.dtype | None = None) -> tuple[ModelConfig, dict[str, Tensor]]:
    """The configuration and the weights to write."""
    config, weights = merged(checkpoint.model)
    if config.tie_embeddings:
        del weights["unembed.weight"]  # the same tensor as embed.weight
    weights = {name: tensor.detach().cpu().to(dtype or tensor.dtype).contiguous() for name, tensor in weights.items()}
    read_as = weight_dtype((tuple(weight.shape), weight.dtype) for weight in weights.values())
    for weight in weights.values():
        _check_stored(weight)
        _check_finite(weight.to(read_as))
    return config, weights


def _texts_of(checkpoint: Checkpoint, config: ModelConfig) -> dict[str, str]:
    """The contents of the other files. Raises: ValueError for a card that couldn't be read back."""
    card = dataclasses.asdict(checkpoint.card)
    ModelCard.from_dict(json.loads(json.dumps(card)))
    values = {CONFIG: config.to_dict(), CARD: card}
    texts = {name: json.dumps(value, indent=2, ensure_ascii=False) + "\n" for name, value in values.items()}
    return {TOKENIZER: checkpoint.tokenizer.to_json(pretty=True), **texts}


def _flush_to_disk(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _parse(folder: Path, name: str, build: Callable[[Any], T]) -> T:
    found = read_json(folder / name)
    try:
        return build(found)
    except (ValueError, TypeError) as error:
        raise CheckpointError(f"{name} can't be used: {reason(error)}") from None


def _check_special_tokens(card: ModelCard, config: ModelConfig) -> None:
    told: list[tuple[str, int | None]] = [(name, getattr(card, name)) for name in _TOKENS]
    told += [(name, token) for name in ("more_start_token_ids", "more_end_token_ids") for token in getattr(card, name)]
    for name, token in told:
        if token is not None and not 0 <= token < config.vocab_size:
            raise CheckpointError(f"{CARD} has {name} {token}; there are {config.vocab_size} tokens.")
    if config.architecture == "encoder-decoder" and card.start_token_id is None:
        raise CheckpointError(f"{CARD} lacks start_token_id, which an encoder–decoder begins with.")
    if config.architecture == "encoder-only" and card.mask_token_id is None:
        raise CheckpointError(f"{CARD} lacks mask_token_id, which stands for what an encoder fills in.")


def _check_shapes(found: dict[str, tuple[int, ...]], config: ModelConfig) -> None:
    """Compare the weights with the configuration before allocating anything."""
    needed = _needed_shapes(config, at_most=len(found))
    for name in sorted(needed.keys() | found.keys()):
        if found.get(name) != needed.get(name):
            raise CheckpointError(
                f"{WEIGHTS} and {CONFIG} don't fit: {name[:100]} is {_shape(found.get(name))} in one, "
                f"{_shape(needed.get(name))} in the other."
            )


def _needed_shapes(config: ModelConfig, at_most: int) -> dict[str, tuple[int, ...]]:
    """The shape of every weight of a model of this configuration; the later blocks' are copied from the second.

    Raises: CheckpointError for sizes beyond counting, or if the blocks alone have more than `at_most` weights.
    """
    depths = {"blocks": config.n_layers}
    if config.architecture == "encoder-decoder":
        depths = {"encoder.blocks": config.n_encoder_layers, "decoder.blocks": config.n_layers}
    sides = {"n_layers": min(config.n_layers, 2)}
    if config.architecture == "encoder-decoder":
        sides["n_encoder_layers"] = min(config.n_encoder_layers, 2)
    shallow = dataclasses.replace(config, **sides, unrotated_layers=())  # later blocks have the same shapes
    try:
        shapes = dict(shapes_of(shallow))
    except (RuntimeError, TypeError):  # PyTorch can't count that far
        raise CheckpointError(f"{CONFIG} claims sizes that no model can have.") from None
    if config.tie_embeddings:
        del shapes["unembed.weight"]
    for blocks, depth in depths.items():
        second = f"{blocks}.1."
        of_block = {name.removeprefix(second): shape for name, shape in shapes.items() if name.startswith(second)}
        if (depth - 1) * len(of_block) > at_most:
            raise CheckpointError(f"{CONFIG} claims {depth} layers; {WEIGHTS} has fewer.")
        for layer in range(2, depth):
            shapes |= {f"{blocks}.{layer}.{name}": shape for name, shape in of_block.items()}
    return shapes


@functools.lru_cache(maxsize=256)
def shapes_of(config: ModelConfig) -> Mapping[str, tuple[int, ...]]:
    """The shape of every weight of a model that PyTorch builds; cached, since folders are listed often."""
    return MappingProxyType({name: tuple(weight.shape) for name, weight in shapes_alone(config).state_dict().items()})


def _shape(shape: tuple[int, ...] | None) -> str:
    return "absent" if shape is None else " × ".join(map(str, shape))
