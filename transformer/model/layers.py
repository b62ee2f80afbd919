"""Layers that act on each position by itself: linear layers, norms, feed-forward layers.

Shapes: batch, pos, d_model, d_ff.
"""

from __future__ import annotations

from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..config import ModelConfig
from ..hooks import HookPoint
from .dropout import dropout

ACTIVATIONS = {"relu": F.relu, "gelu": F.gelu, "gelu_tanh": partial(F.gelu, approximate="tanh"), "silu": F.silu}


def widened(x: Tensor) -> Tensor:
    """Convert 16-bit numbers to float32, for norms and sums over heads; leave others alone."""
    return x.float() if x.dtype.itemsize == 2 else x


class LayerNorm(nn.Module):
    """(x − mean) / √(variance + ε) · gain + shift, over the last dimension (Ba et al. 2016, eq. 4)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.shape, self.eps = (config.d_model,), config.layer_norm_eps
        self.weight = nn.Parameter(torch.ones(config.d_model))
        self.bias = nn.Parameter(torch.zeros(config.d_model))
        self.hook_scale, self.hook_out = HookPoint(), HookPoint()

    def forward(self, x: Tensor) -> Tensor:
        """x: (batch, pos, d_model); returns the same shape."""
        if not self.hook_scale.is_watched:  # one fused kernel
            return self.hook_out(torch.layer_norm(x, self.shape, self.weight, self.bias, self.eps))
        wide, weight, bias = widened(x), widened(self.weight), widened(self.bias)
        if self.hook_scale.is_edited:
            centred = wide - wide.mean(-1, keepdim=True)
            scale = self.hook_scale((centred.square().mean(-1, keepdim=True) + self.eps).sqrt())
            return self.hook_out((centred / scale * weight + bias).type_as(x))
        # This fused kernel also returns its divisor.
        out, _, inverse = torch.native_layer_norm(wide, self.shape, weight, bias, self.eps)
        self.hook_scale(1 / inverse)
        return self.hook_out(out.type_as(x))


class RMSNorm(nn.Module):
    """x / √(mean of x² + ε) · gain, over the last dimension (Zhang & Sennrich 2019, eq. 4).

    The layer norm without mean and shift: it only brings every vector to the same length.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.shape, self.eps = (config.d_model,), config.layer_norm_eps
        self.weight = nn.Parameter(torch.ones(config.d_model))
        self.hook_scale, self.hook_out = HookPoint(), HookPoint()

    def forward(self, x: Tensor) -> Tensor:
        """x: (batch, pos, d_model); returns the same shape."""
        if not self.hook_scale.is_watched:
            return self.hook_out(F.rms_norm(x, self.shape, self.weight, self.eps))
        wide = widened(x)
        scale = self.hook_scale((wide.square().mean(-1, keepdim=True) + self.eps).sqrt())
        return self.hook_out((wide / scale * self.weight).type_as(x))


class HeadNorm(nn.Module):
    """A norm on queries or keys, with a gain for each head's dimensions.

    Over a head's own dimensions (Henry et al. 2020), or over those of all heads together (Dehghani et al. 2023, §2.1).
    """

    def __init__(self, config: ModelConfig, heads: int) -> None:
        super().__init__()
        self.heads, self.eps = (heads, config.d_head), config.layer_norm_eps
        self.over = (-1,) if config.qk_norm == "head" else (-2, -1)
        self.weight = nn.Parameter(torch.ones(heads * config.d_head))
        self.bias = nn.Parameter(torch.zeros(heads * config.d_head)) if config.norm_kind == "layer" else None
        self.hook_scale, self.hook_out = HookPoint(), HookPoint()

    def forward(self, x: Tensor) -> Tensor:
        """x: (batch, pos, head, d_head); returns the same shape. hook_scale: (batch, pos, head or 1, 1)."""
        wide = widened(x)
        if self.bias is not None:
            wide = wide - wide.mean(self.over, keepdim=True)
        scale = self.hook_scale((wide.square().mean(self.over, keepdim=True) + self.eps).sqrt())
        wide = wide / scale * self.weight.view(self.heads)
        return self.hook_out((wide if self.bias is None else wide + self.bias.view(self.heads)).type_as(x))


class MLP(nn.Module):
    """Two linear layers with an activation between, the same at every position (Vaswani et al. 2017, §3.3)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.up = nn.Linear(config.d_model, config.d_ff, bias=config.mlp_bias)
        self.down = nn.Linear(config.d_ff, config.d_model, bias=config.mlp_bias)
        self.activation = ACTIVATIONS[config.activation]
        self.dropout = config.dropout
        self.hook_pre, self.hook_post = HookPoint(), HookPoint()
        self.has_output_point = config.norms_what_is_added
        if self.has_output_point:
            self.hook_out = HookPoint()

    def forward(self, x: Tensor) -> Tensor:
        """x: (batch, pos, d_model); returns the same shape."""
        return self.written(self.hook_post(self.activation(self.hook_pre(self.up(x)))))

    def written(self, hidden: Tensor) -> Tensor:
        """hidden · W_down: (batch, pos, d_ff) → (batch, pos, d_model)."""
        out = self.down(hidden)
        if self.has_output_point:
            out = self.hook_out(out)
        return dropout(out, self.dropout, self.training)  # before the residual sum (§5.4)


class GatedMLP(MLP):
    """activation(x · W_gate) ⊙ (x · W_up) · W_down: a gate decides how much of each hidden number passes.

    With the activation "silu" it is SwiGLU (Shazeer 2020, eq. 6). Names are TransformerLens's: `pre` is the
    activation's input, `pre_linear` the factor that the gate multiplies.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.gate = nn.Linear(config.d_model, config.d_ff, bias=config.mlp_bias)
        self.hook_pre_linear = HookPoint()

    def forward(self, x: Tensor) -> Tensor:
        """As in `MLP`."""
        gate = self.activation(self.hook_pre(self.gate(x)))  # (batch, pos, d_ff)
        return self.written(self.hook_post(gate * self.hook_pre_linear(self.up(x))))


class MaskedWordHead(nn.Module):
    """norm(activation(x · W + b)), before the unembedding of masked words (Devlin et al. 2019, BERT, §3.1)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.d_model, config.d_model)
        self.activation = ACTIVATIONS[config.activation]
        self.ln = make_norm(config)
        self.hook_pre, self.hook_post = HookPoint(), HookPoint()

    def forward(self, x: Tensor) -> Tensor:
        """x: (batch, pos, d_model); returns the same shape."""
        return self.ln(self.hook_post(self.activation(self.hook_pre(self.dense(x)))))


class CappedUnembedding(nn.Linear):
    """cap · tanh(logit / cap): no logit leaves ± cap (Gemma 2, 2024, §2)."""

    def __init__(self, config: ModelConfig, cap: float) -> None:
        super().__init__(config.d_model, config.vocab_size, bias=config.unembed_bias)
        self.cap = cap
        self.hook_uncapped = HookPoint()

    def forward(self, input: Tensor) -> Tensor:
        """(…, d_model) → (…, vocab)."""
        return self.cap * (self.hook_uncapped(super().forward(input)) / self.cap).tanh()


def make_norm(config: ModelConfig, has_one: bool = True) -> nn.Module:
    """Make the kind of norm that the configuration names, or an identity."""
    if config.norm == "none" or not has_one:
        return nn.Identity()
    return RMSNorm(config) if config.norm_kind == "rms" else LayerNorm(config)


def make_mlp(config: ModelConfig) -> MLP:
    """Make the kind of feed-forward layer that the configuration describes."""
    return GatedMLP(config) if config.mlp_gate else MLP(config)
