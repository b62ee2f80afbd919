"""Chooses the type of a model's weights from the headers of its files."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

STORED_AS = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}
"""Types of stored weights, by safetensors' names."""
Header = tuple[tuple[int, ...], torch.dtype | None]
"""The shape of a tensor in a file, and its type; None for a type that weights can't have."""
LARGE = 250_000_000
"""Weights of the smallest large model: 1 GB as float32."""


def header_of(file: Any, name: str) -> Header:
    """A tensor's shape and type in an open safetensors file."""
    found = file.get_slice(name)
    return tuple(found.get_shape()), STORED_AS.get(found.get_dtype())


def weight_dtype(stored: Iterable[Header]) -> torch.dtype:
    """The type of all weights: float32, or for a large model stored mostly in 16 bits, that 16-bit type.

    So a small model computes exactly, and a large one takes no more memory than its files.
    """
    numbers: Counter[torch.dtype | None] = Counter()
    for shape, dtype in stored:
        numbers[dtype] += math.prod(shape)
    for half in (torch.float16, torch.bfloat16):
        if numbers.total() >= LARGE and 2 * numbers[half] > numbers.total():
            return half
    return torch.float32


def name_of(dtype: torch.dtype) -> str:
    """The type's name in config.json, without PyTorch's prefix: "bfloat16"."""
    return str(dtype).removeprefix("torch.")


def is_finite(weights: Tensor) -> bool:
    """Whether all numbers are finite, without allocating a boolean tensor."""
    return all(bool(each.isfinite()) for each in weights.aminmax())  # both are NaN if any number is
