"""The outline of a whole forward pass: what a picture of all of it is drawn from, small enough to be sent at once.

Shapes: pos, query, key, head, d_model; height counts the places where the residual stream is read: before the first
block, and after each. There is no batch.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ..config import ModelConfig
from ..model.equations import LOGITS, PROBABILITIES, Equation, Operand, equations
from ..model.parameters import parameter_meaning
from ..model.registry import attention_modules, hook_points
from .overview import pool, quantise
from .places_set import places_set
from .recompute import Pass
from .recording import Recording
from .residual import heights, read_lens

MOST_CELLS = 48
"""Cells of a token's strip."""
LIKELIEST = 3
"""Tokens that are named of each position's prediction."""


@dataclass(frozen=True)
class TensorInfo:
    """One tensor of a pass, or a parameter of its model."""

    name: str
    kind: str
    """"point", "output" or "parameter"."""
    meaning: str
    formula: str
    dims: tuple[str, ...]
    """Of a parameter as the equations read it: one that holds several matrices is cut into them."""
    sizes: tuple[int, ...]


def tensors_of(config: ModelConfig, tokens: int, source: int = 0) -> dict[str, TensorInfo]:
    """Every tensor of a pass by name, in its order, and then the parameters. tokens, source: how many there are."""
    table, points = equations(config), hook_points(config)
    unembedding = "x · W_U + b_U" if config.unembed_bias else "x · W_U"
    about = {name: ("point", point.meaning, point.formula) for name, point in points.items()}
    about[LOGITS] = ("output", "How much speaks for each token as the next.", unembedding)
    about[PROBABILITIES] = ("output", "The odds of each token as the next.", "exp(logit_t) / Σ_t exp(logit_t)")
    dims = {name: points[name].shape if name in points else table[name].dims for name in table}
    for equation in table.values():
        for operand in equation.sources:
            if operand.name not in table and operand.name not in about:
                about[operand.name] = ("parameter", parameter_meaning(operand.name), "")
                dims[operand.name] = operand.dims
    found = {}
    for name, (kind, meaning, formula) in about.items():
        named = tuple(dim for dim in dims[name] if dim != "batch")
        sizes = _sizes(config, name, kind, tokens, source)
        found[name] = TensorInfo(name, kind, meaning, formula, named, tuple(sizes[dim] for dim in named))
    return found


def array_of(found: Pass, info: TensorInfo) -> np.ndarray:
    """A tensor of a pass in its dimensions, float32; truth values as bytes. The array shares the tensor's memory."""
    tensor = found.tensors[info.name].detach().reshape(info.sizes)
    return (tensor.to(torch.uint8) if tensor.dtype == torch.bool else tensor.float()).numpy()


def outline(found: Pass) -> Recording:
    """What the picture of a whole pass is drawn from.

    Tensors: `statistics` (tensor, 4), mean, spread, smallest and largest finite value, in the order of the metadata's
    `tensors`; `strip.NAME` (pos, cell) of each point that is as wide as the stream, as `strip` makes them;
    `arcs.MODULE` (head, query, key) of each attention, as `pool` and `quantise` make them; `next` (pos, 3), the
    likeliest tokens, and `next.probability`; `lens` (height, pos), what each height would have said, and
    `lens.probability`; `lens.right`, the probability of the token that follows in the text, NaN where none does, and
    `lens.rank`, its rank, 0 where none does.
    Metadata: `config`; `tensors`, the fields of `TensorInfo`; `equations`; `stacks`, the sides of the model;
    `strip_limits` by name; `ids` of text and source; `changed`, the fields of what `places_set` has.
    """
    config = found.config
    infos, table = tensors_of(config, len(found.tokens), len(found.source)), equations(config)
    arrays = {name: array_of(found, info) for name, info in infos.items()}
    strips = {name: strip(arrays[name]) for name, info in infos.items()
              if info.kind == "point" and info.dims == ("pos", "d_model")}  # fmt: skip
    return Recording(
        {
            "statistics": np.array([statistics(array) for array in arrays.values()], dtype=np.float32),
            **{f"strip.{name}": cells for name, (cells, _) in strips.items()},
            **_arcs(config, arrays),
            **_said_next(found),
        },
        {
            "config": config.to_dict(),
            "tensors": [dict(vars(info)) for info in infos.values()],
            "equations": [_as_table(equation) for equation in table.values()],
            "stacks": _stacks(config),
            "strip_limits": {name: limit for name, (_, limit) in strips.items()},
            "ids": {"text": found.tokens.tolist(), "source": found.source.tolist()},
            "changed": [dataclasses.asdict(place) for place in places_set(found.interventions, config)],
        },
    )


