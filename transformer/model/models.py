"""Complete models: GPT's decoder, BERT's encoder, and the encoder–decoder of the paper.

Shapes: batch, pos (or source, target), d_model, vocab.
"""

from __future__ import annotations

import itertools

import torch
from torch import Tensor, nn

from ..config import ModelConfig
from ..hooks import HookedModule
from .blocks import make_block
from .caches import KeyValueCache
from .effective_weights import weight_of
from .equations import parameter_names
from .initialization import initialise, skip_init
from .layers import CappedUnembedding, MaskedWordHead
from .modes import is_true
from .positions import first_positions
from .registry import HookInfo, hook_points
from .stacks import Decoder, Encoder, Stack


class Transformer(HookedModule):
    """The base of all architectures: a configuration, hook points, and the registry that describes them."""

    config: ModelConfig
    unembed: nn.Linear

    @property
    def device(self) -> torch.device:
        """The device of the weights, on which tokens must be."""
        return next(itertools.chain(self.parameters(), self.buffers(), [torch.empty(0)])).device

    def hook_points(self) -> dict[str, HookInfo]:
        """This model's part of the registry of hook points, in the order of the forward pass."""
        return hook_points(self.config)

    def hook_names(self) -> list[str]:
        """The names of all hook points, in the order of the forward pass."""
        return list(self.hook_points())

    def effective_weight(self, name: str) -> Tensor:
        """The parameter of this name as the model computes with it, whatever stands in its place.

        Raises: ValueError for a name that no equation of this model reads, or a module that has no such weight.
        """
        if name not in parameter_names(self.config):
            raise ValueError(f"{name!r} is no parameter of this model.")
        return weight_of(self, name)

    @property
    def W_U(self) -> Tensor:
        """The unembedding as formulas have it, (d_model, vocab); other weights are in `FormulaWeights`."""
        return weight_of(self, "unembed.weight").T

    @property
    def b_U(self) -> Tensor:
        """(vocab,), zeros where there is no bias."""
        return weight_of(self, "unembed.bias")

    def parameter_count(self) -> int:
        """How many numbers training adjusts; a tied table counts once."""
        return sum(parameter.numel() for parameter in self.parameters())


class DecoderOnly(Transformer, Stack):
    """A stack of causal blocks that predicts each next token: GPT's shape (Radford et al. 2018)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config, (make_block(config, causal=True, layer=layer) for layer in range(config.n_layers)))
        self.unembed = make_unembedding(config, self.embed)
        self.name_hook_points()

    def forward(
        self,
        tokens: Tensor,
        past: KeyValueCache | None = None,
        *,
        newest: bool = False,
        attention_mask: Tensor | None = None,
    ) -> Tensor:
        """Logits for the token after each position.

        tokens: (batch, pos), integer, ids below vocab_size.
        past: what came before these tokens, and is extended by them; None for nothing.
        newest: return the last position's logits only, (batch, 1, vocab), which saves time with a large vocabulary.
        attention_mask: (batch, key), 0 for padding, whatever its id, before the texts or after them; with a past, of
            all tokens so far.
        Returns: (batch, pos, vocab).
        Raises: ValueError for tokens of another shape, too many of them, or unknown ids.
        """
        x = self.stream(tokens, past=past, attention_mask=attention_mask)
        return self.unembed(x[:, -1:] if newest else x)

    def stream(
        self, tokens: Tensor, *, past: KeyValueCache | None = None, attention_mask: Tensor | None = None
    ) -> Tensor:
        """The unembedding's input: (batch, pos) → (batch, pos, d_model). Otherwise as `forward`."""
        start = first_positions(past.length if past else 0, attention_mask)
        x = self.embed_tokens(tokens, start)
        padding = self.padding(tokens, past, attention_mask)
        for layer, block in enumerate(self.blocks):
            x = block(x, padding, past.blocks[layer] if past else None, start)
        if past:
            past.extend(tokens)
        return self.ln_final(x)


