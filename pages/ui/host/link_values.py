"""Reads the values of a link's parameters. Each raises a ValueError that says what would do."""

import contextlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pages.ui.session import lesson_answers

PLACE = 10**6
"""No text and no vocabulary is as long."""


N = TypeVar("N", int, float)


@dataclass(frozen=True)
class Number(Generic[N]):
    """A number, and the range it must lie in."""

    kind: type[N]
    low: float
    high: float
    meaning: str

    def __call__(self, text: str) -> N:
        with contextlib.suppress(ValueError):
            if self.low <= (value := self.kind(text)) <= self.high:
                return value
        raise ValueError(f"{self.meaning} must be a number from {self.low:,.12g} to {self.high:,.12g}")


class OneOf:
    """One of several texts or whole numbers, whichever the first is."""

    def __init__(self, *choices: Any) -> None:
        self.choices = choices

    def __call__(self, text: str) -> Any:
        names = [*map(str, self.choices)]
        if text not in names:
            raise ValueError(f"it can be {', '.join(names)}")
        return self.choices[names.index(text)]


@dataclass(frozen=True)
class SomeOf:
    """Any of several texts, in their order."""

    choices: tuple[str, ...]

    def __call__(self, text: str) -> tuple[str, ...]:
        chosen = set(map(OneOf(*self.choices), text.split(","))) if text else set()
        return tuple(choice for choice in self.choices if choice in chosen)


@dataclass(frozen=True)
class Text:
    """A text of so many characters at most, all of which match the pattern, if there is one."""

    longest: int
    pattern: str = ""

    def __call__(self, text: str) -> str:
        if len(text) > self.longest:
            raise ValueError(f"it can have at most {self.longest:,} characters")
        if self.pattern and not re.fullmatch(self.pattern, text, re.ASCII):
            raise ValueError("it isn't what this app writes")
        return text


def position_or_token(meaning: str) -> Number:
    """A position, or a token's number."""
    return Number(int, 0, PLACE, meaning)


def _several(text: str, read: Callable[[str], Any]) -> tuple:
    return tuple(map(read, text.split(",")))


@dataclass(frozen=True)
class Integers:
    """At most so many whole numbers of a range, with commas between them."""

    low: int
    high: int
    most: int
    meaning: str
    distinct: bool = False
    """Whether one that is named again is left out, and there may be none at all."""

    def __call__(self, text: str) -> tuple[int, ...]:
        numbers = _several(text, Number(int, self.low, self.high, "each number")) if text or not self.distinct else ()
        if self.distinct:
            numbers = tuple(dict.fromkeys(numbers))
        if len(numbers) > self.most:
            raise ValueError(f"{self.meaning} can have at most {self.most} numbers")
        return numbers


def zoom(text: str) -> tuple[int, ...]:
    """The first query, the one after the last, and the same of the keys."""
    bounds = _several(text, position_or_token("each position"))
    if len(bounds) != 4 or bounds[0] >= bounds[1] or bounds[2] >= bounds[3]:
        raise ValueError("it needs the first query, the one after the last, and the same of the keys")
    return bounds


def circuit(text: str) -> tuple[str | int, ...]:
    """A kind, an attention, a head, a distance, and perhaps a row and a column."""
    kind, _, rest = text.partition(",")
    attention, _, numbers = rest.partition(",")
    indices = _several(numbers, Number(int, 0, PLACE - 1, "each number"))
    if len(text) > 200 or len(indices) not in (2, 4):
        raise ValueError("it needs a kind, an attention, a head, a distance, and perhaps a row and a column")
    return kind, attention, *indices


def written(longest: int) -> Callable[[str], tuple[int, ...]]:
    """At most so many tokens, with dots between them."""

    def parse(text: str) -> tuple[int, ...]:
        if not re.fullmatch(r"(\d{1,7}(\.\d{1,7})*)?", text, re.ASCII):
            raise ValueError("it needs the tokens' numbers with dots between them")
        tokens = tuple(map(int, text.split("."))) if text else ()
        if len(tokens) > longest:
            raise ValueError(f"it can have at most {longest:,} tokens")
        return tokens

    return parse


def answers(text: str) -> str:
    """Answers to lessons, as `lesson_answers` reads them."""
    lesson_answers.from_text(text)
    return text
