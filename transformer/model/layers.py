"""Layer norm, the feed-forward layer, and the block that joins them to attention around the residual stream.

    x ──┬──────────────► + ──┬──────────────► + ──►        pre-norm: every sublayer reads a normalised copy
        └─ ln1 ─► attn ──┘   └─ ln2 ─► mlp ──┘

    x ──┬────────► + ─► ln1 ──┬───────► + ─► ln2 ──►       post-norm, as in the paper: the sum is normalised
        └─ attn ───┘          └─ mlp ───┘

Shapes: batch, pos, d_model, d_ff.
"""

from __future__ import annotations

from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..config import ModelConfig
from ..hooks import HookPoint

ACTIVATIONS = {"relu": F.relu, "gelu": F.gelu, "gelu_tanh": partial(F.gelu, approximate="tanh")}


class LayerNorm(nn.Module):
    """(x − mean) / √(variance + ε) · gain + shift, over the last dimension (Ba et al. 2016, eq. 4)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.eps = config.layer_norm_eps
        self.weight = nn.Parameter(torch.ones(config.d_model))
        self.bias = nn.Parameter(torch.zeros(config.d_model))
        self.hook_scale, self.hook_normalized = HookPoint(), HookPoint()

    def forward(self, x: Tensor) -> Tensor:
        if not self.hook_scale.is_watched:
            return self.hook_normalized(F.layer_norm(x, self.weight.shape, self.weight, self.bias, self.eps))
        out, mean, inverse_scale = torch.native_layer_norm(
            x, self.weight.shape, self.weight, self.bias, self.eps
        )
        scale = self.hook_scale(1 / inverse_scale)
        if self.hook_scale.is_edited:
            out = (x - mean) / scale * self.weight + self.bias
        return self.hook_normalized(out)


class MLP(nn.Module):
    """Two linear layers with an activation between, the same at every position (Vaswani et al. 2017, §3.3)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.up = nn.Linear(config.d_model, config.d_ff, bias=config.mlp_bias)
        self.down = nn.Linear(config.d_ff, config.d_model, bias=config.mlp_bias)
        self.activation = ACTIVATIONS[config.activation]
        self.hook_pre, self.hook_post = HookPoint(), HookPoint()

    def forward(self, x: Tensor) -> Tensor:
        return self.down(self.hook_post(self.activation(self.hook_pre(self.up(x)))))


def norm_layer(config: ModelConfig) -> nn.Module:
    """A layer norm, or an identity where the configuration has none."""
    return nn.Identity() if config.norm == "none" else LayerNorm(config)


