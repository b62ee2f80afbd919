"""Builds the model card of a model that was trained here."""

from __future__ import annotations

from dataclasses import asdict

import torch

from ..checkpoints.model_card import LARGEST_NUMBER, ModelCard
from .evaluation import Measures
from .plan import TrainingPlan


def card_of(
    plan: TrainingPlan,
    measures: Measures,
    *,
    parameters: int,
    best_step: int,
    last_losses: list[float],
    seconds: float,
    device: torch.device,
    processes: int = 1,
    ending: str = "",
) -> ModelCard:
    """The card of a model that a plan trained. It can be saved and read whatever the losses are.

    best_step: the step of the kept weights. last_losses: those of the last batches, in nats per token. seconds: the
    time of training without pauses. processes: how many trained, each on such a device. ending: a sentence if training
    ended before its last step.
    """
    machine = machine_in_words(device)
    training = {
        **({"command": plan.command} if plan.command else {}),
        **asdict(plan.training) | {"betas": list(plan.training.betas)},
        "batch": plan.objective.batch,
        "best_step": best_step,
        "last_batches_loss": _rounded(sum(last_losses) / len(last_losses) if last_losses else None),
        "seconds": round(seconds, 1),
        "machine": machine if processes == 1 else f"{processes} processes, each on {machine}",
        "measured_on": measures.measured_on,
    }
    return ModelCard(
        title=_title(plan, best_step),
        summary=f"{plan.summary} {ending}".strip(),
        group=plan.group,
        **plan.objective.card(),
        training=training,
        parameters=parameters,
        train_loss=_rounded(measures.train_loss),
        validation_loss=_rounded(measures.validation_loss),
        accuracy=_rounded(measures.accuracy),
        examples=list(plan.examples),
    )


def machine_in_words(device: torch.device) -> str:
    """The machine in words: a graphics card by its name, or the number of this thread's cores."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    threads = torch.get_num_threads()
    return "one CPU core" if threads == 1 else f"{threads} CPU cores"


def _title(plan: TrainingPlan, steps: int) -> str:
    """The plan's title; if it ends in the number of planned steps, with the number taken instead."""
    planned = f", {plan.training.steps:,} steps"
    if not plan.title.endswith(planned):
        return plan.title
    return f"{plan.title.removesuffix(planned)}, {steps:,} step{'' if steps == 1 else 's'}"


def _rounded(number: float | None) -> float | None:
    """A rounded number; None if it is infinite, NaN or absurdly large, which a card can't hold."""
    return None if number is None or not abs(number) <= LARGEST_NUMBER else round(number, 5)
