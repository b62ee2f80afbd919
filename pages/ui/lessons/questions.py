"""Parses the five kinds of question, and computes what is right.

| kind | an answer | what is right |
| --- | --- | --- |
| choose | the number of an option | an expression an option, of which exactly one is true |
| number | a number | an expression; `near` says how far off still counts |
| token | a position | an expression that is a position, or a list of positions |
| cell | a query and a key | an expression that is a list of both |
| order | the options' numbers, as they are put | a value for each option, or the texts as they belong |

Answers are lists and numbers as JSON has them. They are marked in the browser, by `frontend/lessons/questions.js`.
"""

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeGuard

from pages.ui.lessons.expressions import Expression, ExpressionError, Words
from pages.ui.session.lesson_answers import Answer

KINDS = ("choose", "number", "token", "cell", "order")
FEWEST, MAX_OPTIONS = 2, 10
"""Options."""
OWN = {
    "choose": ("options",),
    "number": ("low", "high", "step", "unit", "near"),
    "token": (),
    "cell": ("layer", "head", "attention"),
    "order": ("options", "descending"),
}
"""What each kind can have beside its text and what is right."""


@dataclass(frozen=True)
class Question:
    kind: str
    text: Words
    right: tuple[Expression, ...] = ()
    in_order: tuple[str, ...] = ()
    """Of *order*, instead of what is right, perhaps the texts of the options as they belong."""
    options: tuple[Words, ...] = ()
    low: float = 0.0
    high: float = 1.0
    step: float = 0.0
    unit: str = ""
    near: float = 0.0
    descending: bool = False
    layer: int | None = None
    head: int | None = None
    attention: str = ""
    """The head whose cells are asked for, if the view doesn't say it."""

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

    @property
    def is_fact(self) -> bool:
        """Whether what is right is an order that no model needs to be asked for."""
        return bool(self.in_order)


def read_question(fields: Mapping[str, Any]) -> Question:
    """Read a question's block. Raises ExpressionError, which says what would do."""
    kind, text = fields.get("kind"), fields.get("text")
    if kind not in KINDS:
        raise ExpressionError(f"a question's kind is one of {', '.join(KINDS)}")
    if not isinstance(text, str) or not text.strip():
        raise ExpressionError('a question needs a text, such as text = "What comes next?"')
    for name in fields:
        if name not in ("kind", "text", "right", *OWN[kind]):
            known = ", ".join(("kind", "text", "right", *OWN[kind]))
            raise ExpressionError(f"a question of the kind {kind} has no “{name[:40]}”; there can be {known}")
    options = _texts(fields.get("options", []), "options")
    given = fields.get("right")
    in_order = _texts(given, "right") if kind == "order" and isinstance(given, list) else ()
    right = () if in_order else _right(kind, given)
    options = options or _shuffled(in_order)
    if kind in ("choose", "order") and not FEWEST <= len(options) <= MAX_OPTIONS:
        raise ExpressionError(f"a question of the kind {kind} has {FEWEST} to {MAX_OPTIONS} options")
    if len(set(options)) < len(options):
        raise ExpressionError("no two options are the same")
    if kind == "choose" and len(right) != len(options):
        raise ExpressionError("right has one expression for each of the options")
    if in_order and sorted(in_order) != sorted(options):
        raise ExpressionError("right has the same texts as options, in the right order")
    if type(descending := fields.get("descending", False)) is not bool:
        raise ExpressionError("descending is true or false")
    return Question(
        kind=kind,
        text=Words.read(text),
        right=right,
        in_order=in_order,
        options=tuple(map(Words.read, options)),
        descending=descending,
        **_numbers(kind, fields),
        **_head(fields),
    )


def _right(kind: str, given: Any) -> tuple[Expression, ...]:
    if kind == "choose":
        read = tuple(Expression.read(text) for text in _texts(given or [], "right"))
    elif isinstance(given, str):
        read = (Expression.read(given),)
    else:
        raise ExpressionError("a question needs right: an expression of what is measured")
    if not frozenset().union(*(expression.names for expression in read)):
        raise ExpressionError("what is right is computed: right needs the name of a measure")
    return read


