"""Traces a forward pass, and recomputes every tensor of it from its equation as a check.

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
from ..hooks import HookPoint, NamesFilter
from ..model.equations import ALL, LOGITS, PROBABILITIES, TOKEN, Equation, Operand, equations
from ..model.layers import ACTIVATIONS
from ..model.masks import causal_mask
from ..model.models import DecoderOnly, EncoderDecoder
from ..model.positions import rotate, rotation, sinusoidal_encoding
from ..model.registry import hook_points
from .inputs import Ids, ids_of, inputs_of, parameters_of
from .interventions import Intervention, hooks_of
from .logits import probabilities_of
from .overwritten_values import overwritten_values

OUTPUTS_AT_ONCE = 4_000_000
"""Numbers of the logits that are compared at once."""


@dataclass(frozen=True)
class Trace:
    """One forward pass over one text: what was read, and every tensor that was computed, parameters among them.

    All of it is on the CPU, wherever it was computed.
    """

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


def every_point(name: str) -> bool:
    """All points of a model."""
    return True


def trace_pass(
    model: DecoderOnly | EncoderDecoder,
    tokens: Ids,
    source: Ids = (),
    *,
    names: NamesFilter = every_point,
    interventions: Sequence[Intervention] = (),
    outputs: bool = True,
) -> Trace:
    """Run a model over one text and keep everything. Put it into evaluation mode first.

    names: the hook points to keep, if not all, as in `run_with_cache`. interventions: what is changed in this pass;
    what is kept is what they left. outputs: whether logits and probabilities are kept; without
    them the pass ends with the last of the points. Whichever points are kept, their numbers are the same.
    Raises: ValueError for a text that the model can't read.
    """
    inputs, hooks = inputs_of(model, tokens, source), hooks_of(interventions, model)
    results: dict[str, Tensor] = {}
    with torch.no_grad():
        if outputs:
            logits, cache = model.run_with_cache(*inputs, names_filter=names, fwd_hooks=hooks, watched=every_point)
            results = {LOGITS: logits[0].cpu(), PROBABILITIES: probabilities_of(logits[0].cpu())}
        else:
            cache = model.run_until_recorded(*inputs, names_filter=names, fwd_hooks=hooks, watched=every_point)
    points = {name: _of_text(name, tensor) for name, tensor in cache.items()}
    tensors = {**parameters_of(model), **points, **results}
    return Trace(model.config, *_read_and_written(tokens, source), tensors, tuple(interventions))


def deviations(found: Trace) -> list[Deviation]:
    """Every tensor of a pass against its equation, in the order of the pass."""
    overwritten = overwritten_values(found.interventions, found.config)
    return [
        dataclasses.replace(
            _deviation(found, equation), set_by=tuple(each.words for each in overwritten if each.point == equation.name)
        )
        for equation in equations(found.config).values()
    ]


@torch.no_grad()
def deviations_of_text(
    model: DecoderOnly | EncoderDecoder, tokens: Ids, source: Ids = (), interventions: Sequence[Intervention] = ()
) -> list[Deviation]:
    """The same as `deviations` of a whole pass, while the model reads the text: each tensor is compared as it comes,
    and kept until no equation reads it any more. Of the logits, which may be very many, a few are compared at a time.
    """
    table, points = equations(model.config), hook_points(model.config)
    last_reader = {operand.name: name for name, equation in table.items() for operand in equation.sources}
    overwritten = overwritten_values(interventions, model.config)
    tensors = parameters_of(model)
    found = Trace(model.config, *_read_and_written(tokens, source), tensors, tuple(interventions))
    known: dict[str, Deviation] = {}

    def see(tensor: Tensor, hook: HookPoint) -> None:
        name = hook.name
        tensors[name] = _of_text(name, tensor)
        if name in table:
            known[name] = _deviation(found, table[name])
            done = [operand.name for operand in table[name].sources if last_reader[operand.name] == name]
            for over in (*done, *(() if name in last_reader else (name,))):
                if over in points:
                    tensors.pop(over, None)

    with model.hooked([*hooks_of(interventions, model), (lambda name: True, see)]):
        stream = model.stream(*inputs_of(model, tokens, source))[0]
    known |= _outputs_compared(found, table, stream, model)
    set_by = {name: tuple(each.words for each in overwritten if each.point == name) for name in table}
    return [dataclasses.replace(known[name], set_by=set_by[name]) for name in table]


def _outputs_compared(
    found: Trace, table: Mapping[str, Equation], stream: Tensor, model: DecoderOnly | EncoderDecoder
) -> dict[str, Deviation]:
    """How far logits and probabilities are from their equations: some of the vocabulary, some positions at a time."""
    logits = model.unembed(stream).cpu()
    weight, bias = found.tensors["unembed.weight"], table[LOGITS].operands.get("bias")
    shift = torch.zeros(len(weight)) if bias is None else found.tensors[bias[0].name]
    x, parts = _sum(found, table[LOGITS], "x"), []
    size = max(1, OUTPUTS_AT_ONCE // (x.shape[-1] + len(x)))
    for start in range(0, len(weight), size):
        some = slice(start, start + size)
        parts.append(_compared(LOGITS, logits[:, some], x @ weight[some].double().T + shift[some].double()))
    known = {LOGITS: _largest(parts)}
    parts = [
        _compared(PROBABILITIES, probabilities_of(rows), rows.double().softmax(-1))
        for rows in logits.split(max(1, OUTPUTS_AT_ONCE // logits.shape[-1]))
    ]
    return {**known, PROBABILITIES: _largest(parts)}


def _read_and_written(tokens: Ids, source: Ids) -> tuple[Tensor, Tensor]:
    return torch.tensor(ids_of(tokens)), torch.tensor(ids_of(source), dtype=torch.long)


def _of_text(name: str, tensor: Tensor) -> Tensor:
    """What a point has recorded of a batch of one text, as a pass keeps it."""
    return (tensor.reshape(tensor.shape[-2:]) if name.endswith("hook_mask") else tensor[0]).cpu()


def _largest(parts: Sequence[Deviation]) -> Deviation:
    """The deviation of a tensor, from those of its parts."""
    return Deviation(parts[0].name, max(part.largest for part in parts), max(part.magnitude for part in parts))


def recompute(found: Trace, equation: Equation) -> Tensor:
    """What an equation gives, in float64, from the tensors of a pass: in the equation's dimensions."""
    read = {role: _sum(found, equation, role) for role in equation.operands}
    x = read.get("x", torch.tensor(math.nan))  # which what reads none doesn't use
    match equation.operation:
        case "look up":
            factor = math.sqrt(found.config.d_model) if found.config.scale_embeddings else 1.0
            return read["table"] * factor
        case "position":
            return sinusoidal_encoding(len(_read_by(found, equation.name)), found.config.d_model).double()
        case "see":
            return _visible(found, equation.name)
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


