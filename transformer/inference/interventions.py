"""Interventions: frozen values that describe a change to a forward pass, and turn into hooks.

    without = (Scale("blocks.0.attn.hook_z", head=0),)             # layer 0, head 0 ablated
    generate(model, tokens, max_new_tokens=20, interventions=without)

Positions count from the start of the text, wherever a pass begins.
Shapes: batch, pos, head, d_head, d_model, query, key.
"""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import Field, dataclass
from typing import ClassVar, Protocol, runtime_checkable

import torch
from torch import Tensor

from ..config import ModelConfig
from ..hooks import ForwardHook, HookPoint
from ..model.models import Model
from ..model.modes import is_traced, keep_tensors
from ..model.registry import hook_points
from .inputs import inputs_of
from .plain_names import describe_module, describe_part

RULES = {"mask": "the causal mask", "scale": "÷ √d_head", "positions": "positions", "norm": "the norm's division"}
"""What a pass can do without."""
ENDINGS = {"mask": "hook_mask", "scale": "hook_scaled_scores", "positions": "hook_pos_embed", "norm": "hook_scale"}
_OF_POSITIONS = {"rotary": "hook_rot_q", "alibi": "hook_position_bias", "relative": "hook_position_bias"}
"""Where positions are in a model that adds none to embeddings."""

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


@dataclass(frozen=True)
class HookPointIntervention(ABC):
    """What the interventions below have in common: a hook point, perhaps one head of it, perhaps one position."""

    point: str
    head: int | None = None
    position: int | None = None

    looks_ahead = False
    """Whether what it does at a position depends on later tokens, so that nothing can be kept from pass to pass."""

    @property
    def same_everywhere(self) -> bool:
        """Whether it does the same wherever a pass begins, so that several texts can share one."""
        return self.position is None

    def check(self, config: ModelConfig) -> None:
        """Raise ValueError, saying what is wrong, unless a model of this configuration has it."""
        points = hook_points(config)
        if self.point not in points:
            raise ValueError(f"this model computes no {self.point}")
        dims = points[self.point].shape
        heads = config.n_heads if "head" in dims else config.kv_heads if "kv_head" in dims else 0
        if self.head is not None and not 0 <= self.head < heads:
            raise ValueError(f"{self.point} has no head {self.head}")
        longest = config.context_length if self.point.startswith("encoder.") else math.inf  # a decoder's text slides
        if self.position is not None and not ("pos" in dims and 0 <= self.position < longest):
            raise ValueError(f"{self.point} has no position {self.position}")
        if "query" in dims or self.point.endswith("hook_scale"):  # what is divided by must never be 0
            raise ValueError(f"{self.point} can't be changed in this way")

    def fwd_hooks(self, model: Model, start: Start = from_the_start) -> Sequence[ForwardHook]:
        """As in `Intervention`."""
        self.check(model.config)
        once = keep_tensors(maxsize=4)(functools.partial(recorded, model, self.point))  # of another text
        if self.point.startswith("encoder.") or "pos" not in hook_points(model.config)[self.point].shape:
            start = from_the_start  # the source, which is read as a whole

        def change(tensor: Tensor, hook: HookPoint) -> None:
            begin, end = start(), start() + tensor.shape[1]
            first, last = (begin, end) if self.position is None else (self.position, self.position + 1)
            if not (begin <= first and last <= end):
                return  # this pass doesn't reach it
            part = tensor if self.head is None else tensor[:, :, self.head]  # (batch, pos, …)
            other = functools.partial(recorded, model, self.point) if is_traced() else once
            part[:, first - begin : last - begin] = self._values(part, first, last, begin, other)

        return [(self.point, change)]

    @abstractmethod
    def _values(self, tensor: Tensor, first: int, last: int, begin: int, other: Callable[..., Tensor]) -> Tensor:
        """What takes the place of the positions from first to last. tensor: (batch, pos, …), from position `begin` on.

        other: what the point has on another text, (1, pos, …), or (1, pos, head, …).
        """

    def _of_head(self, tensor: Tensor) -> Tensor:
        return tensor if self.head is None else tensor[:, :, self.head]


@dataclass(frozen=True)
class Scale(HookPointIntervention):
    """Times a factor; 0 ablates it."""

    factor: float = 0.0

    def check(self, config: ModelConfig) -> None:
        """As in `HookPointIntervention`."""
        super().check(config)
        _check_factor(self.factor)

    def _values(self, tensor: Tensor, first: int, last: int, begin: int, other: Callable[..., Tensor]) -> Tensor:
        return tensor[:, first - begin : last - begin] * self.factor

    def __str__(self) -> str:
        return f"{describe_part(self)} {'ablated' if self.factor == 0 else f'× {self.factor:g}'}"


