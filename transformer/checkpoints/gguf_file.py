"""Reads a .gguf file: its header, its configuration, and its weights, dequantised.

The header is read here and not by the package `gguf`, which trusts every count in it; the package dequantises.
Format: magic, version, counts, fields (name, type, value), tensors (name, sizes, type, offset), aligned data.
"""

from __future__ import annotations

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

from .families import FAMILIES
from .file_checks import refuse_pointer
from .folder import CheckpointError, reason
from .gguf_tokenizer import named_tokens, tokenizer_of
from .pretrained import Pretrained, check_vocabulary, config_of, token_ids
from .tokenizer_files import TheirTokenizer

MAGIC, VERSIONS = b"GGUF", (2, 3)
MOST_FIELDS, MOST_TENSORS, MOST_SIDES = 10_000, 100_000, 4
_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_TEXT, _LIST = 8, 9
_NAMES = {
    "token_embd": "embed_tokens",
    "output_norm": "norm",
    "output": "lm_head",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
"""What a module is called in a folder in Hugging Face layout."""
_FIELDS = {
    "hidden_size": "embedding_length",
    "num_hidden_layers": "block_count",
    "num_attention_heads": "attention.head_count",
    "num_key_value_heads": "attention.head_count_kv",
    "head_dim": "attention.key_length",
    "intermediate_size": "feed_forward_length",
    "max_position_embeddings": "context_length",
    "rms_norm_eps": "attention.layer_norm_rms_epsilon",
    "rope_theta": "rope.freq_base",
}
"""What a field of config.json is called here, after the architecture's name."""
_TURNS_NEIGHBOURS = ("llama",)
"""Architectures whose rows of W_Q and W_K stand so that neighbouring dimensions are turned together."""
_WITHOUT_EFFECT = (
    "vocab_size",
    "rope.dimension_count",
    "rope.scaling.type",
    "rope.scaling.original_context_length",
    "rope.scaling.finetuned",
    "attention.value_length",
    "tensor_data_layout",
)
"""Fields that are checked below, or change nothing."""
_FACTORS = ("rope.scaling.factor", "rope.scale_linear")
"""Fields that change nothing if they are 1, or 0."""
_ENDS = tuple(f"tokenizer.ggml.{name}_token_id" for name in ("eos", "eot", "eom"))


@dataclass(frozen=True)
class _StoredTensor:
    """Where a tensor's numbers are."""

    shape: tuple[int, ...]
    kind: GGMLQuantizationType
    start: int
    size: int


class GgufFile:
    """The fields of a file, and its tensors under the names that a folder in Hugging Face layout has.

    Raises: CheckpointError for another kind of file, one that is cut off, or a header that claims more than there is.
    """

    def __init__(self, path: Path) -> None:
        self._bytes = np.memmap(path, dtype=np.uint8, mode="r") if path.stat().st_size else np.empty(0, np.uint8)
        with refuse_pointer(path).open("rb") as file:
            if file.read(4) != MAGIC:
                raise CheckpointError("This is no GGUF file: it doesn't begin with that word.")
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                header = _Header(data)
                self.fields, self._stored = header.fields, header.tensors()

    @cached_property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """The shape of each tensor."""
        return {name: stored.shape for name, stored in self._stored.items()}

    def read(self, name: str) -> Tensor:
        """One tensor, dequantised, float32."""
        stored = self._stored[name]
        data = self._bytes[stored.start : stored.start + stored.size]
        if stored.shape:
            data = data.reshape(*stored.shape[:-1], -1)
        try:
            return torch.from_numpy(np.array(dequantize(data, stored.kind), dtype=np.float32)).reshape(stored.shape)
        except (NotImplementedError, ValueError) as error:
            kind = stored.kind.name
            raise CheckpointError(f"{name} is stored as {kind}, which can't be read ({reason(error)}).") from None


class _Header:
    """Reads what stands before the data, and never more than there is."""

    def __init__(self, data: mmap.mmap) -> None:
        self._data, self._at = data, len(MAGIC)
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
        """Where each tensor is; read once, after the fields."""
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
        return {_their_name(name): self._stored_tensor(name, start, *what) for name, what in found.items()}

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
        """Step over so many bytes; returns where they begin."""
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
        if of in _NUMBERS:
            each = f"<{_NUMBERS[of]}"
            start = self._take(count * struct.calcsize(each))
            return list(struct.unpack_from(f"<{count}{_NUMBERS[of]}", self._data, start))
        if of != _TEXT or count > len(self._data) - self._at:
            raise CheckpointError("Its header has a list that can't be read, or claims more than there is.")
        return [self._text() for _ in range(count)]


def open_gguf(path: Path) -> Pretrained:
    """What is in a `.gguf` file, without its weights.

    Raises: CheckpointError, saying what would do, for a file that is damaged or of a family that isn't known.
    """
    file = GgufFile(path)
    architecture = file.fields.get("general.architecture")
    if architecture not in ("llama", "qwen2"):
        raise CheckpointError(f"GGUF files of {str(architecture)[:60]!r} can't be read; those of llama and qwen2 can.")
    if (parts := file.fields.get("split.count", 1)) != 1:
        raise CheckpointError(
            f"It is one of {parts} parts of a model; llama-gguf-split --merge makes one file of them."
        )
    theirs = TheirTokenizer(tokenizer_of(file.fields), named_tokens(file.fields))
    config = config_of(FAMILIES[architecture], _as_config(file, architecture, theirs.tokenizer.vocab_size))
    if architecture in _TURNS_NEIGHBOURS:
        config = replace(config, rotary_pairs="neighbours")
    check_vocabulary(theirs.tokenizer, config)
    ends = token_ids([file.fields.get(name) for name in _ENDS], config)
    template = file.fields.get("tokenizer.chat_template")
    return Pretrained(path.stem, FAMILIES[architecture], config, file, theirs, ends, template)


def _as_config(file: GgufFile, architecture: str, tokens: int) -> dict[str, Any]:
    """What config.json would say. Raises: CheckpointError for what it couldn't say, and the engine can't do."""
    prefix = f"{architecture}."
    told = {name.removeprefix(prefix): value for name, value in file.fields.items() if name.startswith(prefix)}
    found = {field: told.pop(name, None) for field, name in _FIELDS.items()}
    scaled = any(told.pop(name, 1) not in (0, 1) for name in _FACTORS)
    if scaled or told.get("rope.scaling.type", "none") != "none" or "rope_freqs.weight" in file.shapes:
        raise CheckpointError("Its rotary positions are scaled; only plain ones are known.")
    width, heads = found["hidden_size"], found["num_attention_heads"]
    of_head = found["head_dim"] or (
        width // heads if isinstance(width, int) and isinstance(heads, int) and heads else 0
    )
    for name in ("rope.dimension_count", "attention.value_length"):
        if told.get(name, of_head) != of_head:
            raise CheckpointError(f"Its {name} is {told[name]}, where each head has {of_head}; that isn't known.")
    if left := sorted(name for name, value in told.items() if name not in _WITHOUT_EFFECT and value):
        raise CheckpointError(f"It says {left[0][:60]}, which isn't known, and may change what the model computes.")
    for field in ("rms_norm_eps", "rope_theta"):
        if isinstance(found[field], float):
            found[field] = float(f"{found[field]:.7g}")  # 1e-5, stored in half the digits
    vocabulary = file.shapes.get("embed_tokens.weight", (tokens,))[0]
    return {**found, "vocab_size": vocabulary, "tie_word_embeddings": "lm_head.weight" not in file.shapes}


def _their_name(name: str) -> str:
    """`blk.3.attn_q.weight` as `layers.3.self_attn.q_proj.weight`; what isn't known stays as it is."""
    *block, module, kind = name.split(".") if name.count(".") else ("", name, "")
    layer = f"layers.{block[1]}." if block[:1] == ["blk"] and len(block) == 2 else ""
    return f"{layer}{_NAMES[module]}.{kind}" if module in _NAMES and (layer or not block) else name
