"""Interventions: frozen values that describe a change to a forward pass, and turn into hooks.

    without = (Scale("blocks.0.attn.hook_z", head=0),)             # layer 0, head 0 ablated
    generate(model, tokens, max_new_tokens=20, interventions=without)

interventions.json says of each class what its code and its words are, and by which formula a value is replaced.
Positions count from the start of the text, wherever a pass begins.
Shapes: batch, pos, head, d_head, d_model, query, key.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Hashable, Sequence
from dataclasses import Field, dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

import torch
from torch import Tensor

from ..config import ModelConfig
from ..hooks import ForwardHook, HookPoint
from ..model.masks import causal_mask
from ..model.models import Model
from ..model.modes import is_traced, keep_tensors
from ..model.registry import hook_points
from .inputs import inputs_of
from .intervention_checks import check_point, check_rule, other_text, points_without
from .intervention_kinds import KINDS, RULES, WORDS, uses
from .plain_names import in_words

__all__ = ["Intervention", "MeanAblate", "Patch", "Scale", "SetAttention", "Steer", "Without"]

Start = Callable[[], int]
"""Tells, in each pass, the position in the text of its first token: hooks may serve a whole generation."""


def from_the_start() -> int:
    """A pass over a text from its first token on."""
    return 0


@runtime_checkable
class Intervention(Hashable, Protocol):
    """A frozen value that says what is changed in a pass; equal values change the same.

    Several together are a tuple, applied in its order, and part of the key under which a result is cached.
    """

    __dataclass_fields__: ClassVar[dict[str, Field]]

    def check(self, config: ModelConfig) -> None:
        """Raise ValueError, saying what is wrong, unless a model of this configuration has it."""
        ...

    def fwd_hooks(self, model: Model, start: Start = from_the_start) -> Sequence[ForwardHook]:
        """The change as hooks for `run_with_hooks` on this model; ValueError, saying why, if it lacks it."""
        ...


class CodedIntervention:
    """An intervention that interventions.json describes. word: the first of its code."""

    word: ClassVar[str] = ""
    classes: ClassVar[dict[str, type[Any]]] = {}
    """By word."""

    def __init_subclass__(cls) -> None:
        cls.word = WORDS.get(cls.__name__, "")
        if cls.word:
            CodedIntervention.classes[cls.word] = cls

    @property
    def values(self) -> dict[str, Any]:
        """The values of its fields, by name."""
        return dict(vars(self))

    def __str__(self) -> str:
        return in_words(self.word, self.values)


class PointIntervention(CodedIntervention):
    """An intervention at one hook point."""

    point: str

    def check(self, config: ModelConfig) -> None:
        check_point(self.word, self.values, config)


@dataclass(frozen=True)
class HookPointIntervention(PointIntervention):
    """The base of the interventions below: a hook point, perhaps one head of it, perhaps one position."""

    point: str
    head: int | None = None
    position: int | None = None

    @property
    def looks_ahead(self) -> bool:
        """Whether a position depends on later tokens, so that nothing can be kept from pass to pass."""
        return uses(KINDS[self.word]["becomes"], "mean")

    @property
    def same_everywhere(self) -> bool:
        """Whether it does the same wherever a pass begins, so that several texts can share one."""
        return self.position is None and not uses(KINDS[self.word]["becomes"], "same position")

    def fwd_hooks(self, model: Model, start: Start = from_the_start) -> Sequence[ForwardHook]:
        self.check(model.config)
        once = keep_tensors(maxsize=4)(functools.partial(recorded, model, self.point))  # of another text
        if self.point.startswith("encoder.") or "pos" not in hook_points(model.config)[self.point].shape:
            start = from_the_start  # the source, which is read as a whole

        def change(tensor: Tensor, hook: HookPoint) -> None:
            begin, end = start(), start() + tensor.shape[1]
            first, last = (begin, end) if self.position is None else (self.position, self.position + 1)
            if not (begin <= first and last <= end):
                return  # this pass doesn't reach it
            part = self._of_head(tensor)  # (batch, pos, …)
            other = functools.partial(recorded, model, self.point) if is_traced() else once
            part[:, first - begin : last - begin] = self._values(part, first, last, begin, other)

        return [(self.point, change)]

    def _values(self, tensor: Tensor, first: int, last: int, begin: int, other: Callable[..., Tensor]) -> Tensor:
        """The new values of the positions from first to last. tensor: (batch, pos, …), from position `begin` on.

        other: computes the point on another text, (1, pos, …), or (1, pos, head, …).
        """
        kind, value = KINDS[self.word], tensor[:, first - begin : last - begin]

        def there(text: int) -> Tensor:
            return self._of_head(other(*other_text(kind["texts"][text], self.values)))

        def evaluate(formula: Any) -> Any:
            match formula:
                case "value":
                    return value
                case str():
                    return getattr(self, formula)
                case ["mean"]:
                    return tensor.mean(1, keepdim=True)
                case ["same position", text]:
                    return _overlaid(value, there(text)[:, max(first, 0) : last], first)
                case ["last position", text]:
                    return there(text)[:, -1:]
                case [operation, *operands]:
                    return functools.reduce(_OPERATIONS[operation], map(evaluate, operands))
            return formula  # a number

        return evaluate(kind["becomes"])

    def _of_head(self, tensor: Tensor) -> Tensor:
        return tensor if self.head is None else tensor[:, :, self.head]


@dataclass(frozen=True)
class Scale(HookPointIntervention):
    """Times a factor; 0 ablates it."""

    factor: float = 0.0


@dataclass(frozen=True)
class MeanAblate(HookPointIntervention):
    """Replaced by its mean over the text."""


@dataclass(frozen=True)
class Patch(HookPointIntervention):
    """Replaced by what it is at the same position of another text (activation patching)."""

    tokens: tuple[int, ...] = ()
    source: tuple[int, ...] = ()
    """The encoder's part of that other text, in an encoder–decoder."""


