"""Complete models: GPT's decoder, and the encoder–decoder of the paper.

Shapes: batch, pos (or source, target), d_model, vocab.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ..config import ModelConfig
from ..hooks import HookedModule
from .blocks import make_block
from .caches import KeyValueCache
from .initialization import initialise, skip_init
from .registry import HookInfo, hook_points
from .stacks import Decoder, Encoder, Stack


class Transformer(HookedModule):
    """What all architectures share: a configuration, hook points, and the registry that describes them."""

    config: ModelConfig

    @property
    def device(self) -> torch.device:
        """Where the weights are, and tokens must be."""
        return next(self.parameters()).device

    def hook_points(self) -> dict[str, HookInfo]:
        """This model's part of the registry of hook points, in the order of the forward pass."""
        return hook_points(self.config)

    def hook_names(self) -> list[str]:
        """The names of all hook points, in the order of the forward pass."""
        return list(self.hook_points())

    def parameter_count(self) -> int:
        """How many numbers training adjusts; a tied table counts once."""
        return sum(parameter.numel() for parameter in self.parameters())


class DecoderOnly(Transformer, Stack):
    """A stack of causal blocks that predicts each next token: GPT's shape (Radford et al. 2018)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config, (make_block(config, causal=True, layer=layer) for layer in range(config.n_layers)))
        self.unembed = make_unembedding(config, self.embed)
        self.name_hook_points()

    def forward(self, tokens: Tensor, past: KeyValueCache | None = None, *, newest: bool = False) -> Tensor:
        """Logits for the token after each position.

        tokens: (batch, pos), integer, ids below vocab_size.
        past: what came before these tokens, and is extended by them; None for nothing.
        newest: the logits after the last position alone, (batch, 1, vocab): a large vocabulary's take long.
        Returns: (batch, pos, vocab).
        Raises: ValueError for tokens of another shape, too many of them, or unknown ids.
        """
        x = self.stream(tokens, past)
        return self.unembed(x[:, -1:] if newest else x)

    def stream(self, tokens: Tensor, past: KeyValueCache | None = None) -> Tensor:
        """What the unembedding reads: (batch, pos) → (batch, pos, d_model). Otherwise as `forward`."""
        start = past.length if past else 0
        x = self.embed_tokens(tokens, start)
        padding = self.padding(tokens, past)
        for layer, block in enumerate(self.blocks):
            x = block(x, padding, past.blocks[layer] if past else None, start)
        if past:
            past.extend(tokens)
        return self.ln_final(x)


class EncoderDecoder(Transformer):
    """The transformer of the paper: an encoder reads the source, a decoder writes the target (§3.1).

    With tied embeddings one table serves source, target and output (§3.4).
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.embed = nn.Embedding(config.vocab_size, config.d_model) if config.tie_embeddings else None
        self.encoder = Encoder(config, self.embed)
        self.decoder = Decoder(config, self.embed)
        self.unembed = make_unembedding(config, self.embed)
        self.name_hook_points()

    def forward(
        self, source: Tensor, target: Tensor, past: KeyValueCache | None = None, *, newest: bool = False
    ) -> Tensor:
        """Logits for the token after each position of the target.

        source: (batch, source), target: (batch, target), integer, ids below vocab_size.
        past: what came before these target tokens, and is extended by them; it also keeps the memory.
        newest: the logits after the last position alone, (batch, 1, vocab).
        Returns: (batch, target, vocab).
        Raises: ValueError for tokens of another shape, too many of them, or unknown ids.
        """
        x = self.stream(source, target, past)
        return self.unembed(x[:, -1:] if newest else x)

    def stream(self, source: Tensor, target: Tensor, past: KeyValueCache | None = None) -> Tensor:
        """What the unembedding reads, (batch, target, d_model). Otherwise as `forward`."""
        self.encoder.check_tokens(source)
        self.decoder.check_tokens(target)
        if len(source) != len(target):
            raise ValueError(f"{len(source)} sources were given with {len(target)} targets; each needs its own.")
        memory, padding = (past.memory, past.memory_padding) if past else (None, None)
        if memory is None:
            memory, padding = self.encode(source), self.encoder.padding(source)
            if past:
                past.memory, past.memory_padding = memory, padding
        return self.decoder(target, memory, padding, past)

    def encode(self, source: Tensor) -> Tensor:
        """The source as the decoder will see it: (batch, source) → memory, (batch, source, d_model)."""
        return self.encoder(source)

    def decode(
        self, target: Tensor, memory: Tensor, memory_padding: Tensor | None = None, past: KeyValueCache | None = None
    ) -> Tensor:
        """Logits, (batch, target, vocab), from the target so far and the memory.

        memory_padding: (batch, 1, 1, source), True where the source is no padding; None if nothing is padded.
        """
        return self.unembed(self.decoder(target, memory, memory_padding, past))


Model = DecoderOnly | EncoderDecoder
"""A whole model of either architecture."""


def make_unembedding(config: ModelConfig, table: nn.Embedding | None) -> nn.Linear:
    """The way back to the vocabulary; with tied embeddings its weight is the token table itself."""
    unembed = nn.Linear(config.d_model, config.vocab_size, bias=config.unembed_bias)
    if config.tie_embeddings and table is not None:
        unembed.weight = table.weight
    return unembed


def make_model(config: ModelConfig) -> Model:
    """A model of the configuration's architecture, its weights as PyTorch leaves them."""
    return DecoderOnly(config) if config.architecture == "decoder-only" else EncoderDecoder(config)


def shapes_alone(config: ModelConfig) -> Model:
    """A model whose weights have shapes but no numbers, and take no memory.

    Raises: RuntimeError or TypeError for sizes that PyTorch can't count.
    """
    with torch.device("meta"), skip_init():
        return make_model(config)


def build_model(config: ModelConfig, seed: int | None = None) -> Model:
    """A freshly initialised model; with a seed always the same one. How its weights are drawn: `initialise`."""
    with skip_init():
        model = make_model(config)
    generator = torch.Generator()
    generator.seed() if seed is None else generator.manual_seed(seed)
    initialise(model, generator)
    return model
