"""The key–value cache: keys, values and the encoder's output, kept between generation steps.

Shapes: batch, pos (or key, source), head, d_head, d_model.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from ..config import ModelConfig
from .masks import padding_or_none

SPARE = 32
"""Spare positions to allocate, so that appending rarely copies the cache."""


class _Room:
    """A buffer that appends along the second dimension without copying each time."""

    def __init__(self) -> None:
        self._store = self._grown = torch.empty(0, 0)

    def joined(self, before: Tensor, new: Tensor) -> Tensor:
        """`torch.cat((before, new), 1)`. Tensors returned earlier keep their values."""
        begin, end = before.shape[1], before.shape[1] + new.shape[1]
        if before.requires_grad or new.requires_grad:  # autograd needs the old tensors unchanged
            return torch.cat((before, new), 1)
        if before is not self._grown or end > self._store.shape[1] or _is_foreign(self._store):
            self._store = new.new_empty(new.shape[0], end + SPARE, *new.shape[2:])
            self._store[:, :begin] = before
        self._store.narrow(1, begin, end - begin).copy_(new)
        self._grown = self._store.narrow(1, 0, end)
        return self._grown


def _is_foreign(tensor: Tensor) -> bool:
    """Whether the buffer is an inference tensor outside inference mode: PyTorch forbids writing into it there."""
    return tensor.is_inference() and not torch.is_inference_mode_enabled()


@dataclass(eq=False)
class KeyValues:
    """The keys and values one attention has computed so far."""

    tensors: tuple[Tensor, ...] = ()
    """Keys, then values, (batch, key, head, d_head) each; empty before the first."""
    _rooms: tuple[_Room, _Room] = field(default_factory=lambda: (_Room(), _Room()), repr=False)

    def append(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Add the newest positions; returns all keys and all values."""
        if self.tensors:
            (of_keys, of_values), (old_keys, old_values) = self._rooms, self.tensors
            keys, values = of_keys.joined(old_keys, keys), of_values.joined(old_values, values)
        self.tensors = keys, values
        return keys, values

    def known(self) -> tuple[Tensor, ...]:
        """All keys and all values so far, for a pass that adds none."""
        self.tensors = tuple(each.clone() if _is_foreign(each) else each for each in self.tensors)
        return self.tensors

    def clear(self) -> None:
        """Drop all keys and values."""
        self.tensors = ()
        self._rooms = (_Room(), _Room())


@dataclass(eq=False)
class KeyValueCache:
    """Keys and values of a batch of texts, so that the next token needs a pass over that token alone."""

    blocks: list[KeyValues] = field(default_factory=list)
    """Each block's keys and values of the tokens so far."""
    cross: list[KeyValues] = field(default_factory=list)
    """Each decoder block's keys and values of the memory."""
    memory: Tensor | None = None
    """(batch, source, d_model): the encoder's output."""
    memory_padding: Tensor | None = None
    """(batch, 1, 1, source): False at padding; None if nothing is padded."""
    tokens: Tensor | None = None
    """(batch, pos): the tokens so far, to find padding in."""

    @classmethod
    def for_model(cls, config: ModelConfig) -> KeyValueCache:
        """An empty cache with a place for each block."""
        layers = range(config.n_layers)
        return cls([KeyValues() for _ in layers], [KeyValues() for _ in layers])

    @property
    def length(self) -> int:
        """Positions seen so far."""
        return 0 if self.tokens is None else self.tokens.shape[1]

    def padding(self, tokens: Tensor, pad_token_id: int | None) -> Tensor | None:
        """The padding mask, (batch, 1, 1, key), of the tokens so far and those that follow; None if none is padded."""
        return None if pad_token_id is None else padding_or_none(self._with(tokens), pad_token_id)

    def forget_tokens(self) -> None:
        """Drop the target's keys and values and keep the source's, so that another target can follow."""
        self.tokens = None
        for each in self.blocks:
            each.clear()

    def extend(self, tokens: Tensor) -> None:
        """Record the tokens whose keys and values were just appended."""
        self.tokens = self._with(tokens)

    def _with(self, tokens: Tensor) -> Tensor:
        return tokens if self.tokens is None else torch.cat((self.tokens, tokens), 1)
