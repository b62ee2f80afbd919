"""Evaluates the arithmetic of lessons: claims, correct answers, and numbers in the text.

A lesson's file may be anybody's. Its expressions are Jinja's, computed in Jinja's sandbox, and of its syntax only names
of measures, numbers, texts, lists, + − * /, comparisons, and, or, not, abs, min, max, len, and an index that is a whole
number are let in: nothing that loops, reads an attribute, or makes a text or a list longer.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

from jinja2 import TemplateError, nodes
from jinja2.environment import TemplateExpression
from jinja2.sandbox import SandboxedEnvironment

from pages.ui.number_format import percent

LONGEST = 300
"""Characters of an expression."""
MAX_NODES = 80
MAX_PLACEHOLDERS, LONGEST_FILLED = 200, 50_000
"""Of one text, and its characters once they are replaced."""
FUNCTIONS: dict[str, Callable[..., Any]] = {"abs": abs, "min": min, "max": max, "len": len}
ARITHMETIC = (nodes.Add, nodes.Sub, nodes.Mul, nodes.Div, nodes.Neg, nodes.Pos)
LOGIC = (nodes.And, nodes.Or, nodes.Not, nodes.Compare)
CAN_BE_USED = "names of measures, numbers, texts, + − * /, comparisons, and, or, not, abs, min, max, len, [0], [a, b]"
PLACEHOLDER = re.compile(r"\{(?P<expression>[^{}:\n]+)(?::(?P<form>[^{}\n]*))?\}")
MATHS_OR_CODE = re.compile(r"(`+)(?:(?!\1).)*?\1|(?P<maths>\$\$.*?\$\$|\$[^$\n]+\$)", re.DOTALL)
FORM = re.compile(r"\+?,?(\.[0-9])?[f%d]?")


class ExpressionError(ValueError):
    """What is wrong with an expression, or with what it was given, in a sentence without its full stop."""


class _Arithmetic(SandboxedEnvironment):
    """Computes with numbers alone: a text times a number would be as long as one likes."""

    intercepted_binops = frozenset("+-*/")
    intercepted_unops = frozenset("+-")

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        return super().call_binop(context, operator, _number(left), _number(right))

    def call_unop(self, context: Any, operator: str, arg: Any) -> Any:
        return super().call_unop(context, operator, _number(arg))

    def getitem(self, obj: Any, argument: Any) -> Any:
        return obj[argument]


ENVIRONMENT = _Arithmetic()
ENVIRONMENT.globals = FUNCTIONS


@dataclass(frozen=True)
class Expression:
    """One expression, read and checked; it knows no names yet."""

    text: str
    names: frozenset[str]
    """Of the measures that it needs."""

    @classmethod
    def read(cls, text: str) -> Self:
        """Read an expression. Raises ExpressionError, which says what can be used."""
        if len(text) > LONGEST:
            raise ExpressionError(f"an expression has at most {LONGEST} characters")
        try:
            body = ENVIRONMENT.parse(f"{{{{ ({text.strip()}) }}}}").body
        except (TemplateError, RecursionError):
            body = []
        match body:
            case [nodes.Output(nodes=[tree])] if len(tree_nodes := [tree, *tree.find_all(nodes.Node)]) <= MAX_NODES:
                called = {id(node.node) for node in tree_nodes if isinstance(node, nodes.Call)}
            case _:
                raise ExpressionError(f"“{text[:60]}” is no expression, or too long; it can have {CAN_BE_USED}")
        for node in tree_nodes:
            if not _can_be_used(node) or (
                isinstance(node, nodes.Name) and (node.name in FUNCTIONS) != (id(node) in called)
            ):
                raise ExpressionError(f"“{text[:60]}” can't be used here; what can is {CAN_BE_USED}")
        return cls(text.strip(), frozenset(n.name for n in tree_nodes if isinstance(n, nodes.Name)) - FUNCTIONS.keys())

    @cached_property
    def _compiled(self) -> TemplateExpression:
        return ENVIRONMENT.compile_expression(f"({self.text})", undefined_to_none=False)

    def value(self, names: Mapping[str, Any]) -> Any:
        """What it comes to. names: what was measured. Raises ExpressionError where that can't be computed with."""
        if missing := sorted(self.names - names.keys()):
            raise ExpressionError(f"nothing is measured under the name {missing[0]}")
        try:
            return self._compiled(**{name: names[name] for name in self.names})
        except ExpressionError:
            raise
        except ArithmeticError:
            raise ExpressionError(f"“{self.text}” can't be computed: it divides by zero, or grows too large") from None
        except (TypeError, ValueError, LookupError, TemplateError):
            raise ExpressionError(f"“{self.text}” doesn't fit what was measured") from None


