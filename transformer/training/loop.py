"""The training loop: works with any architecture, reports every step, and can stop and resume between any two steps.

Shapes: batch, pos.
"""

from __future__ import annotations

import contextlib
import json
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, cast

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from ..data.batches import Batch, Batches
from ..data.disk_errors import disk_problem
from ..model.dropout import dropout_from
from ..model.models import Model
from .execution import Execution
from .optimizers import make_optimizers

NARROWEST_IN_BFLOAT16 = 192
"""The d_model from which on a CPU trains in bfloat16. With AVX-512 bf16, float32 took 0.63 to 0.95 of bfloat16's time
at widths 64 and 128, where converting costs more than it saves, and 1.25 to 1.40 times as long at 192 and 384."""
ALONE = Execution()
"""One process, on the model's device."""


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
    """Muon's momentum; short trainings do better with less."""
    weight_decay: float = 0.1
    """Applies to matrices only, not to gains, shifts and biases."""
    gradient_clip: float = 1.0
    """The largest gradient norm; 0 for no limit."""
    average_decay: float = 0.0
    """Above 0, an exponential moving average of the weights is evaluated and kept."""
    seed: int = 0
    """Seeds dropout and, if a plan says what to train, the initial weights and the batches."""

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if isinstance(value, float) and not math.isfinite(value):
                raise ValueError(f"{name} is {value}; it must be a finite number.")
        if self.steps < 1:
            raise ValueError(f"steps is {self.steps}; training takes at least one.")
        if not self.learning_rate > 0:
            raise ValueError(f"learning_rate is {self.learning_rate}; it must be above 0.")
        if self.optimizer not in ("adamw", "muon"):
            raise ValueError(f"optimizer is {self.optimizer!r}; it can be 'adamw' or 'muon'.")
        for name in ("momentum", "average_decay"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be at least 0 and below 1.")

    def learning_rate_at(self, step: int) -> float:
        """The learning rate of a step, counted from 0."""
        if step < self.warmup_steps:
            return self.learning_rate * (step + 1) / self.warmup_steps
        progress = (step - self.warmup_steps) / max(self.steps - self.warmup_steps, 1)
        cosine = (1 + math.cos(math.pi * min(progress, 1))) / 2
        return self.learning_rate * (self.final_learning_rate + (1 - self.final_learning_rate) * cosine)


@dataclass(frozen=True)
class StepReport:
    """The report of one step."""

    step: int
    """Steps done so far."""
    loss: float
    """Mean cross-entropy of this step's batch, in nats per token, before its update."""
    tokens_per_second: float


class NotFiniteError(ArithmeticError):
    """The loss became infinite or NaN; the weights are those of before that step."""


class TrainingRun:
    """A model in training: its optimisers, its averaged weights, its random numbers, and how far it has come."""

    def __init__(self, model: Model, config: TrainingConfig, execution: Execution = ALONE) -> None:
        self.model, self.config, self.execution = model, config, execution
        self._executed = execution.executed(model)
        self.step = 0
        self.parameters = list(model.parameters())  # listed once: walking the modules takes as long as a small layer
        self.device = self.parameters[0].device
        faster = "bfloat16" if trains_in_bfloat16(self.device, model.config.d_model) else "float32"
        self.in_bfloat16 = (execution.dtype or faster) == "bfloat16"
        self.generator = torch.Generator(self.device).manual_seed(config.seed)
        """The generator of dropout: the run's own, so that no other training disturbs it."""
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
    def best_model(self) -> Model:
        """The model to evaluate and keep: the average, if there is one."""
        return cast(Model, self.average.module) if self.average else self.model

    def take_step(self, batch: Batch) -> float:
        """Update once; returns the batch's loss. Raises NotFiniteError, with nothing changed, if it isn't finite.

        batch: the whole batch; each process takes its shard.
        """
        rate = self.config.learning_rate_at(self.step)
        shard = self.execution.shard(batch).to(self.device)
        self.execution.seed_dropout(self.generator, self.config.seed, self.step)
        if not self.model.training:  # setting every module's mode takes as long as a small layer
            self.model.train()
        with self._autocast(), dropout_from(self.generator):
            logits = self._executed(*shard.inputs)
        loss = self.execution.loss(logits, shard.targets, batch)
        value = self.execution.mean(loss)
        if not math.isfinite(value):
            raise NotFiniteError(f"The loss became {value} at step {self.step + 1}; a lower learning rate may help.")
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.parameters, self.config.gradient_clip or math.inf).item()
        if not math.isfinite(norm):
            self.model.zero_grad(set_to_none=True)
            raise NotFiniteError(f"The gradient became {norm} at step {self.step + 1}; a lower learning rate may help.")
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = rate
            optimizer.step()
            optimizer.zero_grad()
        if self.average:
            self.average.update_parameters(self.model)
        self.step += 1
        return value

    def save(
        self, path: str | Path, *, kept: Mapping[str, Tensor] | None = None, notes: Mapping[str, Any] | None = None
    ) -> None:
        """Write the state that resuming needs, atomically, to one safetensors file.

        kept: the caller's tensors, notes: the caller's JSON values; `resume` returns both.
        Raises: OSError if the file can't be written, say because the disk is full; the previous file stays.
        """
        tensors = {f"model.{name}": tensor for name, tensor in self.model.state_dict().items()}
        if self.average:
            tensors |= {f"average.{name}": tensor for name, tensor in self.average.state_dict().items()}
        for number, optimizer in enumerate(self.optimizers):
            for index, state in optimizer.states().items():
                tensors |= {f"optimizer.{number}.{index}.{name}": value for name, value in state.items()}
        tensors |= {f"kept.{name}": tensor for name, tensor in (kept or {}).items()}
        tensors["random_state"] = self.generator.get_state()
        tensors = {name: tensor.contiguous().clone() for name, tensor in tensors.items()}
        path = Path(path)
        partial = path.with_name(path.name + ".tmp")
        about = {"step": str(self.step), "optimizer": self.config.optimizer, "notes": json.dumps(dict(notes or {}))}
        try:
            save_file(tensors, partial, metadata=about)
            partial.replace(path)
        except SafetensorError as error:  # the library's error for a full disk
            why = disk_problem(error) or error
            raise OSError(f"The state of the training can't be written to {path}: {why}") from None
        finally:
            partial.unlink(missing_ok=True)

    def resume(self, path: str | Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Continue from a saved state, every weight and every draw as if training had never stopped.

        Returns: the caller's tensors and notes.
        Raises: ValueError if the file is damaged, or the state of another model; nothing is changed then.
        """
        try:
            with safe_open(path, framework="pt") as file:
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
                about = file.metadata()
            step, optimizer, notes = int(about["step"]), about["optimizer"], json.loads(about["notes"])
            random_state = tensors["random_state"]
        except (SafetensorError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path} is no state of a training, or a damaged one ({error}).") from None
        self._check_fits(path, tensors, optimizer)
        self.step = step
        self.generator.set_state(random_state)
        self.model.load_state_dict(_under("model.", tensors))
        if self.average:
            self.average.load_state_dict(_under("average.", tensors))
        for number, optimizer in enumerate(self.optimizers):
            state: dict[int, dict[str, Tensor]] = {}
            for name, tensor in _under(f"optimizer.{number}.", tensors).items():
                index, field = name.split(".", 1)
                state.setdefault(int(index), {})[field] = tensor
            optimizer.load_states(state)
        return _under("kept.", tensors), notes

    def _check_fits(self, path: str | Path, tensors: dict[str, Tensor], optimizer: str) -> None:
        needed = {f"model.{name}": tensor.shape for name, tensor in self.model.state_dict().items()}
        if self.average:
            needed |= {f"average.{name}": tensor.shape for name, tensor in self.average.state_dict().items()}
        needed["random_state"] = self.generator.get_state().shape  # other devices' generators have larger states
        given = {name: tensor.shape for name, tensor in tensors.items() if not name.startswith(("optimizer.", "kept."))}
        odd = sorted(name for name in needed.keys() | given.keys() if needed.get(name) != given.get(name))
        if odd or optimizer != self.config.optimizer:
            what = odd[0] if odd else "optimizer"
            raise ValueError(f"{path} is the state of another training, or of another device: its {what} doesn't fit.")

    def _autocast(self) -> contextlib.AbstractContextManager:
        return torch.autocast(self.device.type, torch.bfloat16) if self.in_bfloat16 else contextlib.nullcontext()


def train(
    model: Model,
    batches: Batches,
    config: TrainingConfig,
    on_step: Callable[[StepReport], bool | None] | None = None,
    *,
    run: TrainingRun | None = None,
) -> TrainingRun:
    """Train a model, step by step, to `config.steps`.

    on_step: called after each step; returning False stops there.
    run: a run to continue, say one that was resumed from a file.
    Returns: the run, whose `best_model` is the result.
    Raises: NotFiniteError if the loss stops being a number; the weights are then the last good ones.
    """
    run = run or TrainingRun(model, config)
    while run.step < config.steps:
        started = time.perf_counter()
        batch = batches(run.step)
        loss = run.take_step(batch)
        speed = batch.targets.numel() / max(time.perf_counter() - started, 1e-9)
        if on_step and on_step(StepReport(run.step, loss, speed)) is False:
            break
    return run


def trains_in_bfloat16(device: torch.device, d_model: int) -> bool:
    """Whether bfloat16 is faster: on a GPU, and for wide models on a CPU with bfloat16 units."""
    if device.type == "cpu":
        return d_model >= NARROWEST_IN_BFLOAT16 and has_bfloat16_units()
    return device.type == "cuda"


def has_bfloat16_units() -> bool:
    """Whether this CPU multiplies bfloat16 in hardware; emulation takes a hundred times as long."""
    return bool(torch.cpu.get_capabilities().get("avx512_bf16"))


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
