"""Reads a .gguf file: its header, its configuration, and its weights, dequantised.

We read the header ourselves, since the package `gguf` trusts every count in it; the package dequantises.
Format: magic, version, counts, fields (name, type, value), tensors (name, sizes, type, offset), aligned data.
"""

from __future__ import annotations

import math
import mmap
import struct
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType
from gguf.quants import dequantize
from torch import Tensor

from ..config import ModelConfig
from .families.family import Fields
from .families.unreadable import EXPERTS, REASONS
from .file_checks import refuse_pointer
from .folder import CheckpointError, reason
from .gguf_families import KINDS, Kind, family_of
from .gguf_tokenizer import named_tokens, tokenizer_of
from .pretrained_model import Pretrained, check_vocabulary, config_of, token_ids
from .tokenizer_files import TheirTokenizer
from .weight_numbers import STORED_AS, Header

MAGIC, VERSIONS = b"GGUF", (2, 3)
MOST_FIELDS, MOST_TENSORS, MOST_SIDES, MOST_ITEMS = 10_000, 100_000, 4, 4_000_000
"""The most items of all lists together: twice those of half a million tokens with merges, scores and kinds."""
_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_TEXT, _LIST = 8, 9
NUMBERS_AT_ONCE = 4_000_000
"""Numbers to dequantise at once."""
_WITHOUT_EFFECT = ("vocab_size", "rope.scaling.finetuned", "attention.value_length", "tensor_data_layout")
"""Fields that are checked below, or have no effect."""
_FACTORS, _SHORT, _LONG = "rope_freqs.weight", "rope_factors_short.weight", "rope_factors_long.weight"
"""Tensors with how many times slower each pair turns: for all texts, for short ones, and for long ones."""
_ENDS = tuple(f"tokenizer.ggml.{name}_token_id" for name in ("eos", "eot", "eom"))


@dataclass(frozen=True)
class _StoredTensor:
    """The location of a tensor's numbers."""

    shape: tuple[int, ...]
    kind: GGMLQuantizationType
    start: int
    size: int


