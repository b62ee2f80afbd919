"""Positional encodings: sinusoidal, learned and rotary.

Attention alone treats its input as a set. Each of these tells it the order, in its own way: a fixed table
or a learned one added to the embeddings, or a rotation of queries and keys.
Shapes: batch, pos, head, d_head, d_model.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ..config import ModelConfig
from .modes import is_traced, keep_tensors

Start = int | Tensor
"""The position of a pass's first token: one for the batch, or (batch,) if cached texts differ in length."""
Table = Callable[..., Tensor]


def positions_from(start: Start, pos: int) -> slice | Tensor:
    """Positions start … start+pos−1 as a table index: a slice, or (batch, pos) if they differ by text."""
    if not isinstance(start, Tensor):
        return slice(start, start + pos)
    return (start[:, None] + torch.arange(pos, device=start.device)).clamp(min=0)  # padding comes before 0


def position_ids(start: Start, pos: int, device: torch.device | str = "cpu") -> Tensor:
    """The same positions as numbers: (pos,), or (batch, pos)."""
    rows = positions_from(start, pos)
    return rows if isinstance(rows, Tensor) else torch.arange(rows.start, rows.stop, device=device)


def first_positions(start: int, attention_mask: Tensor | None) -> Start:
    """The first position of each text: `start` minus the padding before the text, (batch,), if a mask marks it.

    attention_mask: (batch, key), 0 for padding.
    """
    return start if attention_mask is None else start - attention_mask.int().argmax(-1)


def end_of(start: Start, pos: int) -> int | Tensor:
    """The position after the last one of the furthest text: a number, or a tensor with one number."""
    return pos + (start.max() if isinstance(start, Tensor) else start)


def sinusoidal_encoding(length: int, d_model: int, base: float = 10000.0, factors: tuple[float, ...] = ()) -> Tensor:
    """The fixed table of Vaswani et al. 2017, §3.5.

    PE(pos, 2i) = sin(pos / base^(2i / d_model)) and PE(pos, 2i+1) = cos of the same angle, so that a step of
    k positions is the same rotation wherever it starts. factors: as `position_angles` has them.

    Returns: (length, d_model), float32; even columns sines, odd columns cosines.
    Raises: ValueError if d_model is odd, or length or base makes no table.

    >>> sinusoidal_encoding(2, 4)
    tensor([[0.0000, 1.0000, 0.0000, 1.0000],
            [0.8415, 0.5403, 0.0100, 0.9999]])
    """
    if d_model < 2 or d_model % 2:
        raise ValueError(f"d_model is {d_model}; sines and cosines come in pairs, so it must be even, 2 or more.")
    if length < 0:
        raise ValueError(f"length is {length}; a table has 0 rows or more.")
    if not base > 0:
        raise ValueError(f"base is {base}; it must be above 0 (the paper has 10000).")
    return _waves(torch.arange(length), d_model, base, factors)


def position_angles(length: int, width: int, base: float = 10000.0, factors: tuple[float, ...] = ()) -> Tensor:
    """Angle in radians of each position and pair of dimensions: pos / base^(2i / width).

    factors: divisors of each pair's angle; empty for 1.
    Returns: (length, width / 2), float64: at large positions float32 would lose the fast waves.
    """
    return _angles_at(torch.arange(length), width, base, factors)


def _angles_at(positions: Tensor, width: int, base: float, factors: tuple[float, ...]) -> Tensor:
    """The same of any positions: (…) → (…, width / 2)."""
    exponents = torch.arange(0, width, 2, dtype=torch.float64, device=positions.device) / width
    angles = positions.double()[..., None] / base**exponents
    return angles / torch.tensor(factors, dtype=torch.float64, device=positions.device) if factors else angles


def alibi(config: ModelConfig, query: int, key: int, device: torch.device | str | None = None) -> Tensor:
    """ALiBi's bias: −slope · distance for each head, query and key, the last query at the last key.

    Returns: (head, query, key).
    """
    slopes = torch.tensor(config.slopes, device=device)
    queries = torch.arange(key - query, key, device=device)
    distance = (queries[:, None] - torch.arange(key, device=device)).abs()
    return -slopes[:, None, None] * distance


