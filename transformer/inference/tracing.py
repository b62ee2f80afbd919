"""Traces a forward pass, and recomputes every tensor of it from its equation as a check.

There is no batch here; dimensions are those of `transformer.model.equations`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor

from ..config import ModelConfig
from ..hooks import HookPoint, NamesFilter
from ..model.equations import (
    ALL,
    LOGITS,
    PROBABILITIES,
    SEGMENT,
    TOKEN,
    UNCAPPED_LOGITS,
    Equation,
    Operand,
    equations,
    unembedding_equation,
)
from ..model.layers import ACTIVATIONS
from ..model.masks import causal_mask, full_mask
from ..model.models import Model
from ..model.positions import relative_buckets, rotate, sinusoidal_encoding
from ..model.registry import hook_points
from ..model.stacks import segments_of
from .inputs import Ids, ids_of, inputs_of, parameters_of
from .interventions import Intervention, hooks_of
from .logits import probabilities_of
from .overwritten_values import overwritten_values

T = TypeVar("T")
OUTPUTS_AT_ONCE = 4_000_000
"""Logits to compare at once."""


class Traced(dict[str, T]):
    """The tensors of a pass by name; a missing one raises a ValueError that says why."""

    def __missing__(self, name: str) -> T:
        raise ValueError(
            f"This pass has no {name}: it wasn't recorded, or another module stands where the model computes it."
        )


@dataclass(frozen=True)
class Trace:
    """One forward pass over one text: its tokens, and every tensor, including parameters.

    All tensors are on the CPU, wherever they were computed.
    """

    config: ModelConfig
    tokens: Tensor
    """(pos,), the decoder's text."""
    source: Tensor
    """(source,), the encoder's text; empty for a model without one."""
    tensors: Mapping[str, Tensor]
    """By hook point or parameter, and `logits` and `probabilities`; the mask as (query, key)."""
    interventions: tuple[Intervention, ...] = ()
    """The interventions in the pass."""
    segments: Tensor = dataclasses.field(default_factory=lambda: torch.zeros(0, dtype=torch.long))
    """(pos,), the segment of each token; empty if separators determine them."""

    def __post_init__(self) -> None:
        if not isinstance(self.tensors, Traced):
            object.__setattr__(self, "tensors", Traced(self.tensors))


@dataclass(frozen=True)
class Deviation:
    """The difference of a recorded tensor from its equation."""

    name: str
    largest: float
    """The largest absolute difference of two cells."""
    magnitude: float
    """The tensor's largest finite absolute value."""
    set_by: tuple[str, ...] = ()
    """The interventions on it in words: it needn't follow from its equation there."""

    def to_dict(self) -> dict[str, Any]:
        """Its fields as JSON values; None for an infinite difference."""
        return {**vars(self), "largest": self.largest if math.isfinite(self.largest) else None}


def every_point(name: str) -> bool:
    """Stands for all points of a model."""
    return True


def trace_pass(
    model: Model,
    tokens: Ids,
    source: Ids = (),
    *,
    segments: Ids = (),
    names: NamesFilter = every_point,
    interventions: Sequence[Intervention] = (),
    outputs: bool = True,
) -> Trace:
    """Run a model over one text and keep everything. Put it into evaluation mode first.

    segments: (pos,), the segment of each token, for a model with segments; by default separators determine them.
    names: the hook points to keep, if not all, as in `run_with_cache`. interventions: those of the pass; the kept
    tensors are the changed ones. outputs: whether to keep logits and probabilities; without them the pass ends with the
    last of the points. The numbers don't depend on which points are kept.
    Raises: ValueError for a text that the model can't read.
    """
    inputs, hooks = inputs_of(model, tokens, source, segments), hooks_of(interventions, model)
    results: dict[str, Tensor] = {}
    with torch.no_grad():
        if outputs:
            logits, cache = model.run_with_cache(*inputs, names_filter=names, fwd_hooks=hooks, watched=every_point)
            results = {LOGITS: logits[0].cpu(), PROBABILITIES: probabilities_of(logits[0].cpu())}
        else:
            cache = model.run_until_recorded(*inputs, names_filter=names, fwd_hooks=hooks, watched=every_point)
    points = {name: _of_text(name, tensor) for name, tensor in cache.items()}
    tensors = {**parameters_of(model), **points, **results}
    read = torch.tensor(ids_of(segments), dtype=torch.long)
    return Trace(model.config, *_read_and_written(tokens, source), tensors, tuple(interventions), read)


def deviations(trace: Trace) -> list[Deviation]:
    """Compare every tensor of a pass with its equation, in the order of the pass."""
    overwritten = overwritten_values(trace.interventions, trace.config)
    return [
        dataclasses.replace(
            _deviation(trace, equation),
            set_by=tuple(values.words for values in overwritten if values.point == equation.name),
        )
        for equation in equations(trace.config).values()
    ]