def _numbers(kind: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    if kind != "number":
        return {}
    values = {}
    for name, default in (("low", 0.0), ("high", 1.0), ("step", 0.0), ("near", 0.0)):
        value = fields.get(name, default)
        if type(value) not in (int, float) or not math.isfinite(value) or abs(value) > 1e9:
            raise ExpressionError(f"{name} is a number")
        values[name] = float(value)
    low, high = values["low"], values["high"]
    if not low < high:
        raise ExpressionError("low is less than high")
    values["step"] = values["step"] or (high - low) / 100
    if not 0 < values["step"] <= high - low or (high - low) / values["step"] > 10_000:
        raise ExpressionError("step is more than 0, and the slider has at most 10,000 steps")
    if not 0 < values["near"] <= high - low:
        raise ExpressionError("a number needs near: how far off still counts as right")
    unit = fields.get("unit", "")
    if not isinstance(unit, str) or len(unit) > 12:
        raise ExpressionError("unit is a short text")
    return {**values, "unit": unit}


def _head(fields: Mapping[str, Any]) -> dict[str, Any]:
    for name in ("layer", "head"):
        if name in fields and (type(fields[name]) is not int or not 0 <= fields[name] < 1000):
            raise ExpressionError(f"{name} is a whole number")
    if not isinstance(fields.get("attention", ""), str):
        raise ExpressionError("attention is a text, as in a link")
    return {name: fields[name] for name in ("layer", "head", "attention") if name in fields}


def _texts(given: Any, name: str) -> tuple[str, ...]:
    if not isinstance(given, list) or not all(isinstance(text, str) and 0 < len(text.strip()) <= 300 for text in given):
        raise ExpressionError(f"{name} is a list of texts")
    return tuple(text.strip() for text in given)


def _shuffled(texts: tuple[str, ...]) -> tuple[str, ...]:
    """The same in another order, always the same one."""
    shuffled = list(texts)
    source = random.Random("\n".join(texts))
    while len(shuffled) > 1 and tuple(shuffled) == texts and len(set(shuffled)) > 1:
        source.shuffle(shuffled)
    return tuple(shuffled)


def fits(question: Question | None, answer: Any) -> bool:
    """Whether this can be an answer, as far as the question alone can tell; a browser or a link can send anything."""
    if question is None:
        return False
    match question.kind:
        case "choose":
            return type(answer) is int and 0 <= answer < len(question.options)
        case "number":
            return type(answer) in (int, float) and question.low <= answer <= question.high
        case "token":
            return type(answer) is int and 0 <= answer < 10_000
        case "cell":
            return _is_list(answer) and len(answer) == 2 and all(0 <= number < 10_000 for number in answer)
    return _is_list(answer) and sorted(answer) == list(range(len(question.options)))


def right_of(question: Question, values: Mapping[str, Any]) -> Any:
    """What is right, as a lesson's document says it. values: what was measured.

    An option, a number, a list of positions, a query and a key, or a rank for each option; equal ranks may come in any
    order.

    Raises: ExpressionError where that gives nothing which could be right.
    """
    if question.is_fact:
        return [question.in_order.index(option.text) for option in question.options]
    measured = [expression.value(values) for expression in question.right]
    match question.kind:
        case "choose":
            true = [number for number, value in enumerate(measured) if value is True]
            if len(true) != 1 or not all(isinstance(value, bool) for value in measured):
                raise ExpressionError(f"exactly one of the options should be right, and {len(true)} are")
            return true[0]
        case "number" if not isinstance(measured[0], bool) and isinstance(measured[0], int | float):
            return measured[0]
        case "token":
            positions = measured[0] if isinstance(measured[0], list) else [measured[0]]
            if positions and all(type(position) is int for position in positions):
                return positions
        case "cell" if _is_list(measured[0]) and len(measured[0]) == 2:
            return measured[0]
        case "order" if isinstance(measured[0], list) and len(measured[0]) == len(question.options):
            ranks: list[Any] = measured[0]
            texts = [option.text for option in question.options]
            if sorted(map(str, ranks)) == sorted(texts):
                return [ranks.index(text) for text in texts]
            if all(isinstance(rank, int | float) for rank in ranks):
                return [-rank if question.descending else rank for rank in ranks]
    raise ExpressionError(f"what right comes to is no answer to a question of the kind {question.kind}")


def answer_of(question: Question, right: Any) -> Answer:
    """An answer that is right. right: from `right_of`."""
    if question.kind == "order":
        return sorted(range(len(right)), key=right.__getitem__)
    return right[0] if question.kind == "token" else right


def is_right(question: Question, right: Any, answer: Answer) -> bool:
    """Whether a vote counts as right in the teacher's table; what students see, lessons/questions.js decides."""
    match question.kind, answer:
        case "number", int() | float():
            return abs(answer - right) <= question.near * (1 + 1e-9)
        case "token", _:
            return answer in right
        case "order", list():
            return all(right[before] <= right[after] for before, after in pairwise(answer))
    return answer == right


def _is_list(value: Any) -> TypeGuard[list[int]]:
    return isinstance(value, list) and all(type(number) is int for number in value)
