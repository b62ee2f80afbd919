"""Describes a model family: how its configuration fields and weight names map to ours.

Shapes: out and in are the widths of a linear map, as `nn.Linear` lays its weight out: (out, in).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor

from ...config import Activation, Architecture, ModelConfig

Layout = Literal["as it is", "transposed", "by group", "first half", "second half", "repeated", "in rows", "one row"]
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
    r"model_type|architectures|\w+_token_id|(torch_)?dtype|transformers_version|init_std|\w*layerdrop|initializer_range|use_cache"
    # of training, of generating, and of tasks that aren't language modelling
    r"|\w*(dropout|pdrop|drop_rate)\w*|gradient_checkpointing|id2label|label2id|num_labels|problem_type"
    r"|task_specific_params|summary_\w+|tokenizer_class|max_length|min_length|do_sample|temperature|top_k|top_p"
    r"|typical_p|num_beams|num_beam_groups|num_return_sequences|early_stopping|\w+_penalty|bad_words_ids|\w*no_repeat_ngram_size"
    # how it is computed, not what
    r"|return_dict|output_\w+|torchscript|use_bfloat16|chunk_size_feed_forward|reorder_and_upcast_attn|pretraining_tp"
    r"|masked_softmax_fusion|skip_bias_add\w*|(scale_)?attention_softmax_in_fp32|bias_dropout_fusion|offset_alibi"
    r"|slow_but_exact|attn_implementation\w*|use_flash\w*|is_decoder|n_ctx|max_sequence_length|attention_layers|prefix|tf_legacy_loss"
    # who wrote the file
    r"|_\w+|is_llama_config|predict_special_tokens|transformers\.js_config|unsloth\w*"
    # a program in the folder, which is never run, and how far a tokenizer or a cache goes
    r"|auto_map|cache_implementation|model_max_length"
)
"""Fields of config.json that change nothing of what a language model computes."""
LAYER_KINDS = ("full_attention", "sliding_attention")
THEIR_ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "gelu_tanh": "gelu_new", "silu": "silu"}


class UnsupportedError(ValueError):
    """A configuration asks for something that the engine, or a family, doesn't have; the message says what."""


@dataclass(frozen=True)
class Weight:
    """Where one of our parameters stands in a family's files."""

    ours: str
    theirs: tuple[str, ...]
    """Several are put one below the other, as queries, keys and values are; where they have none, all of ours are
    `shift`."""
    layout: Layout = "as it is"
    """"transposed": (in, out). "by group": the queries of the heads that share a key, the key, the value, then the
    next group's. "first half", "second half": of one matrix that holds two. "repeated": (d_head), once for all heads.
    "in rows": (head, d_head). "one row": (1, width)."""
    scale: float = 1.0
    """Ours = theirs · scale + shift."""
    shift: float = 0.0
    skipped: int = 0
    """How many rows of theirs come before ours, and are for nothing."""
    shapes: tuple[tuple[int, ...], ...] = ()
    """Theirs, where ours is the product of two: (vocab, w) with (w, d_model), or with (d_model, w)."""
    query_scale: float = 1.0
    """The same for the queries alone, of what holds keys and values too."""
    instead: tuple[str, ...] = ()
    """Other names that theirs may have, where it is one."""
    missing: Callable[[tuple[int, ...]], Tensor] | None = None
    """What ours is, by its shape, where their files leave it out."""


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
    """Which may stand before every name but those of the head."""
    ignored: str
    """A regular expression of names, without the prefix, that are no weights: tables that follow from the sizes."""
    read_config: Callable[[Fields], ModelConfig]
    write_config: Callable[[ModelConfig], dict[str, Any]]
    """What config.json would say; what the family can't express is left out."""
    weights: Callable[[ModelConfig, Fields], list[Weight]]
    """Where each parameter is in the files: the table of embeddings first, the unembedding last. The fields are those of the
    files that are read, or of those that are written."""
    notes: Callable[[Fields], list[str]] = lambda fields: []
    """What the card says of how the files were read, a sentence each."""
    shape: Architecture = "decoder-only"
    """Of its models, as ours have it."""
    head: tuple[str, ...] = ("lm_head.", "embed_out.")
    """How names begin that have no prefix."""
    also: tuple[str, ...] = ()
    """Other classes, as config.json has them, whose files hold all that is read, and more."""
    former: Mapping[str, str] = field(default_factory=dict)
    """Endings of names in older files, and what they are now."""
    either: tuple[tuple[str, ...], ...] = ()
    """Names that one tensor may have; if files have several, the first of them counts."""


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

    def says(self, name: str) -> bool:
        """Whether a field is there, be it null."""
        return name in self._fields

    def whole(self, name: str, default: int | None = None) -> int:
        """A field that must be a whole number of at least 1."""
        value = self.get(name, default)
        if value is None:
            raise UnsupportedError(f"it lacks {name}")
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise UnsupportedError(f"its {name} is {value!r}, where a whole number of 1 or more should be")
        return value

    def layers(self, name: str, default: int | None = None) -> int:
        """How many layers there are, at most `MOST_LAYERS`."""
        found = self.whole(name, default)
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

    def expect(self, name: str, value: object) -> None:
        """Raise UnsupportedError for a field that says anything else, where it is said."""
        if (said := self.get(name, value)) != value:
            raise UnsupportedError(f"its {name} is {repr(said)[:60]}; known is {value!r}")

    def refuse_unread(self) -> None:
        """Raise UnsupportedError for a field that nobody has asked for, unless it is off or changes nothing."""
        for name, value in self._fields.items():
            if value and name not in self._asked and not WITHOUT_EFFECT.fullmatch(name):
                raise UnsupportedError(
                    f"it sets {name[:60]}, which isn't known and may change what the model computes; if it doesn't, "
                    "take it out of config.json"
                )

    def windows(
        self, layers: int, default: Callable[[int], bool] = lambda layer: True, width: int | None = None
    ) -> tuple[int, ...]:
        """What each layer sees, by layer_types and sliding_window.

        default: which layers have a window, counted from 0, where the kinds aren't named. width: that of a window where
        it isn't said; null is for no window.
        """
        said = self.get("sliding_window", None if self.says("sliding_window") else width)
        kinds = self.layer_kinds(layers)
        kinds = kinds or [LAYER_KINDS[default(layer)] for layer in range(layers)]
        if said is None or LAYER_KINDS[1] not in kinds:
            return ()
        window = self.whole("sliding_window", width)
        return tuple(window if kind == LAYER_KINDS[1] else 0 for kind in kinds)

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


