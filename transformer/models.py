"""Whole models: embeddings and positions, a stack of blocks, the way back to the vocabulary.

Shapes: batch, pos, d_model, vocab.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from .attention import KeyValues
from .config import ModelConfig
from .hooks import HookedModule, HookPoint
from .layers import Block, norm_layer
from .masks import padding_mask
from .positions import sinusoidal_rows
from .registry import HookInfo, hook_points


@dataclass
class KeyValueCache:
    """What a model that writes token by token need not compute again: each block's keys and values."""

    blocks: list[KeyValues] = field(default_factory=list)
    length: int = 0
    """Positions seen so far."""

    @classmethod
    def for_model(cls, config: ModelConfig) -> KeyValueCache:
        """An empty cache with a place for each block."""
        return cls([KeyValues() for _ in range(config.n_layers)])


class TransformerModel(HookedModule):
    """What all architectures share: a configuration, embeddings with positions, and hook points."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.embed = nn.Embedding(config.vocab_size, config.d_model)
        self.hook_embed = HookPoint()
        if config.positions == "learned":
            self.pos_embed = nn.Embedding(config.context_length, config.d_model)
        if config.positions in ("learned", "sinusoidal"):
            self.hook_pos_embed = HookPoint()
        self.dropout = nn.Dropout(config.dropout)
        self.unembed = nn.Linear(config.d_model, config.vocab_size, bias=config.unembed_bias)
        if config.tie_embeddings:
            self.unembed.weight = self.embed.weight

    def embed_tokens(self, tokens: Tensor, start: int = 0) -> Tensor:
        """Embeddings plus positions (§3.4, §3.5): (batch, pos) → (batch, pos, d_model)."""
        self.check_tokens(tokens, start)
        x = self.embed(tokens)
        if self.config.scale_embeddings:
            x = x * math.sqrt(self.config.d_model)
        x = self.hook_embed(x)
        if self.config.positions in ("learned", "sinusoidal"):
            rows = self.position_rows(start, tokens.shape[1]).expand_as(x)
            if self.hook_pos_embed.is_watched:
                rows = rows.clone()  # the table itself is shared, or changes as the model learns
            x = x + self.hook_pos_embed(rows)
        return self.dropout(x)

    def position_rows(self, start: int, pos: int) -> Tensor:
        """The rows added at positions start … start+pos−1, (pos, d_model), of a learned or sinusoidal table."""
        if self.config.positions == "learned":
            return self.pos_embed.weight[start : start + pos]
        return sinusoidal_rows(start, pos, self.config.d_model, self.embed.weight.device)

    def padding(self, tokens: Tensor) -> Tensor | None:
        """The padding mask, (batch, 1, 1, key), or None where nothing is padded."""
        pad = self.config.pad_token_id
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

    def hook_points(self) -> dict[str, HookInfo]:
        """This model's part of the register of hook points, in the order of the forward pass."""
        return hook_points(self.config)

    def hook_names(self) -> list[str]:
        """The names of all hook points, in the order of the forward pass."""
        return list(self.hook_points())

    def parameter_count(self) -> int:
        """How many numbers training adjusts; a tied table counts once."""
        return sum(parameter.numel() for parameter in self.parameters())


class DecoderOnly(TransformerModel):
    """A stack of causal blocks that predicts each next token: GPT's shape (Radford et al. 2018)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.blocks = nn.ModuleList(Block(config, causal=True) for _ in range(config.n_layers))
        self.ln_final = norm_layer(config) if config.norm == "pre" else nn.Identity()
        self.name_hook_points()

    def forward(self, tokens: Tensor, past: KeyValueCache | None = None) -> Tensor:
        """Logits for the token after each position.

        tokens: (batch, pos), integer, ids below vocab_size.
        past: what came before these tokens, and is extended by them; None for nothing. Padding can't be cached.
        Returns: (batch, pos, vocab).
        Raises: ValueError for tokens of another shape, too many of them, or unknown ids.
        """
        start = past.length if past else 0
        padding = None if past else self.padding(tokens)
        x = self.embed_tokens(tokens, start)
        for layer, block in enumerate(self.blocks):
            x = block(x, padding, past.blocks[layer] if past else None, start)
        if past:
            past.length += tokens.shape[1]
        return self.unembed(self.ln_final(x))


def check_architecture(config: ModelConfig) -> None:
    """Raise ValueError for an architecture that this version describes but can't build."""
    if config.architecture != "decoder-only":
        raise ValueError(f"architecture is {config.architecture!r}; this version builds \"decoder-only\" models alone.")


def build_model(config: ModelConfig, seed: int | None = None) -> DecoderOnly:
    """A freshly initialised model; with a seed always the same one.

    Weights are drawn as "small init" draws them (Nguyen & Salazar 2019, §2.2), whose spread suits narrow models as
    well as wide ones, and what writes to the residual stream starts 1 / √(2 · n_layers) smaller (GPT-2, §2.3).
    Raises: ValueError for an architecture that can't be built.
    """
    check_architecture(config)
    model = DecoderOnly(config)
    generator = torch.Generator()
    generator.seed() if seed is None else generator.manual_seed(seed)
    _initialise(model, generator)
    return model


def _initialise(model: TransformerModel, generator: torch.Generator) -> None:
    config = model.config
    spread = math.sqrt(2 / (5 * config.d_model))
    embedding_spread = config.d_model**-0.5 if config.scale_embeddings else spread
    quieter = 1 / math.sqrt(max(2 * config.n_layers, 1))
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            nn.init.zeros_(parameter)
        elif "embed" in name.split(".")[0]:
            nn.init.normal_(parameter, std=embedding_spread, generator=generator)
        elif parameter.dim() == 2:
            writes_to_stream = name.endswith(("attn.out.weight", "mlp.down.weight"))
            nn.init.normal_(parameter, std=spread * (quieter if writes_to_stream else 1), generator=generator)
