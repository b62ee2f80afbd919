"""Defines the five kinds of question: what a file says of one, what can be an answer, what is right, and its words.

| kind | an answer | what is right |
| --- | --- | --- |
| choose | the number of an option | an expression an option, of which exactly one is true |
| number | a number | an expression; `near` says how far off still counts |
| token | a position | an expression that is a position, or a list of positions |
| cell | a query and a key | an expression that is a list of both |
| order | the options' numbers, as they are put | a value for each option, or the texts as they belong |

Answers are lists and numbers as JSON has them. Students' answers are marked in the browser, by the same kind in
`frontend/lessons/questions.js`; a class's votes and the files of results are marked here.
"""

import math
import random
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Self, TypeGuard

from pages.ui.lessons import attention_cells
from pages.ui.lessons.expressions import Expression, ExpressionError, Words, in_words
from pages.ui.lessons.measure_setup import Setup
from pages.ui.markdown import code, passage, plain
from pages.ui.session.lesson_answers import Answer

FEWEST, MAX_OPTIONS = 2, 10
"""Options."""
MAX_POSITION = 10_000
MAX_TOKENS = 120
"""Tokens of a prompt of which one is to be chosen."""


@dataclass(frozen=True)
class Question(ABC):
    """A question of a lesson; each kind is a subclass.

    `link` is the parameters of the view that it is asked of; `values` is what was measured.
    """

    text: Words
    right: tuple[Expression, ...]
    options: tuple[Words, ...] = ()
    kind: ClassVar[str]
    own: ClassVar[tuple[str, ...]] = ()
    """The fields that its block can have beside kind, text and right."""

    @classmethod
    def read(cls, text: Words, fields: Mapping[str, Any]) -> Self:
        """Raises: ExpressionError, which says what would do."""
        return cls(text, _expression(fields))

    @property
    def shown(self) -> frozenset[str]:
        """The measures that are told as it is asked."""
        return self.text.names.union(*(option.names for option in self.options))

    @property
    def needed(self) -> frozenset[str]:
        """The measures by which what is right is known."""
        return frozenset().union(*(expression.names for expression in self.right))

    @property
    def names(self) -> frozenset[str]:
        """Both."""
        return self.shown | self.needed

    @abstractmethod
    def fits(self, answer: Any) -> bool:
        """Whether this can be an answer, as far as the question alone can tell; a browser can send anything."""

    def right_of(self, values: Mapping[str, Any]) -> Any:
        """What is right, as a lesson's document says it.

        An option, a number, a list of positions, a query and a key, or a rank for each option; equal ranks may come in
        any order.

        Raises: ExpressionError where that gives nothing which could be right.
        """
        right = self.right_among([expression.value(values) for expression in self.right])
        if right is None:
            raise ExpressionError(f"what right comes to is no answer to a question of the kind {self.kind}")
        return right

    @abstractmethod
    def right_among(self, measured: list[Any]) -> Any:
        """The same from what its expressions come to; None where that gives nothing."""

    def an_answer(self, right: Any) -> Answer:
        """An answer that is right. right: from `right_of`."""
        return right

    def is_right(self, right: Any, answer: Answer) -> bool:
        """Whether an answer that fits is right. right: from `right_of`."""
        return answer == right

    @abstractmethod
    def in_words(self, answer: Any, link: Mapping[str, str], values: Mapping[str, Any]) -> str:
        """An answer as it is said in a sentence, as Markdown.

        Raises: ExpressionError where that names what can't be measured; IndexError for an option that there isn't.
        """

    def drawn(self, link: Mapping[str, str]) -> dict[str, Any]:
        """What `lessons/questions.js` draws it with, beside its text and options."""
        return {}

    def flaw(self, right: Any, link: Mapping[str, str]) -> str:
        """Why it can't be asked like this, and what to write instead; "" for nothing. right: from `right_of`."""
        return ""


class Choose(Question):
    kind = "choose"
    own = ("options",)

    @classmethod
    def read(cls, text: Words, fields: Mapping[str, Any]) -> Self:
        right, options = _expressions(_texts(fields.get("right", []), "right")), _options(fields.get("options", []))
        if len(right) != len(options):
            raise ExpressionError("right has one expression for each of the options")
        return cls(text, right, options)

    def fits(self, answer: Any) -> bool:
        return type(answer) is int and 0 <= answer < len(self.options)

    def right_among(self, measured: list[Any]) -> int:
        true = [number for number, value in enumerate(measured) if value is True]
        if len(true) != 1 or not all(isinstance(value, bool) for value in measured):
            raise ExpressionError(f"exactly one of the options should be right, and {len(true)} are")
        return true[0]

    def in_words(self, answer: Any, link: Mapping[str, str], values: Mapping[str, Any]) -> str:
        return f"“{self.options[answer].filled(values, passage)}”"


