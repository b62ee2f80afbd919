"""Reads the weights that a model really computes with, also if somebody replaced its linear layers.

A layer may be pruned, parametrised, quantised, or wrapped by another module such as LoRA. An unknown module is probed:
its output on the identity matrix is its weight, if it is linear at all.
Shapes: input, output (of a linear layer).
"""

from __future__ import annotations

import dataclasses
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from ..config import ModelConfig
from ..hooks import outside_calls
from .equations import parameter_names
from .layers import CappedUnembedding, HeadNorm, LayerNorm, RMSNorm, widened

_READ_THEIR_WEIGHT = (nn.Linear.forward, CappedUnembedding.forward, nn.Embedding.forward)
"""Forward methods known to use `weight` and `bias` as they are."""
_NORMS = (LayerNorm, RMSNorm, HeadNorm)
_TABLES = {
    "embed": lambda config: config.vocab_size,
    "pos_embed": lambda config: config.context_length,
    "segment_embed": lambda config: config.n_segments,
    "relative_bias": lambda config: config.relative_buckets,
}
"""How many rows each embedding has."""
_SCALES = (1.0, -1.0, 3.0)
"""Scales of the probes of linearity: vectors of zeros and ones, so scaled, survive quantisation."""


class Configured(Protocol):
    """A model, or a stack of one."""

    config: ModelConfig


def weights_of(model: Configured) -> dict[str, Tensor]:
    """Every parameter that a model's equations read, by name; unreplaced layers give their own tensors, uncopied.

    Raises: ValueError for a module that has no such weight, or a bias that no equation reads.
    """
    names = parameter_names(model.config)
    paths = [name.removesuffix(".weight") for name in names if name.endswith(".weight")]
    for path in paths:
        if f"{path}.bias" not in names and weight_of(model, f"{path}.bias").any():
            raise ValueError(f"{path} adds a bias, which the model's configuration says there is none of.")
    return {name: weight_of(model, name).detach() for name in names}


def merged(model: Configured) -> tuple[ModelConfig, dict[str, Tensor]]:
    """A configuration and weights that compute what this model computes, for a file. Raises: as `weights_of`."""
    config, weights = model.config, weights_of(model)
    is_pair = config.architecture == "encoder-decoder"
    embed, unembed = weights.get("embed.weight"), weights["unembed.weight"]
    if config.tie_embeddings and (embed is None or not torch.equal(embed, unembed)):
        config = dataclasses.replace(config, tie_embeddings=False, share_embeddings=is_pair)
    return config, weights


def weight_of(model: Configured, name: str) -> Tensor:
    """The weight or bias of a dotted name, such as "blocks.0.attn.out.weight"; zeros for a bias that isn't there.

    model: a whole model, or one stack of it. Raises: as `weights_of`.
    """
    path, _, kind = name.rpartition(".")
    module, last = _module(model, path), path.rpartition(".")[2]
    if last.startswith("ln") or last.endswith("_norm"):
        weight, bias = (_own(module, each) if isinstance(module, _NORMS) else None for each in ("weight", "bias"))
        if weight is None:
            raise ValueError(f"{path} is a {type(module).__name__}, which is none of this package's norms.")
    elif last in _TABLES:
        weight, bias = _table(module, _TABLES[last](model.config)), None
    else:
        weight, bias = linear_map(module, _inputs(model.config, last), path)
    return weight if kind == "weight" else bias_or_zeros(weight, bias)


def linear_map(module: nn.Module, inputs: int, name: str) -> tuple[Tensor, Tensor | None]:
    """The matrix (output, input) and the bias (output,), or None, of the module in a linear layer's place.

    inputs: the input width. Raises: ValueError, naming the module, if it isn't linear.
    """
    weight = _own(module, "weight") if _is_known(module) else None
    if weight is not None:
        return weight, _own(module, "bias")
    floats = [parameter for parameter in module.parameters() if parameter.is_floating_point()]
    like = floats[0] if floats else torch.empty(0)
    ones = torch.eye(inputs, dtype=like.dtype, device=like.device)
    with outside_calls():
        bias = module(torch.zeros_like(ones[None, :1]))[0, 0]
        weight = (module(ones[:, None])[:, 0] - bias).T
        if not _is_linear(module, weight, bias):
            raise ValueError(
                f"{name} is a {type(module).__name__}, and what it gives is no linear map of what it reads (if dropout "
                "is why, put the model into evaluation mode first), so it has no weights that could be read."
            )
    return weight, bias


def bias_or_zeros(weight: Tensor, bias: Tensor | None) -> Tensor:
    """A linear map's bias; zeros where it has none."""
    return weight.new_zeros(len(weight)) if bias is None else bias


@torch.no_grad()
def _is_linear(module: nn.Module, weight: Tensor, bias: Tensor) -> bool:
    """Whether a module's output equals weight · x + bias for a few random x at once."""
    points = torch.rand(5, weight.shape[1], generator=torch.Generator().manual_seed(0)) < 0.5
    points, wide, shift = points.to(weight.device, weight.dtype), widened(weight), widened(bias)
    most = points.type_as(wide) @ wide.abs().T + shift.abs()
    for scale in _SCALES:
        found, expected = module(scale * points[None])[0], scale * points.type_as(wide) @ wide.T + shift
        rounding = max(2e-6, 2 * torch.finfo(weight.dtype).eps) * abs(scale) * most
        if not ((found - expected).abs() <= rounding).all():
            return False
    return True


def _is_known(module: nn.Module) -> bool:
    """Whether a module runs a known forward method on a plain weight tensor."""
    computes = getattr(module.forward, "__func__", None)  # not if somebody replaced its forward
    return computes in _READ_THEIR_WEIGHT and type(getattr(module, "weight", None)) in (nn.Parameter, Tensor)


def _own(module: nn.Module, kind: str) -> Tensor | None:
    """The `weight` or `bias` that the module's next pass will use; None if the attribute may be stale."""
    original, mask = (getattr(module, f"{kind}_{part}", None) for part in ("orig", "mask"))
    if original is not None and mask is not None:  # pruned
        return original * mask
    is_own = parametrize.is_parametrized(module, kind) or kind in dict(module.named_parameters(recurse=False))
    return getattr(module, kind) if is_own else None


def _table(module: nn.Module, count: int) -> Tensor:
    """An embedding's rows, (row, …); an unknown module is called with each row's number."""
    if (own := _own(module, "weight") if _is_known(module) else None) is not None:
        return own
    with outside_calls():
        return module(torch.arange(count, device=next((each.device for each in module.parameters()), None)))


def _inputs(config: ModelConfig, layer: str) -> int:
    """The input width of a linear layer."""
    return {"out": config.n_heads * config.d_head, "down": config.d_ff}.get(layer, config.d_model)


def _module(model: object, path: str) -> nn.Module:
    """The submodule of this dotted name. Raises: ValueError if a replaced module lacks it."""
    found: Any = model
    seen = ""
    for name in path.split("."):
        child = found[int(name)] if name.isdigit() else getattr(found, name, None)
        if child is None:
            raise ValueError(
                f"{seen or 'The model'} is a {type(found).__name__}, which has no {name}: what can be read is the "
                "model's own module there, or one with the same parts."
            )
        found, seen = child, f"{seen}.{name}".lstrip(".")
    return found