class GgufFile:
    """The fields of a file, and its tensors.

    Raises: CheckpointError for another kind of file, one that is cut off, or a header that claims more than there is.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with refuse_pointer(path).open("rb") as file:
            if file.read(4) != MAGIC:
                raise CheckpointError("This is no GGUF file: it doesn't begin with that word.")
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                header = _Header(data)
                self.fields, self._stored = header.fields, header.tensors()

    @cached_property
    def headers(self) -> Mapping[str, Header]:
        """The shape and type of each tensor; quantised ones count as bfloat16, which rounds less than they do."""
        kinds = {name: STORED_AS.get(each.kind.name, torch.bfloat16) for name, each in self._stored.items()}
        return {name: (each.shape, kinds[name]) for name, each in self._stored.items()}

    @cached_property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """The shape of each tensor."""
        return {name: stored.shape for name, stored in self._stored.items()}

    def read(self, name: str, dtype: torch.dtype) -> Tensor:
        """One tensor, dequantised a few rows at a time, since float32 may take much more memory."""
        stored = self._stored[name]
        rows = prod(stored.shape[:-1])
        data = np.memmap(self._path, np.uint8, "r", stored.start, (rows, stored.size // rows))
        found = torch.empty(rows, stored.shape[-1] if stored.shape else 1, dtype=dtype)
        at_once = max(1, NUMBERS_AT_ONCE // found.shape[1])
        try:
            for start in range(0, rows, at_once):
                some = slice(start, start + at_once)
                found[some] = torch.from_numpy(np.array(dequantize(data[some], stored.kind), dtype=np.float32))
            return found.reshape(stored.shape)
        except (NotImplementedError, ValueError) as error:
            kind = stored.kind.name
            raise CheckpointError(f"{name} is stored as {kind}, which can't be read ({reason(error)}).") from None


class _Header:
    """Reads the header, never beyond the end of the file."""

    def __init__(self, data: mmap.mmap) -> None:
        self._data, self._at, self._items = data, len(MAGIC), 0
        version = self._number("I")
        if version >> 24 in VERSIONS:
            raise CheckpointError("It is big-endian, for another kind of machine; a little-endian file can be read.")
        if version not in VERSIONS:
            raise CheckpointError(f"Its version is {version}; versions {VERSIONS[0]} and {VERSIONS[1]} can be read.")
        self._tensors, fields = self._number("Q"), self._number("Q")
        if fields > MOST_FIELDS or self._tensors > MOST_TENSORS:
            raise CheckpointError(f"It claims {fields:,} fields and {self._tensors:,} tensors, more than there can be.")
        self.fields: dict[str, Any] = {}
        for _ in range(fields):
            name = self._text()
            self.fields[name] = self._value(self._number("I"))

    def tensors(self) -> dict[str, _StoredTensor]:
        """The location of each tensor; must be read after the fields."""
        found = {}
        for _ in range(self._tensors):
            name, sides = self._text(), self._number("I")
            if sides > MOST_SIDES:
                raise CheckpointError(f"{name[:100]} claims {sides} dimensions.")
            shape = tuple(self._number("Q") for _ in range(sides))[::-1]
            found[name] = shape, self._number("I"), self._number("Q")
        alignment = self.fields.get("general.alignment", 32)
        if not isinstance(alignment, int) or alignment < 1:
            raise CheckpointError(f"Its alignment is {alignment!r}, where a whole number should be.")
        start = -(-self._at // alignment) * alignment
        return {name: self._stored_tensor(name, start, *what) for name, what in found.items()}

    def _stored_tensor(self, name: str, start: int, shape: tuple[int, ...], kind: int, offset: int) -> _StoredTensor:
        try:
            stored_as = GGMLQuantizationType(kind)
        except ValueError:
            raise CheckpointError(f"{name[:100]} is of the type {kind}, which isn't known.") from None
        block, size_of_block = GGML_QUANT_SIZES[stored_as]
        width, count = (shape[-1] if shape else 1), prod(shape)
        size = count // block * size_of_block
        if width % block or start + offset + size > len(self._data):
            raise CheckpointError(f"{name[:100]} doesn't fit into the file: it is cut off, or claims too much.")
        return _StoredTensor(shape, stored_as, start + offset, size)

    def _take(self, size: int) -> int:
        """Skip so many bytes; returns their start."""
        start = self._at
        if size > len(self._data) - start:
            raise CheckpointError("The file is cut off, or its header claims more than there is.")
        self._at += size
        return start

    def _number(self, kind: str) -> Any:
        return struct.unpack_from(f"<{kind}", self._data, self._take(struct.calcsize(f"<{kind}")))[0]

    def _text(self) -> str:
        size = self._number("Q")
        start = self._take(size)
        return self._data[start : start + size].decode("utf-8", "replace")

    def _value(self, kind: int) -> Any:
        if kind == _TEXT:
            return self._text()
        if kind in _NUMBERS:
            return self._number(_NUMBERS[kind])
        if kind != _LIST:
            raise CheckpointError(f"Its header has a value of the type {kind}, which isn't known.")
        of, count = self._number("I"), self._number("Q")
        self._items += count
        if self._items > MOST_ITEMS:
            raise CheckpointError(f"Its header has lists of {self._items:,} items, more than there can be.")
        if of in _NUMBERS:
            each = f"<{_NUMBERS[of]}"
            start = self._take(count * struct.calcsize(each))
            return list(struct.unpack_from(f"<{count}{_NUMBERS[of]}", self._data, start))
        if of != _TEXT or count > (len(self._data) - self._at) // struct.calcsize("<Q"):  # each text has a length
            raise CheckpointError("Its header has a list that can't be read, or claims more than there is.")
        return [self._text() for _ in range(count)]


def open_gguf(path: Path) -> Pretrained:
    """The content of a `.gguf` file without its weights.

    Raises: CheckpointError, saying what would do, for a damaged file or an unknown family.
    """
    file = GgufFile(path)
    architecture = file.fields.get("general.architecture")
    if not isinstance(architecture, str) or architecture not in KINDS:
        raise CheckpointError(f"GGUF files of {str(architecture)[:60]!r} can't be read{_why(architecture)}.")
    if (parts := file.fields.get("split.count", 1)) != 1:
        raise CheckpointError(
            f"It is one of {parts} parts of a model; llama-gguf-split --merge makes one file of them."
        )
    theirs = TheirTokenizer(tokenizer_of(file.fields), named_tokens(file.fields))
    kind, family = KINDS[architecture], family_of(architecture)
    fields = _as_config(file, architecture, kind, theirs.tokenizer.vocab_size)
    config = config_of(family, fields)
    if kind.turns_neighbours:
        config = replace(config, rotary_pairs="neighbours")
    if _FACTORS in file.shapes:
        config = _with_factors(config, file.read(_FACTORS, torch.float32).flatten().tolist())
    check_vocabulary(theirs.tokenizer, config)
    ends = token_ids([file.fields.get(name) for name in _ENDS], config)
    template = file.fields.get("tokenizer.chat_template")
    return Pretrained(path.stem, family, config, Fields(fields), file, theirs, ends, template)


def _why(architecture: object) -> str:
    reasons = {model_type.replace("_", ""): reason for model_type, reason in REASONS.items()}
    reason = reasons.get(str(architecture).replace("-", ""))
    return f": {reason}" if reason else f"; those of {', '.join(KINDS)} can"


def _with_factors(config: ModelConfig, factors: list[float]) -> ModelConfig:
    before = config.rotary_factors or (1.0,) * len(factors)
    try:
        return replace(config, rotary_factors=tuple(a * b for a, b in zip(before, factors, strict=True)))
    except ValueError as error:
        raise CheckpointError(f"Its {_FACTORS} can't be used: {reason(error).rstrip('.')}.") from None


def _whole(told: Mapping[str, Any], name: str) -> int:
    value = told.get(name)
    if not isinstance(value, int) or value < 1:
        raise CheckpointError(f"Its {name} is {str(value)[:60]!r}, where a whole number of 1 or more should be.")
    return value


def _as_config(file: GgufFile, architecture: str, kind: Kind, tokens: int) -> dict[str, Any]:
    """The fields of an equivalent config.json. Raises: CheckpointError for fields that the engine can't follow."""
    prefix = f"{architecture}."
    told = {name.removeprefix(prefix): value for name, value in file.fields.items() if name.startswith(prefix)}
    if told.get("expert_count"):
        raise CheckpointError(f"It can't be read: {EXPERTS}.")
    width, heads = _whole(told, "embedding_length"), _whole(told, "attention.head_count")
    of_head = told.get("attention.key_length") or max(width // heads, 1)
    if (values := told.get("attention.value_length", of_head)) != of_head:
        raise CheckpointError(
            f"Its attention.value_length is {values}, where each head has {of_head}; they must agree."
        )
    found = kind.more(told, file.shapes)
    if kind.is_rotary:
        found |= _rotation(file, told, of_head, has_layer_kinds=architecture == "gemma3")
    for field, name in kind.fields.items():
        found[field] = told.pop(name, None)
    if left := sorted(name for name, value in told.items() if name not in _WITHOUT_EFFECT and value):
        raise CheckpointError(f"It says {left[0][:60]}, which isn't known, and may change what the model computes.")
    vocabulary = file.shapes.get("token_embd.weight", (tokens,))[0]
    found |= {"vocab_size": vocabulary, "tie_word_embeddings": "output.weight" not in file.shapes}
    return {name: _rounded(value) for name, value in found.items() if value is not None}


def _rotation(file: GgufFile, told: dict[str, Any], of_head: int, *, has_layer_kinds: bool) -> dict[str, Any]:
    """config.json's fields for rotary positions; removes those that it reads from `told`."""

    def take(name: str, default: Any = None) -> Any:
        return told.pop(f"rope.{name}", default)

    base, near, dims = take("freq_base", 10_000.0), take("freq_base_swa", 10_000.0), take("dimension_count", of_head)
    kind, former, factor = take("scaling.type"), take("scale_linear"), take("scaling.factor")
    factor, original = factor or former or 1.0, take("scaling.original_context_length")
    scale = take("scaling.attn_factor", 1.0)
    said = {"rope_type": "default", "rope_theta": _rounded(base)}
    if _SHORT in file.shapes and _LONG in file.shapes:
        short, long = (file.read(name, torch.float32).flatten().tolist() for name in (_SHORT, _LONG))
        said |= {"rope_type": "longrope", "short_factor": short, "long_factor": long, "attention_factor": scale}
    elif kind == "yarn":
        said |= {"rope_type": "yarn", "factor": factor, "attention_factor": scale * (1 + 0.1 * math.log(factor))}
        said |= {
            f"beta_{name}": take(f"scaling.yarn_beta_{name}", beta) for name, beta in (("fast", 32.0), ("slow", 1.0))
        }
    elif kind not in (None, "none", "linear") or scale != 1:
        raise CheckpointError(f"Its rotary positions are scaled in a way that isn't known, {str(kind)[:60]!r}.")
    elif factor != 1 and kind != "none":
        said |= {"rope_type": "linear", "factor": factor}
    if said["rope_type"] in ("longrope", "yarn"):
        original = told.get("context_length") if original is None else original
        said["original_max_position_embeddings"] = original
    if dims != of_head:
        said["partial_rotary_factor"] = (dims + 0.5) / of_head  # the product is rounded down
    if has_layer_kinds:
        local = {"rope_type": "default", "rope_theta": _rounded(near)}
        return {"rope_parameters": {"full_attention": said, "sliding_attention": local}}
    outer = {"original_max_position_embeddings": original} if said["rope_type"] == "longrope" else {}
    return {"rope_parameters": said, **outer}


def _rounded(value: Any) -> Any:
    """Undo float32's rounding, so that 1e-5 is 1e-5 again."""
    return float(f"{value:.7g}") if isinstance(value, float) else value