def read_weight(
    weight: Weight, config: ModelConfig, tensors: Sequence[Tensor], ours: tuple[int, ...], dtype: torch.dtype
) -> Tensor:
    """Our parameter, of the shape `ours`, from a family's tensors: the tensor itself if it is laid out as ours is.
    What has to be computed is computed in float32.
    """
    if not tensors:
        return weight.missing(ours).to(dtype) if weight.missing else torch.full(ours, weight.shift, dtype=dtype)
    if weight.shapes:
        table, map_ = (tensor.float() for tensor in tensors)
        return (table @ (map_ if len(map_) == table.shape[1] else map_.T)).to(dtype)
    parts = [tensor.T if weight.layout == "transposed" else tensor for tensor in tensors]
    found = (parts[0] if len(parts) == 1 else torch.cat(parts))[weight.skipped :]
    if weight.layout == "by group":
        groups = found.unflatten(0, (config.kv_heads, -1, config.d_head))  # (kv_head, member + 2, d_head, …)
        found = torch.cat([part.flatten(0, 2) for part in groups.split_with_sizes(_of_group(config), 1)])
    elif weight.layout in ("first half", "second half"):
        found = found.chunk(2)[weight.layout == "second half"]
    elif weight.layout == "repeated":
        found = found.repeat(ours[0] // len(found))
    if weight.scale != 1 or weight.shift:
        found = (found.float() * weight.scale + weight.shift).to(dtype)
    return _with_queries(found.reshape(ours), config, weight.query_scale).contiguous()


def write_weight(weight: Weight, config: ModelConfig, ours: Tensor) -> dict[str, Tensor]:
    """A family's tensors from our parameter, by name: the way back of `read_weight`.

    Raises: UnsupportedError for numbers that the family has no place for.
    """
    found = _with_queries(ours, config, 1 / weight.query_scale)
    found = (found - weight.shift) / weight.scale if weight.scale != 1 or weight.shift else found
    if not weight.theirs and found.any():
        raise UnsupportedError(f"it has no {weight.ours.rpartition('blocks.')[2]}")
    if weight.layout == "by group":
        queries, keys, values = (
            part.unflatten(0, (config.kv_heads, -1, config.d_head))
            for part in found.split([heads * config.d_head for heads in of_qkv(config)])
        )
        found = torch.cat((queries, keys, values), 1).flatten(0, 2)
    elif weight.layout == "repeated":
        rows = found.unflatten(0, (-1, config.d_head))
        if not rows.eq(rows[0]).all():
            raise UnsupportedError(f"its heads share one {weight.ours.rpartition('blocks.')[2]}")
        found = rows[0]
    elif weight.layout == "in rows":
        found = found.unflatten(0, (-1, config.d_head))
    elif weight.layout == "one row":
        found = found[None]
    if weight.skipped:
        found = torch.cat((found.new_zeros(weight.skipped, *found.shape[1:]), found))
    parts = list(found.split(_of_parts(weight, config, len(found)))) if len(weight.theirs) > 1 else [found]
    if weight.layout == "transposed":
        parts = [part.T for part in parts]
    return {name: part.contiguous() for name, part in zip(weight.theirs, parts, strict=False)}


def their_shapes(weight: Weight, config: ModelConfig, ours: tuple[int, ...]) -> list[tuple[int, ...]]:
    """The shapes that a family's tensors must have, for our parameter to have its own."""
    if weight.shapes:
        return list(weight.shapes)
    first, *rest = ours
    first += weight.skipped
    if weight.layout == "repeated":
        first = config.d_head
    if weight.layout == "in rows":
        first, rest = first // config.d_head, [config.d_head, *rest]
    if weight.layout == "one row":
        first, rest = 1, [first]
    if weight.layout in ("first half", "second half"):
        first *= 2
    shapes = [(each, *rest) for each in _of_parts(weight, config, first)]
    return [shape[::-1] for shape in shapes] if weight.layout == "transposed" else shapes


def _with_queries(ours: Tensor, config: ModelConfig, scale: float) -> Tensor:
    """Queries, keys and values, the queries times a factor."""
    if scale == 1:
        return ours
    queries, rest = ours.tensor_split([config.n_heads * config.d_head])
    return torch.cat((queries * scale, rest))


def _of_parts(weight: Weight, config: ModelConfig, rows: int) -> list[int]:
    """How many rows of our parameter each of a family's tensors has."""
    if len(weight.theirs) > 1 and ".qkv." in weight.ours:
        return [heads * config.d_head for heads in of_qkv(config)]
    return [rows // len(weight.theirs) for _ in weight.theirs]


def _of_group(config: ModelConfig) -> list[int]:
    """How many heads of queries, keys and values a group has."""
    return [config.n_heads // config.kv_heads, 1, 1]


def of_qkv(config: ModelConfig) -> tuple[int, int, int]:
    """How many heads queries, keys and values have."""
    return config.n_heads, config.kv_heads, config.kv_heads


def linear(
    ours: str, *theirs: str, bias: bool, layout: Layout = "as it is", scale: float = 1.0, query_scale: float = 1.0
) -> list[Weight]:
    """A linear map's weight, and its bias where it has one. A transposed map's is as it is."""
    found = [
        Weight(f"{ours}.weight", tuple(f"{each}.weight" for each in theirs), layout, scale, query_scale=query_scale)
    ]
    if bias:
        own = "as it is" if layout == "transposed" else layout
        names = tuple(f"{each}.bias" for each in theirs)
        found.append(Weight(f"{ours}.bias", names, own, scale, query_scale=query_scale))
    return found


def norm(
    config: ModelConfig,
    ours: str,
    theirs: str | None,
    *,
    bias: bool = False,
    scale: float = 1.0,
    shift: float = 0.0,
    layout: Layout = "as it is",
) -> list[Weight]:
    """A norm's gain, and its shift where ours has one.

    theirs: None for a norm without either. bias: whether theirs has a shift, too. scale: what its output is multiplied
    by. shift: what their gains are stored less.
    """
    gain = (f"{theirs}.weight",) if theirs else ()
    found = [Weight(f"{ours}.weight", gain, layout, scale, scale * (shift if theirs else 1.0))]
    if config.norm_kind == "layer":
        found.append(Weight(f"{ours}.bias", (f"{theirs}.bias",) if theirs and bias else (), layout, scale))
    return found


def unembedding(config: ModelConfig, theirs: str = "lm_head", *, bias: bool = False) -> list[Weight]:
    """W_U, where it isn't the table of embeddings, and before it its bias."""
    found = [Weight("unembed.bias", (f"{theirs}.bias",) if bias else ())] if config.unembed_bias else []
    return found if config.tie_embeddings else [*found, Weight("unembed.weight", (f"{theirs}.weight",))]