@torch.no_grad()
def deviations_of_text(
    model: Model, tokens: Ids, source: Ids = (), interventions: Sequence[Intervention] = ()
) -> list[Deviation]:
    """The same as `deviations`, computed while the model reads the text: each tensor is compared as it arrives, and
    kept until no equation needs it. Logits, which can be many, are compared a few at a time.
    """
    table, points = equations(model.config), hook_points(model.config)
    last_reader = {operand.name: name for name, equation in table.items() for operand in equation.sources}
    overwritten = overwritten_values(interventions, model.config)
    tensors = Traced(parameters_of(model))
    trace = Trace(model.config, *_read_and_written(tokens, source), tensors, tuple(interventions))
    known = Traced[Deviation]()

    def see(tensor: Tensor, hook: HookPoint) -> None:
        name = hook.name
        tensors[name] = _of_text(name, tensor)
        if name in table:
            known[name] = _deviation(trace, table[name])
            done = [operand.name for operand in table[name].sources if last_reader[operand.name] == name]
            for over in (*done, *(() if name in last_reader else (name,))):
                if over in points:
                    tensors.pop(over, None)

    with model.hooked([*hooks_of(interventions, model), (lambda name: True, see)]):
        stream = model.stream(*inputs_of(model, tokens, source))[0]
    known |= _outputs_compared(trace, table, stream, model)
    set_by = {name: tuple(values.words for values in overwritten if values.point == name) for name in table}
    return [dataclasses.replace(known[name], set_by=set_by[name]) for name in table]


