"""The plan of a training: the model, its objective, its hyperparameters, and what is monitored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from torch import Tensor

from ..config import ModelConfig
from .loop import TrainingConfig
from .objectives import Objective, TaskObjective
from .presets import Preset

MOST_SNAPSHOTS = 60


@dataclass(frozen=True, kw_only=True)
class TrainingPlan:
    """One training: of which model, on what, how, and what is watched. Raises ValueError for parts that don't fit."""

    objective: Objective
    config: ModelConfig
    training: TrainingConfig
    title: str
    summary: str = ""
    group: str = "Yours"
    """Where a list of models puts what comes out."""
    command: str = ""
    """What trains the same model again, if one command does."""
    examples: Sequence[str] = ()
    """Prompts that suit the model, for its card."""
    probe_tokens: tuple[int, ...] = ()
    """The fixed text whose attention is recorded."""
    probe_source: tuple[int, ...] = ()
    """What an encoder reads, for the attention and for the sample."""
    sample_prompt: tuple[int, ...] = ()
    """What a sample continues; for an encoder–decoder its start token; for an encoder a text with masks. Empty: no
    samples."""
    sample_tokens: int = 160
    """The longest sample; on a slow machine, or in a short training, they are shorter."""
    snapshots: int = 40
    """About how many snapshots to take; 0 for none."""
    evaluate_every: int = 100
    """Steps between validations, which the last step and each snapshot bring as well."""
    begins_with: Mapping[str, Tensor] = field(default_factory=dict)
    """Trained weights that the model begins with, by name; of a table with more rows than these, the first."""
    is_thorough: bool = False
    """Validate on all that is held out, keep the best state there was, and measure it however long that takes; else
    on a fixed part, and keep the last state, measured as well as a few seconds allow."""

    def __post_init__(self) -> None:
        config = self.config
        for name, value in self.objective.shape.items():
            if getattr(config, name) != value:
                raise ValueError(f"{name} is {getattr(config, name)!r}, but what is to be learnt needs {value!r}.")
        if not 0 <= self.snapshots <= MOST_SNAPSHOTS:
            raise ValueError(f"snapshots is {self.snapshots}; it must be from 0 to {MOST_SNAPSHOTS}.")
        if self.evaluate_every < 1:
            raise ValueError(f"evaluate_every is {self.evaluate_every}; it must be at least 1.")
        for name in ("probe_tokens", "probe_source", "sample_prompt"):
            tokens = getattr(self, name)
            if any(not 0 <= token < config.vocab_size for token in tokens):
                raise ValueError(f"{name} has ids outside the vocabulary of {config.vocab_size}.")
            if name != "sample_prompt" and len(tokens) > config.context_length:
                raise ValueError(f"{name} has {len(tokens)} tokens; the model reads {config.context_length}.")
        if config.architecture == "encoder-decoder" and self.snapshots and not self.probe_source:
            raise ValueError("probe_source is empty; an encoder–decoder has to read something.")

    @property
    def is_task(self) -> bool:
        """True if there are right answers, rather than a text to continue."""
        return isinstance(self.objective, TaskObjective)


def plan_of(preset: Preset, objective: Objective, begins_with: Mapping[str, Tensor] | None = None) -> TrainingPlan:
    """A preset as the command line trains it: thoroughly, and with nobody watching. begins_with: as in a plan."""
    return TrainingPlan(
        objective=objective,
        config=ModelConfig(**{**preset.shape, **objective.shape}),
        training=preset.training,
        title=preset.title,
        summary=preset.summary,
        group=preset.group.value,
        command=f"python -m transformer train {preset.name}",
        examples=preset.examples,
        snapshots=0,
        evaluate_every=preset.evaluate_every,
        begins_with=begins_with or {},
        is_thorough=True,
    )
