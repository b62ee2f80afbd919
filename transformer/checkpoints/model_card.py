"""The model card: what a model was trained on, how well it does, and how to train it again.

Cards are untrusted, since anybody can make an archive. `ModelCard.from_dict` refuses what a page couldn't print:
numbers that aren't finite, texts that no file can hold, and anything too long for a page.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NotRequired

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    StrictBool,
    StringConstraints,
    TypeAdapter,
    ValidationError,
    with_config,
)
from typing_extensions import TypedDict

from ..data.chat import DATE_FORM, LONGEST_FORM, MOST_DATES

MOST_DETAILS, LONGEST_DETAIL, DEEPEST_DETAIL = 100, 2_000, 3
"""The most values in `corpus` or `training`, at any level; the longest text or name; the most levels."""
LARGEST_NUMBER = 2**63 - 1
"""The largest number, 64 bits: no honest one is larger, and larger ones can't be divided or drawn."""
_EXACTLY = ConfigDict(extra="forbid")
_Word = Annotated[str, Field(max_length=60)]
_Part = Annotated[str, Field(max_length=20_000)]
_Form = Annotated[str, StringConstraints(pattern=DATE_FORM, max_length=LONGEST_FORM)]
_Count = Annotated[int, Field(strict=True, ge=0, le=LARGEST_NUMBER)]
_Loss = Annotated[float, Field(strict=True, allow_inf_nan=False, ge=0, le=LARGEST_NUMBER)]
_More = Annotated[list[_Count], Field(max_length=24)]


@with_config(_EXACTLY)
class Opening(TypedDict):
    """The head to show first. Not checked against the model here."""

    layer: _Count
    head: _Count
    attention: Literal["self", "encoder", "decoder", "cross"]


@with_config(_EXACTLY)
class ChatParts(TypedDict):
    """The text before and after a user's words: the fields of `Chat`."""

    before: _Part
    after: _Part
    strip: NotRequired[StrictBool]
    dates: NotRequired[Annotated[list[_Form], Field(max_length=MOST_DATES)]]


def _checked(details: dict[str, Any]) -> dict[str, Any]:
    """Check `corpus` or `training` level by level."""
    level, count = [details], 0
    for _ in range(DEEPEST_DETAIL + 1):
        names = [name for value in level if isinstance(value, dict) for name in value]
        texts = [value for value in [*names, *level] if isinstance(value, str)]
        numbers = [value for value in level if isinstance(value, int | float)]
        if any(len(text) > LONGEST_DETAIL or _is_torn(text) for text in texts):
            raise ValueError(
                f"a text has more than {LONGEST_DETAIL:,} characters, or half a character, which no file can hold"
            )
        if not all(-LARGEST_NUMBER <= number <= LARGEST_NUMBER for number in numbers):  # NaN is in no range
            raise ValueError("a number is infinite, too large, or no number at all")
        level = [inner for value in level if isinstance(value, dict | list) for inner in _values(value)]
        count += len(level)
        if count > MOST_DETAILS:
            raise ValueError(f"there are more than {MOST_DETAILS} values")
    if level:
        raise ValueError(f"there are more than {DEEPEST_DETAIL} levels")
    return details


def _values(of: dict[str, Any] | list[Any]) -> list[Any]:
    return of if isinstance(of, list) else list(of.values())


def _is_torn(text: str) -> bool:
    return not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text)


_Details = Annotated[dict[str, Any], AfterValidator(_checked)]


@dataclass(frozen=True, kw_only=True)
class ModelCard:
    """Facts about a model for visitors, and how to train it again."""

    title: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=300)]
    summary: Annotated[str, Field(max_length=1_000)] = ""
    group: _Word = ""
    """Its group in a list of models."""
    language: _Word = ""
    task: _Word = ""
    corpus: _Details = field(default_factory=dict)
    """Name, SHA-256, licence and split."""
    training: _Details = field(default_factory=dict)
    """Hyper-parameters, seed, steps, seconds, class of machine, and the command that trains it again."""
    parameters: _Count = 0
    train_loss: _Loss | None = None
    """Nats per token."""
    validation_loss: _Loss | None = None
    accuracy: Annotated[float, Field(strict=True, allow_inf_nan=False, ge=0, le=1)] | None = None
    """The share of examples that it answers correctly, 0 to 1."""
    examples: Annotated[list[Annotated[str, Field(max_length=2_000)]], Field(max_length=24)] = field(
        default_factory=list
    )
    """Example prompts."""
    opening: Opening | None = None
    start_token_id: _Count | None = None
    end_token_id: _Count | None = None
    mask_token_id: _Count | None = None
    """The mask token of a model that reads in both directions."""
    more_start_token_ids: _More = field(default_factory=list)
    """Tokens that an encoder–decoder always writes after its start token."""
    more_end_token_ids: _More = field(default_factory=list)
    """Further tokens that end a text."""
    chat: ChatParts | None = None
    """The chat template of a model that was tuned to answer."""

    @property
    def start_tokens(self) -> tuple[int, ...]:
        """The first tokens of an encoder–decoder's target; empty for other models."""
        return () if self.start_token_id is None else (self.start_token_id, *self.more_start_token_ids)

    @property
    def stop_tokens(self) -> tuple[int, ...]:
        """All tokens that end a text."""
        return () if self.end_token_id is None else (self.end_token_id, *self.more_end_token_ids)

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> ModelCard:
        """Read a card; fields of later versions are ignored. Raises ValueError, saying why, if it isn't one."""
        try:
            return _CARD.validate_python(fields)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"]))[:60] or "content"
            raise ValueError(f"its {where} won't do: {first['msg'].removeprefix('Value error, ')}") from None


_CARD = TypeAdapter(ModelCard)