def _outputs_compared(
    trace: Trace, table: Mapping[str, Equation], stream: Tensor, model: Model
) -> dict[str, Deviation]:
    """The deviations of logits and probabilities, a part of the vocabulary and of the positions at a time."""
    recorded: dict[str, Tensor] = {}
    names = [name for name in (UNCAPPED_LOGITS,) if name in table]
    with model.hooked([(names, lambda tensor, hook: recorded.update({hook.name: tensor.cpu()}))]):
        logits = recorded[LOGITS] = model.unembed(stream).cpu()
    equation = unembedding_equation(trace.config)
    products, weight, bias = equation.name, trace.tensors["unembed.weight"], equation.operands.get("bias")
    shift = torch.zeros(len(weight)) if bias is None else trace.tensors[bias[0].name]
    x, parts = _sum(trace, equation, "x"), []
    size = max(1, OUTPUTS_AT_ONCE // (x.shape[-1] + len(x)))
    for start in range(0, len(weight), size):
        some = slice(start, start + size)
        expected = x @ weight[some].double().T + shift[some].double()
        parts.append(_compared(products, recorded[products][:, some], expected))
    known = {products: _largest(parts)}
    if products != LOGITS:
        cap = table[LOGITS].constants["cap"]
        known[LOGITS] = _compared(LOGITS, logits, cap * (recorded[products].double() / cap).tanh())
    parts = [
        _compared(PROBABILITIES, probabilities_of(rows), rows.double().softmax(-1))
        for rows in logits.split(max(1, OUTPUTS_AT_ONCE // logits.shape[-1]))
    ]
    return {**known, PROBABILITIES: _largest(parts)}


def _read_and_written(tokens: Ids, source: Ids) -> tuple[Tensor, Tensor]:
    return torch.tensor(ids_of(tokens)), torch.tensor(ids_of(source), dtype=torch.long)


def _of_text(name: str, tensor: Tensor) -> Tensor:
    """A recorded tensor of a batch of one text, as a trace keeps it."""
    return (tensor.reshape(tensor.shape[-2:]) if name.endswith("hook_mask") else tensor[0]).cpu()


def _largest(parts: Sequence[Deviation]) -> Deviation:
    """Merge the deviations of a tensor's parts."""
    return Deviation(parts[0].name, max(part.largest for part in parts), max(part.magnitude for part in parts))


def recompute(trace: Trace, equation: Equation) -> Tensor:
    """Evaluate an equation in float64 on the tensors of a pass; returns the equation's dimensions."""
    read = {role: _sum(trace, equation, role) for role in equation.operands}
    x = read.get("x", torch.tensor(math.nan))  # unused by equations without tokens
    match equation.operation:
        case "look up":
            factor = math.sqrt(trace.config.d_model) if trace.config.scale_embeddings else 1.0
            return read["table"] * equation.constants.get("factor", factor)
        case "position":
            return sinusoidal_encoding(len(_read_by(trace, equation.name)), trace.config.d_model).double()
        case "see":
            return _visible(trace, equation.name)
        case "add":
            return x
        case "spread":
            return (x.var(_over(equation), keepdim=True, correction=0) + trace.config.layer_norm_eps).sqrt()
        case "normalise":
            return (x - x.mean(_over(equation), keepdim=True)) / read["spread"] * read["gain"] + read["shift"]
        case "length":
            return (x.square().mean(_over(equation), keepdim=True) + trace.config.layer_norm_eps).sqrt()
        case "shorten":
            return x / read["spread"] * read["gain"]
        case "multiply":
            return _products(trace, equation) + read.get("bias", 0.0)
        case "clip":
            limit = equation.constants["limit"]
            return (_products(trace, equation) + read.get("bias", 0.0)).clamp(-limit, limit)
        case "rotate":
            return rotate(x.flatten(2)[None], **equation.constants)[0].view_as(x)
        case "cap":
            cap = equation.constants["cap"]
            return cap * (x / cap).tanh()
        case "distance":
            places = torch.arange(len(_read_by(trace, equation.name)), dtype=torch.float64)
            slopes = torch.tensor(equation.constants["slopes"], dtype=torch.float64)
            return -slopes[:, None, None] * (places[:, None] - places).abs()
        case "bucket":
            count = len(_read_by(trace, equation.name))
            buckets = relative_buckets(trace.config, count, count, equation.constants["causal"])
            return read["table"][buckets].permute(2, 0, 1)
        case "divide":
            return x / math.sqrt(trace.config.d_head) if trace.config.attention_scale else x
        case "hide":
            return torch.where(read["mask"].bool(), x, -math.inf)
        case "softmax":
            return x.softmax(-1).nan_to_num(0.0)  # a query that sees no key has zero weights
        case "average":
            row = x / x.sum(-1, keepdim=True).clamp(min=1)
            return row.expand(trace.config.n_heads, -1, -1)
        case "activate":
            return ACTIVATIONS[trace.config.activation](x)
        case "gate":
            return ACTIVATIONS[trace.config.activation](x) * read["factor"]
    raise ValueError(f"There is no operation called {equation.operation!r}.")


def _over(equation: Equation) -> list[int]:
    """The dimensions that a norm averages over: the last, or the last two."""
    return list(range(-equation.operands["x"][0].cells.count(ALL), 0))


def viewed(trace: Trace, operand: Operand) -> Tensor:
    """View a tensor in the dimensions of an equation."""
    tensor = trace.tensors[operand.name]
    if tensor.dim() == len(operand.dims):
        return tensor
    config = trace.config
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


def _sum(trace: Trace, equation: Equation, role: str) -> Tensor:
    """The sum of one role's operands in float64. Look up the text's rows in a table; select one matrix of several."""
    total = torch.zeros((), dtype=torch.float64)
    for operand in equation.operands[role]:
        tensor = viewed(trace, operand)
        if operand.cells[0] == TOKEN:
            tensor = tensor[_read_by(trace, equation.name)]
        elif operand.cells[0] == SEGMENT:
            tensor = tensor[trace.segments if len(trace.segments) else segments_of(trace.tokens, trace.config)]
        elif operand.name.endswith("pos_embed.weight"):
            tensor = tensor[: len(_read_by(trace, equation.name))]
        elif isinstance(operand.cells[0], int):
            tensor = tensor[operand.cells[0]]
        elif operand.dims[0] == "qkv_head":
            heads = trace.config.n_heads if operand.cells[0] == "head" else trace.config.kv_heads
            tensor = tensor[operand.shift : operand.shift + heads]
        total = total + tensor.double()
    return total


def _products(trace: Trace, equation: Equation) -> Tensor:
    """Σ x · weight over the dimensions that the result doesn't have."""
    subscripts = []
    for role in ("x", "weight"):
        operand = equation.operands[role][0]
        kept = [(dim, cell) for dim, cell in zip(operand.dims, operand.cells, strict=True) if isinstance(cell, str)]
        subscripts.append([f"Σ {dim}" if cell == ALL else cell for dim, cell in kept])
    names = sorted({*subscripts[0], *subscripts[1]})
    letters = {name: chr(ord("a") + at) for at, name in enumerate(names)}
    left, right, result = ("".join(letters[name] for name in names) for names in (*subscripts, equation.dims))
    x, weight = (_sum(trace, equation, role) for role in ("x", "weight"))
    return torch.einsum(f"{left},{right}->{result}", x, weight)


def _visible(trace: Trace, name: str) -> Tensor:
    is_cross, is_encoder = ".cross_attn." in name, name.startswith("encoder.")
    keys = trace.source if is_cross or is_encoder else trace.tokens
    queries = trace.source if is_encoder else trace.tokens
    window = trace.config.window(int(name.partition("blocks.")[2].partition(".")[0]))
    is_causal = trace.config.is_causal and not (is_cross or is_encoder)
    mask = (causal_mask if is_causal else full_mask)(len(queries), len(keys), "cpu", window)
    pad = trace.config.pad_token_id
    return mask if pad is None else mask & (keys != pad)


def _read_by(trace: Trace, name: str) -> Tensor:
    """The tokens that a hook point's stack reads."""
    return trace.source if name.startswith("encoder.") else trace.tokens


def _deviation(trace: Trace, equation: Equation) -> Deviation:
    return _compared(equation.name, trace.tensors[equation.name], recompute(trace, equation))


def _compared(name: str, recorded: Tensor, expected: Tensor) -> Deviation:
    recorded, expected = recorded.double().reshape(-1), expected.double().reshape(-1)
    both = recorded.isfinite() & expected.isfinite()
    difference = (recorded - expected).abs()[both]
    is_elsewhere = bool((recorded != expected)[~both].any())  # only one of the two is −∞ there
    largest = math.inf if is_elsewhere else float(difference.max()) if len(difference) else 0.0
    finite = recorded[recorded.isfinite()].abs()
    return Deviation(name, largest, float(finite.max()) if len(finite) else 0.0)