class EncoderOnly(Transformer, Stack):
    """A stack of blocks without a causal mask, which says what each token is: BERT's shape (Devlin et al. 2019).

    It is trained to fill gaps: a masked token has to be predicted from the tokens on either side.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config, (make_block(config, causal=False, layer=layer) for layer in range(config.n_layers)))
        self.head: nn.Module = MaskedWordHead(config) if config.masked_word_head else nn.Identity()
        self.unembed = make_unembedding(config, self.embed)
        self.name_hook_points()

    def forward(
        self, tokens: Tensor, segments: Tensor | None = None, *, attention_mask: Tensor | None = None
    ) -> Tensor:
        """Logits for the token at each position.

        tokens: (batch, pos), integer, ids below vocab_size.
        segments: (batch, pos), to which segment each belongs; None for those that separators make, as `segments_of`
            has it.
        attention_mask: (batch, pos), 0 for padding, whatever its id.
        Returns: (batch, pos, vocab).
        Raises: ValueError for tokens or segments of another shape, too many of them, or unknown ids.
        """
        return self.unembed(self.stream(tokens, segments, attention_mask=attention_mask))

    def stream(self, tokens: Tensor, segments: Tensor | None = None, *, attention_mask: Tensor | None = None) -> Tensor:
        """The unembedding's input: (batch, pos) → (batch, pos, d_model). Otherwise as `forward`."""
        self.check_segments(tokens, segments)
        start = first_positions(0, attention_mask)
        x, padding = self.embed_tokens(tokens, start, segments), self.padding(tokens, None, attention_mask)
        for block in self.blocks:
            x = block(x, padding, None, start)
        return self.head(self.ln_final(x))

    def check_segments(self, tokens: Tensor, segments: Tensor | None) -> None:
        """Raise ValueError, with what would do, for segments that the tokens or the model don't have."""
        if segments is None:
            return
        if not self.config.n_segments:
            raise ValueError("This model knows no segments; give it the tokens alone.")
        are_known = (segments >= 0).all() & (segments < self.config.n_segments).all()
        if segments.shape != tokens.shape or not is_true(are_known, if_unknown=True):
            raise ValueError(
                f"Segments must have the tokens' shape, {tuple(tokens.shape)}, and lie between 0 and "
                f"{self.config.n_segments - 1}."
            )


class EncoderDecoder(Transformer):
    """The transformer of the paper: an encoder reads the source, a decoder writes the target (§3.1).

    With tied embeddings one table serves source, target and output (§3.4).
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.embed = nn.Embedding(config.vocab_size, config.d_model) if config.has_one_table else None
        self.encoder = Encoder(config, self.embed)
        self.decoder = Decoder(config, self.embed)
        self.unembed = make_unembedding(config, self.embed)
        self.name_hook_points()

    def forward(
        self,
        source: Tensor,
        target: Tensor,
        past: KeyValueCache | None = None,
        *,
        newest: bool = False,
        attention_mask: Tensor | None = None,
    ) -> Tensor:
        """Logits for the token after each position of the target.

        source: (batch, source), target: (batch, target), integer, ids below vocab_size.
        past: what came before these target tokens, and is extended by them; it also keeps the memory.
        newest: return the last position's logits only, (batch, 1, vocab).
        attention_mask: (batch, source), 0 for padding in the source, whatever its id.
        Returns: (batch, target, vocab).
        Raises: ValueError for tokens of another shape, too many of them, or unknown ids.
        """
        x = self.stream(source, target, past=past, attention_mask=attention_mask)
        return self.unembed(x[:, -1:] if newest else x)

    def stream(
        self, source: Tensor, target: Tensor, *, past: KeyValueCache | None = None, attention_mask: Tensor | None = None
    ) -> Tensor:
        """The unembedding's input, (batch, target, d_model). Otherwise as `forward`."""
        self.encoder.check_tokens(source)
        self.decoder.check_tokens(target)
        if len(source) != len(target):
            raise ValueError(f"{len(source)} sources were given with {len(target)} targets; each needs its own.")
        memory, padding = (past.memory, past.memory_padding) if past else (None, None)
        if memory is None:
            memory = self.encode(source, attention_mask)
            padding = self.encoder.padding(source, None, attention_mask)
            if past:
                past.memory, past.memory_padding = memory, padding
        return self.decoder(target, memory, padding, past)

    def encode(self, source: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """Run the encoder: (batch, source) → memory, (batch, source, d_model)."""
        return self.encoder(source, attention_mask)

    def decode(
        self, target: Tensor, memory: Tensor, memory_padding: Tensor | None = None, past: KeyValueCache | None = None
    ) -> Tensor:
        """Logits, (batch, target, vocab), from the target so far and the memory.

        memory_padding: (batch, 1, 1, source), True where the source is no padding; None if nothing is padded.
        """
        return self.unembed(self.decoder(target, memory, memory_padding, past))


Model = DecoderOnly | EncoderOnly | EncoderDecoder
"""A whole model of any architecture."""


def make_unembedding(config: ModelConfig, table: nn.Embedding | None) -> nn.Linear:
    """The way back to the vocabulary; with tied embeddings its weight is the token table itself."""
    if config.logit_cap:
        unembed = CappedUnembedding(config, config.logit_cap)
    else:
        unembed = nn.Linear(config.d_model, config.vocab_size, bias=config.unembed_bias)
    if config.tie_embeddings and table is not None:
        unembed.weight = table.weight
    return unembed


def make_model(config: ModelConfig) -> Model:
    """A model of the configuration's architecture, with PyTorch's initial weights."""
    kinds = {"decoder-only": DecoderOnly, "encoder-only": EncoderOnly, "encoder-decoder": EncoderDecoder}
    return kinds[config.architecture](config)


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
    initialise(model, config, generator)
    return model
