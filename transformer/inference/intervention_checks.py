"""Says why a model can't be changed in a way. frontend/intervention_checks.js says it in the same words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ..config import ModelConfig
from ..model.registry import hook_points
from .intervention_kinds import FIELDS, KINDS, POINTS, RULES
from .plain_names import describe_module


def check_point(word: str, values: Mapping[str, Any], config: ModelConfig) -> None:
    """Raise ValueError unless a model has the hook point, the head and the positions of an intervention.

    word: the first of its code; values: of its fields, by name.
    """
    point = values["point"]
    if point not in hook_points(config):
        raise ValueError(f"this model computes no {point}")
    dims = hook_points(config)[point].shape
    allowed = POINTS[KINDS[word]["points"]]
    is_excepted = "except" in allowed and point.endswith(allowed["except"])
    if is_excepted or not point.endswith(allowed.get("only", "")) or allowed.get("without") in dims:
        raise ValueError(f"{point} {allowed['refused']}")
    heads = config.n_heads if "head" in dims else config.kv_heads if "kv_head" in dims else 0
    for name, value in values.items():
        if value is None:
            continue
        if name == "head" and not 0 <= value < heads:
            raise ValueError(f"{point} has no head {value}")
        if name in ("position", "query", "key"):
            of_source = point.startswith("encoder.") or (name == "key" and ".cross_attn." in point)
            longest = config.context_length if of_source else math.inf  # a decoder's text slides
            if not (name.replace("position", "pos") in dims and 0 <= value < longest):
                raise ValueError(f"{point} has no {name} {value}")
        if FIELDS[name]["type"] == "number":
            _check_number(name, value)
    for text in KINDS[word].get("texts", ()):
        _check_text(config, *other_text(text, values))


def check_rule(rule: str, where: str, config: ModelConfig) -> None:
    """Raise ValueError unless a model follows a rule there."""
    if rule not in RULES:
        raise ValueError(f"there is no rule “{rule}”; it can be {', '.join(RULES)}")
    if not points_without(rule, where, config):
        place = f"in {describe_module(where)}" if where else "anywhere"
        raise ValueError(f"this model doesn't have {RULES[rule]['words']} {place}")


def points_without(rule: str, where: str, config: ModelConfig) -> list[str]:
    """The hook points at which a pass goes without a rule. where: what their names begin with."""
    points, needs = tuple(RULES[rule]["points"]), RULES[rule].get("needs")
    found = [name for name in hook_points(config) if name.endswith(points) and name.startswith(where)]
    return [name for name in found if _follows(name, needs, config)]


def _follows(point: str, needs: str | None, config: ModelConfig) -> bool:
    """Whether a hook point's module has what a rule needs."""
    reads_both_ways = not config.is_causal or point.startswith("encoder.")
    match needs:
        case "causal":
            return not reads_both_ways
        case "encoder":
            return reads_both_ways
        case "encoder_windows":
            return reads_both_ways and any(config.attention_windows)
        case "attention_scale":
            return config.attention_scale
    return True


def other_text(text: Mapping[str, Any], values: Mapping[str, Any]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The tokens and the source of another text that an intervention reads. text: one of its kind's `texts`."""
    return values[text["tokens"]], next((values[name] for name in text["source"] if values[name]), ())


def _check_number(name: str, value: float) -> None:
    if not math.isfinite(value):
        raise ValueError(f"the {name} must be a number, not {value}")
    least, most = FIELDS[name].get("bounds", (-math.inf, math.inf))
    if not least <= value <= most:
        raise ValueError(f"the {name} is from {least:g} to {most:g}, not {value:g}")


def _check_text(config: ModelConfig, tokens: Sequence[int], source: Sequence[int]) -> None:
    if not tokens or bool(source) != (config.architecture == "encoder-decoder"):
        raise ValueError("the other prompt is one that this model can't read")
    if (longest := max(len(tokens), len(source))) > config.context_length:
        raise ValueError(f"the other prompt has {longest} tokens, and this model reads {config.context_length}")
    if unknown := [token for token in (*tokens, *source) if not 0 <= token < config.vocab_size]:
        raise ValueError(f"the other prompt has a token {unknown[0]}, which this model doesn't know")
