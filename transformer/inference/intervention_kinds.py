"""Reads interventions.json: all that Python and the frontend's JavaScript say of interventions alike.

`kinds`, by the first word of their codes:
    class: in `interventions.py`; fields: in the order of a code, "?" where one may be empty.
    becomes: the formula of a value's successor, a list of an operation and its operands. An operand is a formula, a
        number, a field, or "value". Operations: + - * min max, "or" (the first that isn't 0), "mean" (over the text),
        and "same position" and "last position", which read one of the texts.
    texts: other texts that it reads: which field has the tokens, and which the source, of several the first that isn't
        empty.
    points: the hook points that it can change, of those in `points`.
    words: a template, from which the part in brackets is left out if its field is empty; ablates: fields with which it
        sets values to zero, and the words for that.
    offers: what the menu of changes calls it, perhaps with fields that are set; opposite: another kind, or another
        field, at one press.

`fields`: their types, and the bounds that the engine accepts. Two changes that differ by a dial alone are one change,
set anew; a visitor's dials go `from` … `to`. `rules`: what a pass can go without, and at which hook points.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_DATA = json.loads(Path(__file__).with_name("interventions.json").read_text(encoding="utf-8"))

KINDS: Mapping[str, Mapping[str, Any]] = _DATA["kinds"]
FIELDS: Mapping[str, Mapping[str, Any]] = _DATA["fields"]
POINTS: Mapping[str, Mapping[str, Any]] = _DATA["points"]
RULES: Mapping[str, Mapping[str, Any]] = _DATA["rules"]
PARTS: Mapping[str, Mapping[str, Any]] = _DATA["parts"]
NAMES: Mapping[str, Mapping[str, str]] = _DATA["names"]
MOST_CHANGES: int = _DATA["most_changes"]
"""Changes of a model at once."""
MOST_CHARACTERS: int = _DATA["most_characters"]
"""Characters of all of them in a link: other prompts may be part of them."""
WORDS = {kind["class"]: word for word, kind in KINDS.items()}
"""The first word of a code, by class."""


def fields_of(word: str) -> list[str]:
    """The fields of a kind, in the order of its codes."""
    return [name.rstrip("?") for name in KINDS[word]["fields"]]


def uses(formula: Any, operation: str) -> bool:
    """Whether an operation is part of a formula."""
    return isinstance(formula, list) and (formula[0] == operation or any(uses(part, operation) for part in formula[1:]))


def ablates(word: str, values: Mapping[str, Any]) -> bool:
    """Whether an intervention of this kind with these values of its fields sets what it changes to zero."""
    when = KINDS[word].get("ablates", {}).get("when", {})
    return bool(when) and all(values[name] == value for name, value in when.items())
