"""A key–value cache of several texts of different lengths, for one forward pass over all of them.

Shapes: text (a batch's rows), column, pos, kv_head, d_head, source, d_model.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from ..config import ModelConfig
from ..model.caches import KeyValueCache, KeyValues

NO_TOKEN = -1
"""Fills the columns before a shorter text."""
SPARE = 32
"""The fewest free columns after allocating memory."""


class BatchedCache:
    """Replaces `KeyValueCache` in a pass over one new token of each text.

    Texts are right-aligned, so that their newest tokens share a column; shorter texts have padding on the left.

        text 0   ·  ·  a  a  a  a │         `end` is the column that the next tokens' keys and values come to
        text 1   ·  ·  ·  ·  b  b │
        text 2   c  c  c  c  c  c │

    So each layer has one tensor of keys and one of values, and a step writes one column of them.
    """

    def __init__(self, config: ModelConfig) -> None:
        layers = range(config.n_layers)
        self.blocks = [_Columns(self) for _ in layers]
        """Each block's keys and values."""
        self.cross: list[KeyValues] = [KeyValues() for _ in layers]
        """Each decoder block's keys and values of the memory, shorter ones padded on the right."""
        self.memory: Tensor | None = None
        """(text, source, d_model), padded in the same way."""
        self.memory_padding: Tensor | None = None
        """(text, 1, 1, source): False at padding; None if nothing is padded."""
        self.texts: list[KeyValueCache] = []
        """The texts' own caches, which are empty while their keys and values are here."""
        self.end = 0
        self._lengths: list[int] = []
        self._tokens = torch.empty(0, 0, dtype=torch.int64)  # (text, column)

    @property
    def length(self) -> Tensor:
        """(text,): positions of each text so far."""
        return torch.tensor(self._lengths, device=self._tokens.device)

    @property
    def begin(self) -> int:
        """The first column of the longest text."""
        return self.end - max(self._lengths)

    def padding(self, tokens: Tensor, pad_token_id: int | None) -> Tensor | None:
        """As in `KeyValueCache`, including the padding before shorter texts. tokens: (text, 1)."""
        all_tokens = torch.cat((self._tokens[: len(self.texts), self.begin : self.end], tokens), 1)
        seen = all_tokens != NO_TOKEN
        if pad_token_id is not None:
            seen &= all_tokens != pad_token_id
        return None if seen.all() else seen[:, None, None, :]

    def extend(self, tokens: Tensor) -> None:
        """Record the tokens, (text, 1), whose keys and values were added. Before this call the cache is unchanged."""
        self._tokens[: len(self.texts), self.end] = tokens[:, 0]
        self._lengths = [length + 1 for length in self._lengths]
        self.end += 1
        if self.end == self._tokens.shape[1]:
            self._reserve(len(self.texts), max(self._lengths))

    def join(self, past: KeyValueCache) -> None:
        """Take over a text's cache, of at least one token, as the last row of the batch."""
        row, length, tokens = len(self.texts), past.length, past.tokens
        assert tokens is not None
        if not self.texts or row == len(self._tokens) or length > self.end:
            self._reserve(row + 1, max([length, *self._lengths]), past)
        self._tokens[row, : self.end - length] = NO_TOKEN
        self._tokens[row, self.end - length : self.end] = tokens
        for columns, own in zip(self.blocks, past.blocks, strict=True):
            columns.put(row, self.end - length, own)
            own.clear()
        self.texts.append(past)
        self._lengths.append(length)
        self._read_sources()

    def leave(self, past: KeyValueCache) -> None:
        """Return a text's keys and values to its own cache; the last row takes its place."""
        row, last = self.texts.index(past), len(self.texts) - 1
        first = self.end - self._lengths[row]
        past.tokens = self._tokens[row, first : self.end].clone()[None]
        for columns, own in zip(self.blocks, past.blocks, strict=True):
            own.tensors = columns.take(row, first)
            columns.move(last, row)
        self._tokens[row] = self._tokens[last]
        self.texts[row], self._lengths[row] = self.texts[last], self._lengths[last]
        del self.texts[last], self._lengths[last]
        if self.texts:
            self._read_sources()
        else:  # free the memory
            self.end, self._tokens = 0, self._tokens[:0, :0].clone()
            self.memory = self.memory_padding = None
            for cache in (*self.blocks, *self.cross):
                cache.clear()

    def _reserve(self, rows: int, longest: int, like: KeyValueCache | None = None) -> None:
        """Allocate memory for more texts and columns, and move the longest text to the first column.

        like: a cache whose keys and values have the right shape.
        """
        rows, columns = rows + rows // 8 + 1, longest + max(SPARE, longest // 8)
        kept = slice(self.end - min(longest, self.end), self.end)
        device = self._tokens.device if like is None or like.tokens is None else like.tokens.device
        tokens = torch.full((rows, columns), NO_TOKEN, device=device)
        if many := len(self.texts):
            tokens[:many, longest - (kept.stop - kept.start) : longest] = self._tokens[:many, kept]
        for number, stored in enumerate(self.blocks):
            stored.reserve(rows, columns, longest, kept, like.blocks[number].tensors if like else ())
        self._tokens, self.end = tokens, longest

    def _read_sources(self) -> None:
        """Combine the encoder's outputs for all texts."""
        memories = [past.memory for past in self.texts if past.memory is not None]
        if not memories:
            return  # there is no encoder
        self.memory = _padded(memories)
        seen = torch.zeros(self.memory.shape[:2], dtype=torch.bool, device=self.memory.device)
        for row, (past, memory) in enumerate(zip(self.texts, memories, strict=True)):
            own = past.memory_padding
            seen[row, : memory.shape[1]] = True if own is None else own[0, 0, 0]
        self.memory_padding = None if seen.all() else seen[:, None, None, :]
        for layer, shared in enumerate(self.cross):
            of_texts = [past.cross[layer].tensors for past in self.texts]
            shared.tensors = tuple(_padded(tensors) for tensors in zip(*of_texts, strict=True))


