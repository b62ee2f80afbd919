"""Snapshots during training: validation loss, a sample text, and attention patterns.

Shapes: layer, head, query, key.
"""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass

import numpy as np
import torch

from ..data.tasks import MASK
from ..inference.generation import generate
from ..inference.masked_words import fill_masks
from ..inference.sampling import Sampling
from ..model.models import EncoderOnly, Model
from ..model.registry import attention_modules, pattern_names
from .evaluation import evaluating
from .plan import TrainingPlan

LARGEST_SNAPSHOTS = 32_000_000
"""The most bytes for the patterns of all snapshots of one training."""
SHORTEST_SAMPLE = 32
"""The shortest sample in tokens, however slow the machine."""


@dataclass(frozen=True)
class Snapshot:
    """A model after `step` steps."""

    step: int
    validation_loss: float
    """Nats per token."""
    sample: str
    """The model's continuation of the plan's prompt: greedy for a task, at temperature 0.8 for a text; for an encoder
    the prompt with its masks filled."""
    patterns: dict[str, np.ndarray]
    """By kind of attention, "self", or "encoder", "decoder" and "cross": (layer, head, query, key), float16."""
    accuracy: float | None = None
    """The share of held-out texts whose masks it fills correctly; None for other models."""


def snapshot_steps(plan: TrainingPlan) -> tuple[int, ...]:
    """The steps at which to take one: 0, 1, 2, 4, 8 …, since much happens early; then evenly, up to the last."""
    if not plan.snapshots:
        return ()
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


def attention_patterns(model: Model, plan: TrainingPlan) -> dict[str, np.ndarray]:
    """Every head's pattern on the plan's probe as float16, whose rows sum to one to about 1e-3."""
    if not plan.probe_tokens:
        return {}
    read = [tokens for tokens in (plan.probe_source, plan.probe_tokens) if tokens]
    device = next(model.parameters()).device
    with evaluating(model):
        cache = model.run_until_recorded(
            *(torch.tensor([tokens], device=device) for tokens in read), names_filter=pattern_names(plan.config)
        )
    return {
        kind: np.stack([cache[f"{layer}.hook_pattern"][0].cpu().numpy().astype(np.float16) for layer in layers])
        for kind, layers in attention_modules(plan.config).items()
    }


def sample_text(model: Model, plan: TrainingPlan, seconds: float) -> str:
    """The model's continuation of the plan's prompt, or an encoder's prompt with its masks filled; after `seconds` it
    stops at `SHORTEST_SAMPLE` tokens."""
    if not plan.sample_prompt:
        return ""
    if isinstance(model, EncoderOnly):
        return plan.objective.tokenizer.decode(_filled(model, plan))
    end = plan.objective.end_token_id
    most = plan.config.context_length - len(plan.sample_prompt) + 1 if plan.is_task else plan.sample_tokens
    sampling = Sampling(temperature=0) if plan.is_task else Sampling(temperature=0.8, seed=plan.training.seed)
    steps = generate(
        model,
        plan.sample_prompt,
        max_new_tokens=max(min(most, plan.sample_tokens), 0),
        sampling=sampling,
        stop_tokens=() if end is None else (end,),
        names_filter=(),
        source=plan.probe_source or None,
    )
    written: list[int] = []
    deadline = time.monotonic() + seconds
    with evaluating(model):
        for step in steps:
            written.append(step.token_id)
            if len(written) >= SHORTEST_SAMPLE and time.monotonic() > deadline:
                break
    return plan.objective.tokenizer.decode(written)


def _filled(model: EncoderOnly, plan: TrainingPlan) -> list[int]:
    text = list(plan.sample_prompt)
    with evaluating(model):
        for step in fill_masks(model, text, plan.objective.tokenizer.special_id(MASK)):
            text[step.position] = step.token_id
    return text


def _pattern_bytes(plan: TrainingPlan) -> int:
    """The bytes of one snapshot's patterns."""
    config, target, source = plan.config, len(plan.probe_tokens), len(plan.probe_source)
    weights = config.n_layers * target**2
    if config.architecture == "encoder-decoder":
        weights += config.n_encoder_layers * source**2 + config.n_layers * target * source
    return 2 * config.n_heads * weights
