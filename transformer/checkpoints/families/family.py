"""What a family of models is: where each of our parameters stands in its files, and what its configuration means.

Shapes: out and in are the widths of a linear map, as `nn.Linear` lays its weight out: (out, in).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from ...config import ModelConfig

Layout = Literal["as it is", "transposed", "by head"]
ACTIVATIONS = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "silu": "silu",
    "swish": "silu",
}
"""What other people's configurations call an activation function, and what ours do."""
MOST_LAYERS = 1_000
THEIR_ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "gelu_tanh": "gelu_new", "silu": "silu"}


class UnsupportedError(ValueError):
    """A configuration asks for something that the engine, or a family, doesn't have; the message says what."""


@dataclass(frozen=True)
class Weight:
    """Where one of our parameters stands in a family's files."""

    ours: str
    theirs: tuple[str, ...]
    """Several are put one below the other, as queries, keys and values are."""
    layout: Layout = "as it is"
    """"transposed": (in, out). "by head": a head's queries, keys and values together, then the next head's."""


@dataclass(frozen=True)
class Family:
    """One architecture of other people's models, and how it is read and written."""

    name: str
    """As people write it."""
    model_type: str
    """As config.json has it."""
    architecture: str
    """The class that opens it, as config.json has it."""
    prefix: str
    """Which may stand before every name but the unembedding's."""
    ignored: str
    """A regular expression of names, without the prefix, that are no weights: tables that follow from the sizes."""
    read_config: Callable[[Fields], ModelConfig]
    write_config: Callable[[ModelConfig], dict[str, Any]]
    """What config.json would say; what the family can't express is left out."""
    weights: Callable[[ModelConfig], list[Weight]]


class Fields:
    """The fields of a config.json, each asked for by name. What is wrong with one is said in a sentence."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self._fields = fields

    def get(self, name: str, default: Any = None) -> Any:
        """A field, or what it is where it is missing or null."""
        value = self._fields.get(name)
        return default if value is None else value

    def whole(self, name: str, default: int | None = None) -> int:
        """A field that must be a whole number of at least 1."""
        value = self.get(name, default)
        if value is None:
            raise UnsupportedError(f"it lacks {name}")
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise UnsupportedError(f"its {name} is {value!r}, where a whole number of 1 or more should be")
        return value

    def layers(self, name: str) -> int:
        """How many layers there are, at most `MOST_LAYERS`."""
        found = self.whole(name)
        if found > MOST_LAYERS:
            raise UnsupportedError(f"its {name} is {found:,}; at most {MOST_LAYERS:,} layers can be read")
        return found

    def number(self, name: str, default: float) -> float:
        """A field that must be a number above 0."""
        value = self.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
            raise UnsupportedError(f"its {name} is {value!r}, where a number above 0 should be")
        return float(value)

    def flag(self, name: str, default: bool) -> bool:
        """A field that must be true or false."""
        value = self.get(name, default)
        if not isinstance(value, bool):
            raise UnsupportedError(f"its {name} is {value!r}, where true or false should be")
        return value

    def activation(self, name: str, default: str) -> str:
        """The activation function, in our words."""
        value = self.get(name, default)
        if not isinstance(value, str) or value not in ACTIVATIONS:
            raise UnsupportedError(f"its {name} is {value!r}; known are {', '.join(ACTIVATIONS)}")
        return ACTIVATIONS[value]

    def refuse(self, name: str, why: str) -> None:
        """Raise UnsupportedError if a switch is on that the engine has nothing for."""
        if self.get(name, False):
            raise UnsupportedError(f"it sets {name}, {why}")

    def rotation(
        self, base_name: str = "rope_theta", fraction_name: str = "partial_rotary_factor", fraction: float = 1.0
    ) -> tuple[float, float]:
        """The base of rotary positions and the share of a head that is turned, in the older or the newer spelling."""
        found = self.get("rope_parameters", {})
        scaling = self.get("rope_scaling", {})
        if not isinstance(found, Mapping) or not isinstance(scaling, Mapping):
            raise UnsupportedError("its rope_parameters are no set of named values")
        for each in (found, scaling):
            kind = each.get("rope_type", each.get("type", "default"))
            if kind != "default":
                raise UnsupportedError(f"its rotary positions are of the type {kind!r}; only plain ones are known")
        together = Fields(
            {
                base_name: found.get("rope_theta", self.get(base_name, self.get("rope_theta"))),
                fraction_name: found.get("partial_rotary_factor", self.get(fraction_name)),
            }
        )
        return together.number(base_name, 10000.0), together.number(fraction_name, fraction)


def read_weight(weight: Weight, config: ModelConfig, tensors: Sequence[Tensor]) -> Tensor:
    """Our parameter from a family's tensors, as float32."""
    parts = [tensor.to(torch.float32) for tensor in tensors]
    if weight.layout == "transposed":
        parts = [part.T for part in parts]
    found = parts[0] if len(parts) == 1 else torch.cat(parts)
    if weight.layout == "by head":
        found = found.unflatten(0, (config.n_heads, 3, config.d_head)).transpose(0, 1).flatten(0, 2)
    return found.contiguous()


def write_weight(weight: Weight, config: ModelConfig, ours: Tensor) -> dict[str, Tensor]:
    """A family's tensors from our parameter, by name: the way back of `read_weight`."""
    found = ours
    if weight.layout == "by head":
        found = found.unflatten(0, (3, config.n_heads, config.d_head)).transpose(0, 1).flatten(0, 2)
    parts = [found]
    if len(weight.theirs) > 1:
        parts = list(found.split([heads * config.d_head for heads in of_qkv(config)]))
    if weight.layout == "transposed":
        parts = [part.T for part in parts]
    return {name: part.contiguous() for name, part in zip(weight.theirs, parts, strict=True)}


def their_shapes(weight: Weight, config: ModelConfig, ours: tuple[int, ...]) -> list[tuple[int, ...]]:
    """The shapes that a family's tensors must have, for our parameter to have its own."""
    first, *rest = ours
    outputs = [heads * config.d_head for heads in of_qkv(config)] if len(weight.theirs) > 1 else [first]
    shapes = [(each, *rest) for each in outputs]
    return [shape[::-1] for shape in shapes] if weight.layout == "transposed" else shapes


def of_qkv(config: ModelConfig) -> tuple[int, int, int]:
    """How many heads queries, keys and values have."""
    return config.n_heads, config.kv_heads, config.kv_heads


def linear(ours: str, *theirs: str, bias: bool, layout: Layout = "as it is") -> list[Weight]:
    """A linear map's weight, and its bias where it has one. A transposed map's bias is as it is."""
    found = [Weight(f"{ours}.weight", tuple(f"{each}.weight" for each in theirs), layout)]
    if bias:
        own = "as it is" if layout == "transposed" else layout
        found.append(Weight(f"{ours}.bias", tuple(f"{each}.bias" for each in theirs), own))
    return found


def unembedding(config: ModelConfig, theirs: str = "lm_head") -> list[Weight]:
    """W_U, where it isn't the table of embeddings."""
    return [] if config.tie_embeddings else [Weight("unembed.weight", (f"{theirs}.weight",))]
