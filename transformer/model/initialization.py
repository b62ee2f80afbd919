"""How weights are drawn before training."""

from __future__ import annotations

import math

import torch
from torch import nn

from ..config import ModelConfig


def initialise(model: nn.Module, generator: torch.Generator) -> None:
    config = model.config
    spread = math.sqrt(2 / (5 * config.d_model))
    embedding_spread = config.d_model**-0.5 if config.scale_embeddings else spread
    in_order = sorted(model.named_parameters(), key=lambda named: "blocks." in named[0])  # tables before blocks
    for name, parameter in in_order:
        if name.endswith("bias"):
            nn.init.zeros_(parameter)
        elif name.endswith("embed.weight"):
            nn.init.normal_(parameter, std=embedding_spread, generator=generator)
        elif name.endswith(("attn.out.weight", "mlp.down.weight")):  # cross_attn.out.weight among them
            quieter = 1 / math.sqrt(_writers(config, name))
            nn.init.normal_(parameter, std=spread * quieter, generator=generator)
        elif parameter.dim() == 2:
            nn.init.normal_(parameter, std=spread, generator=generator)


def _writers(config: ModelConfig, name: str) -> int:
    """How many sublayers write to the residual stream that this parameter's sublayer writes to."""
    if name.startswith("encoder."):
        return 2 * config.n_encoder_layers
    return (3 if name.startswith("decoder.") else 2) * config.n_layers
