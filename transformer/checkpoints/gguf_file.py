"""A .gguf file: its header, its weights dequantised, and a tokenizer built from what it says of one.

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
import tokenizers
import torch
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType
from gguf.quants import dequantize
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, processors
from torch import Tensor

from ..data.tokenizers import Tokenizer
from .families import FAMILIES
from .folder import CheckpointError, reason
from .pretrained import Pretrained, check_vocabulary, config_of

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
_WORDS = {
    "gpt-2": None,
    "smollm": None,
    "qwen2": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+",
    "llama-bpe": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+",
}
"""How a text is cut before pieces are joined, by what the file calls it; None for GPT-2's own way."""


@dataclass(frozen=True)
class _Place:
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
        with path.open("rb") as file:
            if file.read(4) != MAGIC:
                raise CheckpointError("This is no GGUF file: it doesn't begin with that word.")
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                header = _Header(data)
                self.fields, self._places = header.fields, header.tensors()

    @cached_property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each tensor."""
        return {name: place.shape for name, place in self._places.items()}

    def read(self, name: str) -> Tensor:
        """One tensor, dequantised, float32."""
        place = self._places[name]
        data = self._bytes[place.start : place.start + place.size]
        if place.shape:
            data = data.reshape(*place.shape[:-1], -1)
        try:
            return torch.from_numpy(np.array(dequantize(data, place.kind), dtype=np.float32)).reshape(place.shape)
        except (NotImplementedError, ValueError) as error:
            kind = place.kind.name
            raise CheckpointError(f"{name} is stored as {kind}, which can't be read ({reason(error)}).") from None


class _Header:
    """Reads what stands before the data, and never more than there is."""

    def __init__(self, data: mmap.mmap) -> None:
        self._data, self._at = data, len(MAGIC)
        if (version := self._number("I")) not in VERSIONS:
            raise CheckpointError(f"Its version is {version}; versions {VERSIONS[0]} and {VERSIONS[1]} can be read.")
        self._tensors, fields = self._number("Q"), self._number("Q")
        if fields > MOST_FIELDS or self._tensors > MOST_TENSORS:
            raise CheckpointError(f"It claims {fields:,} fields and {self._tensors:,} tensors, more than there can be.")
        self.fields: dict[str, Any] = {}
        for _ in range(fields):
            name = self._text()
            self.fields[name] = self._value(self._number("I"))

    def tensors(self) -> dict[str, _Place]:
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
        return {_their_name(name): self._place(name, start, *what) for name, what in found.items()}

    def _place(self, name: str, start: int, shape: tuple[int, ...], kind: int, offset: int) -> _Place:
        try:
            stored_as = GGMLQuantizationType(kind)
        except ValueError:
            raise CheckpointError(f"{name[:100]} is of the type {kind}, which isn't known.") from None
        block, size_of_block = GGML_QUANT_SIZES[stored_as]
        width, count = (shape[-1] if shape else 1), prod(shape)
        size = count // block * size_of_block
        if width % block or start + offset + size > len(self._data):
            raise CheckpointError(f"{name[:100]} doesn't fit into the file: it is cut off, or claims too much.")
        return _Place(shape, stored_as, start + offset, size)

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
    tokenizer = tokenizer_of(file.fields)
    config = config_of(FAMILIES[architecture], _as_config(file, architecture, tokenizer.vocab_size))
    if architecture in _TURNS_NEIGHBOURS:
        config = replace(config, rotary_pairs="neighbours")
    check_vocabulary(tokenizer, config)
    end = file.fields.get("tokenizer.ggml.eos_token_id")
    end = end if isinstance(end, int) and 0 <= end < config.vocab_size else None
    return Pretrained(
        path.stem, FAMILIES[architecture], config, file, tokenizer, end, file.fields.get("tokenizer.chat_template")
    )


def _as_config(file: GgufFile, architecture: str, tokens: int) -> dict[str, Any]:
    """What config.json would say."""
    if file.fields.get(f"{architecture}.rope.scaling.type", "none") != "none" or "rope_freqs.weight" in file.shapes:
        raise CheckpointError("Its rotary positions are scaled; only plain ones are known.")
    found = {field: file.fields.get(f"{architecture}.{name}") for field, name in _FIELDS.items()}
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


def tokenizer_of(fields: Mapping[str, Any]) -> Tokenizer:
    """A byte-level BPE tokenizer from a file's fields.

    Raises: CheckpointError for a tokenizer of another kind, or one that doesn't hold together.
    """
    kind, cut = fields.get("tokenizer.ggml.model"), fields.get("tokenizer.ggml.pre", "gpt-2")
    if kind != "gpt2" or cut not in _WORDS:
        raise CheckpointError(
            f"Its tokenizer ({str(kind)[:40]}, {str(cut)[:40]}) can't be built; byte-level BPE (gpt2) can, of the "
            f"kinds {', '.join(_WORDS)}."
        )
    tokens, merges = (fields.get(f"tokenizer.ggml.{name}") for name in ("tokens", "merges"))
    kinds = fields.get("tokenizer.ggml.token_type", [1] * len(tokens or ()))
    if not all(isinstance(each, list) for each in (tokens, merges, kinds)) or len(kinds) != len(tokens):
        raise CheckpointError("Its tokenizer lacks tokens or merges.")
    try:
        return Tokenizer(_byte_level(tokens, merges, kinds, cut, _first(fields, tokens)))
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # the library panics, below Exception, on some that are damaged
        raise CheckpointError(f"Its tokenizer can't be built ({reason(Exception(str(error)))}).") from None


def _byte_level(
    tokens: list[str], merges: list[str], kinds: list[int], cut: str, first: tuple[str, int] | None
) -> tokenizers.Tokenizer:
    """kinds: 3 for a token of the model's own, 4 for one that is whole in any text. first: what each begins with."""
    vocabulary = {token: place for place, token in enumerate(tokens)}
    if len(vocabulary) < len(tokens):
        raise ValueError("it names a token twice")
    backend = tokenizers.Tokenizer(models.BPE(vocabulary, [tuple(merge.split(" ", 1)) for merge in merges]))
    words = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=_WORDS[cut] is None)
    steps: list[pre_tokenizers.PreTokenizer] = [words]
    if cut == "smollm":
        steps = [pre_tokenizers.Digits(individual_digits=True), words]
    elif _WORDS[cut]:
        steps = [pre_tokenizers.Split(Regex(_WORDS[cut]), "isolated"), words]
    if cut == "qwen2":
        backend.normalizer = normalizers.NFC()
    backend.pre_tokenizer = pre_tokenizers.Sequence(steps)
    backend.decoder = decoders.ByteLevel()
    for kind, is_special in ((3, True), (4, False)):
        added = [
            AddedToken(token, special=is_special, normalized=False)
            for token, own in zip(tokens, kinds, strict=True)
            if own == kind
        ]
        (backend.add_special_tokens if is_special else backend.add_tokens)(added)
    if first:
        backend.post_processor = processors.TemplateProcessing(single=[first[0], "$A"], special_tokens=[first])
    return backend


def _first(fields: Mapping[str, Any], tokens: list[str]) -> tuple[str, int] | None:
    """The token that every text begins with, where the file wants one."""
    place = fields.get("tokenizer.ggml.bos_token_id")
    wanted = fields.get("tokenizer.ggml.add_bos_token", False) is True and isinstance(place, int)
    return (tokens[place], place) if wanted and 0 <= place < len(tokens) else None
