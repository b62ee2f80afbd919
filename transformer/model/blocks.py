"""Transformer blocks: attention and feed-forward layer around the residual stream, in each variant.

A block's `forward` is its equations, with a hook point after each step. `make_block` and `make_decoder_block`, at the
end, choose the kind that a configuration asks for.

Shapes: batch, pos (or source), d_model.
"""

from __future__ import annotations

from torch import Tensor, nn

from ..config import ModelConfig
from ..hooks import HookPoint
from .attention import CrossAttention, make_self_attention
from .caches import KeyValues
from .layers import make_mlp, make_norm
from .positions import Start


class Sublayers(nn.Module):
    """The parts of every block: attention, an optional feed-forward layer, their norms and hook points."""

    def __init__(self, config: ModelConfig, *, causal: bool, layer: int = 0) -> None:
        super().__init__()
        self.has_mlp = config.d_ff > 0
        self.hook_resid_pre = make_stream_point(config)
        self.ln1 = make_norm(config, config.norm != "res-post" and (layer > 0 or config.norm_first_input))
        self.attn = make_self_attention(config, causal=causal, layer=layer)
        if config.norms_what_is_added:
            self.ln1_post = make_norm(config)
        self.hook_attn_out = HookPoint()
        if self.has_mlp:
            if not config.parallel_residual:
                self.hook_resid_mid = make_stream_point(config)
            self.ln2 = make_norm(config, config.norm != "res-post")
            self.mlp = make_mlp(config)
            if config.norms_what_is_added:
                self.ln2_post = make_norm(config)
            self.hook_mlp_out = HookPoint()
        self.hook_resid_post = make_stream_point(config)


class Block(Sublayers):
    """Pre-norm: attention and feed-forward layer each read a normalised copy of the stream, and add to the stream.

        x ──┬──────────────► + ──┬──────────────► + ──►        x = x + attn(ln1(x))
            └─ ln1 ─► attn ──┘   └─ ln2 ─► mlp ──┘             x = x + mlp(ln2(x))

    Without norms, ln1 and ln2 are identities; with d_ff = 0 the second line is left out.
    Sources: Vaswani et al. 2017, §3.1, with the norms where GPT-2 has them (Radford et al. 2019, §2.3).
    """

    def forward(
        self, x: Tensor, padding: Tensor | None = None, past: KeyValues | None = None, start: Start = 0
    ) -> Tensor:
        """x: (batch, pos, d_model), its first row at position `start`; returns the same shape."""
        x = self.hook_resid_pre(x)
        x = x + self.hook_attn_out(self.attn(self.ln1(x), padding, past, start))
        if self.has_mlp:
            x = self.hook_resid_mid(x)
            x = x + self.hook_mlp_out(self.mlp(self.ln2(x)))
        return self.hook_resid_post(x)


class SandwichBlock(Block):
    """Each sublayer's output is normalised before it is added. In the res-post variant ln1 and ln2 are identities.

        x ──┬──────────────────────────► + ──┬─────────────────────────► + ──►     x = x + ln1_post(attn(ln1(x)))
            └─ ln1 ─► attn ─► ln1_post ──┘   └─ ln2 ─► mlp ─► ln2_post ──┘         x = x + ln2_post(mlp(ln2(x)))

    Sources: before and after, Ding et al. 2021 (CogView), §2.3; after alone, Liu et al. 2022 (Swin v2), §3.2.
    """

    def forward(
        self, x: Tensor, padding: Tensor | None = None, past: KeyValues | None = None, start: Start = 0
    ) -> Tensor:
        """As in `Block`."""
        x = self.hook_resid_pre(x)
        x = x + self.hook_attn_out(self.ln1_post(self.attn(self.ln1(x), padding, past, start)))
        if self.has_mlp:
            x = self.hook_resid_mid(x)
            x = x + self.hook_mlp_out(self.ln2_post(self.mlp(self.ln2(x))))
        return self.hook_resid_post(x)


