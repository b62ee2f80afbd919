"""Converts the TeX that lessons use to MathML, which browsers draw without a script.

formula := item*
item    := atom ["_" atom] ["^" atom]
atom    := a letter | a number | a sign | \\command atom* | "{" formula "}"
"""

from __future__ import annotations

import re
from html import escape

SIGNS = {
    "cdot": "·",
    "times": "×",
    "leftarrow": "←",
    "rightarrow": "→",
    "infty": "∞",
    "top": "⊤",
    "approx": "≈",
    "leq": "≤",
    "geq": "≥",
    "neq": "≠",
    "in": "∈",
    "pm": "±",
    "sum": "∑",
    "prod": "∏",
    "ldots": "…",
    "partial": "∂",
}
"""What a command stands for."""
LETTERS = {
    "alpha": "α",
    "beta": "β",
    "gamma": "γ",
    "eta": "η",
    "theta": "θ",
    "lambda": "λ",
    "mu": "μ",
    "sigma": "σ",
    "pi": "π",
}
FUNCTIONS = ("ln", "log", "exp", "sin", "cos", "max", "min", "softmax")
SPACES = {"quad": 1.0, "qquad": 2.0, ",": 0.17, " ": 0.25, ";": 0.28}
"""Their widths, in em."""
TOKEN = re.compile(r"\\([A-Za-z]+|.)|(\d+(?:\.\d+)?)|(\S)|\s+", re.DOTALL)
MAX_DEPTH = 20


class FormulaError(ValueError):
    """A formula that isn't one, or uses what isn't known here."""


def formula(tex: str, *, block: bool = False) -> str:
    """A formula as an element `math`; one that can't be read, as its source. block: on a line of its own."""
    try:
        reader = _Reader(tex)
        inside = reader.formula()
        reader.end()
    except FormulaError:
        return f"<code>{escape(tex)}</code>"
    return f'<math display="{"block" if block else "inline"}"><mrow>{inside}</mrow></math>'


class _Reader:
    """Reads one formula from left to right."""

    def __init__(self, tex: str) -> None:
        self._tokens = [(found[0], found) for found in TOKEN.finditer(tex) if found[0].strip()]
        self._place = self._depth = 0

    def formula(self, end: str = "") -> str:
        """Items up to `end`, or to the end."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise FormulaError("it is nested too deeply")
        found = []
        while self._next() not in ("", end):
            found.append(self._item())
        self._depth -= 1
        return "".join(found)

    def end(self) -> None:
        """Raise FormulaError if anything is left."""
        if self._next():
            raise FormulaError(f"“{self._next()}” has no beginning")

    def _next(self) -> str:
        return self._tokens[self._place][0] if self._place < len(self._tokens) else ""

    def _take(self, wanted: str = "") -> re.Match[str]:
        if self._place >= len(self._tokens) or (wanted and self._next() != wanted):
            raise FormulaError(f"“{wanted}” is missing")
        self._place += 1
        return self._tokens[self._place - 1][1]

    def _item(self) -> str:
        is_sum = self._next() in (r"\sum", r"\prod")
        base, below, above = self._atom(), "", ""
        while self._next() in ("_", "^"):
            if self._take()[0] == "_":
                below = self._atom()
            else:
                above = self._atom()
        if not (below or above):
            return base
        under, over = ("munder", "mover") if is_sum else ("msub", "msup")
        if below and above:
            both = "munderover" if is_sum else "msubsup"
            return f"<{both}>{base}{below}{above}</{both}>"
        return f"<{under}>{base}{below}</{under}>" if below else f"<{over}>{base}{above}</{over}>"

    def _atom(self) -> str:
        found = self._take()
        command, number, sign = found[1], found[2], found[3]
        if command is not None:
            return self._command(command)
        if number is not None:
            return f"<mn>{number}</mn>"
        if sign == "{":
            inside = self.formula("}")
            self._take("}")
            return f"<mrow>{inside}</mrow>"
        if sign in "}_^":
            raise FormulaError(f"“{sign}” stands where it can't")
        if sign.isalpha():
            return f"<mi>{escape(sign)}</mi>"
        return f"<mo>{'−' if sign == '-' else escape(sign)}</mo>"

    def _command(self, name: str) -> str:
        if name == "frac":
            return f"<mfrac>{self._atom()}{self._atom()}</mfrac>"
        if name == "sqrt":
            return f"<msqrt>{self._atom()}</msqrt>"
        if name == "text":
            return f"<mtext>{self._text()}</mtext>"
        if name in ("left", "right"):
            return self._atom()
        if name in FUNCTIONS:
            return f'<mi mathvariant="normal">{name}</mi>'
        if name in SPACES:
            return f'<mspace width="{SPACES[name]}em"/>'
        if name in SIGNS:
            return f"<mo>{SIGNS[name]}</mo>"
        if name in LETTERS:
            return f"<mi>{LETTERS[name]}</mi>"
        raise FormulaError(f"\\{name} isn't known here")

    def _text(self) -> str:
        """The words of a \\text, up to its closing brace."""
        source = self._take("{").string
        begin = self._tokens[self._place - 1][1].end()
        while self._next() != "}":
            self._take()
        return escape(source[begin : self._take("}").start()])