@dataclass(frozen=True)
class MeanAblate(HookPointIntervention):
    """Replaced by its mean over the text."""

    looks_ahead = True

    def _values(self, tensor: Tensor, first: int, last: int, begin: int, other: Callable[..., Tensor]) -> Tensor:
        return tensor.mean(1, keepdim=True)

    def __str__(self) -> str:
        return f"{describe_part(self)} replaced by its mean"


@dataclass(frozen=True)
class Patch(HookPointIntervention):
    """Replaced by what it is at the same position of another text (activation patching)."""

    tokens: tuple[int, ...] = ()
    source: tuple[int, ...] = ()
    """What the encoder reads of that other text, in an encoder–decoder."""

    @property
    def same_everywhere(self) -> bool:
        """Never: the other text's activations differ from position to position."""
        return False

    def check(self, config: ModelConfig) -> None:
        """As in `HookPointIntervention`."""
        super().check(config)
        _check_text(config, self.tokens, self.source)

    def _values(self, tensor: Tensor, first: int, last: int, begin: int, other: Callable[..., Tensor]) -> Tensor:
        values = tensor[:, first - begin : last - begin].clone()
        padding = max(-first, 0)  # before the text's start there is nothing to take
        there = self._of_head(other(self.tokens, self.source))[:, max(first, 0) : last]
        values[:, padding : padding + there.shape[1]] = there  # a shorter text has nothing for what comes after it
        return values

    def __str__(self) -> str:
        return f"{describe_part(self)} as on another prompt"


@dataclass(frozen=True)
class Steer(HookPointIntervention):
    """Plus the difference of two texts at their last tokens, times a factor (Turner et al. 2023)."""

    tokens: tuple[int, ...] = ()
    against: tuple[int, ...] = ()
    source: tuple[int, ...] = ()
    factor: float = 1.0
    against_source: tuple[int, ...] = ()
    """What the encoder reads with `against`; empty for the same source."""

    def check(self, config: ModelConfig) -> None:
        """As in `HookPointIntervention`."""
        super().check(config)
        _check_factor(self.factor)
        _check_text(config, self.tokens, self.source)
        _check_text(config, self.against, self.against_source or self.source)

    def _values(self, tensor: Tensor, first: int, last: int, begin: int, other: Callable[..., Tensor]) -> Tensor:
        pairs = (self.tokens, self.source), (self.against, self.against_source or self.source)
        toward, away = (self._of_head(other(*pair))[:, -1:] for pair in pairs)
        return tensor[:, first - begin : last - begin] + self.factor * (toward - away)

    def __str__(self) -> str:
        return f"{describe_part(self)} + {self.factor:g} × the difference of two prompts"


@dataclass(frozen=True)
class Without:
    """A pass without one of the `RULES`. where: the dotted name that its points begin with; empty for everywhere."""

    rule: str
    where: str = ""
    same_everywhere = True

    @property
    def looks_ahead(self) -> bool:
        """Without the causal mask every position sees those after it."""
        return self.rule == "mask"

    def check(self, config: ModelConfig) -> None:
        """Raise ValueError unless a model of this configuration has the rule there."""
        if self.rule not in RULES:
            raise ValueError(f"there is no rule {self.rule!r}; it can be {', '.join(RULES)}")
        if self.rule == "mask" and not config.is_causal:
            raise ValueError("this model reads in both directions: it has no causal mask")
        if not self._points(config):
            where = f"in {self.where}" if self.where else "anywhere"
            if self.rule == "scale" and not config.attention_scale:
                raise ValueError("this model doesn't divide its scores by √d_head")
            raise ValueError(f"this model has no {ENDINGS[self.rule]} {where}")

    def fwd_hooks(self, model: Model, start: Start = from_the_start) -> Sequence[ForwardHook]:
        """As in `Intervention`."""
        config = model.config
        self.check(config)
        points = self._points(config)
        if self.rule == "positions" and config.positions == "rotary":
            return _unrotated(points, config)
        changes: dict[str, Callable[[Tensor], Tensor]] = {
            "mask": lambda mask: mask.any(-2, keepdim=True).expand_as(mask),  # what no query sees is padding
            "scale": lambda scores: scores * math.sqrt(config.d_head),
            "positions": torch.zeros_like,
            "norm": torch.ones_like,
        }
        return [(point, lambda tensor, hook: changes[self.rule](tensor)) for point in points]

    def sets(self, config: ModelConfig) -> list[str]:
        """The points whose numbers it sets in a model of this configuration."""
        points = self._points(config)
        if self.rule == "positions" and config.positions == "rotary":
            return [point for query in points for point in (query, f"{query[:-1]}k")]
        return points

    def _points(self, config: ModelConfig) -> list[str]:
        endings = {**ENDINGS, "positions": _OF_POSITIONS.get(config.positions, ENDINGS["positions"])}
        ending = endings[self.rule]
        points = [name for name in hook_points(config) if name.endswith(ending) and name.startswith(self.where)]
        if self.rule == "scale" and not config.attention_scale:
            return []
        if self.rule != "mask":
            return points
        if not config.is_causal:
            return []
        return [name for name in points if ".cross_attn." not in name and not name.startswith("encoder.")]

    def __str__(self) -> str:
        return f"without {RULES[self.rule]}{f' in {describe_module(self.where)}' if self.where else ''}"