class ParallelBlock(Block):
    """Attention and feed-forward layer side by side: both read the stream as it enters, and both add to it at its end.

        x ──┬────────────────► + ──►        x = x + attn(ln1(x)) + mlp(ln2(x))
            ├─ ln1 ─► attn ────┤
            └─ ln2 ─► mlp  ────┘

    Sources: Wang & Komatsuzaki 2021 (GPT-J); Black et al. 2022 (GPT-NeoX), §2.1.2, which has a norm for each.
    """

    def forward(
        self, x: Tensor, padding: Tensor | None = None, past: KeyValues | None = None, start: Start = 0
    ) -> Tensor:
        """As in `Block`."""
        x = self.hook_resid_pre(x)
        attention = self.hook_attn_out(self.attn(self.ln1(x), padding, past, start))
        return self.hook_resid_post(x + attention + self.hook_mlp_out(self.mlp(self.ln2(x))))


class PostNormBlock(Block):
    """The paper's block: the norms apply to the sum, that is, to the stream itself.

        x ──┬────────► + ─► ln1 ──┬───────► + ─► ln2 ──►       x = ln1(x + attn(x))
            └─ attn ───┘          └─ mlp ───┘                  x = ln2(x + mlp(x))

    Source: Vaswani et al. 2017, §3.1: LayerNorm(x + Sublayer(x)).
    """

    def forward(
        self, x: Tensor, padding: Tensor | None = None, past: KeyValues | None = None, start: Start = 0
    ) -> Tensor:
        """As in `Block`."""
        x = self.hook_resid_pre(x)
        x = x + self.hook_attn_out(self.attn(x, padding, past, start))
        if not self.has_mlp:
            return self.ln1(self.hook_resid_post(x))
        x = self.ln1(self.hook_resid_mid(x))
        x = x + self.hook_mlp_out(self.mlp(x))
        return self.ln2(self.hook_resid_post(x))


class UnconnectedBlock(Block):
    """A block without residual connections: each sublayer's output replaces its input.

    x ─► ln1 ─► attn ─► ln2 ─► mlp ──►       x = attn(ln1(x))       under post-norm each norm comes
                                             x = mlp(ln2(x))        after its sublayer instead
    """

    def __init__(self, config: ModelConfig, *, causal: bool, layer: int = 0) -> None:
        super().__init__(config, causal=causal, layer=layer)
        self.post_norm = config.norm == "post"

    def forward(
        self, x: Tensor, padding: Tensor | None = None, past: KeyValues | None = None, start: Start = 0
    ) -> Tensor:
        """As in `Block`."""
        if self.post_norm:
            x = self.ln1(self.hook_attn_out(self.attn(x, padding, past, start)))
            return self.ln2(self.hook_mlp_out(self.mlp(x))) if self.has_mlp else x
        x = self.hook_attn_out(self.attn(self.ln1(x), padding, past, start))
        return self.hook_mlp_out(self.mlp(self.ln2(x))) if self.has_mlp else x


class DecoderBlock(Sublayers):
    """A decoder block of an encoder–decoder: between its sublayers it attends to the encoder's output, the memory.

                                    memory ─────┐
        x ──┬──────────────► + ──┬──────────────▼──────────► + ──┬──────────────► + ──►
            └─ ln1 ─► attn ──┘   └─ ln_cross ─► cross_attn ──┘   └─ ln2 ─► mlp ──┘

        x = x + attn(ln1(x))
        x = x + cross_attn(ln_cross(x), memory)
        x = x + mlp(ln2(x))

    Source: Vaswani et al. 2017, §3.1 and figure 1, on the right; pre-norm as in `Block`.
    """

    def __init__(self, config: ModelConfig, layer: int = 0) -> None:
        super().__init__(config, causal=True, layer=layer)
        self.hook_resid_mid = make_stream_point(config)
        self.ln_cross = make_norm(config)
        self.cross_attn = CrossAttention(config)
        self.hook_cross_attn_out = HookPoint()
        if self.has_mlp:
            self.hook_resid_cross = make_stream_point(config)

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        padding: Tensor | None = None,
        memory_padding: Tensor | None = None,
        past: KeyValues | None = None,
        past_memory: KeyValues | None = None,
        start: Start = 0,
    ) -> Tensor:
        """x: (batch, pos, d_model), its first row at position `start`; memory: (batch, source, d_model)."""
        x = self.hook_resid_pre(x)
        x = x + self.hook_attn_out(self.attn(self.ln1(x), padding, past, start))
        x = self.hook_resid_mid(x)
        x = x + self.hook_cross_attn_out(self.cross_attn(self.ln_cross(x), memory, memory_padding, past_memory))
        if self.has_mlp:
            x = self.hook_resid_cross(x)
            x = x + self.hook_mlp_out(self.mlp(self.ln2(x)))
        return self.hook_resid_post(x)