def viewed(found: Trace, operand: Operand) -> Tensor:
    """A tensor in the dimensions that an equation reads it by."""
    tensor = found.tensors[operand.name]
    if tensor.dim() == len(operand.dims):
        return tensor
    config = found.config
    if "member" in operand.dims:
        groups = (config.kv_heads, config.n_heads // config.kv_heads)
        return tensor.unflatten(operand.dims.index("kv_head"), groups)
    sizes = {
        "head": config.n_heads,
        "kv_head": config.kv_heads,
        "d_head": config.d_head,
        "d_model": config.d_model,
        "side": 2,
        "pair": config.d_head // 2,
    }
    return tensor.reshape([sizes.get(name, -1) for name in operand.dims])


def _sum(found: Trace, equation: Equation, role: str) -> Tensor:
    """What stands in one role, in float64: of a table the rows that the text reads, of several matrices the one."""
    total = torch.zeros((), dtype=torch.float64)
    for operand in equation.operands[role]:
        tensor = viewed(found, operand)
        if operand.cells[0] == TOKEN:
            tensor = tensor[_read_by(found, equation.name)]
        elif operand.name.endswith("pos_embed.weight"):
            tensor = tensor[: len(_read_by(found, equation.name))]
        elif operand.dims[0] == "part":
            tensor = tensor[operand.cells[0]]
        elif operand.dims[0] == "qkv_head":
            heads = found.config.n_heads if operand.cells[0] == "head" else found.config.kv_heads
            tensor = tensor[operand.shift : operand.shift + heads]
        total = total + tensor.double()
    return total


def _products(found: Trace, equation: Equation) -> Tensor:
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


def _visible(found: Trace, name: str) -> Tensor:
    is_cross, is_encoder = ".cross_attn." in name, name.startswith("encoder.")
    keys = found.source if is_cross or is_encoder else found.tokens
    queries = found.source if is_encoder else found.tokens
    mask = torch.ones(len(queries), len(keys), dtype=torch.bool)
    if not (is_cross or is_encoder):
        layer = int(name.partition("blocks.")[2].partition(".")[0])
        mask = causal_mask(len(queries), len(keys), mask.device, found.config.window(layer))
    pad = found.config.pad_token_id
    return mask if pad is None else mask & (keys != pad)


def _read_by(found: Trace, name: str) -> Tensor:
    """The tokens that a hook point's stack reads."""
    return found.source if name.startswith("encoder.") else found.tokens


def _deviation(found: Trace, equation: Equation) -> Deviation:
    return _compared(equation.name, found.tensors[equation.name], recompute(found, equation))


def _compared(name: str, recorded: Tensor, expected: Tensor) -> Deviation:
    recorded, expected = recorded.double().reshape(-1), expected.double().reshape(-1)
    both = recorded.isfinite() & expected.isfinite()
    difference = (recorded - expected).abs()[both]
    is_elsewhere = bool((recorded != expected)[~both].any())  # one is −∞ where the other isn't
    largest = math.inf if is_elsewhere else float(difference.max()) if len(difference) else 0.0
    finite = recorded[recorded.isfinite()].abs()
    return Deviation(name, largest, float(finite.max()) if len(finite) else 0.0)
