"""How a training is executed: on which device, in which precision, and by how many processes.

`torchrun` starts the processes. Each takes its shard of every batch, and PyTorch's DistributedDataParallel averages the
gradients, so that all take the same step. Shapes: batch, pos.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn

from ..data.batches import IGNORED, Batch
from .evaluation import token_loss

ENVIRONMENT = (("RANK", 0), ("WORLD_SIZE", 1), ("LOCAL_RANK", 0))
"""The variables that `torchrun` sets for each process, and their values without it."""


@dataclass(frozen=True, kw_only=True)
class Execution:
    """One process of a training; the only one unless `world_size` says otherwise."""

    device: str = "cpu"
    dtype: Literal["float32", "bfloat16"] | None = None
    """The type of the forward pass's numbers; None for the fastest on this device. Weights are always float32."""
    is_compiled: bool = False
    """Whether to use `torch.compile`: faster on a GPU, after a minute or so. Dropout, which draws from a run's own
    generator, isn't compiled."""
    rank: int = 0
    world_size: int = 1

    @property
    def is_main(self) -> bool:
        """Whether this is the process that validates, writes files and reports."""
        return self.rank == 0

    def executed(self, model: nn.Module) -> nn.Module:
        """Wrap the model for this process; it keeps its parameters."""
        if self.world_size > 1:
            # static_graph allows parameters without a gradient, such as those of queries that are never compared
            model = nn.parallel.DistributedDataParallel(model, forward_sync_buffers=False, static_graph=True)
        return torch.compile(model) if self.is_compiled else model  # pyright: ignore[reportReturnType]

    def shard(self, batch: Batch) -> Batch:
        """This process's rows of a batch: every `world_size`-th. Raises ValueError if there are too few for all."""
        if self.world_size == 1:
            return batch
        if len(batch.targets) < self.world_size:
            raise ValueError(
                f"A batch of {len(batch.targets)} can't be shared among {self.world_size} processes; start fewer."
            )
        rows = slice(self.rank, None, self.world_size)
        return Batch(tuple(part[rows] for part in batch.inputs), batch.targets[rows])

    def loss(self, logits: Tensor, targets: Tensor, batch: Batch) -> Tensor:
        """The loss to differentiate: its gradients, averaged over all processes, are those of the whole batch's loss.

        logits: (batch, pos, vocab), and targets: (batch, pos), of this process's shard. batch: the whole batch.
        """
        if self.world_size == 1:
            return token_loss(logits, targets)
        counted = (batch.targets != IGNORED).sum().item()  # shards differ in their amount of padding
        return token_loss(logits, targets, reduction="sum") * (self.world_size / counted)

    def mean(self, loss: Tensor) -> float:
        """The mean of a number over all processes; of `loss`, that is the whole batch's loss."""
        if self.world_size == 1:
            return loss.item()
        total = loss.detach().clone()
        dist.all_reduce(total)
        return total.item() / self.world_size

    def seed_dropout(self, generator: torch.Generator, seed: int, step: int) -> None:
        """With several processes, seed each one's dropout by rank and step, so that no state has to store it."""
        if self.world_size > 1:
            drawn = np.random.SeedSequence((seed, step, self.rank)).generate_state(1, np.uint64)
            generator.manual_seed(int(drawn[0]))

    def check_agreed(self, step: int) -> None:
        """Raise ValueError unless all processes are at the same step."""
        if self.world_size == 1:
            return
        steps = [0] * self.world_size
        dist.all_gather_object(steps, step)
        if len(set(steps)) > 1:
            raise ValueError(
                f"The processes go on from steps {', '.join(map(str, steps))}; "
                "--work-dir must be one folder that all machines share."
            )


def check_alone(what: str) -> None:
    """Raise ValueError if `torchrun` started several processes: all would do the same work."""
    if _environment()[1] > 1:
        raise ValueError(f"{what} by one process; start it without torchrun.")


def may_be_restarted() -> bool:
    """Whether `torchrun` restarts the processes when one of them fails (`--max-restarts`)."""
    return int(os.environ.get("TORCHELASTIC_MAX_RESTARTS", 0)) > 0


@contextmanager
def process_group(execution: Execution) -> Iterator[Execution]:
    """Join the processes that `torchrun` started, if it did; yields the execution with rank and device.

    Raises: ValueError if there is no such device for this process.
    """
    rank, world_size, local_rank = _environment()
    kind = execution.device
    there = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if not there[kind]:
        raise ValueError(f"PyTorch finds no {kind.upper()} device here; train with --device cpu.")
    if world_size == 1:
        yield execution
        return
    if kind == "mps":
        raise ValueError("On mps a training has one process; start it without torchrun.")
    if kind == "cuda":
        if local_rank >= torch.cuda.device_count():
            raise ValueError(
                f"There are {torch.cuda.device_count()} CUDA devices here, too few for so many processes; each needs "
                "one of its own (--nproc-per-node)."
            )
        torch.cuda.set_device(local_rank)
        kind = f"cuda:{local_rank}"
    store, _, _ = next(dist.rendezvous("env://"))  # pyright: ignore[reportPrivateImportUsage]
    if os.environ.get("GROUP_WORLD_SIZE") == "1":
        # On one machine torchrun may keep its store over a restart, with the addresses of processes that are gone. (On
        # several it makes a new one, and each machine counts restarts for itself.)
        attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        store = dist.PrefixStore(attempt, store)  # pyright: ignore[reportPrivateImportUsage]
    backend = "nccl" if execution.device == "cuda" else "gloo"
    dist.init_process_group(backend, store=store, rank=rank, world_size=world_size)
    try:
        yield replace(execution, device=kind, rank=rank, world_size=world_size)
    finally:
        dist.destroy_process_group()


def _environment() -> list[int]:
    return [int(os.environ.get(name, default)) for name, default in ENVIRONMENT]
