"""Builds training plans of a few steps, and waits for background trainings."""

import threading
import time
from collections.abc import Callable

import torch
from torch import nn

from tests.helpers import tiny_config, tiny_model
from transformer import TASKS, Batch, ModelConfig, TextBatches, TrainingConfig, build_model, train
from transformer.data.corpora import text_corpus
from transformer.data.tasks import Task
from transformer.training.objectives import TaskObjective, TextObjective
from transformer.training.plan import TrainingPlan
from transformer.training.training_job import ENDED, TrainingJob

CORPUS = text_corpus("abcdefgh hgfedcba " * 100, "Up and down")
TEXT = [0, 1, 2, 3, 4, 5, 4, 3, 2, 1] * 20
"""Up and down: after 1 come 0 or 2, and which of them only the token before it tells."""


def batches(batch: int = 8, seed: int = 0) -> TextBatches:
    return TextBatches(TEXT, 8, batch, seed)


def state(model: nn.Module) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def same(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> bool:
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


def model_for(task: Task, **fields) -> nn.Module:
    """A tiny model of the shape that a task has, of one layer a side."""
    return tiny_model(tiny_config(**{**TaskObjective(task, 1, 0).shape, "n_layers": 1, **fields}))


class Gated(TextObjective):
    """An objective that hands out a batch for each that a test allows."""

    def __init__(self) -> None:
        super().__init__(CORPUS, 8, 4, 0)
        self.gate = threading.Semaphore(0)
        self.asked = -1
        self.fails_at: int | None = None

    def batches(self, step: int) -> Batch:
        self.asked = step
        assert self.gate.acquire(timeout=200), "no test allowed this batch"
        if step == self.fails_at:
            raise RuntimeError("no such batch")
        return super().batches(step)

    def allow(self, batches: int = 1_000) -> None:
        self.gate.release(batches)


def text_plan(steps: int = 40, *, seed: int = 0, objective: TextObjective | None = None, **fields) -> TrainingPlan:
    objective = objective or TextObjective(CORPUS, 8, 8, seed)
    encode = objective.tokenizer.encode
    asked = {
        "objective": objective,
        "config": ModelConfig(context_length=8, n_layers=2, n_heads=2, d_model=16, **objective.shape),
        "training": TrainingConfig(steps=steps, learning_rate=2e-2, warmup_steps=5, seed=seed),
        **{"title": "Mine", "summary": "Goes up and down.", "examples": ["abc", "hgf"]},
        **{"probe_tokens": tuple(encode("abcdefgh")), "sample_prompt": tuple(encode("abc")), "sample_tokens": 12},
        **{"snapshots": 8, "evaluate_every": 10},
    }
    return TrainingPlan(**asked | fields)


def task_plan(name: str, **shape) -> TrainingPlan:
    objective = TaskObjective(TASKS[name], 8, 0)
    encode, special = objective.tokenizer.encode, objective.tokenizer.special_id
    is_pair = objective.shape["architecture"] == "encoder-decoder"
    read, written = {
        "next-vowel": ("abc", "e"),
        "sort-letters": ("cab=", "abc"),
        "induction": ("abab", "ab"),
        "masked-stories": ("Mary took the [mask]. Who has the [mask]? Mary", ""),
    }[name]
    config = ModelConfig(**{"n_layers": 2, "n_heads": 2, "d_model": 8, **shape, **objective.shape})
    return TrainingPlan(
        objective=objective,
        config=config,
        training=TrainingConfig(steps=6),
        title=name,
        probe_tokens=(special("[start]"), *encode(written)) if is_pair else tuple(encode(read + written)),
        probe_source=tuple(encode(read)) if is_pair else (),
        sample_prompt=(special("[start]"),) if is_pair else tuple(encode(read)),
        snapshots=4,
    )


def until(condition: Callable[[], object], seconds: float = 120) -> None:
    """Wait for something that takes a moment, and longer on a busy machine."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.002)


def ended(job: TrainingJob) -> TrainingJob:
    until(lambda: job.state in ENDED)
    assert job.join(60)
    return job


def same_weights(first: nn.Module, second: nn.Module) -> bool:
    return same(state(first), state(second))


def trained_alone(plan: TrainingPlan, steps: int | None = None) -> torch.nn.Module:
    """What comes of the plan without a queue, a thread or a look."""
    model = build_model(plan.config, seed=plan.training.seed)
    return train(model, plan.objective.batches, plan.training, lambda report: report.step != steps).best_model
