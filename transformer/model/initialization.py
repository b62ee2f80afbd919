"""Initialises a model's weights before training."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from ..config import ModelConfig


def initialise(model: nn.Module, config: ModelConfig, generator: torch.Generator) -> None:
    """Draw every weight of a model; biases start at zero, gains of norms stay at one.

    Weights have the spread of "small init", √(2 / 5 d_model), which suits narrow and wide models alike (Nguyen &
    Salazar 2019, §2.2). Matrices that write to the residual stream are divided by the root of how many write to it, so
    that the stream doesn't grow with depth (GPT-2, §2.3).
    """
    spread = math.sqrt(2 / (5 * config.d_model))
    embedding_spread = config.d_model**-0.5 if config.scale_embeddings else spread
    in_order = sorted(model.named_parameters(), key=lambda named: "blocks." in named[0])  # tables before blocks
    for name, parameter in in_order:
        if name.endswith("bias"):
            nn.init.zeros_(parameter)
        elif name.endswith("embed.weight"):
            nn.init.normal_(parameter, std=embedding_spread, generator=generator)
        elif name.endswith(("attn.out.weight", "mlp.down.weight")):  # cross_attn.out.weight among them
            quieter = 1 / math.sqrt(writers(config, name))
            nn.init.normal_(parameter, std=spread * quieter, generator=generator)
        elif parameter.dim() == 2:
            nn.init.normal_(parameter, std=spread, generator=generator)


def writers(config: ModelConfig, name: str) -> int:
    """How many sublayers write to the residual stream that this parameter writes to."""
    in_encoder, in_decoder = name.startswith("encoder."), name.startswith("decoder.")
    sublayers = 1 + in_decoder + (config.d_ff > 0)  # attention, cross-attention, feed-forward
    return sublayers * (config.n_encoder_layers if in_encoder else config.n_layers)


_DRAWING = (nn.init.normal_, nn.init.uniform_, nn.init.kaiming_uniform_)


class skip_init(TorchFunctionMode):
    """Skip the random weights that PyTorch's modules draw when they are made.

    `initialise` draws ours afterwards; and for meta tensors, PyTorch's drawing would import its compiler: 80 MB and a
    second.
    """

    def __torch_function__(self, function: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        if function not in _DRAWING:
            return function(*args, **kwargs)
        return args[0] if args else kwargs["tensor"]