def _can_be_used(node: nodes.Node) -> bool:
    match node:
        case nodes.Name() | nodes.List(items=[_, *_]) | nodes.Operand(op="eq" | "ne" | "lt" | "lteq" | "gt" | "gteq"):
            return True
        case nodes.Const(value=value):
            return isinstance(value, int | float | str) and not isinstance(value, bool)
        case nodes.Call(node=nodes.Name(), args=[_, *_], kwargs=[], dyn_args=None, dyn_kwargs=None):
            return True
        case nodes.Getitem(arg=nodes.Const(value=int()) | nodes.Neg(node=nodes.Const(value=int()))):
            return True
    return isinstance(node, (*ARITHMETIC, *LOGIC))


def _number(value: Any) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{value!r} is no number")
    return value


@dataclass(frozen=True)
class Words:
    """Markdown in which `{p}` and `{p:%}` stand for what was measured.

    Nothing is replaced in code. In maths, whose braces are TeX's, only what says its form is: `{p:.2f}`, not `{p}`.
    """

    text: str
    parts: tuple[str | tuple[Expression, str], ...]
    """What stays as it is, and what is filled in: an expression and its form."""

    @classmethod
    def read(cls, text: str) -> Self:
        """Read a lesson's words. Raises ExpressionError for a placeholder that isn't one."""
        parts: list[str | tuple[Expression, str]] = []
        end = 0
        too_many = ExpressionError(f"a text has at most {MAX_PLACEHOLDERS} numbers to be measured")
        if len(PLACEHOLDER.findall(MATHS_OR_CODE.sub("", text))) > MAX_PLACEHOLDERS:
            raise too_many  # before each of them is read
        for span in MATHS_OR_CODE.finditer(text):
            parts += _placeholders(text[end : span.start()])
            parts += _placeholders(span[0], only_with_form=True) if span["maths"] else [span[0]]
            end = span.end()
        parts += _placeholders(text[end:])
        if sum(not isinstance(part, str) for part in parts) > MAX_PLACEHOLDERS:
            raise too_many
        return cls(text, tuple(parts))

    @property
    def names(self) -> frozenset[str]:
        """Of the measures that they need."""
        return frozenset().union(*(part[0].names for part in self.parts if not isinstance(part, str)))

    def filled(self, names: Mapping[str, Any], show: Callable[[str], str]) -> str:
        """The words with what was measured. show: how a text, a token's, is written. Raises ExpressionError."""
        filled = [
            part if isinstance(part, str) else in_words(part[0].value(names), part[1], show) for part in self.parts
        ]
        if sum(map(len, filled)) > LONGEST_FILLED:
            raise ExpressionError(f"this text has more than {LONGEST_FILLED:,} characters")
        return "".join(filled)


def _placeholders(text: str, *, only_with_form: bool = False) -> list[str | tuple[Expression, str]]:
    parts: list[str | tuple[Expression, str]] = []
    end = 0
    for match in PLACEHOLDER.finditer(text):
        form = match["form"]
        if only_with_form and form is None:
            continue
        if form is not None and not FORM.fullmatch(form):
            raise ExpressionError(f"“{match[0][:60]}” has a form that isn't known; % and .2f are")
        parts += [text[end : match.start()], (Expression.read(match["expression"]), form or "")]
        end = match.end()
    return [*parts, text[end:]]


def in_words(value: Any, form: str, show: Callable[[str], str]) -> str:
    """A value as people read it. form: as after the colon of a placeholder; "%" with as many digits as tell."""
    if isinstance(value, str):
        return show(value)
    if isinstance(value, tuple | list):
        return ", ".join(in_words(item, form, show) for item in value)
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


def _three_digits(value: float) -> str:
    if not math.isfinite(value):
        return str(value)
    if abs(value) >= 1000:
        shown = f"{value:,.0f}"
    else:
        shown = f"{value:.3g}" if abs(value) >= 0.001 or value == 0 else f"{value:.1e}"
    return shown.replace("-", "−")
