"""Reads rotary positions, scaled or plain, from the fields of a config.json: how fast each pair of dimensions turns.

Every kind of scaling comes down to how many times slower each pair turns, and a factor on rotated queries and keys. The
engine knows only these two, and writes them as the kind that lists a factor for each pair.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from ...config import ModelConfig
from .family import Fields, UnsupportedError

BASES, SHARES = ("rope_theta",), ("partial_rotary_factor",)
ALWAYS = ("rope_type", "type", "rope_theta", "partial_rotary_factor", "factor", "original_max_position_embeddings")
MAY_SAY = {
    "default": (),
    "linear": (),
    "dynamic": (),
    "llama3": ("low_freq_factor", "high_freq_factor"),
    "yarn": ("attention_factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim", "truncate", "finetuned"),
    "longrope": ("attention_factor", "short_factor", "long_factor", "short_mscale", "long_mscale"),
}
"""The kinds of scaling, and the further fields of each."""
NEEDED = {
    "linear": ("factor",),
    "dynamic": ("factor",),
    "llama3": ("factor", "low_freq_factor", "high_freq_factor"),
    "longrope": ("short_factor", "long_factor"),
}
FORMER = {"su": "longrope", "mrope": "default"}


def rotary_fields(
    fields: Fields,
    head_width: int,
    *,
    bases: tuple[str, ...] = BASES,
    shares: tuple[str, ...] = SHARES,
    share: float = 1.0,
    base: float = 10000.0,
    layer_kind: str = "full_attention",
    also: tuple[str, ...] = (),
) -> dict[str, Any]:
    """Our fields that say how queries and keys are turned, and the context where the scaling shortens it.

    bases, shares: the possible names, and the default, of the base and of the rotated share of a head's dimensions.
    layer_kind: whose rotation to read if kinds of layers have their own. also: further fields, which the caller reads.
    """
    said = rotary_parameters(fields, layer_kind, also)
    together = Fields({**{name: fields.get(name) for name in (*bases, *shares)}, **said})
    base = together.number(_first(together, bases), base)
    share = together.number(_first(together, shares), share)
    dims = int(head_width * share)
    if not 1 <= dims <= head_width:
        raise UnsupportedError(f"it turns {share} of each head's {head_width} dimensions")
    kind = kind_of(said)
    factors, scale = _SCALED[kind](Fields(said), fields, base, dims)
    if dims % 2:  # the last angle rotates two numbers even so
        factors = [factor * base ** (2 * at * (1 / dims - 1 / (dims + 1))) for at, factor in enumerate(factors)]
        dims += 1
    if dims > head_width:
        raise UnsupportedError(f"it turns {dims} of each head's {head_width} dimensions")
    found = {
        "positions": "rotary",
        "rotary_base": base,
        "rotary_dims": None if dims == head_width else dims,
        "rotary_factors": tuple(factors) if any(factor != 1 for factor in factors) else (),
        "rotary_scale": scale,
    }
    if _depends_on_length(said):
        found["context_length"] = original_context(Fields(said), fields)
    return found


def rotary_parameters(fields: Fields, layer_kind: str = "full_attention", also: tuple[str, ...] = ()) -> dict[str, Any]:
    """The rotary parameters of one kind of layers, in the older or the newer spelling."""
    found: dict[str, Any] = {}
    for name in ("rope_scaling", "rope_parameters"):
        said = fields.get(name, {})
        if isinstance(said, Mapping) and ("full_attention" in said or "sliding_attention" in said):
            said = said.get(layer_kind) or {}
        elif name == "rope_scaling" and layer_kind == "sliding_attention":
            said = {}  # if layers have their own, the older spelling is for the others
        if not isinstance(said, Mapping):
            raise UnsupportedError(f"its {name} are no set of named values")
        found |= said
    kind = kind_of(found)
    if unknown := [name for name in found if name not in (*ALWAYS, *MAY_SAY[kind], *also)]:
        raise UnsupportedError(f"its rope_parameters say {str(unknown[0])[:60]}, which isn't known")
    if lacking := [name for name in NEEDED.get(kind, ()) if found.get(name) is None]:
        raise UnsupportedError(f"its rope_parameters lack {lacking[0]}, which {kind} has")
    if kind == "default" and found.get("factor", 1) not in (None, 1):
        raise UnsupportedError("its rope_parameters name a factor, but not the kind of scaling that it is for")
    return found


def kind_of(said: Mapping[str, Any]) -> str:
    """The kind of scaling. Raises: UnsupportedError for one that isn't known."""
    kind = said.get("rope_type") or said.get("type") or "default"
    kind = FORMER.get(str(kind), kind)
    if kind not in MAY_SAY:
        raise UnsupportedError(
            f"its rotary positions are of the type {str(kind)[:60]!r}; known are {', '.join(MAY_SAY)}"
        )
    return kind


def _depends_on_length(said: Mapping[str, Any]) -> bool:
    """Whether pairs turn differently in texts longer than those of training."""
    return kind_of(said) == "longrope" and said.get("short_factor") != said.get("long_factor")


def written_by_kind(config: ModelConfig) -> dict[str, Any]:
    """rope_parameters if layers with a window have a rotation of their own."""
    near = {"rope_type": "default", "rope_theta": config.window_rotary_base or config.rotary_base}
    return {"full_attention": written_rotation(config), "sliding_attention": near}


