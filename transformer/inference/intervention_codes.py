"""Encodes interventions as short texts for links, and decodes them."""

from __future__ import annotations

import dataclasses
from typing import get_args, get_origin, get_type_hints

from .interventions import Intervention, MeanAblate, Patch, Scale, SetAttention, Steer, Without

KINDS = {"scale": Scale, "mean": MeanAblate, "from": Patch, "steer": Steer, "without": Without, "weigh": SetAttention}
"""The short form's first word."""


def to_code(intervention: Intervention) -> str:
    """The short form for a link, of letters that need no escape: `scale~blocks.0.attn.hook_z~0~~0`."""
    (kind,) = [word for word, class_of_kind in KINDS.items() if type(intervention) is class_of_kind]
    fields = dataclasses.fields(intervention)
    return "~".join([kind, *(_written(getattr(intervention, field.name)) for field in fields)])


def from_code(code: str) -> Intervention:
    """What `to_code` wrote. Raises: ValueError, saying what is wrong; a code is untrusted."""
    kind, *written = code.split("~")
    if kind not in KINDS:
        raise ValueError(f"there is no change called {kind[:30]!r}; it can be {', '.join(KINDS)}")
    made = KINDS[kind]
    fields, hints = dataclasses.fields(made), get_type_hints(made)
    if len(written) != len(fields):
        raise ValueError(f"{kind} takes {len(fields)} values, and {len(written)} are given")
    names = [field.name for field in fields]
    return made(**{name: _read(name, text, hints[name]) for name, text in zip(names, written, strict=True)})


def _written(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(int(value))
    return ".".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _read(name: str, text: str, kind: type) -> object:
    choices = get_args(kind)
    try:
        if get_origin(kind) is tuple:
            tokens = tuple(map(int, text.split("."))) if text else ()
            if any(token < 0 for token in tokens):
                raise ValueError
            return tokens
        if type(None) in choices:
            return None if text == "" else int(text)
        if kind is bool:
            return {"0": False, "1": True}[text]
        return kind(text)
    except (ValueError, KeyError):
        raise ValueError(f"{name} can't be {text[:40]!r}") from None
