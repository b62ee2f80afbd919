"""Training: a loop that knows no architecture, reports every step, and can stop and resume between any two.

Shapes: batch, pos.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from ..data.batches import Batch, Batches
from ..hooks import ActivationCache, NamesFilter
from .evaluation import token_loss
from .optimizers import make_optimizers


@dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """How to train. The learning rate warms up linearly, then falls along a cosine (Loshchilov & Hutter 2017)."""

    steps: int
    learning_rate: float = 1e-3
    final_learning_rate: float = 0.0
    """As a fraction of learning_rate."""
    warmup_steps: int = 100
    optimizer: Literal["adamw", "muon"] = "adamw"
    """"muon": matrices inside blocks by Muon (Jordan et al. 2024), all else by AdamW."""
    betas: tuple[float, float] = (0.9, 0.99)
    momentum: float = 0.95
    """Muon's; a short training does better with less."""
    weight_decay: float = 0.1
    """On matrices only; gains, shifts and biases are left alone."""
    gradient_clip: float = 1.0
    average_decay: float = 0.0
    """Above 0: what is evaluated and kept is an exponential moving average of the weights."""
    seed: int = 0

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise ValueError(f"steps is {self.steps}; training takes at least one.")
        if not self.learning_rate > 0:
            raise ValueError(f"learning_rate is {self.learning_rate}; it must be above 0.")
        if not 0 <= self.momentum < 1:
            raise ValueError(f"momentum is {self.momentum}; it must be at least 0 and below 1.")
        if not 0 <= self.average_decay < 1:
            raise ValueError(f"average_decay is {self.average_decay}; it must be at least 0 and below 1.")

    def learning_rate_at(self, step: int) -> float:
        """The learning rate of a step, counted from 0."""
        if step < self.warmup_steps:
            return self.learning_rate * (step + 1) / self.warmup_steps
        progress = (step - self.warmup_steps) / max(self.steps - self.warmup_steps, 1)
        cosine = (1 + math.cos(math.pi * min(progress, 1))) / 2
        return self.learning_rate * (self.final_learning_rate + (1 - self.final_learning_rate) * cosine)


@dataclass(frozen=True)
class StepReport:
    """What a caller learns after each step."""

    step: int
    """Steps done so far."""
    loss: float
    """Mean cross-entropy of this step's batch, in nats per token, before its update."""
    tokens_per_second: float
    snapshot: ActivationCache | None = None
    """Activations on the probe's input, on the steps that the probe asked for."""


@dataclass(frozen=True)
class Probe:
    """A fixed input whose activations are recorded every so many steps."""

    inputs: tuple[Tensor, ...]
    names_filter: NamesFilter
    every: int


class NotFiniteError(ArithmeticError):
    """The loss became infinite or NaN; the weights are those of before that step."""


