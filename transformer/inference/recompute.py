"""A forward pass recomputed, equation by equation, from what it recorded: so what is said to hold is checked.

There is no batch here; dimensions are those of `transformer.model.equations`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ..config import ModelConfig
from ..hooks import NamesFilter
from ..model.equations import ALL, LOGITS, PROBABILITIES, TOKEN, Equation, Operand, equations
from ..model.layers import ACTIVATIONS
from ..model.masks import causal_mask
from ..model.models import DecoderOnly, EncoderDecoder
from ..model.positions import rotate, rotation, sinusoidal_encoding
from .interventions import Intervention, hooks_of
from .places_set import places_set


@dataclass(frozen=True)
class Pass:
    """One forward pass over one text: what was read, and every tensor that was computed, parameters among them."""

    config: ModelConfig
    tokens: Tensor
    """(pos,), what a decoder reads."""
    source: Tensor
    """(source,), what an encoder reads; empty for a model that has none."""
    tensors: Mapping[str, Tensor]
    """By hook point or parameter, and `logits` and `probabilities`; the mask as (query, key)."""
    interventions: tuple[Intervention, ...] = ()
    """What was changed."""


@dataclass(frozen=True)
class Deviation:
    """How far a recorded tensor is from what its equation gives."""

    name: str
    largest: float
    """The largest absolute difference of two cells."""
    magnitude: float
    """The tensor's largest absolute value, infinities left out."""
    set_by: tuple[str, ...] = ()
    """What was changed in it, in words: then some of it doesn't follow from its equation."""


def whole_pass(
    model: DecoderOnly | EncoderDecoder,
    tokens: Sequence[int],
    source: Sequence[int] = (),
    *,
    names: NamesFilter = lambda name: True,
    interventions: Sequence[Intervention] = (),
) -> Pass:
    """Run a model over one text and keep everything. Put it into evaluation mode first.

    names: the hook points to keep, if not all, as in `run_with_cache`. interventions: what is changed in this pass;
    what is kept is what they left.
    Raises: ValueError for a text that the model can't read.
    """
    read, written = torch.tensor(list(source)), torch.tensor(list(tokens))
    with torch.no_grad():
        inputs = [each[None] for each in (read, written) if len(each)]
        logits, cache = model.run_with_cache(*inputs, names_filter=names, fwd_hooks=hooks_of(interventions, model))
    tensors = dict(model.state_dict())
    for name, tensor in cache.items():
        tensors[name] = tensor.reshape(tensor.shape[-2:]) if name.endswith("hook_mask") else tensor[0]
    tensors |= {LOGITS: logits[0], PROBABILITIES: logits[0].softmax(-1)}
    return Pass(model.config, written, read, tensors, tuple(interventions))


def deviations(found: Pass) -> list[Deviation]:
    """Every tensor of a pass against its equation, in the order of the pass."""
    places = places_set(found.interventions, found.config)
    return [
        dataclasses.replace(
            _deviation(found, equation), set_by=tuple(place.words for place in places if place.point == equation.name)
        )
        for equation in equations(found.config).values()
    ]


def recompute(found: Pass, equation: Equation) -> Tensor:
    """What an equation gives, in float64, from the tensors of a pass: in the equation's dimensions."""
    read = {role: _sum(found, equation, role) for role in equation.operands}
    x = read.get("x")
    match equation.operation:
        case "look up":
            factor = math.sqrt(found.config.d_model) if found.config.scale_embeddings else 1.0
            return read["table"] * factor
        case "position":
            return sinusoidal_encoding(len(_read_by(found, equation.name)), found.config.d_model).double()
        case "add":
            return x
        case "spread":
            return (x.var(-1, keepdim=True, correction=0) + found.config.layer_norm_eps).sqrt()
        case "normalise":
            return (x - x.mean(-1, keepdim=True)) / read["spread"] * read["gain"] + read["shift"]
        case "length":
            return (x.square().mean(-1, keepdim=True) + found.config.layer_norm_eps).sqrt()
        case "shorten":
            return x / read["spread"] * read["gain"]
        case "multiply":
            return _products(found, equation) + read.get("bias", 0.0)
        case "rotate":
            return rotate(x.flatten(2)[None], **rotation(found.config))[0].view_as(x)
        case "divide":
            return x / math.sqrt(found.config.d_head) if found.config.attention_scale else x
        case "see":
            return _visible(found, equation.name)
        case "hide":
            return torch.where(read["mask"].bool(), x, -math.inf)
        case "softmax":
            return x.softmax(-1).nan_to_num(0.0)  # a query that sees nothing gives every key the weight 0
        case "average":
            row = x / x.sum(-1, keepdim=True).clamp(min=1)
            return row.expand(found.config.n_heads, -1, -1)
        case "activate":
            return ACTIVATIONS[found.config.activation](x)
        case "gate":
            return ACTIVATIONS[found.config.activation](x) * read["factor"]
    raise ValueError(f"There is no operation called {equation.operation!r}.")


