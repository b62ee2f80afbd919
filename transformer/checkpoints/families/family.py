"""Describes a model family: how its configuration fields and weight names map to ours.

Shapes: out and in are the widths of a linear map, as `nn.Linear` lays its weight out: (out, in).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from ...config import Activation, ModelConfig

Layout = Literal["as it is", "transposed", "by head"]
ACTIVATIONS: dict[str, Activation] = {
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
WITHOUT_EFFECT = re.compile(
    r"model_type|architectures|\w+_token_id|(torch_)?dtype|transformers_version|initializer_range|use_cache"
    # of training, of generating, and of tasks that aren't language modelling
    r"|\w*(dropout|pdrop|drop_rate)\w*|gradient_checkpointing|id2label|label2id|num_labels|problem_type"
    r"|task_specific_params|summary_\w+|tokenizer_class|max_length|min_length|do_sample|temperature|top_k|top_p"
    r"|typical_p|num_beams|num_beam_groups|num_return_sequences|early_stopping|\w+_penalty|\w*no_repeat_ngram_size"
    # how it is computed, not what
    r"|return_dict|output_\w+|torchscript|use_bfloat16|chunk_size_feed_forward|reorder_and_upcast_attn|pretraining_tp"
    r"|attn_implementation\w*|use_flash\w*|is_decoder|n_ctx|max_sequence_length|attention_layers|prefix|tf_legacy_loss"
    # who wrote the file
    r"|_\w+|is_llama_config|predict_special_tokens|transformers\.js_config|unsloth\w*"
)
"""Fields of config.json that change nothing of what a language model computes."""
ROTATION = ("rope_type", "type", "rope_theta", "partial_rotary_factor")
"""What rope_parameters may say."""
LAYER_KINDS = ("full_attention", "sliding_attention")
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
        self._asked: set[str] = set()

    def get(self, name: str, default: Any = None) -> Any:
        """A field, or what it is where it is missing or null."""
        self._asked.add(name)
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

    def activation(self, name: str, default: str) -> Activation:
        """The activation function, in our words."""
        value = self.get(name, default)
        if not isinstance(value, str) or value not in ACTIVATIONS:
            raise UnsupportedError(f"its {name} is {value!r}; known are {', '.join(ACTIVATIONS)}")
        return ACTIVATIONS[value]

    def refuse(self, name: str, why: str) -> None:
        """Raise UnsupportedError if a switch is on that the engine has nothing for."""
        if self.get(name, False):
            raise UnsupportedError(f"it sets {name}, {why}")

    def refuse_unread(self) -> None:
        """Raise UnsupportedError for a field that nobody has asked for, unless it is off or changes nothing."""
        for name, value in self._fields.items():
            if value and name not in self._asked and not WITHOUT_EFFECT.fullmatch(name):
                raise UnsupportedError(
                    f"it sets {name[:60]}, which isn't known and may change what the model computes; if it doesn't, "
                    "take it out of config.json"
                )

    def layer_kinds(self, layers: int) -> list[str] | None:
        """The kind of attention that each layer has, where they are named."""
        kinds = self.get("layer_types")
        if kinds is None:
            return None
        if not isinstance(kinds, list) or len(kinds) != layers:
            raise UnsupportedError("its layer_types don't name a kind for each layer")
        if unknown := [kind for kind in kinds if kind not in LAYER_KINDS]:
            raise UnsupportedError(f"it has layers of {str(unknown[0])[:60]!r}; known are {', '.join(LAYER_KINDS)}")
        return kinds

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
            if unknown := [name for name in each if kind == "default" and name not in ROTATION]:
                raise UnsupportedError(f"its rope_parameters say {str(unknown[0])[:60]}, which isn't known")
            if kind != "default":
                raise UnsupportedError(f"its rotary positions are of the type {kind!r}; only plain ones are known")
        together = Fields(
            {
                base_name: found.get("rope_theta", self.get(base_name, self.get("rope_theta"))),
                fraction_name: found.get(
                    "partial_rotary_factor", self.get(fraction_name, self.get("partial_rotary_factor"))
                ),
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
