"""Decides which kind of numbers a model computes with, from the headers of its files."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

STORED_AS = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}
"""What weights are stored as, by what safetensors calls it."""
Header = tuple[tuple[int, ...], torch.dtype | None]
"""The shape of a tensor in a file, and its type; None where no weights are stored so."""
LARGE = 250_000_000
"""Weights from which on a model is large: as float32 they take 1 GB."""


def header_of(file: Any, name: str) -> Header:
    """What an open safetensors file says of a tensor."""
    found = file.get_slice(name)
    return tuple(found.get_shape()), STORED_AS.get(found.get_dtype())


def weight_dtype(stored: Iterable[Header]) -> torch.dtype:
    """What all weights of a model become: float32; or of a large one that is stored in 16 bits, most of it, those.

    So a small one's numbers are as exact as the arithmetic, and a large one takes no more memory than its files.
    """
    numbers: Counter[torch.dtype | None] = Counter()
    for shape, dtype in stored:
        numbers[dtype] += math.prod(shape)
    for half in (torch.float16, torch.bfloat16):
        if numbers.total() >= LARGE and 2 * numbers[half] > numbers.total():
            return half
    return torch.float32


def name_of(dtype: torch.dtype) -> str:
    """As config.json has it, without PyTorch's prefix: "bfloat16"."""
    return str(dtype).removeprefix("torch.")


def is_finite(weights: Tensor) -> bool:
    """Whether all are numbers, none of them infinite; without a tensor of truth values, which would take memory."""
    return all(bool(each.isfinite()) for each in weights.aminmax())  # both are NaN where one of them is
