"""Positional encodings: sinusoidal, learned and rotary.

Attention alone treats its input as a set. Each of these tells it the order, in its own way: a fixed table
or a learned one added to the embeddings, or a rotation of queries and keys.
Shapes: batch, pos, head, d_head, d_model.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from ..config import ModelConfig

Start = int | Tensor
"""The position of a pass's first token: one for the whole batch, or (batch,) where texts of unequal length go on."""


def positions_from(start: Start, pos: int) -> slice | Tensor:
    """Positions start … start+pos−1, to index a table with: a slice, or (batch, pos) where the texts' differ."""
    if isinstance(start, int):
        return slice(start, start + pos)
    return start[:, None] + torch.arange(pos, device=start.device)


def end_of(start: Start, pos: int) -> int:
    """The position after the last of those, of the text that is furthest."""
    return pos + (start if isinstance(start, int) else int(start.max()))


def sinusoidal_encoding(length: int, d_model: int, base: float = 10000.0) -> Tensor:
    """The fixed table of Vaswani et al. 2017, §3.5.

    PE(pos, 2i) = sin(pos / base^(2i / d_model)) and PE(pos, 2i+1) = cos of the same angle, so that a step of
    k positions is the same rotation wherever it starts.

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
    angles = position_angles(length, d_model, base)  # (length, d_model / 2)
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(-2).float()


def position_angles(length: int, width: int, base: float = 10000.0) -> Tensor:
    """Angle in radians of each position and pair of dimensions: pos / base^(2i / width).

    Returns: (length, width / 2), float64: at large positions float32 would lose the fast waves.
    """
    positions = torch.arange(length, dtype=torch.float64)
    exponents = torch.arange(0, width, 2, dtype=torch.float64) / width
    return positions[:, None] / base**exponents


def rotate(
    vectors: Tensor, start: Start = 0, base: float = 10000.0, *, dims: int | None = None, halves: bool = False
) -> Tensor:
    """Turn pairs of a query's or key's dimensions by their position's angle (rotary positions).

    Read as one complex number, a pair is multiplied by e^(√−1 · angle). The product of a rotated query at m and a
    rotated key at n depends on n − m alone.

    vectors: (batch, pos, head, d_head), the first of them, or of each text, at position `start`.
    dims: how many dimensions are turned, from the first on; the others stay as they are. None for all.
    halves: whether the pairs are (i, i + dims / 2), as GPT-NeoX and Llama have them, and not (2i, 2i + 1).
    Returns: the same shape.
    Source: Su et al. 2021, RoFormer, §3.2.2 and eq. 34.
    """
    if dims is not None and dims < vectors.shape[-1]:
        turned = rotate(vectors[..., :dims], start, base, halves=halves)
        return torch.cat((turned, vectors[..., dims:]), -1)
    pos, d_head = vectors.shape[1], vectors.shape[-1]
    table = _rotation_table(_rounded_up(end_of(start, pos)), d_head, base, vectors.device)
    turns = table[positions_from(start, pos)]  # (pos, 1, d_head / 2), or one for each text
    wide = vectors if vectors.dtype == torch.float64 else vectors.float()
    pairs = wide.unflatten(-1, (2, -1)).transpose(-1, -2) if halves else wide.unflatten(-1, (-1, 2))
    pairs = torch.view_as_complex(pairs.contiguous())  # (batch, pos, head, d_head / 2)
    found = torch.view_as_real(pairs * turns)
    return (found.transpose(-1, -2) if halves else found).flatten(-2).type_as(vectors)


def rotation(config: ModelConfig) -> dict[str, Any]:
    """What `rotate` is given for a model of this configuration."""
    return {"base": config.rotary_base, "dims": config.rotated_dims, "halves": config.rotary_pairs == "halves"}


def sinusoidal_rows(start: Start, pos: int, d_model: int, device: torch.device) -> Tensor:
    """Rows start … start+pos−1 of the sinusoidal table, (pos, d_model) or (batch, pos, d_model), on a device."""
    return _sinusoidal_table(_rounded_up(end_of(start, pos)), d_model, device)[positions_from(start, pos)]


# The tables outlive the call that first needs them, so they must not belong to its inference mode.
@lru_cache(maxsize=16)
@torch.inference_mode(False)
def _sinusoidal_table(length: int, d_model: int, device: torch.device) -> Tensor:
    return sinusoidal_encoding(length, d_model).to(device)


@lru_cache(maxsize=16)
@torch.inference_mode(False)
def _rotation_table(length: int, d_head: int, base: float, device: torch.device) -> Tensor:
    """e^(√−1 · angle), (length, 1, d_head / 2), which broadcasts over heads."""
    angles = position_angles(length, d_head, base)[:, None, :]
    return torch.polar(torch.ones_like(angles), angles).to(torch.complex64).to(device)


def _rounded_up(length: int) -> int:
    """The next power of two, so that a growing text needs few tables, and a huge context none it doesn't use."""
    return 1 << max(length - 1, 0).bit_length()