def statistics(values: np.ndarray) -> tuple[float, float, float, float]:
    """Mean, spread (standard deviation), smallest and largest of the finite values; NaN where there is none."""
    finite = values[np.isfinite(values)]
    if not finite.size:
        return (np.nan,) * 4
    return (float(finite.mean(dtype=np.float64)), float(finite.std(dtype=np.float64)),
            float(finite.min()), float(finite.max()))  # fmt: skip


def strip(values: np.ndarray, most: int = MOST_CELLS) -> tuple[np.ndarray, float]:
    """A stream (pos, d_model) as bytes, at most `most` a token: of the values that share a cell the farthest from 0.

    Returns: bytes, 128 + 127 · value / limit; and the limit, the largest absolute value.
    """
    values = np.nan_to_num(values, posinf=0.0, neginf=0.0)
    width = values.shape[-1]
    cells = min(width, most)
    starts = np.arange(cells) * width // cells
    high, low = (reduce.reduceat(values, starts, axis=-1) for reduce in (np.maximum, np.minimum))
    pooled = np.where(high >= -low, high, low)
    limit = float(np.abs(values).max(initial=0.0))
    return np.rint(128 + 127 * (pooled / limit if limit else pooled)).astype(np.uint8), limit


def _sizes(config: ModelConfig, name: str, kind: str, tokens: int, source: int) -> dict[str, int]:
    """How many places there are along each dimension of a tensor."""
    is_encoder, parts = name.startswith("encoder."), {"qkv": 3, "kv": 2}
    read = source if is_encoder else tokens
    return {
        "pos": config.context_length if kind == "parameter" else read,
        "query": read,
        "key": source if is_encoder or ".cross_attn." in name else tokens,
        "head": config.n_heads,
        "kv_head": config.kv_heads,
        "qkv_head": config.n_heads + 2 * config.kv_heads,
        "d_head": config.d_head,
        "d_model": config.d_model,
        "d_ff": config.d_ff,
        "vocab": config.vocab_size,
        "part": parts.get(name.split(".")[-2] if "." in name else "", 1),
        "1": 1,
    }


def _arcs(config: ModelConfig, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    modules = [module for found in attention_modules(config).values() for module in found]
    return {
        f"arcs.{module}": quantise(*pool(arrays[f"{module}.hook_pattern"], arrays[f"{module}.hook_mask"] == 0))
        for module in modules
    }


def _said_next(found: Pass) -> dict[str, np.ndarray]:
    """What the stack that writes says comes next, at its end and, read by the logit lens, at each height."""
    follows = torch.cat([found.tokens[1:], found.tokens[:1]])  # the last has none, and is left out below
    lens = read_lens(found, follows)
    right, rank = lens.probability, lens.rank
    right[:, -1], rank[:, -1] = torch.nan, 0
    order = _likeliest(found.tensors[PROBABILITIES])
    return {
        "next": order.int().numpy(),
        "next.probability": found.tensors[PROBABILITIES].gather(-1, order).float().numpy(),
        "lens": lens.likeliest.int().numpy(),
        "lens.probability": lens.likeliest_probability.float().numpy(),
        "lens.right": right.float().numpy(),
        "lens.rank": rank.int().numpy(),
    }


def _likeliest(probabilities: Tensor) -> Tensor:
    """The most probable tokens at each position, (pos, LIKELIEST), equal ones by their id. probabilities: (pos, vocab).

    Nothing is sorted that may be as long as the vocabulary, unless all of it is equally probable.
    """
    count = min(LIKELIEST, probabilities.shape[-1])
    found = torch.empty(len(probabilities), count, dtype=torch.long)
    for row, own in zip(found, probabilities, strict=True):
        among = (own >= own.topk(count).values[-1]).nonzero()[:, 0]
        row[:] = among[own[among].argsort(descending=True, stable=True)[:count]]
    return found


def _stacks(config: ModelConfig) -> list[dict[str, object]]:
    """The sides of a model: what they read, and which points make up the stream at each height."""
    sides = [("", "text")]
    if config.architecture == "encoder-decoder":
        sides = [("encoder.", "source"), ("decoder.", "text")]
    found = []
    for prefix, tokens in sides:
        points = heights(config, prefix)
        found.append({"prefix": prefix, "tokens": tokens, "layers": len(points) - 1, "heights": points})
    return found


def _as_table(equation: Equation) -> dict[str, object]:
    operands = {role: [_as_row(operand) for operand in operands] for role, operands in equation.operands.items()}
    return {"name": equation.name, "operation": equation.operation, "dims": equation.dims, "operands": operands}


def _as_row(operand: Operand) -> dict[str, object]:
    row = dict(vars(operand))
    return row if operand.shift else {name: value for name, value in row.items() if name != "shift"}