class _Columns:
    """One attention's keys and values: two tensors (text, kv_head, column, d_head), which kernels read without a copy.

    Padding gets the weight 0, so it must be finite: it is 0, or another text's old numbers.
    """

    def __init__(self, shared: BatchedCache) -> None:
        self._shared = shared
        self._stored: tuple[Tensor, ...] = ()

    def clear(self) -> None:
        """Drop all keys and values."""
        self._stored = ()

    def append(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Add a column, (text, 1, kv_head, d_head); returns all, (text, column, kv_head, d_head), padding included."""
        shared, rows = self._shared, len(keys)
        for stored, added in zip(self._stored, (keys, values), strict=True):
            stored[:rows, :, shared.end] = added[:, 0]
        all_keys, all_values = (stored[:rows, :, shared.begin : shared.end + 1] for stored in self._stored)
        return all_keys.transpose(1, 2), all_values.transpose(1, 2)

    def put(self, row: int, first: int, own: KeyValues) -> None:
        """Copy one text's keys and values to the columns from `first` to the end."""
        for stored, tensor in zip(self._stored, own.tensors, strict=True):
            stored[row, :, first : self._shared.end] = tensor[0].transpose(0, 1)

    def take(self, row: int, first: int) -> tuple[Tensor, ...]:
        """A copy of one text's keys and values, (1, pos, kv_head, d_head) each."""
        return tuple(stored[row, :, first : self._shared.end].transpose(0, 1).clone()[None] for stored in self._stored)

    def move(self, row: int, to: int) -> None:
        """Copy a row over another one."""
        if row != to:
            columns = slice(self._shared.begin, self._shared.end)
            for stored in self._stored:
                stored[to, :, columns] = stored[row, :, columns]

    def reserve(self, rows: int, columns: int, end: int, kept: slice, like: Sequence[Tensor]) -> None:
        """Move to tensors of so many rows and columns; the kept columns end before column `end`."""
        shape_is_of = self._stored or [tensor.transpose(1, 2) for tensor in like]
        storage = tuple(tensor.new_zeros(rows, tensor.shape[1], columns, tensor.shape[3]) for tensor in shape_is_of)
        many, first = len(self._shared.texts), end - (kept.stop - kept.start)
        for new, old in zip(storage, self._stored, strict=False):
            new[:many, :, first:end] = old[:many, :, kept]
        self._stored = storage


def _padded(tensors: Sequence[Tensor]) -> Tensor:
    """Tensors (1, source, …) of unequal length as one, (text, source, …), zeros behind the shorter ones."""
    return pad_sequence([tensor[0] for tensor in tensors], batch_first=True)