def written_rotation(config: ModelConfig) -> dict[str, Any]:
    """rope_parameters from our configuration."""
    found: dict[str, Any] = {"rope_type": "default", "rope_theta": config.rotary_base}
    factors = config.rotary_factors
    if factors or config.rotary_scale != 1:
        factors = list(factors or [1.0] * (config.rotated_dims // 2))
        found |= {
            "rope_type": "longrope",
            "short_factor": factors,
            "long_factor": factors,
            "attention_factor": config.rotary_scale,
            "original_max_position_embeddings": config.context_length,
            "factor": 1.0,
        }
    if config.rotated_dims != config.d_head:
        found["partial_rotary_factor"] = config.rotated_dims / config.d_head
    return found


def notes_on_rotation(fields: Fields) -> list[str]:
    """Sentences for the card on scaling that isn't followed completely."""
    said = rotary_parameters(fields)
    if kind_of(said) == "dynamic":
        return ["Its rotary positions are scaled beyond its context only, which isn't read any further."]
    if _depends_on_length(said):
        return ["It reads as far as its rotary positions turn as in training; further on they would turn otherwise."]
    return []


def original_context(said: Fields, fields: Fields) -> int:
    """The context of training, before positions were scaled. A value outside rope_parameters takes precedence."""
    longest, name = fields.whole("max_position_embeddings"), "original_max_position_embeddings"
    return fields.whole(name, said.whole(name, longest))


def _first(fields: Fields, names: tuple[str, ...]) -> str:
    return next((name for name in names if fields.get(name) is not None), names[0])


Scaled = tuple[list[float], float]
"""How many times slower each pair turns, and the factor on rotated queries and keys."""


def _pairs(dims: int) -> int:
    """The number of pairs in so many dimensions, rounded up."""
    return (dims + 1) // 2


def _plain(said: Fields, fields: Fields, base: float, dims: int) -> Scaled:
    """Also for "dynamic", which changes nothing within the context (Peng et al. 2023, §3.3, *Dynamic scaling*)."""
    return [1.0] * _pairs(dims), 1.0


def _linear(said: Fields, fields: Fields, base: float, dims: int) -> Scaled:
    """Chen et al. 2023, position interpolation, eq. 3."""
    return [said.number("factor", 1.0)] * _pairs(dims), 1.0


def _llama3(said: Fields, fields: Fields, base: float, dims: int) -> Scaled:
    """Slows down slow pairs only, with a transition to fast ones (Llama 3, Grattafiori et al. 2024, §3.4.1, and its
    code)."""
    factor, context = said.number("factor", 1.0), original_context(said, fields)
    low, high = said.number("low_freq_factor", 1.0), said.number("high_freq_factor", 4.0)
    if high <= low:
        raise UnsupportedError("its rope_parameters have a high_freq_factor that isn't above its low_freq_factor")
    found = []
    for at in range(_pairs(dims)):
        turns = context / (2 * math.pi * base ** (2 * at / dims))  # within the context of training
        kept = min(max((turns - low) / (high - low), 0.0), 1.0)
        found.append(1 / ((1 - kept) / factor + kept))
    return found, 1.0


def _yarn(said: Fields, fields: Fields, base: float, dims: int) -> Scaled:
    """Peng et al. 2023, YaRN, §3.2 (NTK by parts) and §3.4 (the factor)."""
    context = original_context(said, fields)
    factor = said.number("factor", fields.whole("max_position_embeddings") / context)
    fast, slow = said.number("beta_fast", 32.0), said.number("beta_slow", 1.0)

    def pair_that_turns(times: float) -> float:
        return dims * math.log(context / (times * 2 * math.pi)) / (2 * math.log(base))

    low, high = pair_that_turns(fast), pair_that_turns(slow)
    if said.flag("truncate", True):
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, dims - 1)
    width = high - low or 0.001
    found = []
    for at in range(_pairs(dims)):
        interpolated = min(max((at - low) / width, 0.0), 1.0)
        found.append(1 / (interpolated / factor + 1 - interpolated))
    return found, said.number("attention_factor", _temperature(said, factor))


def _temperature(said: Fields, factor: float) -> float:
    """YaRN's factor on rotated queries and keys, unless it is given (eq. 22)."""

    def by(weight: float) -> float:
        return 1.0 if factor <= 1 else 0.1 * weight * math.log(factor) + 1.0

    both = said.get("mscale"), said.get("mscale_all_dim")
    if all(both):
        return by(said.number("mscale", 1.0)) / by(said.number("mscale_all_dim", 1.0))
    return by(1.0)


def _longrope(said: Fields, fields: Fields, base: float, dims: int) -> Scaled:
    """Ding et al. 2024, LongRoPE: factors found by search; the ones for texts as long as in training."""
    factors = said.get("short_factor")
    if not isinstance(factors, list) or len(factors) != _pairs(dims) or not all(_is_factor(each) for each in factors):
        raise UnsupportedError(
            f"its short_factor must be {_pairs(dims)} numbers above 0, one for each pair that is turned"
        )
    context = original_context(said, fields)
    factor = said.number("factor", fields.whole("max_position_embeddings") / context)
    own = 1.0 if factor <= 1 else math.sqrt(1 + math.log(factor) / math.log(context))
    return [float(each) for each in factors], said.number("attention_factor", own)


def _is_factor(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


_SCALED: dict[str, Callable[[Fields, Fields, float, int], Scaled]] = {
    "default": _plain,
    "linear": _linear,
    "dynamic": _plain,
    "llama3": _llama3,
    "yarn": _yarn,
    "longrope": _longrope,
}
