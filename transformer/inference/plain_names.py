"""Describes hook points and interventions in plain words: a block, an attention, a head at a position."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from .intervention_kinds import KINDS, NAMES, RULES, ablates


def describe_module(name: str) -> str:
    """A block, an attention or a norm in plain words: "decoder layer 1"."""
    match = re.search(r"(?:(encoder|decoder)\.)?blocks\.(\d+)\.?(\w*)", name)
    if not match:
        return "the last norm" if "ln_final" in name else NAMES["sides"].get(name, name)
    side, layer, part = match.groups()
    words = f"{side} layer {layer}" if side else f"layer {layer}"
    return words + NAMES["modules"].get(part, "")


def in_words(word: str, fields: Mapping[str, Any]) -> str:
    """An intervention in plain words. word: the first of its code."""
    kind = KINDS[word]
    words = {name: f"{value:g}" if isinstance(value, float) else str(value) for name, value in fields.items()}
    if "point" in fields:
        words["module"] = describe_module(fields["point"])
        words["part"] = _part(fields["point"], fields["head"], fields.get("position"))
    else:
        words["where"] = describe_module(fields["where"])
        words["rule"] = RULES.get(fields["rule"], {}).get("words", fields["rule"])
    template = (kind["ablates"] if ablates(word, fields) else kind)["words"]
    template = re.sub(r"\[(.*?{(\w+)}.*?)\]", lambda found: found[1] if fields[found[2]] else "", template)
    return template.format_map(words)


def _part(point: str, head: int | None, position: int | None) -> str:
    where = describe_module(point)
    last = point.rpartition(".")[2].removeprefix("hook_")
    owned = f"{point.split('.')[-2]}.{last}" if "." in point else last
    named = NAMES["points"].get(owned, NAMES["points"].get(last, last))
    whole = f"{NAMES['whole'][last]} {where}" if last in NAMES["whole"] else f"{where}, {named}"
    whole = NAMES["of_the_model"].get(owned, whole)
    if last in ("embed", "pos_embed"):
        side = f"the {point.partition('.')[0]}'s" if "." in point else "the"
        whole = f"{side} {'positions' if last == 'pos_embed' else 'embedding'}"
    if head is not None:
        whole = f"{where}, head {head}{'' if last == 'z' else f', {named}'}"
    return whole if position is None else f"{whole} at position {position}"