@dataclass(frozen=True)
class Number(Question):
    low: float = 0.0
    high: float = 1.0
    step: float = 0.0
    unit: str = ""
    near: float = 0.0
    kind = "number"
    own = ("low", "high", "step", "unit", "near")

    @classmethod
    def read(cls, text: Words, fields: Mapping[str, Any]) -> Self:
        right, values = _expression(fields), {}
        for name, default in (("low", 0.0), ("high", 1.0), ("step", 0.0), ("near", 0.0)):
            value = fields.get(name, default)
            if type(value) not in (int, float) or not math.isfinite(value) or abs(value) > 1e9:
                raise ExpressionError(f"{name} is a number")
            values[name] = float(value)
        length = values["high"] - values["low"]
        if length <= 0:
            raise ExpressionError("low is less than high")
        values["step"] = values["step"] or length / 100
        if not 0 < values["step"] <= length or length / values["step"] > 10_000:
            raise ExpressionError("step is more than 0, and the slider has at most 10,000 steps")
        if not 0 < values["near"] <= length:
            raise ExpressionError("a number needs near: how far off still counts as right")
        unit = fields.get("unit", "")
        if not isinstance(unit, str) or len(unit) > 12:
            raise ExpressionError("unit is a short text")
        return cls(text, right, **values, unit=unit)

    def fits(self, answer: Any) -> bool:
        return type(answer) in (int, float) and self.low <= answer <= self.high

    def right_among(self, measured: list[Any]) -> float | None:
        return measured[0] if type(measured[0]) in (int, float) else None

    def is_right(self, right: Any, answer: Any) -> bool:
        return abs(answer - right) <= self.near * (1 + 1e-9)

    def in_words(self, answer: Any, link: Mapping[str, str], values: Mapping[str, Any]) -> str:
        shown = in_words(float(answer), "%" if self.unit == "%" else "", str)
        return shown if self.unit in ("", "%") else f"{shown} {plain(self.unit)}"

    def drawn(self, link: Mapping[str, str]) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.own}

    def flaw(self, right: Any, link: Mapping[str, str]) -> str:
        shown = f"{right:.4g}" if isinstance(right, float) else str(right)
        if not self.low <= right <= self.high:
            return f"right comes to {shown}, off the slider; write a low and a high around it"
        if self.is_right(right, (self.low + self.high) / 2):
            return f"the slider starts where it is already right ({shown}); move low or high"
        return ""


class Token(Question):
    kind = "token"

    def fits(self, answer: Any) -> bool:
        return type(answer) is int and 0 <= answer < MAX_POSITION

    def right_among(self, measured: list[Any]) -> list[int] | None:
        positions = measured[0] if isinstance(measured[0], list) else [measured[0]]
        return positions if positions and _is_list(positions) else None

    def an_answer(self, right: Any) -> int:
        return right[0]

    def is_right(self, right: Any, answer: Answer) -> bool:
        return answer in right

    def in_words(self, answer: Any, link: Mapping[str, str], values: Mapping[str, Any]) -> str:
        setup = Setup.of(link, {})
        token = f"{code(setup.label(setup.read[answer]))} at " if answer < len(setup.read) else ""
        return f"{token}position {answer}"

    def drawn(self, link: Mapping[str, str]) -> dict[str, Any]:
        setup = Setup.of(link, {})
        return {"options": setup.tokenizer.labels(setup.read[:MAX_TOKENS])}

    def flaw(self, right: Any, link: Mapping[str, str]) -> str:
        if right[0] in range(len(Setup.of(link, {}).read)):
            return ""
        return f"right comes to position {right[0]}, which the prompt of the view doesn't have"


@dataclass(frozen=True)
class Cell(Question):
    layer: int | None = None
    head: int | None = None
    attention: str = ""
    """The head whose cells are asked for, if the view doesn't say it."""
    kind = "cell"
    own = ("layer", "head", "attention")

    @classmethod
    def read(cls, text: Words, fields: Mapping[str, Any]) -> Self:
        for name in ("layer", "head"):
            if name in fields and (type(fields[name]) is not int or not 0 <= fields[name] < 1000):
                raise ExpressionError(f"{name} is a whole number")
        if not isinstance(fields.get("attention", ""), str):
            raise ExpressionError("attention is a text, as in a link")
        return cls(text, _expression(fields), **{name: fields[name] for name in cls.own if name in fields})

    def fits(self, answer: Any) -> bool:
        return _is_list(answer) and len(answer) == 2 and all(0 <= number < MAX_POSITION for number in answer)

    def right_among(self, measured: list[Any]) -> list[int] | None:
        return measured[0] if _is_list(measured[0]) and len(measured[0]) == 2 else None

    def picture(self, link: Mapping[str, str]) -> attention_cells.Picture | None:
        """The head whose cells are asked for; None in a model without attention."""
        return attention_cells.picture(link, self.layer, self.head, self.attention)

    def in_words(self, answer: Any, link: Mapping[str, str], values: Mapping[str, Any]) -> str:
        picture = self.picture(link)
        return picture.in_words(answer) if picture else "query {}, key {}".format(*answer)

    def drawn(self, link: Mapping[str, str]) -> dict[str, Any]:
        picture = self.picture(link)
        return {"picture": picture and picture._asdict()}

    def flaw(self, right: Any, link: Mapping[str, str]) -> str:
        return "" if self.picture(link) else "a question of the kind cell needs a view of a model with attention"