@dataclass(frozen=True)
class Steer(HookPointIntervention):
    """Plus the difference of two texts at their last tokens, times a factor (Turner et al. 2023)."""

    tokens: tuple[int, ...] = ()
    against: tuple[int, ...] = ()
    source: tuple[int, ...] = ()
    factor: float = 1.0
    against_source: tuple[int, ...] = ()
    """The encoder's text with `against`; empty for the same source."""


@dataclass(frozen=True)
class Without(CodedIntervention):
    """A pass without one of the `RULES`. where: the dotted name that its points begin with; empty for everywhere."""

    rule: str
    where: str = ""
    same_everywhere = True

    @property
    def looks_ahead(self) -> bool:
        """Without the causal mask every position sees those after it."""
        return RULES.get(self.rule, {}).get("looks_ahead", False)

    def check(self, config: ModelConfig) -> None:
        check_rule(self.rule, self.where, config)

    def fwd_hooks(self, model: Model, start: Start = from_the_start) -> Sequence[ForwardHook]:
        config = model.config
        self.check(config)
        changes: dict[str, Callable[[Tensor], Tensor]] = {
            "mask": _shown_to_all,
            "later": lambda mask: mask & causal_mask(*mask.shape[-2:], device=mask.device),
            "windows": _shown_to_all,
            "scale": lambda scores: scores * math.sqrt(config.d_head),
            "positions": torch.zeros_like,
            "norm": torch.ones_like,
        }
        hooks: list[ForwardHook] = []
        for point in self.sets(config):
            if "hook_rot_" in point:
                hooks += _unrotated(point, config)
            else:
                hooks.append((point, lambda tensor, hook: changes[self.rule](tensor)))
        return hooks

    def sets(self, config: ModelConfig) -> list[str]:
        """The points whose numbers it sets in a model of this configuration."""
        return points_without(self.rule, self.where, config)


@dataclass(frozen=True)
class SetAttention(PointIntervention):
    """One weight of a head set by hand. If renormalised, the rest of its row shares what is left as it did before."""

    point: str
    head: int
    query: int
    key: int
    weight: float
    renormalised: bool = True

    looks_ahead = False

    def fwd_hooks(self, model: Model, start: Start = from_the_start) -> Sequence[ForwardHook]:
        self.check(model.config)
        if self.point.startswith("encoder."):
            start = from_the_start

        def change(pattern: Tensor, hook: HookPoint) -> None:
            query = self.query - start()
            # Keys may have been kept from earlier passes: the last one is that of the last query.
            first_key = 0 if ".cross_attn." in self.point else start() + pattern.shape[-2] - pattern.shape[-1]
            key = self.key - first_key
            if not (0 <= query < pattern.shape[-2] and 0 <= key < pattern.shape[-1]):
                return
            row = pattern[:, self.head, query]  # (batch, key)
            if self.renormalised:
                rest = 1 - row[:, key : key + 1]
                row *= torch.where(rest > 0, (1 - self.weight) / rest.clamp(min=1e-12), 0.0)
            row[:, key] = self.weight

        return [(self.point, change)]


def hooks_of(interventions: Sequence[Intervention], model: Model, start: Start = from_the_start) -> list[ForwardHook]:
    """The hooks of several interventions on one model, in their order."""
    if hasattr(interventions, "fwd_hooks"):
        raise TypeError(f"Interventions are a list, also of one: [{interventions!r}].")
    return [hook for intervention in interventions for hook in intervention.fwd_hooks(model, start)]


_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "min": lambda value, most: value.clamp(max=most),
    "max": lambda value, least: value.clamp(min=least),
}


def _overlaid(values: Tensor, there: Tensor, first: int) -> Tensor:
    """Values with another text's in their place, from position `first` on.

    There is nothing to take before the other text's start, nor after its end if it is shorter.
    """
    values, padding = values.clone(), max(-first, 0)
    values[:, padding : padding + there.shape[1]] = there
    return values


@torch.no_grad()
def recorded(model: Model, point: str, tokens: Sequence[int], source: Sequence[int] = ()) -> Tensor:
    """One point's tensor on another text, which nothing intervenes in."""
    return model.run_until_recorded(*inputs_of(model, tokens, source), names_filter=point)[point]


def _shown_to_all(mask: Tensor) -> Tensor:
    """Every query sees every key; a key that none of them saw is padding, and stays hidden."""
    return mask.any(-2, keepdim=True).expand_as(mask)


def _unrotated(point: str, config: ModelConfig) -> list[ForwardHook]:
    """Rotary positions taken away: queries or keys go on as they were before they were turned."""
    attention, name = point.split("hook_rot_")
    before: list[Tensor] = []
    unturned = f"hook_{name}" if config.qk_norm == "none" else f"{name}_norm.hook_out"
    return [
        (f"{attention}{unturned}", lambda tensor, hook: before.append(tensor)),
        (point, lambda tensor, hook: before.pop()),
    ]
