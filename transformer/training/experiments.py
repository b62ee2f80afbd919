"""Training a preset from its first step to a checkpoint with its card, with the best state kept on the way."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from ..checkpoints.card import Card
from ..checkpoints.folder import Checkpoint
from ..config import ModelConfig
from ..model.models import DecoderOnly, EncoderDecoder, build_model
from .loop import StepReport, TrainingRun, train
from .objectives import Objective
from .presets import Preset

LAST = 100
"""Steps at the end of a training whose mean loss the card reports."""


def train_preset(
    preset: Preset,
    objective: Objective,
    work_folder: str | Path,
    *,
    resume: bool = False,
    device: str = "cpu",
    report: Callable[[StepReport, float | None], None] | None = None,
) -> Checkpoint:
    """Train a preset and return its best state as a checkpoint.

    work_folder: takes the state of the run and its best weights at each validation.
    resume: go on from what an earlier, interrupted call left there.
    report: called after each step with its report, and the validation loss (nats per token) where one was taken.
    """
    config = ModelConfig(**{**preset.shape, **objective.shape})
    model = build_model(config, seed=preset.training.seed).to(device)
    run = TrainingRun(model, preset.training)
    best = _Best(Path(work_folder), resume)
    state = Path(work_folder) / "state.safetensors"
    if resume and state.is_file():
        run.resume(state)
    started = time.monotonic() - best.seconds
    last_losses: deque[float] = deque(maxlen=LAST)

    def after_step(step: StepReport) -> None:
        validation_loss = None
        last_losses.append(step.loss)
        if step.step % preset.evaluate_every == 0 or step.step == preset.training.steps:
            validation_loss = objective.validation_loss(run.best_model)
            best.offer(run.best_model, validation_loss, step.step, time.monotonic() - started)
            run.save(state)
        if report:
            report(step, validation_loss)

    train(model, objective.batches, preset.training, after_step, run=run)
    model = build_model(config).eval().to(device)
    model.load_state_dict(best.weights())
    last_loss = sum(last_losses) / len(last_losses) if last_losses else None
    card = _card(preset, objective, model, best, last_loss, device)
    return Checkpoint(model.cpu(), objective.tokenizer, card)


class _Best:
    """The best weights so far, kept in a file so that they outlive an interruption."""

    def __init__(self, folder: Path, resume: bool) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / "best.safetensors"
        self.loss, self.step, self.seconds = float("inf"), 0, 0.0
        if resume and self.path.is_file():
            with safe_open(self.path, framework="pt") as file:
                about = file.metadata()
            self.loss, self.step = float(about["validation_loss"]), int(about["step"])
            self.seconds = float(about["seconds"])

    def offer(self, model: DecoderOnly | EncoderDecoder, loss: float, step: int, seconds: float) -> None:
        self.seconds = seconds
        if loss >= self.loss:
            return
        self.loss, self.step = loss, step
        about = {"validation_loss": repr(loss), "step": str(step), "seconds": repr(seconds)}
        partial = self.path.with_suffix(".tmp")
        save_file({name: tensor.contiguous().clone() for name, tensor in model.state_dict().items()}, partial, about)
        partial.replace(self.path)

    def weights(self) -> dict[str, torch.Tensor]:
        return load_file(self.path)


def _cpu_in_words(threads: int) -> str:
    return "one CPU core" if threads == 1 else f"{threads} CPU cores"


def _card(
    preset: Preset,
    objective: Objective,
    model: DecoderOnly | EncoderDecoder,
    best: _Best,
    last_loss: float | None,
    device: str,
) -> Card:
    machine = torch.cuda.get_device_name() if device.startswith("cuda") else _cpu_in_words(torch.get_num_threads())
    scores = objective.scores(model)
    return Card(
        title=preset.title,
        summary=preset.summary,
        group=preset.group.value,
        **objective.card(),
        training={
            "command": f"python -m transformer train {preset.name}",
            **asdict(preset.training),
            "batch": preset.batch,
            "best_step": best.step,
            "last_batches_loss": _rounded(last_loss),
            "seconds": round(best.seconds),
            "machine": machine,
        },
        parameters=model.parameter_count(),
        train_loss=_rounded(scores.train_loss),
        validation_loss=_rounded(best.loss),
        accuracy=_rounded(scores.accuracy),
        examples=list(preset.examples),
    )


def _rounded(number: float | None) -> float | None:
    return None if number is None else round(number, 5)