@dataclass(frozen=True)
class Order(Question):
    in_order: tuple[str, ...] = ()
    """Instead of what is right, perhaps the texts of the options as they belong: no model needs to be asked."""
    descending: bool = False
    kind = "order"
    own = ("options", "descending")

    @classmethod
    def read(cls, text: Words, fields: Mapping[str, Any]) -> Self:
        given = fields.get("right") or ""
        in_order = _texts(given, "right") if isinstance(given, list) else ()
        right = () if in_order else _expression(fields)
        options = _options(fields.get("options") or list(_shuffled(in_order)))
        if in_order and sorted(in_order) != sorted(option.text for option in options):
            raise ExpressionError("right has the same texts as options, in the right order")
        if type(descending := fields.get("descending", False)) is not bool:
            raise ExpressionError("descending is true or false")
        return cls(text, right, options, in_order, descending)

    def fits(self, answer: Any) -> bool:
        return _is_list(answer) and sorted(answer) == list(range(len(self.options)))

    def right_among(self, measured: list[Any]) -> list[Any] | None:
        texts = [option.text for option in self.options]
        ranks: list[Any] = list(self.in_order) or measured[0]
        if not isinstance(ranks, list) or len(ranks) != len(texts):
            return None
        if sorted(map(str, ranks)) == sorted(texts):
            return [ranks.index(text) for text in texts]
        if all(isinstance(rank, int | float) for rank in ranks):
            return [-rank if self.descending else rank for rank in ranks]
        return None

    def an_answer(self, right: Any) -> list[int]:
        return sorted(range(len(right)), key=right.__getitem__)

    def is_right(self, right: Any, answer: Any) -> bool:
        return all(right[before] <= right[after] for before, after in pairwise(answer))

    def in_words(self, answer: Any, link: Mapping[str, str], values: Mapping[str, Any]) -> str:
        return " → ".join(plain(self.options[number].filled(values, str).replace("`", "")) for number in answer)

    def flaw(self, right: Any, link: Mapping[str, str]) -> str:
        is_solved = self.is_right(right, list(range(len(self.options))))
        return "the options are in the correct order already; write them in another one" if is_solved else ""


KINDS: dict[str, type[Question]] = {kind.kind: kind for kind in (Choose, Number, Token, Cell, Order)}


def read_question(fields: Mapping[str, Any]) -> Question:
    """Read a question's block. Raises ExpressionError, which says what would do."""
    name, text = fields.get("kind"), fields.get("text")
    if name not in KINDS:
        raise ExpressionError(f"a question's kind is one of {', '.join(KINDS)}")
    if not isinstance(text, str) or not text.strip():
        raise ExpressionError('a question needs a text, such as text = "What comes next?"')
    known = ("kind", "text", "right", *KINDS[name].own)
    if unknown := [field for field in fields if field not in known]:
        raise ExpressionError(
            f"a question of the kind {name} has no “{unknown[0][:40]}”; there can be {', '.join(known)}"
        )
    return KINDS[name].read(Words.read(text), fields)


def _expression(fields: Mapping[str, Any]) -> tuple[Expression, ...]:
    if not isinstance(right := fields.get("right"), str):
        raise ExpressionError("a question needs right: an expression of what is measured")
    return _expressions([right])


def _expressions(texts: Sequence[str]) -> tuple[Expression, ...]:
    read = tuple(map(Expression.read, texts))
    if not any(expression.names for expression in read):
        raise ExpressionError("what is right is computed: right needs the name of a measure")
    return read


def _options(given: Any) -> tuple[Words, ...]:
    options = _texts(given, "options")
    if not FEWEST <= len(options) <= MAX_OPTIONS:
        raise ExpressionError(f"a question has {FEWEST} to {MAX_OPTIONS} options")
    if len(set(options)) < len(options):
        raise ExpressionError("no two options are the same")
    return tuple(map(Words.read, options))


def _texts(given: Any, name: str) -> tuple[str, ...]:
    if not isinstance(given, list) or not all(isinstance(text, str) and 0 < len(text.strip()) <= 300 for text in given):
        raise ExpressionError(f"{name} is a list of texts")
    return tuple(text.strip() for text in given)


def _shuffled(texts: tuple[str, ...]) -> tuple[str, ...]:
    """The same in another order, always the same one."""
    shuffled = list(texts)
    source = random.Random("\n".join(texts))
    while len(set(shuffled)) > 1 and tuple(shuffled) == texts:
        source.shuffle(shuffled)
    return tuple(shuffled)


def _is_list(value: Any) -> TypeGuard[list[int]]:
    return isinstance(value, list) and all(type(number) is int for number in value)
