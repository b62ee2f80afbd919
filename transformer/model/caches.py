"""What a model that writes token by token need not compute again: keys, values, the encoder's memory.

Shapes: batch, pos (or key, source), head, d_head, d_model.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from ..config import ModelConfig


@dataclass
class KeyValues:
    """The keys and values one attention has computed so far, (batch, key, head, d_head) each."""

    keys: Tensor | None = None
    values: Tensor | None = None

    def append(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Add the newest positions; returns all keys and all values."""
        if self.keys is not None:
            keys, values = torch.cat((self.keys, keys), 1), torch.cat((self.values, values), 1)
        self.keys, self.values = keys, values
        return keys, values


@dataclass
class KeyValueCache:
    """What a model that writes token by token need not compute again."""

    blocks: list[KeyValues] = field(default_factory=list)
    """Each block's keys and values of the tokens so far."""
    cross: list[KeyValues] = field(default_factory=list)
    """Each decoder block's keys and values of the memory."""
    memory: Tensor | None = None
    """(batch, source, d_model): what the encoder made of the source."""
    tokens: Tensor | None = None
    """(batch, pos): the tokens so far, by which padding among them is known."""

    @classmethod
    def for_model(cls, config: ModelConfig) -> KeyValueCache:
        """An empty cache with a place for each block."""
        layers = range(config.n_layers)
        return cls([KeyValues() for _ in layers], [KeyValues() for _ in layers])

    @property
    def length(self) -> int:
        """Positions seen so far."""
        return 0 if self.tokens is None else self.tokens.shape[1]

    def with_tokens(self, tokens: Tensor) -> Tensor:
        """(batch, pos): the tokens so far and those that follow."""
        return tokens if self.tokens is None else torch.cat((self.tokens, tokens), 1)
