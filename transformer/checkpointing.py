"""Notices activation checkpointing, which computes a block again when its gradient is needed.

Hooks belong to a call, and that second time there is no call: the gradient would be another model's.
"""

from __future__ import annotations

import inspect

import torch

_WHERE = "torch.utils.checkpoint"


def refuse_checkpointing(point: str) -> None:
    """Raise RuntimeError, with what would do, inside `torch.utils.checkpoint`. point: what is changed there."""
    if torch.compiler.is_compiling():
        return
    frame = inspect.currentframe()
    while frame is not None:
        if frame.f_globals.get("__name__") == _WHERE:
            raise RuntimeError(
                f"{point} is in a block that is checkpointed, and computed again for the gradient without this call's "
                "hooks. Give torch.utils.checkpoint.checkpoint use_reentrant=False and "
                "context_fn=transformer.checkpoint_contexts, or do without it."
            )
        frame = frame.f_back