@dataclass(frozen=True)
class SetAttention:
    """One weight of a head set by hand. If renormalised, the rest of its row shares what is left as it did before."""

    point: str
    head: int
    query: int
    key: int
    weight: float
    renormalised: bool = True

    looks_ahead = False

    def check(self, config: ModelConfig) -> None:
        """Raise ValueError unless a model of this configuration has the weight."""
        if self.point not in hook_points(config) or not self.point.endswith("hook_pattern"):
            raise ValueError(f"{self.point} is no attention pattern of this model")
        if not 0 <= self.head < config.n_heads:
            raise ValueError(f"{self.point} has no head {self.head}")
        for role, position in (("query", self.query), ("key", self.key)):
            of_source = self.point.startswith("encoder.") or (role == "key" and ".cross_attn." in self.point)
            if not 0 <= position < (config.context_length if of_source else math.inf):
                raise ValueError(f"{self.point} has no {role} {position}")
        if not 0 <= self.weight <= 1:
            raise ValueError(f"a weight is from 0 to 1, not {self.weight:g}")

    def fwd_hooks(self, model: Model, start: Start = from_the_start) -> Sequence[ForwardHook]:
        """As in `Intervention`."""
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

    def __str__(self) -> str:
        where = describe_module(self.point.removesuffix(".hook_pattern"))
        return f"{where}, head {self.head}: query {self.query} gives key {self.key} the weight {self.weight:g}"


def hooks_of(interventions: Sequence[Intervention], model: Model, start: Start = from_the_start) -> list[ForwardHook]:
    """The hooks of several interventions on one model, in their order."""
    if hasattr(interventions, "fwd_hooks"):
        raise TypeError(f"Interventions are a list, also of one: [{interventions!r}].")
    return [hook for intervention in interventions for hook in intervention.fwd_hooks(model, start)]


def _check_factor(factor: float) -> None:
    if not math.isfinite(factor):
        raise ValueError(f"a factor must be a number, not {factor}")


def _check_text(config: ModelConfig, tokens: Sequence[int], source: Sequence[int]) -> None:
    """Raise ValueError unless a model of this configuration can read another text."""
    if not tokens or bool(source) != (config.architecture == "encoder-decoder"):
        raise ValueError("the other prompt is one that this model can't read")
    if (longest := max(len(tokens), len(source))) > config.context_length:
        raise ValueError(f"the other prompt has {longest} tokens, and this model reads {config.context_length}")
    if unknown := [token for token in (*tokens, *source) if not 0 <= token < config.vocab_size]:
        raise ValueError(f"the other prompt has a token {unknown[0]}, which this model doesn't know")


@torch.no_grad()
def recorded(model: Model, point: str, tokens: Sequence[int], source: Sequence[int] = ()) -> Tensor:
    """One point's tensor on another text, which nothing intervenes in."""
    return model.run_until_recorded(*inputs_of(model, tokens, source), names_filter=point)[point]


def _unrotated(points: Sequence[str], config: ModelConfig) -> list[ForwardHook]:
    """Rotary positions taken away: queries and keys go on as they were before they were turned."""
    hooks: list[ForwardHook] = []
    for query in points:
        attention = query.removesuffix("hook_rot_q")
        for name in "qk":
            before: list[Tensor] = []
            point = f"hook_{name}" if config.qk_norm == "none" else f"{name}_norm.hook_out"
            hooks.append((f"{attention}{point}", lambda tensor, hook, before=before: before.append(tensor)))
            hooks.append((f"{attention}hook_rot_{name}", lambda tensor, hook, before=before: before.pop()))
    return hooks
