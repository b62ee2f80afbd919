"""Parses the five kinds of question, and marks their answers.

| kind | an answer | what is right |
| --- | --- | --- |
| choose | the number of an option | an expression an option, of which exactly one is true |
| number | a number | an expression; `near` says how far off still counts |
| token | a position | an expression that is a position, or a list of positions |
| cell | a query and a key | an expression that is a list of both |
| order | the options' numbers, as they are put | a value for each option, or the texts as they belong |

Answers are lists and numbers as JSON has them.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pages.ui.lessons.expressions import Expression, ExpressionError, Words
from pages.ui.models.lesson_answers import Answer

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
    """One question."""

    kind: str
    text: Words
    right: tuple[Expression, ...] | tuple[str, ...]
    """Expressions; of *order* perhaps the texts of the options as they belong."""
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
        return frozenset().union(*(each.names for each in self.right if isinstance(each, Expression)))

    @property
    def names(self) -> frozenset[str]:
        """Both."""
        return self.shown | self.needed

    @property
    def is_fact(self) -> bool:
        """Whether what is right is an order that no model needs to be asked for."""
        return self.kind == "order" and isinstance(self.right[0], str)


@dataclass(frozen=True)
class Verdict:
    """What became of an answer. correct: an answer that is right; the one given, if it is."""

    right: bool
    correct: Answer


def read_question(found: Mapping[str, Any]) -> Question:
    """Read a question's block. Raises ExpressionError, which says what would do."""
    kind, text = found.get("kind"), found.get("text")
    if kind not in KINDS:
        raise ExpressionError(f"a question's kind is one of {', '.join(KINDS)}")
    if not isinstance(text, str) or not text.strip():
        raise ExpressionError('a question needs a text, such as text = "What comes next?"')
    for name in found:
        if name not in ("kind", "text", "right", *OWN[kind]):
            known = ", ".join(("kind", "text", "right", *OWN[kind]))
            raise ExpressionError(f"a question of the kind {kind} has no “{name[:40]}”; there can be {known}")
    options = _texts(found.get("options", []), "options")
    right = _right(kind, found.get("right"), options)
    if kind == "order" and isinstance(right[0], str) and not options:
        options = _shuffled(right)
    if kind in ("choose", "order") and not FEWEST <= len(options) <= MAX_OPTIONS:
        raise ExpressionError(f"a question of the kind {kind} has {FEWEST} to {MAX_OPTIONS} options")
    if len(set(options)) < len(options):
        raise ExpressionError("no two options are the same")
    if kind == "choose" and len(right) != len(options):
        raise ExpressionError("right has one expression for each of the options")
    if kind == "order" and isinstance(right[0], str) and sorted(right) != sorted(options):
        raise ExpressionError("right has the same texts as options, in the right order")
    return Question(
        kind=kind,
        text=Words.read(text),
        right=right,
        options=tuple(map(Words.read, options)),
        descending=_flag(found, "descending"),
        **_numbers(kind, found),
        **_head(found),
    )


def _right(kind: str, given: Any, options: tuple[str, ...]) -> tuple[Expression, ...] | tuple[str, ...]:
    if kind == "order" and isinstance(given, list):
        if not given:
            raise ExpressionError("right is a list of texts in order")
        return _texts(given, "right")
    if kind == "choose":
        read = tuple(Expression.read(each) for each in _texts(given or [], "right"))
    elif isinstance(given, str):
        read = (Expression.read(given),)
    else:
        raise ExpressionError("a question needs right: an expression of what is measured")
    if not frozenset().union(*(each.names for each in read)):
        raise ExpressionError("what is right is computed: right needs the name of a measure")
    return read


def _numbers(kind: str, found: Mapping[str, Any]) -> dict[str, Any]:
    if kind != "number":
        return {}
    values = {}
    for name, default in (("low", 0.0), ("high", 1.0), ("step", 0.0), ("near", 0.0)):
        value = found.get(name, default)
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
    unit = found.get("unit", "")
    if not isinstance(unit, str) or len(unit) > 12:
        raise ExpressionError("unit is a short text")
    return {**values, "unit": unit}


