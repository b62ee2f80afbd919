"""Packs a checkpoint into one zip file of exactly four files, and unpacks such a file safely.

Archives are untrusted. The zip's directory is checked before anything is unpacked, and no member may unpack to more
than it claims. A model must fit into a fixed amount of memory whatever is asked of it, and a tokenizer must be of a
kind that this project writes, because others can hold patterns that take hours to match. The remaining checks are
those of every checkpoint. No pickle is ever read.
"""

from __future__ import annotations

import json
import math
import struct
import tempfile
import zipfile
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

import torch

from ..config import ModelConfig
from ..data.disk_errors import disk_problem
from ..data.file_kinds import file_kind
from ..data.tokenizers import Tokenizer
from .file_checks import read_json
from .folder import (
    CARD,
    CONFIG,
    TOKENIZER,
    WEIGHTS,
    Checkpoint,
    CheckpointError,
    files_of,
    load_checkpoint,
    reason,
    weight_shapes,
)
from .memory_footprint import largest_use

LARGEST = {WEIGHTS: 64_000_000, CONFIG: 64_000, TOKENIZER: 1_000_000, CARD: 256_000}
"""The members, and the most bytes of each, unpacked."""
LARGEST_ARCHIVE = 64_000_000
"""The most bytes of all members together, unpacked, and of the archive."""
LARGEST_HEADER = 1_000_000
"""The most bytes of the weights' header."""
MOST_LAYERS, MOST_HEADS, LONGEST_CONTEXT = 64, 64, 1024
"""The most layers or heads: a page can't draw more pictures."""
MOST_CAPITALS = 100
"""The most capitalised words in a tokenizer of sentences, which searches every text for each."""
LARGEST_IN_USE = 256_000_000
"""The most bytes that a model may need at its full context, by `largest_use`.

Small servers have some 700 MB, of which the app takes 315 before anybody has come. A model of 10 million weights
(6 layers × 6 heads, 384 wide, context 256) takes 200.
"""
TRIED = 64
"""Tokens of the text for trying a model."""

_END = struct.Struct("<4s4H2LH")
"""An archive's last record: signature, disk, the directory's disk, entries here, entries, size, offset, comment."""
_LARGEST_DIRECTORY = 4 * 1024
_ZIP64_LOCATOR, _LOCATOR_SIZE = b"PK\x06\x07", 20
_LONG_AGO = (1980, 1, 1, 0, 0, 0)
_EXPECTED = f"Expected a model saved by HeadsUp, a zip file of {', '.join(list(LARGEST)[:-1])} and {list(LARGEST)[-1]}"


def pack_checkpoint(checkpoint: Checkpoint) -> bytes:
    """A checkpoint as one file; the same checkpoint always gives the same bytes."""
    packed = BytesIO()
    files = files_of(checkpoint)
    with zipfile.ZipFile(packed, "w") as archive:
        for name in LARGEST:
            member = zipfile.ZipInfo(name, _LONG_AGO)
            member.external_attr = 0o644 << 16
            kind = zipfile.ZIP_STORED if name == WEIGHTS else zipfile.ZIP_DEFLATED  # weights hardly compress
            archive.writestr(member, files[name], kind)
    return packed.getvalue()


def unpack_checkpoint(content: bytes) -> Checkpoint:
    """The checkpoint of an archive: the weights that were packed, as float32, in a model in evaluation mode.

    Raises: CheckpointError, with one sentence that says what is wrong, for anything but such an archive.
    """
    _check_end(content)
    try:
        with tempfile.TemporaryDirectory() as folder:
            model = Path(folder, "archive")
            model.mkdir()
            checkpoint = _opened(content, model)
    except OSError as error:
        raise CheckpointError(
            f"The server can't unpack the archive at the moment: {reason(error)}. Try again later."
        ) from error
    _check_that_it_computes(checkpoint)
    return checkpoint


def _opened(content: bytes, folder: Path) -> Checkpoint:
    _unpack(content, folder)
    _check_tokenizer(folder)
    _check_shape(folder)
    try:
        return load_checkpoint(folder)
    except CheckpointError as error:
        raise CheckpointError(f"In the archive, {str(error).removeprefix('archive: ')}") from None


def _check_end(content: bytes) -> None:
    """Check an archive's last record, which has the length of the directory, before reading the directory."""
    if len(content) > LARGEST_ARCHIVE:
        raise CheckpointError(f"The file has {len(content):,} bytes; an archive may have {LARGEST_ARCHIVE:,}.")
    last = content[-_END.size :]
    signature, *_, entries, size, _, comment = _END.unpack(last.rjust(_END.size, b"\0"))
    before = content[-_END.size - _LOCATOR_SIZE : -_END.size]
    if signature != b"PK\5\6" or comment or before.startswith(_ZIP64_LOCATOR):
        kind = file_kind(content)
        what = "one that is cut off or packed by another program" if kind == "a zip file" else kind
        raise CheckpointError(f"{_EXPECTED}; found {what}.")
    if entries != len(LARGEST) or size > _LARGEST_DIRECTORY:
        raise CheckpointError(f"{_EXPECTED}; found an archive of {entries} file{'' if entries == 1 else 's'}.")


