"""What PyTorch's modes ask of a model: where no number can be looked at, and what outlives the call that made it.

Such modes are inference mode, fake tensors (`torch.export`), the transforms of `torch.func` and `torch.device`.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

import torch
from torch import Tensor


def is_true(condition: bool | Tensor, *, if_unknown: bool) -> bool:
    """A condition's truth value; `if_unknown` where it has none: in compiled code, or inside `torch.func.vmap`."""
    if not isinstance(condition, Tensor):
        return bool(condition)
    if torch.compiler.is_compiling():
        return if_unknown
    try:
        return bool(condition)
    except RuntimeError:  # of vmap, and of fake tensors
        return if_unknown


def is_traced() -> bool:
    """Whether new tensors stand for numbers rather than have them, so that nothing may be kept."""
    return torch.compiler.is_compiling() or type(torch.empty(0)) is not Tensor


def keep_tensors(maxsize: int) -> Callable[[Callable[..., Tensor]], Callable[..., Tensor]]:
    """`lru_cache` for tensors; not to be called while code `is_traced`.

    They are made in a thread of their own, since modes belong to a thread: a table that was first needed in inference
    mode, say, serves training too.
    """

    def decorate(make: Callable[..., Tensor]) -> Callable[..., Tensor]:
        @lru_cache(maxsize)
        def kept(*about: object) -> Tensor:
            with ThreadPoolExecutor(1) as thread:
                return _settled(thread.submit(make, *about).result())

        return kept

    return decorate


def _settled(tensor: Tensor) -> Tensor:
    """Once it is computed: on a GPU the other thread has another stream."""
    if tensor.is_cuda:
        torch.cuda.synchronize(tensor.device)
    return tensor
