"""Copes with PyTorch's modes, in which numbers can't be read or tensors mustn't be cached.

The modes are inference mode, fake tensors (`torch.export`), the transforms of `torch.func`, and `torch.device`.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

import torch
from torch import Tensor


def is_true(condition: bool | Tensor, *, if_unknown: bool) -> bool:
    """A condition's truth value, or `if_unknown` in compiled code and inside `torch.func.vmap`, where it has none."""
    if not isinstance(condition, Tensor):
        return bool(condition)
    if torch.compiler.is_compiling():
        return if_unknown
    try:
        return bool(condition)
    except RuntimeError:  # of vmap, and of fake tensors
        return if_unknown


def rounds_products(device: torch.device) -> bool:
    """Whether `torch.autocast` is on for this device."""
    return torch.amp.is_autocast_available(device.type) and torch.is_autocast_enabled(device.type)


def is_traced() -> bool:
    """Whether new tensors are only symbols for numbers, so that none may be cached."""
    return torch.compiler.is_compiling() or type(torch.empty(0)) is not Tensor


def keep_tensors(maxsize: int) -> Callable[[Callable[..., Tensor]], Callable[..., Tensor]]:
    """`lru_cache` for tensors; not to be called while code `is_traced`.

    A thread of their own makes them, since modes belong to a thread: a table first needed in inference mode serves
    training too.
    """

    def decorate(make: Callable[..., Tensor]) -> Callable[..., Tensor]:
        return lru_cache(maxsize)(lambda *about: outside_modes(make, *about))

    return decorate


def outside_modes(make: Callable[..., Tensor], *about: object) -> Tensor:
    """Make a tensor in a thread of its own and wait for it: on a GPU that thread has another stream."""
    with ThreadPoolExecutor(1) as thread:
        tensor = thread.submit(make, *about).result()
    if tensor.is_cuda:
        torch.cuda.synchronize(tensor.device)
    return tensor
