"""Represents the changes to a model: interventions, each on or off, as text and as Python."""

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from transformer import Intervention, ModelConfig, WindowedIntervention, from_code, to_code
from transformer.inference.intervention_kinds import FIELDS, MOST_CHANGES, MOST_CHARACTERS

BETWEEN, OFF = "!", "-"
"""In a link: what stands between two changes, and what one that is off begins with."""


class PartlyInvalidError(ValueError):
    """Some of a text can't be used. kept: what the rest says; its own text is whole sentences."""

    def __init__(self, problem: str, kept: tuple["Change", ...]) -> None:
        super().__init__(problem)
        self.kept = kept


@dataclass(frozen=True)
class Change:
    """One intervention, which may be off for the moment."""

    intervention: Intervention
    on: bool = True

    def __str__(self) -> str:
        return str(self.intervention)


Changes = tuple[Change, ...]


def in_force(changes: Iterable[Change]) -> tuple[Intervention, ...]:
    """The interventions of those that are on."""
    return tuple(change.intervention for change in changes if change.on)


def as_text(changes: Iterable[Change]) -> str:
    """Changes as a link has them."""
    return BETWEEN.join(f"{'' if change.on else OFF}{to_code(change.intervention)}" for change in changes)


def from_text(text: str) -> Changes:
    """Read what `as_text` wrote; the text is untrusted. Raises: `PartlyInvalidError`, which keeps what is valid."""
    if len(text) > MOST_CHARACTERS:
        raise PartlyInvalidError(
            f"The link's changes were left out: they have more than {MOST_CHARACTERS:,} characters.", ()
        )
    changes: Changes = ()
    problems = []
    for code in text.split(BETWEEN) if text else ():
        try:
            changes = with_change(changes, from_code(code.removeprefix(OFF)), on=not code.startswith(OFF))
        except ValueError as error:
            problems.append(f"One of the link's changes, “{code[:40]}”, is left out: {str(error)[:120]}.")
    if problems:
        more = [f"{len(problems) - 1} more are left out, too."] if len(problems) > 1 else []
        raise PartlyInvalidError(" ".join([problems[0], *more]), changes)
    return changes


def with_change(changes: Changes, intervention: Intervention, *, on: bool = True) -> Changes:
    """With one more, in the place of one that differs from it by its dials alone.

    Raises: ValueError, saying why, for one too many, or for a dial that is out of its range.
    """
    for name, dial in _dials(intervention).items():
        if "from" in dial and not dial["from"] <= getattr(intervention, name) <= dial["to"]:
            raise ValueError(f"the {name} is from {dial['from']} to {dial['to']}".replace("-", "−"))
    same = without_strength(intervention)
    indices = [index for index, change in enumerate(changes) if without_strength(change.intervention) == same]
    if indices:
        changed = list(changes)
        changed[indices[0]] = Change(intervention, on)
        return tuple(changed)
    if len(changes) >= MOST_CHANGES:
        raise ValueError(f"at most {MOST_CHANGES} changes can be made at once")
    return (*changes, Change(intervention, on))


def without_strength(intervention: Intervention) -> Intervention:
    """The same for two that differ by how much alone."""
    return dataclasses.replace(intervention, **dict.fromkeys(_dials(intervention), 0))


def _dials(intervention: Intervention) -> dict[str, dict[str, Any]]:
    """The dials of an intervention, by field."""
    fields = [field.name for field in dataclasses.fields(intervention)]
    return {name: FIELDS[name]["dial"] for name in fields if "dial" in FIELDS.get(name, ())}


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


def possible(changes: Iterable[Change], config: ModelConfig) -> tuple[Intervention, ...]:
    """The interventions in force that a model of this configuration has a place for; the shell names the others."""

    def has_place(intervention: Intervention) -> bool:
        try:
            intervention.check(config)
        except ValueError:
            return False
        return True

    return tuple(filter(has_place, in_force(changes)))
