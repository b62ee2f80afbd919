"""The encoder and decoder stacks: embeddings, positions, then the blocks; everything but the unembedding.

Shapes: batch, pos (source or target), d_model.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from torch import Tensor, nn

from ..config import ModelConfig
from ..hooks import HookPoint
from .blocks import make_block, make_decoder_block
from .caches import KeyValueCache
from .dropout import dropout
from .layers import make_norm
from .masks import padding_or_none, with_attention_mask
from .modes import is_true
from .positions import Start, end_of, first_positions, position_ids, sinusoidal_rows
from .weights import FormulaWeights


def segments_of(tokens: Tensor, config: ModelConfig) -> Tensor:
    """The segment of each token, (…, pos): each separator ends one, up to the last segment (BERT, §3)."""
    separators = tokens == (-1 if config.separator_token_id is None else config.separator_token_id)
    before = separators.cumsum(-1) - separators.long()
    return before.clamp(max=config.n_segments - 1)


class Stack(FormulaWeights, nn.Module):
    """Embeddings plus positions, blocks one after another, and a last norm where blocks leave the stream as it is.

        tokens ─► embed ─► + ─► block 0 ─► block 1 ─► … ─► ln_final ─►
                           ▲
               positions ──┘

    embed: a token table shared by both stacks; None for one of the stack's own.
    """

    def __init__(self, config: ModelConfig, blocks: Iterable[nn.Module], embed: nn.Embedding | None = None) -> None:
        super().__init__()
        self.config = config
        if embed is None:
            self.embed = nn.Embedding(config.vocab_size, config.d_model)
        else:
            vars(self)["embed"] = embed  # not registered here: the model lists the shared weight once
        self.hook_embed = HookPoint()
        if config.positions == "learned":
            self.pos_embed = nn.Embedding(config.context_length, config.d_model)
        if config.positions in ("learned", "sinusoidal"):
            self.hook_pos_embed = HookPoint()
        if config.n_segments:
            self.segment_embed = nn.Embedding(config.n_segments, config.d_model)
            self.hook_segment_embed = HookPoint()
        self.ln_embed = make_norm(config, config.embed_norm)
        self.blocks = nn.ModuleList(blocks)
        self.ln_final = make_norm(config, config.has_final_norm)

    def embed_tokens(self, tokens: Tensor, start: Start = 0, segments: Tensor | None = None) -> Tensor:
        """Embeddings plus positions (§3.4, §3.5): (batch, pos) → (batch, pos, d_model).

        start: the position of the first token, or of each text's. segments: (batch, pos), None for `segments_of`.
        """
        self.check_tokens(tokens, start)
        try:
            x = self.embed(tokens)
        except IndexError:  # not checked on a GPU: reading the answer would wait for it
            raise ValueError(f"Token ids must lie between 0 and {self.config.vocab_size - 1} for this model.") from None
        if self.config.scale_embeddings:
            x = x * math.sqrt(self.config.d_model)
        x = self.hook_embed(x)
        if self.config.positions in ("learned", "sinusoidal"):
            rows = self.position_rows(start, tokens.shape[1], x.device).to(x.dtype)
            x = x + self.hook_pos_embed(rows.expand_as(x))
        if self.config.n_segments:
            rows = self.segment_embed(segments_of(tokens, self.config) if segments is None else segments)
            x = x + self.hook_segment_embed(rows)
        return dropout(self.ln_embed(x), self.config.dropout, self.training)

    def position_rows(self, start: Start, pos: int, device: torch.device | str = "cpu") -> Tensor:
        """The rows added at positions start … start+pos−1, of a learned or sinusoidal table: a copy.

        Returns: (pos, d_model), or (batch, pos, d_model) where the texts' positions differ.
        """
        if self.config.positions == "learned":
            return self.pos_embed(position_ids(start, pos, device))
        return sinusoidal_rows(start, pos, self.config.d_model, torch.device(device)).clone()

    def padding(
        self, tokens: Tensor, past: KeyValueCache | None = None, attention_mask: Tensor | None = None
    ) -> Tensor | None:
        """The padding mask of all tokens so far, (batch, 1, 1, key), or None where nothing is padded.

        attention_mask: (batch, key), 0 for what is padding, whatever its id.
        """
        pad = self.config.pad_token_id
        padding = past.padding(tokens, pad) if past else padding_or_none(tokens, pad)
        return padding if attention_mask is None else with_attention_mask(padding, attention_mask)

    def check_tokens(self, tokens: Tensor, start: Start = 0) -> None:
        """Raise ValueError, with what would do, for tokens of another shape, or too many of them."""
        if not isinstance(tokens, Tensor):
            raise TypeError(
                f"A model reads token ids, a tensor (batch, pos), and not a {type(tokens).__name__}; of a text give it "
                "torch.tensor([tokenizer.encode(text)]), or give the text to its checkpoint: checkpoint(text)."
            )
        if tokens.dim() != 2 or tokens.dtype not in (torch.int64, torch.int32):
            raise ValueError(
                f"Tokens must be whole numbers (int64 or int32) of shape (batch, pos), not {tokens.dtype} "
                f"{tuple(tokens.shape)}."
            )
        end = end_of(start, tokens.shape[1])
        if is_true(end > self.config.context_length, if_unknown=False):
            raise ValueError(
                f"{int(end)} tokens are more than this model's context of "
                f"{self.config.context_length}; give it the last {self.config.context_length}."
            )


class Encoder(Stack):
    """A stack of blocks in which every token sees every other (Vaswani et al. 2017, §3.1)."""

    def __init__(self, config: ModelConfig, embed: nn.Embedding | None = None) -> None:
        layers = range(config.n_encoder_layers)
        super().__init__(config, (make_block(config, causal=False, layer=layer) for layer in layers), embed)

    def forward(self, tokens: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """tokens: (batch, source) → memory: (batch, source, d_model). attention_mask: as in `padding`."""
        padding, start = self.padding(tokens, None, attention_mask), first_positions(0, attention_mask)
        x = self.embed_tokens(tokens, start)
        for block in self.blocks:
            x = block(x, padding, None, start)
        return self.ln_final(x)


class Decoder(Stack):
    """A stack of causal blocks that also attend to the encoder's memory (Vaswani et al. 2017, §3.1)."""

    def __init__(self, config: ModelConfig, embed: nn.Embedding | None = None) -> None:
        super().__init__(config, (make_decoder_block(config, layer) for layer in range(config.n_layers)), embed)

    def forward(
        self, tokens: Tensor, memory: Tensor, memory_padding: Tensor | None = None, past: KeyValueCache | None = None
    ) -> Tensor:
        """tokens: (batch, target), memory: (batch, source, d_model) → (batch, target, d_model)."""
        start = past.length if past else 0
        x = self.embed_tokens(tokens, start)
        padding = self.padding(tokens, past)
        for layer, block in enumerate(self.blocks):
            own, cross = (past.blocks[layer], past.cross[layer]) if past else (None, None)
            x = block(x, memory, padding, memory_padding, own, cross, start)
        if past:
            past.extend(tokens)
        return self.ln_final(x)