def viewed(found: Pass, operand: Operand) -> Tensor:
    """A tensor in the dimensions that an equation reads it by."""
    tensor = found.tensors[operand.name]
    if tensor.dim() == len(operand.dims):
        return tensor
    config = found.config
    if "member" in operand.dims:
        groups = (config.kv_heads, config.n_heads // config.kv_heads)
        return tensor.unflatten(operand.dims.index("kv_head"), groups)
    sizes = {"head": config.n_heads, "kv_head": config.kv_heads, "d_head": config.d_head, "d_model": config.d_model,
             "side": 2, "pair": config.d_head // 2}  # fmt: skip
    return tensor.reshape([sizes.get(name, -1) for name in operand.dims])


def _sum(found: Pass, equation: Equation, role: str) -> Tensor:
    """What stands in one role, in float64: of a table the rows that the text reads, of several matrices the one."""
    total = torch.zeros((), dtype=torch.float64)
    for operand in equation.operands[role]:
        tensor = viewed(found, operand).double()
        if operand.cells[0] == TOKEN:
            tensor = tensor[_read_by(found, equation.name)]
        elif operand.name.endswith("pos_embed.weight"):
            tensor = tensor[: len(_read_by(found, equation.name))]
        elif operand.dims[0] == "part":
            tensor = tensor[operand.cells[0]]
        elif operand.dims[0] == "qkv_head":
            heads = found.config.n_heads if operand.cells[0] == "head" else found.config.kv_heads
            tensor = tensor[operand.shift : operand.shift + heads]
        total = total + tensor
    return total


def _products(found: Pass, equation: Equation) -> Tensor:
    """Σ x · weight over the dimensions that the result doesn't have."""
    subscripts = []
    for role in ("x", "weight"):
        operand = equation.operands[role][0]
        kept = [(dim, cell) for dim, cell in zip(operand.dims, operand.cells, strict=True) if isinstance(cell, str)]
        subscripts.append([f"Σ {dim}" if cell == ALL else cell for dim, cell in kept])
    names = sorted({*subscripts[0], *subscripts[1]})
    letters = {name: chr(ord("a") + at) for at, name in enumerate(names)}
    left, right, result = ("".join(letters[name] for name in names) for names in (*subscripts, equation.dims))
    x, weight = (_sum(found, equation, role) for role in ("x", "weight"))
    return torch.einsum(f"{left},{right}->{result}", x, weight)


def _visible(found: Pass, name: str) -> Tensor:
    is_cross, is_encoder = ".cross_attn." in name, name.startswith("encoder.")
    keys = found.source if is_cross or is_encoder else found.tokens
    queries = found.source if is_encoder else found.tokens
    mask = torch.ones(len(queries), len(keys), dtype=torch.bool)
    if not (is_cross or is_encoder):
        layer = int(name.partition("blocks.")[2].partition(".")[0])
        mask = causal_mask(len(queries), len(keys), mask.device, found.config.window(layer))
    pad = found.config.pad_token_id
    return mask if pad is None else mask & (keys != pad)


def _read_by(found: Pass, name: str) -> Tensor:
    """The tokens that a hook point's stack reads."""
    return found.source if name.startswith("encoder.") else found.tokens


def _deviation(found: Pass, equation: Equation) -> Deviation:
    recorded = found.tensors[equation.name].double().reshape(-1)
    expected = recompute(found, equation).double().reshape(-1)
    both = recorded.isfinite() & expected.isfinite()
    difference = (recorded - expected).abs()[both]
    is_elsewhere = bool((recorded != expected)[~both].any())  # one is −∞ where the other isn't
    largest = math.inf if is_elsewhere else float(difference.max()) if len(difference) else 0.0
    finite = recorded[recorded.isfinite()].abs()
    return Deviation(equation.name, largest, float(finite.max()) if len(finite) else 0.0)
