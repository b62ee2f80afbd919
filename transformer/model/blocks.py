"""BLOCKS"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from torch import Tensor, nn

from ..config import ModelConfig
from ..hooks import HookPoint
from .attention import CrossAttention, self_attention
from .caches import KeyValues
from .dropout import Dropout
from .layers import MLP, norm_layer


class Block(nn.Module):
    """Attention, then the feed-forward layer, each added to the residual stream (Vaswani et al. 2017, §3.1)."""

    def __init__(self, config: ModelConfig, *, causal: bool) -> None:
        super().__init__()
        self.post_norm = config.norm == "post"
        self.residual = config.residual
        self.has_mlp = config.d_ff > 0
        self.dropout = Dropout(config.dropout)
        stream_point = HookPoint if config.residual else nn.Identity
        self.hook_resid_pre = stream_point()
        self.ln1 = norm_layer(config)
        self.attn = self_attention(config, causal=causal)
        self.hook_attn_out = HookPoint()
        if self.has_mlp:
            self.hook_resid_mid = stream_point()
            self.ln2 = norm_layer(config)
            self.mlp = MLP(config)
            self.hook_mlp_out = HookPoint()
        self.hook_resid_post = stream_point()

    def forward(
        self, x: Tensor, padding: Tensor | None = None, past: KeyValues | None = None, start: int = 0
    ) -> Tensor:
        """x: (batch, pos, d_model), its first row at position `start`; returns the same shape."""
        attend = partial(self.attn, padding=padding, past=past, start=start)
        after_attention = self.hook_resid_mid if self.has_mlp else self.hook_resid_post

        x = self.hook_resid_pre(x)
        x = self.sublayer(x, attend, self.ln1, self.hook_attn_out, after_attention)
        if self.has_mlp:
            x = self.sublayer(x, self.mlp, self.ln2, self.hook_mlp_out, self.hook_resid_post)
        return x

    def sublayer(self, x: Tensor, f: Callable, norm: nn.Module, hook_out: nn.Module, hook_sum: nn.Module) -> Tensor:
        """norm(x + f(x)) under post-norm, as in the paper; x + f(norm(x)) under pre-norm.

        Dropout falls on the sublayer's output, before the sum (§5.4). Without residuals the x + is left out.
        """
        out = hook_out(self.dropout(f(x if self.post_norm else norm(x))))
        total = hook_sum(x + out) if self.residual else out
        return norm(total) if self.post_norm else total


class DecoderBlock(Block):
    """A block that, between attention to its own past and the feed-forward layer, attends to the encoder's memory."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config, causal=True)
        stream_point = HookPoint if config.residual else nn.Identity
        self.hook_resid_mid = stream_point()
        self.ln_cross = norm_layer(config)
        self.cross_attn = CrossAttention(config)
        self.hook_cross_attn_out = HookPoint()
        if self.has_mlp:
            self.hook_resid_cross = stream_point()

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        *,
        padding: Tensor | None = None,
        memory_padding: Tensor | None = None,
        past: KeyValues | None = None,
        past_memory: KeyValues | None = None,
        start: int = 0,
    ) -> Tensor:
        """x: (batch, pos, d_model), its first row at position `start`; memory: (batch, key, d_model)."""
        attend = partial(self.attn, padding=padding, past=past, start=start)
        attend_memory = partial(self.cross_attn, memory=memory, padding=memory_padding, past=past_memory)
        after_cross = self.hook_resid_cross if self.has_mlp else self.hook_resid_post

        x = self.hook_resid_pre(x)
        x = self.sublayer(x, attend, self.ln1, self.hook_attn_out, self.hook_resid_mid)
        x = self.sublayer(x, attend_memory, self.ln_cross, self.hook_cross_attn_out, after_cross)
        if self.has_mlp:
            x = self.sublayer(x, self.mlp, self.ln2, self.hook_mlp_out, self.hook_resid_post)
        return x
