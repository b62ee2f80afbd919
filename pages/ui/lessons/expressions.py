"""Evaluates the arithmetic of lessons: claims, correct answers, and numbers in the text.

A lesson's file may be anybody's, so its expressions aren't Python. They are read as Python's syntax tree, of which a
few kinds of nodes have a meaning here: names of measures, numbers, texts, lists, + − * /, comparisons, and, or, not,
abs, min, max, len, and an index that is a whole number.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

LONGEST = 300
"""Characters of an expression."""
MAX_NODES = 80
FUNCTIONS: dict[str, Callable[..., Any]] = {"abs": abs, "min": min, "max": max, "len": len}
ARITHMETIC = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}
SIGNS = {ast.USub: operator.neg, ast.UAdd: operator.pos}
COMPARISONS = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
CAN_BE_USED = "names of measures, numbers, texts, + − * /, comparisons, and, or, not, abs, min, max, len, [0], [a, b]"
PLACEHOLDER = re.compile(r"\{(?P<expression>[^{}:\n]+)(?::(?P<form>[^{}\n]*))?\}")
MATHS_OR_CODE = re.compile(r"(`+)(?:(?!\1).)*?\1|(?P<maths>\$\$.*?\$\$|\$[^$\n]+\$)", re.DOTALL)
FORM = re.compile(r"\+?,?(\.[0-9])?[f%d]?")


class ExpressionError(ValueError):
    """What is wrong with an expression, or with what it was given, in a sentence without its full stop."""


@dataclass(frozen=True)
class Expression:
    """One expression, read and checked; it knows no names yet."""

    text: str
    tree: ast.expr
    names: frozenset[str]
    """Of the measures that it needs."""

    @classmethod
    def read(cls, text: str) -> Expression:
        """Read an expression. Raises ExpressionError, which says what can be used."""
        if len(text) > LONGEST:
            raise ExpressionError(f"an expression has at most {LONGEST} characters")
        try:
            tree = ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise ExpressionError(f"“{text[:60]}” is no expression; it can have {CAN_BE_USED}") from None
        nodes = list(ast.walk(tree))
        if len(nodes) > MAX_NODES:
            raise ExpressionError(f"“{text[:60]}” is too long; take it apart")
        _check(tree)
        names = {node.id for node in nodes if isinstance(node, ast.Name)} - FUNCTIONS.keys()
        return cls(text.strip(), tree, frozenset(names))

    def value(self, names: Mapping[str, Any]) -> Any:
        """What it comes to. names: what was measured. Raises ExpressionError where that can't be computed with."""
        try:
            found = _value(self.tree, names)
        except ExpressionError:
            raise
        except ArithmeticError:
            raise ExpressionError(f"“{self.text}” can't be computed: it divides by zero, or grows too large") from None
        except (TypeError, ValueError, IndexError, KeyError):
            raise ExpressionError(f"“{self.text}” doesn't fit what was measured") from None
        return found


def _check(node: ast.expr) -> None:
    """Raises ExpressionError for whatever has no meaning here."""
    match node:
        case ast.Name(id=name):
            if name in FUNCTIONS:
                raise ExpressionError(f"{name} needs an argument in brackets")
        case ast.Constant(value=value):
            if isinstance(value, bool) or not isinstance(value, int | float | str):
                raise ExpressionError(f"“{str(value)[:20]}” is neither a number nor a text")
        case ast.BinOp(left=left, op=op, right=right) if type(op) in ARITHMETIC:
            _check(left), _check(right)
        case ast.UnaryOp(op=op, operand=operand) if type(op) in SIGNS or isinstance(op, ast.Not):
            _check(operand)
        case ast.BoolOp(values=values):
            for each in values:
                _check(each)
        case ast.Compare(left=left, ops=ops, comparators=others) if all(type(op) in COMPARISONS for op in ops):
            for each in (left, *others):
                _check(each)
        case ast.List(elts=[_, *_] as elements):
            for each in elements:
                _check(each)
        case ast.Call(func=ast.Name(id=name), args=[_, *_] as arguments, keywords=[]) if name in FUNCTIONS:
            for each in arguments:
                _check(each)
        case ast.Subscript(value=value, slice=index) if _whole(index) is not None:
            _check(value)
        case _:
            raise ExpressionError(f"“{ast.unparse(node)[:60]}” can't be used here; what can is {CAN_BE_USED}")


