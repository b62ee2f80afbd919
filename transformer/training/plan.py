"""The plan of a training: model, objective, hyperparameters, and monitoring."""

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
    """A training's model, data, hyperparameters and monitoring. Raises ValueError for parts that don't fit."""

    objective: Objective
    config: ModelConfig
    training: TrainingConfig
    title: str
    summary: str = ""
    group: str = "Yours"
    """The trained model's group in a list of models."""
    command: str = ""
    """The command that trains the same model again, if there is one."""
    examples: Sequence[str] = ()
    """Example prompts for the model's card."""
    probe_tokens: tuple[int, ...] = ()
    """The fixed text whose attention is recorded."""
    probe_source: tuple[int, ...] = ()
    """The encoder's text, for the attention and for the sample."""
    sample_prompt: tuple[int, ...] = ()
    """The prompt of samples; for an encoder–decoder the start token, for an encoder a text with masks. Empty for no
    samples."""
    sample_tokens: int = 160
    """The longest sample in tokens; slow machines and short trainings write shorter ones."""
    snapshots: int = 40
    """The approximate number of snapshots; 0 for none."""
    evaluate_every: int = 100
    """Steps between validations; the last step and each snapshot validate as well."""
    begins_with: Mapping[str, Tensor] = field(default_factory=dict)
    """Trained weights to start from, by name; they fill the first rows of a longer table."""
    is_thorough: bool = False
    """True: validate on all held-out data, keep the best state, and measure it however long that takes. False: validate
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
        """Whether the objective has right answers, rather than a text to continue."""
        return isinstance(self.objective, TaskObjective)


def plan_of(preset: Preset, objective: Objective, begins_with: Mapping[str, Tensor] | None = None) -> TrainingPlan:
    """The plan of a preset on the command line: thorough, without snapshots. begins_with: as in a plan."""
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