def _head(found: Mapping[str, Any]) -> dict[str, Any]:
    for name in ("layer", "head"):
        if name in found and (type(found[name]) is not int or not 0 <= found[name] < 1000):
            raise ExpressionError(f"{name} is a whole number")
    if not isinstance(found.get("attention", ""), str):
        raise ExpressionError("attention is a text, as in a link")
    return {name: found[name] for name in ("layer", "head", "attention") if name in found}


def _flag(found: Mapping[str, Any], name: str) -> bool:
    if type(found.get(name, False)) is not bool:
        raise ExpressionError(f"{name} is true or false")
    return found.get(name, False)


def _texts(given: Any, name: str) -> tuple[str, ...]:
    if not isinstance(given, list) or not all(isinstance(each, str) and 0 < len(each.strip()) <= 300 for each in given):
        raise ExpressionError(f"{name} is a list of texts")
    return tuple(each.strip() for each in given)


def _shuffled(texts: tuple[str, ...]) -> tuple[str, ...]:
    """The same in another order, always the same one."""
    found = list(texts)
    source = random.Random("\n".join(texts))
    while len(found) > 1 and tuple(found) == texts and len(set(found)) > 1:
        source.shuffle(found)
    return tuple(found)


def fits(question: Question, answer: Any) -> bool:
    """Whether this can be an answer, as far as the question alone can tell; a browser or a link can send anything."""
    match question.kind:
        case "choose":
            return type(answer) is int and 0 <= answer < len(question.options)
        case "number":
            return type(answer) in (int, float) and question.low <= answer <= question.high
        case "token":
            return type(answer) is int and 0 <= answer < 10_000
        case "cell":
            return _is_list(answer) and len(answer) == 2 and all(0 <= each < 10_000 for each in answer)
    return _is_list(answer) and sorted(answer) == list(range(len(question.options)))


def verdict(question: Question, values: Mapping[str, Any], answer: Answer) -> Verdict:
    """What becomes of an answer. values: what was measured.

    Raises: ExpressionError where that gives nothing which could be right.
    """
    correct = _correct(question, values, answer)
    if question.kind == "number":
        return Verdict(abs(answer - correct) <= question.near * (1 + 1e-9), correct)
    return Verdict(answer == correct, correct)


def _correct(question: Question, values: Mapping[str, Any], answer: Answer) -> Answer:
    if question.is_fact:
        texts = [option.text for option in question.options]
        return [texts.index(each) for each in question.right]
    found = [each.value(values) for each in question.right]
    match question.kind:
        case "choose":
            true = [number for number, each in enumerate(found) if each is True]
            if len(true) != 1 or not all(isinstance(each, bool) for each in found):
                raise ExpressionError(f"exactly one of the options should be right, and {len(true)} are")
            return true[0]
        case "number" if not isinstance(found[0], bool) and isinstance(found[0], int | float):
            return found[0]
        case "token":
            positions = found[0] if isinstance(found[0], list) else [found[0]]
            if positions and all(type(each) is int for each in positions):
                return answer if answer in positions else positions[0]
        case "cell" if _is_list(found[0]) and len(found[0]) == 2:
            return found[0]
        case "order" if isinstance(found[0], list) and len(found[0]) == len(question.options):
            return _ordered(question, found[0], answer)
    raise ExpressionError(f"what right comes to is no answer to a question of the kind {question.kind}")


def _ordered(question: Question, values: list[Any], answer: Answer) -> list[int]:
    """The options by their values; of equal ones the answer's order is right. values may be the texts in order, too."""
    texts = [option.text for option in question.options]
    if sorted(map(str, values)) == sorted(texts):
        return [texts.index(each) for each in values]
    as_put = answer if isinstance(answer, list) else range(len(values))
    return sorted(as_put, key=values.__getitem__, reverse=question.descending)


def _is_list(value: Any) -> bool:
    return isinstance(value, list) and all(type(each) is int for each in value)