def _value(node: ast.expr, names: Mapping[str, Any]) -> Any:
    match node:
        case ast.Name(id=name):
            try:
                return names[name]
            except KeyError:
                raise ExpressionError(f"nothing is measured under the name {name}") from None
        case ast.Constant(value=value):
            return value
        case ast.BinOp(left=left, op=op, right=right):
            return ARITHMETIC[type(op)](*(_number(_value(each, names)) for each in (left, right)))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return not _value(operand, names)
        case ast.UnaryOp(op=op, operand=operand):
            return SIGNS[type(op)](_number(_value(operand, names)))
        case ast.BoolOp(op=ast.And(), values=values):
            return all(_value(each, names) for each in values)
        case ast.BoolOp(values=values):
            return any(_value(each, names) for each in values)
        case ast.Compare(left=left, ops=ops, comparators=others):
            values = [_value(each, names) for each in (left, *others)]
            pairs = zip(ops, values[:-1], values[1:], strict=True)
            return all(COMPARISONS[type(op)](one, other) for op, one, other in pairs)
        case ast.List(elts=elements):
            return [_value(each, names) for each in elements]
        case ast.Call(func=ast.Name(id=name), args=arguments):
            return FUNCTIONS[name](*(_value(each, names) for each in arguments))
        case ast.Subscript(value=value, slice=index):
            return _value(value, names)[_whole(index)]
    raise ExpressionError("this can't be computed")  # nothing that was checked comes here


def _number(value: Any) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{value!r} is no number")
    return value


def _whole(node: ast.expr) -> int | None:
    """An index that is a whole number, perhaps a negative one."""
    match node:
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(value))) if not isinstance(value, bool):
            return -value
    return None


@dataclass(frozen=True)
class Words:
    """Markdown in which `{p}` and `{p:%}` stand for what was measured.

    Nothing is replaced in code. In maths, whose braces are TeX's, only what says its form is: `{p:.2f}`, not `{p}`.
    """

    text: str
    parts: tuple[str | tuple[Expression, str], ...]
    """What stays as it is, and what is filled in: an expression and its form."""

    @classmethod
    def read(cls, text: str) -> Words:
        """Read a lesson's words. Raises ExpressionError for a placeholder that isn't one."""
        parts: list[str | tuple[Expression, str]] = []
        end = 0
        for span in MATHS_OR_CODE.finditer(text):
            parts += _placeholders(text[end : span.start()])
            parts += _placeholders(span[0], only_with_form=True) if span["maths"] else [span[0]]
            end = span.end()
        parts += _placeholders(text[end:])
        return cls(text, tuple(parts))

    @property
    def names(self) -> frozenset[str]:
        """Of the measures that they need."""
        return frozenset().union(*(part[0].names for part in self.parts if not isinstance(part, str)))

    def filled(self, names: Mapping[str, Any], show: Callable[[str], str]) -> str:
        """The words with what was measured. show: how a text, a token's, is written. Raises ExpressionError."""
        return "".join(
            part if isinstance(part, str) else in_words(part[0].value(names), part[1], show) for part in self.parts
        )


def _placeholders(text: str, *, only_with_form: bool = False) -> list[str | tuple[Expression, str]]:
    parts: list[str | tuple[Expression, str]] = []
    end = 0
    for found in PLACEHOLDER.finditer(text):
        form = found["form"]
        if only_with_form and form is None:
            continue
        if form is not None and not FORM.fullmatch(form):
            raise ExpressionError(f"“{found[0][:60]}” has a form that isn't known; % and .2f are")
        parts += [text[end : found.start()], (Expression.read(found["expression"]), form or "")]
        end = found.end()
    return [*parts, text[end:]]


def in_words(value: Any, form: str, show: Callable[[str], str]) -> str:
    """A value as people read it. form: as after the colon of a placeholder; "%" with as many digits as tell."""
    if isinstance(value, str):
        return show(value)
    if isinstance(value, tuple | list):
        return ", ".join(in_words(each, form, show) for each in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if form == "%":
        return percent(value)
    if not form:
        return f"{value:,}" if isinstance(value, int) else _three_digits(value)
    try:
        return f"{value:{form}}".replace("-", "−")
    except ValueError:
        raise ExpressionError(f"{value} can't be written as “{form}”") from None


def percent(share: float) -> str:
    """A share as people read it, finer at both ends: 50%, 6.4%, 99.95%, less than 0.01%."""
    if not math.isfinite(share):
        return str(share)
    hundredths = 100 * share
    edge = min(abs(hundredths), abs(100 - hundredths))
    if 0 < hundredths < 0.005:
        return "less than 0.01%"
    if 99.995 < hundredths < 100:
        return "more than 99.99%"
    digits = 0 if edge >= 10 or edge == 0 else 1 if edge >= 1 else 2
    return f"{hundredths:,.{digits}f}%".replace("-", "−")


def _three_digits(value: float) -> str:
    if not math.isfinite(value):
        return str(value)
    if abs(value) >= 1000:
        shown = f"{value:,.0f}"
    else:
        shown = f"{value:.3g}" if abs(value) >= 0.001 or value == 0 else f"{value:.1e}"
    return shown.replace("-", "−")
