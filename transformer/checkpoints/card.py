"""What a visitor should know of a model, and what it takes to train it again."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Card:
    """What a visitor should know of a model, and what it takes to train it again."""

    title: str
    summary: str = ""
    group: str = ""
    """Where a list of models puts it."""
    language: str = ""
    task: str = ""
    corpus: dict[str, Any] = field(default_factory=dict)
    """Name, SHA-256, licence, and how it was split."""
    training: dict[str, Any] = field(default_factory=dict)
    """Hyper-parameters, seed, steps, seconds, class of machine, and the command that trains it again."""
    parameters: int = 0
    train_loss: float | None = None
    """Nats per token."""
    validation_loss: float | None = None
    accuracy: float | None = None
    examples: list[str] = field(default_factory=list)
    """Prompts that suit the model."""
    start_token_id: int | None = None
    end_token_id: int | None = None

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Card:
        """Read a card; fields of later versions are passed over. Raises ValueError if it is none."""
        if not isinstance(fields, dict) or not isinstance(fields.get("title"), str):
            raise ValueError("a card needs at least a title")
        known = {field.name for field in dataclasses.fields(cls)}
        card = cls(**{name: value for name, value in fields.items() if name in known})
        for name, kinds in _CARD_KINDS.items():
            if not isinstance(getattr(card, name), kinds):
                raise ValueError(f"its {name} is {getattr(card, name)!r}, of a kind that can't be used")
        if not isinstance(card.examples, list) or not all(isinstance(example, str) for example in card.examples):
            raise ValueError("its examples must be a list of texts")
        return card

_CARD_KINDS: dict[str, Any] = {
    **dict.fromkeys(("summary", "group", "language", "task"), str),
    **dict.fromkeys(("corpus", "training"), dict),
    **dict.fromkeys(("train_loss", "validation_loss", "accuracy"), int | float | None),
    "parameters": int,
    **dict.fromkeys(("start_token_id", "end_token_id"), int | None),
}