def relative_buckets(
    config: ModelConfig, query: int, key: int, causal: bool, device: torch.device | str | None = None
) -> Tensor:
    """T5's bucket of the distance between each query and key, the last query at the last key. Small distances have a
    bucket each, larger ones share. Without a causal mask, half of the buckets are for keys after the query.

    Returns: (query, key), from 0 to relative_buckets − 1.
    Source: Raffel et al. 2020, T5, §2.1, and the code that belongs to it.
    """
    queries = torch.arange(key - query, key, device=device)
    before = queries[:, None] - torch.arange(key, device=device)  # the key's distance before the query
    buckets, first = config.relative_buckets, torch.zeros_like(before)
    if causal:
        distance = before.clamp(min=0)
    else:
        buckets //= 2
        first, distance = (before < 0) * buckets, before.abs()
    exact = buckets // 2
    share = (distance.clamp(min=1).float() / exact).log() / math.log(config.relative_distance / exact)
    shared = exact + (share * (buckets - exact)).long()
    return first + torch.where(distance < exact, distance, shared.clamp(max=buckets - 1))


def rotate(
    vectors: Tensor,
    start: Start = 0,
    base: float = 10000.0,
    *,
    dims: int | None = None,
    halves: bool = False,
    factors: tuple[float, ...] = (),
    scale: float = 1.0,
) -> Tensor:
    """Turn pairs of a query's or key's dimensions by their position's angle (rotary positions).

    Read as one complex number, a pair is multiplied by e^(√−1 · angle). The product of a rotated query at m and a
    rotated key at n depends on n − m alone.

    vectors: (batch, pos, head, d_head), the first of them, or of each text, at position `start`.
    dims: how many dimensions are turned, from the first on; the others stay as they are. None for all.
    halves: whether the pairs are (i, i + dims / 2), as GPT-NeoX and Llama have them, and not (2i, 2i + 1).
    factors: how many times slower each pair turns; empty for 1. scale: a factor on the turned dimensions.
    Returns: the same shape.
    Source: Su et al. 2021, RoFormer, §3.2.2 and eq. 34.
    """
    if dims is not None and dims < vectors.shape[-1]:
        turned = rotate(vectors[..., :dims], start, base, halves=halves, factors=factors, scale=scale)
        return torch.cat((turned, vectors[..., dims:]), -1)
    pos, d_head = vectors.shape[1], vectors.shape[-1]
    turns = _rows(_rotation_table, _turns, start, pos, vectors.device, d_head, base, factors, scale)
    turns = turns[..., None, :]  # (pos, 1, d_head / 2), or one for each text: the same for all heads
    wide = vectors if vectors.dtype == torch.float64 else vectors.float()
    pairs = wide.unflatten(-1, (2, -1)).transpose(-1, -2) if halves else wide.unflatten(-1, (-1, 2))
    pairs = torch.view_as_complex(pairs.contiguous())  # (batch, pos, head, d_head / 2)
    found = torch.view_as_real(pairs * turns)
    return (found.transpose(-1, -2) if halves else found).flatten(-2).type_as(vectors)


def sinusoidal_rows(start: Start, pos: int, d_model: int, device: torch.device) -> Tensor:
    """Rows start … start+pos−1 of the sinusoidal table, (pos, d_model) or (batch, pos, d_model), on a device."""
    return _rows(_sinusoidal_table, _waves, start, pos, device, d_model)


def _rows(table: Table, at: Table, start: Start, pos: int, device: torch.device, *about: Any) -> Tensor:
    """Rows of a cached table; while code is traced, and lengths may be symbolic, computed `at` these positions."""
    if not is_traced():
        return table(_rounded_up(int(end_of(start, pos))), device, *about)[positions_from(start, pos)]
    return at(position_ids(start, pos), *about).to(device)


def _waves(positions: Tensor, d_model: int, base: float = 10000.0, factors: tuple[float, ...] = ()) -> Tensor:
    """Sines and cosines of each position's angles in turn, (…, d_model), float32."""
    angles = _angles_at(positions, d_model, base, factors)
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(-2).float()


def _turns(positions: Tensor, d_head: int, base: float, factors: tuple[float, ...], scale: float) -> Tensor:
    """scale · e^(√−1 · angle) of each position and pair, (…, d_head / 2)."""
    angles = _angles_at(positions, d_head, base, factors)
    return torch.polar(torch.full_like(angles, scale), angles).to(torch.complex64)


@keep_tensors(maxsize=16)
def _sinusoidal_table(length: int, device: torch.device, d_model: int) -> Tensor:
    return _waves(torch.arange(length), d_model).to(device)


@keep_tensors(maxsize=16)
def _rotation_table(length: int, device: torch.device, *about: Any) -> Tensor:
    return _turns(torch.arange(length), *about).to(device)


def _rounded_up(length: int) -> int:
    """The next power of two: a growing text then needs few tables, and an unused huge context needs none."""
    return 1 << max(length - 1, 0).bit_length()
