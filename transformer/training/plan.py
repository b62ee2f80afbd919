"""What a training on the page Train is to do, and the snapshots it takes of itself on the way.

Shapes: layer, head, query, key.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from ..config import ModelConfig
from ..hooks import ActivationCache
from ..inference.generation import generate
from ..inference.sampling import Sampling
from ..model.models import DecoderOnly, EncoderDecoder
from .loop import TrainingConfig
from .objectives import Objective, TaskObjective

MOST_SNAPSHOTS = 60
LARGEST_SNAPSHOTS = 32_000_000
"""Bytes that the patterns of all snapshots of one training may take."""
SHORTEST_SAMPLE = 32
"""Tokens that a sample has however slow the machine is."""
PLACES = {
    "self": "blocks.{}.attn.hook_pattern",
    "encoder": "encoder.blocks.{}.attn.hook_pattern",
    "decoder": "decoder.blocks.{}.attn.hook_pattern",
    "cross": "decoder.blocks.{}.cross_attn.hook_pattern",
}
"""The patterns of each kind of attention, layer by layer."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """One training: of which model, on what, how, and what is watched. Raises ValueError for parts that don't fit."""

    objective: Objective
    config: ModelConfig
    """Without dropout: all trainings of a process would draw it from one generator, and disturb each other."""
    training: TrainingConfig
    title: str
    summary: str = ""
    examples: Sequence[str] = ()
    """Prompts that suit the model, for its card."""
    probe_tokens: tuple[int, ...] = ()
    """The fixed text whose attention is recorded."""
    probe_source: tuple[int, ...] = ()
    """What an encoder reads, for the attention and for the sample."""
    sample_prompt: tuple[int, ...] = ()
    """What a sample goes on from; for an encoder–decoder its start token. Empty: no samples."""
    sample_tokens: int = 160
    """The longest sample; on a slow machine, or in a short training, they are shorter."""
    snapshots: int = 40
    """About how many snapshots to take."""
    evaluate_every: int = 100
    """Steps between validations, which each snapshot brings as well."""

    def __post_init__(self) -> None:
        config = self.config
        for field, value in self.objective.shape.items():
            if getattr(config, field) != value:
                raise ValueError(f"{field} is {getattr(config, field)!r}, but what is to be learnt needs {value!r}.")
        if config.dropout:
            raise ValueError(f"dropout is {config.dropout}; trainings that run side by side need it to be 0.")
        if not 1 <= self.snapshots <= MOST_SNAPSHOTS:
            raise ValueError(f"snapshots is {self.snapshots}; it must be from 1 to {MOST_SNAPSHOTS}.")
        if self.evaluate_every < 1:
            raise ValueError(f"evaluate_every is {self.evaluate_every}; it must be at least 1.")
        for name in ("probe_tokens", "probe_source", "sample_prompt"):
            tokens = getattr(self, name)
            if any(not 0 <= token < config.vocab_size for token in tokens):
                raise ValueError(f"{name} has ids outside the vocabulary of {config.vocab_size}.")
            if name != "sample_prompt" and len(tokens) > config.context_length:
                raise ValueError(f"{name} has {len(tokens)} tokens; the model reads {config.context_length}.")
        if config.architecture == "encoder-decoder" and not self.probe_source:
            raise ValueError("probe_source is empty; an encoder–decoder has to read something.")

    @property
    def is_task(self) -> bool:
        """True if there are right answers, rather than a text to go on with."""
        return isinstance(self.objective, TaskObjective)


@dataclass(frozen=True)
class Snapshot:
    """A model as it was after so many steps. Losses in nats per token."""

    step: int
    train_loss: float | None
    """Of the last few batches; None before the first."""
    validation_loss: float | None
    sample: str
    """What it writes after the plan's prompt: greedily for a task, at temperature 0.8 for a text."""
    patterns: dict[str, np.ndarray]
    """By kind of attention, "self", or "encoder", "decoder" and "cross": (layer, head, query, key), float16."""


def snapshot_steps(plan: Plan) -> tuple[int, ...]:
    """After which steps to take one: 0, 1, 2, 4, 8 …, for much happens early; then evenly, up to the last."""
    steps = plan.training.steps
    count = max(min(plan.snapshots, LARGEST_SNAPSHOTS // max(_pattern_bytes(plan), 1)), 2)
    if count > steps:
        return tuple(range(steps + 1))
    early = [0]
    for power in itertools.count():
        apart = (steps - early[-1]) / max(count - len(early), 1)
        if 2**power >= early[-1] + apart or len(early) >= count - 1:
            break
        early.append(2**power)
    rest = np.linspace(early[-1], steps, count - len(early) + 1).round().astype(int)
    return tuple(sorted({*early, *rest.tolist()}))


def attention_patterns(model: DecoderOnly | EncoderDecoder, plan: Plan) -> dict[str, np.ndarray]:
    """Where every head looks, on the plan's probe, in half the bytes: rows sum to one up to 1e-3 or so."""
    if not plan.probe_tokens:
        return {}
    read = (torch.tensor([plan.probe_source]),) if plan.probe_source else ()
    with torch.no_grad():
        _, cache = model.eval().run_with_cache(
            *read, torch.tensor([plan.probe_tokens]), names_filter=lambda name: name.endswith("hook_pattern")
        )
    found = {kind: _layers(cache, place) for kind, place in PLACES.items()}
    return {kind: np.stack(layers) for kind, layers in found.items() if layers}


def sample_text(model: DecoderOnly | EncoderDecoder, plan: Plan, seconds: float) -> str:
    """What the model writes after the plan's prompt; after so many seconds it stops at `SHORTEST_SAMPLE`."""
    if not plan.sample_prompt:
        return ""
    end = plan.objective.card().get("end_token_id")
    room = plan.config.context_length - len(plan.sample_prompt) + 1 if plan.is_task else plan.sample_tokens
    sampling = Sampling(temperature=0) if plan.is_task else Sampling(temperature=0.8, seed=plan.training.seed)
    steps = generate(
        model.eval(),
        plan.sample_prompt,
        max_new_tokens=max(min(room, plan.sample_tokens), 0),
        sampling=sampling,
        stop_tokens=() if end is None else (end,),
        names_filter=(),
        source=plan.probe_source or None,
    )
    written: list[int] = []
    deadline = time.monotonic() + seconds
    for step in steps:
        written.append(step.token_id)
        if len(written) >= SHORTEST_SAMPLE and time.monotonic() > deadline:
            break
    return plan.objective.tokenizer.decode(written)


def _layers(cache: ActivationCache, place: str) -> list[np.ndarray]:
    names = itertools.takewhile(cache.__contains__, map(place.format, itertools.count()))
    return [cache[name][0].numpy().astype(np.float16) for name in names]


def _pattern_bytes(plan: Plan) -> int:
    """Bytes of one snapshot's patterns."""
    config, target, source = plan.config, len(plan.probe_tokens), len(plan.probe_source)
    weights = config.n_layers * target**2
    if config.architecture == "encoder-decoder":
        weights += config.n_encoder_layers * source**2 + config.n_layers * target * source
    return 2 * config.n_heads * weights
