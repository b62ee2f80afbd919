"""Reads interventions.json: what Python and the frontend's JavaScript both need to know of interventions.

`kinds`, by the first word of their codes:
    class: its class in `interventions.py`.
    fields: their order in a code; "?" marks one that may be empty.
    becomes: the formula that replaces a value: an operation and its operands. An operand is a formula, a number, a
        field, or "value". Operations: + - * min max; "mean" over the text; "same position" and "last position" of one
        of `texts`, by its number.
    texts: the other texts that it reads: the field with the tokens, and the fields with the source, of which the first
        that isn't empty counts.
    points: which hook points it can change, an entry of the table `points`.
    words: a template; the part in brackets is left out if its field is empty.
    ablates: values of fields with which it sets numbers to zero, and its words then.
    offers, title: its names in the menu of changes, as a way to change a part or as something of its own; `set` are
        fields that the menu doesn't ask for.
    opposite: what the menu turns it into at one press, by formulas of its fields; "or" takes the first that isn't 0.

`fields`: type, label, and the bounds that the engine accepts. A `dial` says how much: a later change that differs from
another by its dials alone takes its place, and a visitor's dials go `from` … `to`. `rules`: what a pass can go without,
at which hook points, and what a model needs to have it. `parts`: what the menu can change, and their hook points.
`names`: plain words for modules and hook points.
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