class PostNormDecoderBlock(DecoderBlock):
    """The paper's decoder block, with norms on the stream.

                           memory ─────┐
    x ──┬────────► + ─► ln1 ──┬────────▼─────► + ─► ln_cross ──┬───────► + ─► ln2 ──►
        └─ attn ───┘          └─ cross_attn ───┘               └─ mlp ───┘

    x = ln1(x + attn(x))
    x = ln_cross(x + cross_attn(x, memory))
    x = ln2(x + mlp(x))
    """

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        padding: Tensor | None = None,
        memory_padding: Tensor | None = None,
        past: KeyValues | None = None,
        past_memory: KeyValues | None = None,
        start: Start = 0,
    ) -> Tensor:
        """As in `DecoderBlock`."""
        x = self.hook_resid_pre(x)
        x = x + self.hook_attn_out(self.attn(x, padding, past, start))
        x = self.ln1(self.hook_resid_mid(x))
        x = x + self.hook_cross_attn_out(self.cross_attn(x, memory, memory_padding, past_memory))
        if not self.has_mlp:
            return self.ln_cross(self.hook_resid_post(x))
        x = self.ln_cross(self.hook_resid_cross(x))
        x = x + self.hook_mlp_out(self.mlp(x))
        return self.ln2(self.hook_resid_post(x))


class UnconnectedDecoderBlock(DecoderBlock):
    """A decoder's block without residual connections.

    x ─► ln1 ─► attn ─► ln_cross ─► cross_attn ─► ln2 ─► mlp ──►      x = attn(ln1(x))
                                        ▲                             x = cross_attn(ln_cross(x), memory)
                           memory ──────┘                             x = mlp(ln2(x))
    """

    def __init__(self, config: ModelConfig, layer: int = 0) -> None:
        super().__init__(config, layer)
        self.post_norm = config.norm == "post"

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        padding: Tensor | None = None,
        memory_padding: Tensor | None = None,
        past: KeyValues | None = None,
        past_memory: KeyValues | None = None,
        start: Start = 0,
    ) -> Tensor:
        """As in `DecoderBlock`."""
        if self.post_norm:
            x = self.ln1(self.hook_attn_out(self.attn(x, padding, past, start)))
            x = self.ln_cross(self.hook_cross_attn_out(self.cross_attn(x, memory, memory_padding, past_memory)))
            return self.ln2(self.hook_mlp_out(self.mlp(x))) if self.has_mlp else x
        x = self.hook_attn_out(self.attn(self.ln1(x), padding, past, start))
        x = self.hook_cross_attn_out(self.cross_attn(self.ln_cross(x), memory, memory_padding, past_memory))
        return self.hook_mlp_out(self.mlp(self.ln2(x))) if self.has_mlp else x


def make_block(config: ModelConfig, *, causal: bool, layer: int = 0) -> Block:
    """The kind of block that the configuration describes, for an encoder or, causal, for a decoder-only model."""
    if not config.residual:
        return UnconnectedBlock(config, causal=causal, layer=layer)
    if config.parallel_residual:
        return ParallelBlock(config, causal=causal, layer=layer)
    kind = SandwichBlock if config.norms_what_is_added else PostNormBlock if config.norm == "post" else Block
    return kind(config, causal=causal, layer=layer)


def make_decoder_block(config: ModelConfig, layer: int = 0) -> DecoderBlock:
    """The same for the decoder of an encoder–decoder."""
    if not config.residual:
        return UnconnectedDecoderBlock(config, layer)
    return PostNormDecoderBlock(config, layer) if config.norm == "post" else DecoderBlock(config, layer)


def make_stream_point(config: ModelConfig) -> nn.Module:
    """A hook point on the residual stream; nothing to look at where there is no stream."""
    return HookPoint() if config.residual else nn.Identity()
