"""Encodes interventions as short texts for links, and decodes them."""

from __future__ import annotations

from typing import Any

from .intervention_kinds import FIELDS, KINDS, fields_of
from .interventions import CodedIntervention, Intervention


def to_code(intervention: Intervention) -> str:
    """The short form for a link, of letters that need no escape: `scale~blocks.0.attn.hook_z~0~~0.0`."""
    if not isinstance(intervention, CodedIntervention):
        raise ValueError(f"There is no code for {intervention!r}.")
    return "~".join(
        [intervention.word, *(_written(getattr(intervention, name)) for name in fields_of(intervention.word))]
    )


def from_code(code: str) -> Intervention:
    """The intervention that `to_code` wrote. Raises: ValueError, saying what is wrong; a code is untrusted."""
    word, *written = code.split("~")
    if word not in KINDS:
        raise ValueError(f"there is no change called “{word[:30]}”; it can be {', '.join(KINDS)}")
    fields = KINDS[word]["fields"]
    if len(written) != len(fields):
        raise ValueError(f"{word} takes {len(fields)} values, and {len(written)} are given")
    values = [_read(field, text) for field, text in zip(fields, written, strict=True)]
    return CodedIntervention.classes[word](**dict(zip(fields_of(word), values, strict=True)))


def _written(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(int(value))
    return ".".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _read(field: str, text: str) -> Any:
    """The value of a field. field: its name, with "?" where it may be empty."""
    name = field.rstrip("?")
    if not text and field != name:
        return None
    try:
        match FIELDS[name]["type"]:
            case "whole":
                return int(text)
            case "number":
                return float(text)
            case "flag":
                return {"0": False, "1": True}[text]
            case "tokens":
                tokens = tuple(map(int, text.split("."))) if text else ()
                if any(token < 0 for token in tokens):
                    raise ValueError
                return tokens
        return text
    except (ValueError, KeyError):
        raise ValueError(f"{name} can't be “{text[:40]}”") from None