def _unpack(content: bytes, folder: Path) -> None:
    try:
        with zipfile.ZipFile(BytesIO(content)) as archive:
            members = archive.infolist()
            _check_directory(members)
            for member in members:
                (folder / member.filename).write_bytes(_read(archive, member))
    except CheckpointError:
        raise
    except Exception as error:  # the library raises a dozen kinds of errors, from struct.error to zlib.error
        if disk_problem(error):
            raise
        raise CheckpointError(f"The archive is damaged: {reason(error)}.") from None


def _check_directory(members: list[zipfile.ZipInfo]) -> None:
    if sorted(member.filename for member in members) != sorted(LARGEST):  # so no duplicates, and no folders
        raise CheckpointError(f"{_EXPECTED}; found an archive of other files.")
    for member in members:
        name, size = member.filename, member.file_size
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or member.flag_bits & 1:
            raise CheckpointError(f"The archive's {name} is encrypted, or packed in an unusual way.")
        if size > LARGEST[name]:
            raise CheckpointError(f"The archive's {name} claims {size:,} bytes; it may have {LARGEST[name]:,} at most.")
    if (total := sum(member.file_size for member in members)) > LARGEST_ARCHIVE:
        raise CheckpointError(f"The archive claims to hold {total:,} bytes; it may hold {LARGEST_ARCHIVE:,}.")


def _read(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """A member's bytes: never more of them than the directory promises, whatever the packed data would give."""
    with archive.open(member) as file:
        content = file.read(member.file_size + 1)
    if len(content) != member.file_size:
        raise CheckpointError(f"The archive's {member.filename} is not as long as the archive says.")
    return content


def _check_tokenizer(folder: Path) -> None:
    """Refuse a tokenizer that splits and joins texts in any way but ours."""
    found = _parsed(folder, TOKENIZER)
    try:
        by_table = found["model"]["type"] == "WordLevel" and all(token["special"] for token in found["added_tokens"])
        ours = by_table and (_ways(found) in _our_ways() or _ways(found) == _ways_of_sentences(found))
    except (TypeError, AttributeError, KeyError):
        ours = False
    if not ours:
        raise CheckpointError(f"In the archive, {TOKENIZER} is of a kind that HeadsUp doesn't write.")


def _check_shape(folder: Path) -> None:
    """Refuse a model that would take too much time or memory to build or inspect, however small its file."""
    try:
        config = ModelConfig.from_dict(_parsed(folder, CONFIG))
    except (ValueError, TypeError) as error:
        raise CheckpointError(f"In the archive, {CONFIG} can't be used: {reason(error)}") from None
    for what, value, most in (
        ("layers", max(config.n_layers, config.n_encoder_layers or 0), MOST_LAYERS),
        ("heads", config.n_heads, MOST_HEADS),
        ("tokens of context", config.context_length, LONGEST_CONTEXT),
    ):
        if value > most:
            raise CheckpointError(f"In the archive, {CONFIG} claims more than {most:,} {what}.")
    with (folder / WEIGHTS).open("rb") as file:
        header = int.from_bytes(file.read(8), "little")
    if header > LARGEST_HEADER:
        raise CheckpointError(f"In the archive, {WEIGHTS} is damaged: its header claims {header:,} bytes.")
    try:
        parameters = sum(map(math.prod, weight_shapes(folder).values()))
    except CheckpointError as error:
        raise CheckpointError(f"In the archive, {error}") from None
    if largest_use(config, parameters) > LARGEST_IN_USE:
        raise CheckpointError(
            f"In the archive, {CONFIG} describes a model that is too large to look into here: it would take more than "
            f"{LARGEST_IN_USE // 10**6} MB."
        )


@torch.no_grad()
def _check_that_it_computes(checkpoint: Checkpoint) -> None:
    """Try one short text: finite weights can be so large that no output is finite."""
    config = checkpoint.model.config
    tokens = torch.arange(min(config.context_length, TRIED))[None] % config.vocab_size
    inputs = (tokens, tokens) if config.architecture == "encoder-decoder" else (tokens,)
    if not checkpoint.model(*inputs).isfinite().all():
        raise CheckpointError(f"In the archive, {WEIGHTS} holds weights too large for the model to compute with them.")


def _parsed(folder: Path, name: str) -> Any:
    try:
        return read_json(folder / name)
    except CheckpointError as error:
        raise CheckpointError(f"In the archive, {error}") from None


def _ways(tokenizer: dict[str, Any]) -> dict[str, Any]:
    """Everything in a tokenizer file except the vocabulary."""
    return {name: part for name, part in tokenizer.items() if name not in ("model", "added_tokens")}


@cache
def _our_ways() -> list[dict[str, Any]]:
    return [
        _ways(json.loads(tokenizer.to_json()))
        for tokenizer in (Tokenizer.of_characters("a"), Tokenizer.of_words(["a"]))
    ]


def _ways_of_sentences(tokenizer: dict[str, Any]) -> dict[str, Any] | None:
    """The expected form of a tokenizer of sentences with these words; None for words that it can't have."""
    special = {token["content"] for token in tokenizer["added_tokens"]}
    words = [word for word in tokenizer["model"]["vocab"] if word not in special]
    capitals = [word for word in words if word != word.lower()]  # each word becomes part of a pattern
    if len(capitals) > MOST_CAPITALS or not all(map(str.isalpha, capitals)):
        return None
    return _ways(json.loads(Tokenizer.of_sentences(capitals).to_json()))
