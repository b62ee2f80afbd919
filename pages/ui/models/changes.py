"""Reads the changes of a link as interventions, and writes interventions as Python."""

import dataclasses
from collections.abc import Iterable
from typing import Any

from transformer import Intervention, ModelConfig, WindowedIntervention, from_code
from transformer.inference.intervention_kinds import FIELDS, MOST_CHANGES, MOST_CHARACTERS

BETWEEN, OFF = "!", "-"
"""In a link: what stands between two changes, and what one that is off begins with."""


def read_changes(text: str, config: ModelConfig) -> tuple[tuple[Intervention, ...], list[str]]:
    """The interventions of a link that are on, and why others can't be; the text is untrusted.

    It keeps those that the shell keeps, which tells the visitor of the others (`readChanges` in `changes.js`).
    """
    if len(text) > MOST_CHARACTERS:
        return (), [f"they have more than {MOST_CHARACTERS:,} characters"]
    changes: dict[Intervention, tuple[Intervention, bool]] = {}  # by all but the dials: the last of several is meant
    problems = []
    for code in filter(None, text.split(BETWEEN)):
        try:
            intervention = from_code(code.removeprefix(OFF))
            intervention.check(config)
            same = _without_dials(intervention)
            if same not in changes and len(changes) >= MOST_CHANGES:
                raise ValueError(f"at most {MOST_CHANGES} changes can be made at once")
        except ValueError as error:
            problems.append(str(error))
        else:
            changes[same] = intervention, not code.startswith(OFF)
    return tuple(intervention for intervention, is_on in changes.values() if is_on), problems


def _without_dials(intervention: Intervention) -> Intervention:
    """The same for two that differ by how much alone. Raises: ValueError for a dial that is out of its range."""
    values = vars(intervention)
    dials = {name: FIELDS[name]["dial"] for name in values if "dial" in FIELDS.get(name, ())}
    for name, dial in dials.items():
        if "from" in dial and not dial["from"] <= values[name] <= dial["to"]:
            raise ValueError(f"the {name} is from {dial['from']} to {dial['to']}".replace("-", "−"))
    return dataclasses.replace(intervention, **dict.fromkeys(dials, 0))


def as_python(interventions: Iterable[Intervention]) -> tuple[list[str], str]:
    """The names to be imported from `transformer`, and an expression for the interventions: a list."""
    interventions = list(interventions)
    names = {type(intervention).__name__ for intervention in interventions}
    names |= {
        type(intervention.intervention).__name__
        for intervention in interventions
        if isinstance(intervention, WindowedIntervention)
    }
    return sorted(names), f"[{', '.join(map(_in_python, interventions))}]"


def _in_python(value: Any) -> str:
    """A value as it is written, without what it would have anyway."""
    if not dataclasses.is_dataclass(value):
        return repr(value)
    given = [
        (field.name, getattr(value, field.name))
        for field in dataclasses.fields(value)
        if getattr(value, field.name) != field.default
    ]
    first, *others = given
    arguments = [_in_python(first[1]), *(f"{name}={_in_python(one)}" for name, one in others)]
    return f"{type(value).__name__}({', '.join(arguments)})"
