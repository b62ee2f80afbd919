"""The model card: what a model was trained on, how well it does, and how to train it again.

Cards are untrusted: they come with archives that anybody may have made. `ModelCard.from_dict` refuses what a page could
not print: numbers that aren't finite, texts that no file can hold, and more of anything than fits on a page.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

LONGEST = {"title": 300, "summary": 1_000, "group": 60, "language": 60, "task": 60}
"""Characters of each text."""
MOST_EXAMPLES, LONGEST_EXAMPLE = 24, 2_000
LONGEST_CHAT = 20_000
"""Characters before and after a person's words."""
MOST_MORE = 24
"""Tokens besides the first with which a text begins, or ends."""
MOST_DETAILS, LONGEST_DETAIL, DEEPEST_DETAIL = 100, 2_000, 3
"""Values in `corpus` or `training`, at any level; characters of a text or name among them; levels."""
ATTENTIONS = ("self", "encoder", "decoder", "cross")
"""Which attention an opening can be of."""
LARGEST_NUMBER = 2**63 - 1
"""What fits into 64 bits; no honest number is larger, and larger ones can't be divided or drawn."""


@dataclass(frozen=True, kw_only=True)
class ModelCard:
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
    """The share of examples it answers correctly, from 0 to 1."""
    examples: list[str] = field(default_factory=list)
    """Prompts that suit the model."""
    opening: dict[str, Any] | None = None
    """The head worth seeing first, as {"layer": int, "head": int, "attention": one of `ATTENTIONS`}."""
    start_token_id: int | None = None
    end_token_id: int | None = None
    mask_token_id: int | None = None
    """What stands for a word to be filled in, of a model that reads in both directions."""
    more_start_token_ids: list[int] = field(default_factory=list)
    """What an encoder–decoder always writes first, after its start token."""
    more_end_token_ids: list[int] = field(default_factory=list)
    """Other tokens after which a text ends, too."""
    chat: dict[str, Any] | None = None
    """What stands before and after a person's words, of a model that was tuned to answer: the fields of `Chat`."""

    @property
    def start_tokens(self) -> tuple[int, ...]:
        """What the text of an encoder–decoder's decoder begins with; empty for other models."""
        return () if self.start_token_id is None else (self.start_token_id, *self.more_start_token_ids)

    @property
    def stop_tokens(self) -> tuple[int, ...]:
        """All tokens after which a text ends."""
        return () if self.end_token_id is None else (self.end_token_id, *self.more_end_token_ids)

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> ModelCard:
        """Read a card; fields of later versions are ignored. Raises ValueError, saying why, if it isn't one."""
        if not isinstance(fields, dict) or not isinstance(fields.get("title"), str) or not fields["title"].strip():
            raise ValueError("a card needs at least a title")
        known = {field.name for field in dataclasses.fields(cls)}
        card = cls(**{name: value for name, value in fields.items() if name in known})
        for name, longest in LONGEST.items():
            _check_text(f"its {name}", getattr(card, name), longest)
        for name in ("parameters", "start_token_id", "end_token_id", "mask_token_id"):
            value = getattr(card, name)
            if value is not None or name == "parameters":
                _check_number(f"its {name}", value, whole=True)
        for name in ("more_start_token_ids", "more_end_token_ids"):
            more = getattr(card, name)
            if not isinstance(more, list) or len(more) > MOST_MORE:
                raise ValueError(f"its {name} must be a list of at most {MOST_MORE} numbers")
            for value in more:
                _check_number(f"one of its {name}", value, whole=True)
        for name, largest in (("train_loss", LARGEST_NUMBER), ("validation_loss", LARGEST_NUMBER), ("accuracy", 1)):
            if (value := getattr(card, name)) is not None:
                _check_number(f"its {name}", value, largest)
        _check_examples(card.examples)
        _check_opening(card.opening)
        _check_chat(card.chat)
        for name in ("corpus", "training"):
            if not isinstance(getattr(card, name), dict):
                raise ValueError(f"its {name} must be a set of named values")
            _check_details(name, getattr(card, name))
        return card


def _check_text(what: str, value: object, longest: int) -> None:
    if not isinstance(value, str):
        raise ValueError(f"{what} must be a text")
    if len(value) > longest:
        raise ValueError(f"{what} has {len(value):,} characters; it may have {longest:,}")
    if not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value):
        raise ValueError(f"{what} holds half a character, which no file can hold")


def _check_number(what: str, value: object, largest: int = LARGEST_NUMBER, *, whole: bool = False) -> None:
    if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
        raise ValueError(f"{what} must be a {'whole ' if whole else ''}number")
    if not 0 <= value <= largest:  # not a number is in no range
        raise ValueError(f"{what} must be a number from 0 to {largest:,}")


def _check_examples(examples: object) -> None:
    if not isinstance(examples, list):
        raise ValueError("its examples must be a list of texts")
    if len(examples) > MOST_EXAMPLES:
        raise ValueError(f"it has {len(examples):,} examples; it may have {MOST_EXAMPLES}")
    for example in examples:
        _check_text("one of its examples", example, LONGEST_EXAMPLE)


def _check_opening(opening: object) -> None:
    """Whether the model has that layer and head is for those to see who have the model."""
    if opening is None:
        return
    if not isinstance(opening, dict) or opening.keys() != {"layer", "head", "attention"}:
        raise ValueError("its opening must name a layer, a head and an attention, and nothing else")
    for name in ("layer", "head"):
        _check_number(f"the {name} of its opening", opening[name], whole=True)
    if opening["attention"] not in ATTENTIONS:
        raise ValueError(f"the attention of its opening can be {', '.join(ATTENTIONS)}")


def _check_chat(chat: object) -> None:
    if chat is None:
        return
    if not isinstance(chat, dict) or chat.keys() - {"strip"} != {"before", "after"}:
        raise ValueError("its chat must say what stands before and after a person's words, and nothing else")
    for name in ("before", "after"):
        _check_text(f"what stands {name} a person's words", chat[name], LONGEST_CHAT)
    if not isinstance(chat.get("strip", False), bool):
        raise ValueError("whether its chat strips a person's words must be true or false")


def _check_details(name: str, details: dict[str, Any]) -> None:
    """Go through everything in `corpus` or `training`, level by level."""
    level, count = [details], 0
    for _ in range(DEEPEST_DETAIL + 1):
        below: list[Any] = []
        for value in level:
            if isinstance(value, dict):
                for key in value:
                    _check_text(f"a name in its {name}", key, LONGEST_DETAIL)
                below += value.values()
            elif isinstance(value, list):
                below += value
            else:
                _check_detail(name, value)
        count += len(below)
        if count > MOST_DETAILS:
            raise ValueError(f"its {name} has more than {MOST_DETAILS} values")
        level = below
    if level:
        raise ValueError(f"its {name} has more than {DEEPEST_DETAIL} levels")


def _check_detail(name: str, value: object) -> None:
    if isinstance(value, str):
        _check_text(f"a text in its {name}", value, LONGEST_DETAIL)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        if not -LARGEST_NUMBER <= value <= LARGEST_NUMBER:
            raise ValueError(f"a number in its {name} is infinite, too large, or no number at all")
    elif value is not None and not isinstance(value, bool):
        raise ValueError(f"its {name} holds something else than texts and numbers")