class TrainingRun:
    """A model in training: its optimisers, its averaged weights, and how far it has come."""

    def __init__(self, model: nn.Module, config: TrainingConfig) -> None:
        self.model, self.config = model, config
        self.step = 0
        self.parameters = list(model.parameters())  # looking for them takes as long as a small layer
        self.optimizers = make_optimizers(
            model,
            muon=config.optimizer == "muon",
            learning_rate=config.learning_rate,
            betas=config.betas,
            momentum=config.momentum,
            weight_decay=config.weight_decay,
        )
        self.average = (
            AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(config.average_decay))
            if config.average_decay
            else None
        )

    @property
    def best_model(self) -> nn.Module:
        """The model to evaluate and keep: the averaged one where there is one."""
        return self.average.module if self.average else self.model

    def take_step(self, batch: Batch) -> float:
        """One update; returns the batch's loss. Raises NotFiniteError, with nothing changed, if it isn't a number."""
        rate = self.config.learning_rate_at(self.step)
        if not self.model.training:  # telling every module takes as long as a small layer
            self.model.train()
        with autocast(batch.targets.device):
            logits = self.model(*batch.inputs)
        loss = token_loss(logits, batch.targets)
        value = loss.item()
        if not math.isfinite(value):
            raise NotFiniteError(f"The loss became {value} at step {self.step + 1}; a lower learning rate may help.")
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.parameters, self.config.gradient_clip or math.inf).item()
        if not math.isfinite(norm):
            self.model.zero_grad(set_to_none=True)
            raise NotFiniteError(
                f"The gradient became {norm} at step {self.step + 1}; a lower learning rate may help."
            )
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = rate
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        if self.average:
            self.average.update_parameters(self.model)
        self.step += 1
        return value

    def save(self, path: str | Path) -> None:
        """Write all that resuming needs, atomically, to one safetensors file."""
        tensors = {f"model.{name}": tensor for name, tensor in self.model.state_dict().items()}
        if self.average:
            tensors |= {f"average.{name}": tensor for name, tensor in self.average.state_dict().items()}
        for number, optimizer in enumerate(self.optimizers):
            for index, state in optimizer.state_dict()["state"].items():
                tensors |= {f"optimizer.{number}.{index}.{name}": value for name, value in state.items()}
        tensors["random_state"] = torch.get_rng_state()
        path = Path(path)
        partial = path.with_name(path.name + ".tmp")
        save_file({name: tensor.contiguous().clone() for name, tensor in tensors.items()}, partial,
                  metadata={"step": str(self.step)})  # fmt: skip
        partial.replace(path)

    def resume(self, path: str | Path) -> None:
        """Go on from what `save` wrote: every weight and every draw as if training had never stopped."""
        tensors = load_file(path)
        self.step = _saved_step(path)
        torch.set_rng_state(tensors.pop("random_state"))
        self.model.load_state_dict(_under("model.", tensors))
        if self.average:
            self.average.load_state_dict(_under("average.", tensors))
        for number, optimizer in enumerate(self.optimizers):
            state: dict[int, dict[str, Tensor]] = {}
            for name, tensor in _under(f"optimizer.{number}.", tensors).items():
                index, field = name.split(".", 1)
                state.setdefault(int(index), {})[field] = tensor
            groups = optimizer.state_dict()["param_groups"]
            optimizer.load_state_dict({"state": state, "param_groups": groups})


def train(
    model: nn.Module,
    batches: Batches,
    config: TrainingConfig,
    on_step: Callable[[StepReport], bool | None] | None = None,
    *,
    probe: Probe | None = None,
    run: TrainingRun | None = None,
) -> TrainingRun:
    """Train a model, step by step, to `config.steps`.

    on_step: called after each step; returning False stops there.
    probe: an input whose activations each `probe.every`th report carries, from step 1 on.
    run: a run to go on with, say one that was resumed from a file.
    Returns: the run, whose `best_model` is the result.
    Raises: NotFiniteError if the loss stops being a number; the weights are then the last good ones.
    """
    run = run or TrainingRun(model, config)
    if run.step == 0:
        torch.manual_seed(config.seed)  # dropout draws from the global generator
    while run.step < config.steps:
        started = time.perf_counter()
        batch = batches(run.step)
        loss = run.take_step(batch)
        speed = batch.targets.numel() / (time.perf_counter() - started)
        snapshot = _snapshot(run.best_model, probe) if probe and (run.step - 1) % probe.every == 0 else None
        if on_step and on_step(StepReport(run.step, loss, speed, snapshot)) is False:
            break
    return run


def autocast(device: torch.device) -> contextlib.AbstractContextManager:
    """bfloat16 arithmetic where the hardware has it: half the bytes, and matrix units twice as fast."""
    has_bfloat16 = device.type == "cuda" or (device.type == "cpu" and torch.cpu._is_avx512_bf16_supported())
    return torch.autocast(device.type, torch.bfloat16) if has_bfloat16 else contextlib.nullcontext()


def _snapshot(model: nn.Module, probe: Probe) -> ActivationCache:
    was_training = model.training
    model.eval()
    with torch.no_grad():
        _, cache = model.run_with_cache(*probe.inputs, names_filter=probe.names_filter)
    model.train(was_training)
    return cache


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def _saved_step(path: str | Path) -> int:
    from safetensors import safe_open

    with safe_open(path, framework="pt") as file:
        return int(file.metadata()["step"])
