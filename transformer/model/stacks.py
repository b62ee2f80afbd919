"""A stack of blocks on top of embeddings and positions: all of a transformer but the way back to the vocabulary.

Shapes: batch, pos (source or target), d_model.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

from ..config import ModelConfig
from ..hooks import HookPoint
from .blocks import Block, DecoderBlock
from .caches import KeyValueCache
from .dropout import Dropout
from .layers import norm_layer
from .masks import padding_mask
from .positions import sinusoidal_rows


class Stack(nn.Module):
    """Embeddings plus positions, blocks one after another, and under pre-norm a last layer norm.

    shares_embedding: the token table is somebody else's, who hands it to `embed_tokens`.
    """

    def __init__(
        self, config: ModelConfig, n_layers: int, make_block: Callable[[], nn.Module], *, shares_embedding: bool = False
    ) -> None:
        super().__init__()
        self.config = config
        if not shares_embedding:
            self.embed = nn.Embedding(config.vocab_size, config.d_model)
        self.hook_embed = HookPoint()
        if config.positions == "learned":
            self.pos_embed = nn.Embedding(config.context_length, config.d_model)
        if config.positions in ("learned", "sinusoidal"):
            self.hook_pos_embed = HookPoint()
        self.dropout = Dropout(config.dropout)
        self.blocks = nn.ModuleList(make_block() for _ in range(n_layers))
        self.ln_final = norm_layer(config) if config.norm == "pre" else nn.Identity()

    def embed_tokens(self, tokens: Tensor, start: int = 0, table: nn.Embedding | None = None) -> Tensor:
        """Embeddings plus positions (§3.4, §3.5): (batch, pos) → (batch, pos, d_model).

        start: the position of the first token. table: the token table, for a stack that has none of its own.
        """
        self.check_tokens(tokens, start)
        x = (table or self.embed)(tokens)
        if self.config.scale_embeddings:
            x = x * math.sqrt(self.config.d_model)
        x = self.hook_embed(x)
        if self.config.positions in ("learned", "sinusoidal"):
            rows = self.position_rows(start, tokens.shape[1], x.device).expand_as(x)
            if self.hook_pos_embed.is_watched:
                rows = rows.clone()  # the table itself is shared, or changes as the model learns
            x = x + self.hook_pos_embed(rows)
        return self.dropout(x)

    def position_rows(self, start: int, pos: int, device: torch.device | str = "cpu") -> Tensor:
        """The rows added at positions start … start+pos−1, (pos, d_model), of a learned or sinusoidal table."""
        if self.config.positions == "learned":
            return self.pos_embed.weight[start : start + pos]
        return sinusoidal_rows(start, pos, self.config.d_model, torch.device(device))

    def padding(self, tokens: Tensor, past: KeyValueCache | None = None) -> Tensor | None:
        """The padding mask of all tokens so far, (batch, 1, 1, key), or None where nothing is padded."""
        pad = self.config.pad_token_id
        tokens = past.with_tokens(tokens) if past else tokens
        if pad is None or not (tokens == pad).any():
            return None
        return padding_mask(tokens, pad)

    def check_tokens(self, tokens: Tensor, start: int = 0) -> None:
        """Raise ValueError, with what would do, for tokens that this model can't read."""
        if tokens.dim() != 2 or tokens.dtype not in (torch.int64, torch.int32):
            raise ValueError(
                f"Tokens must be whole numbers (int64 or int32) of shape (batch, pos), not {tokens.dtype} "
                f"{tuple(tokens.shape)}."
            )
        if start + tokens.shape[1] > self.config.context_length:
            raise ValueError(
                f"{start + tokens.shape[1]} tokens are more than this model's context of "
                f"{self.config.context_length}; give it the last {self.config.context_length}."
            )
        on_cpu = tokens.device.type == "cpu"  # a GPU would have to be waited for
        if on_cpu and tokens.numel() and (tokens.min() < 0 or tokens.max() >= self.config.vocab_size):
            raise ValueError(f"Token ids must lie between 0 and {self.config.vocab_size - 1} for this model.")


class Encoder(Stack):
    """A stack of blocks in which every token sees every other (Vaswani et al. 2017, §3.1)."""

    def __init__(self, config: ModelConfig) -> None:
        make_block = partial(Block, config, causal=False)
        super().__init__(config, config.n_encoder_layers, make_block, shares_embedding=config.tie_embeddings)

    def forward(self, tokens: Tensor, table: nn.Embedding | None = None) -> Tensor:
        """tokens: (batch, source) → memory: (batch, source, d_model)."""
        padding = self.padding(tokens)
        x = self.embed_tokens(tokens, table=table)
        for block in self.blocks:
            x = block(x, padding)
        return self.ln_final(x)


class Decoder(Stack):
    """A stack of causal blocks that also attend to the encoder's memory (Vaswani et al. 2017, §3.1)."""

    def __init__(self, config: ModelConfig) -> None:
        make_block = partial(DecoderBlock, config)
        super().__init__(config, config.n_layers, make_block, shares_embedding=config.tie_embeddings)

    def forward(
        self,
        tokens: Tensor,
        memory: Tensor,
        memory_padding: Tensor | None = None,
        past: KeyValueCache | None = None,
        table: nn.Embedding | None = None,
    ) -> Tensor:
        """tokens: (batch, target), memory: (batch, source, d_model) → (batch, target, d_model)."""
        start = past.length if past else 0
        x = self.embed_tokens(tokens, start, table)
        padding = self.padding(tokens, past)
        for layer, block in enumerate(self.blocks):
            x = block(
                x,
                memory,
                padding=padding,
                memory_padding=memory_padding,
                past=past.blocks[layer] if past else None,
                past_memory=past.cross[layer] if past else None,
                start=start,
            )
        if past:
            past.tokens = past.with_tokens(tokens)
        return self.ln_final(x)
