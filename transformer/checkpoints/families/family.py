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
"""Activation functions: other people's names, and ours."""
MOST_LAYERS = 1_000
WITHOUT_EFFECT = re.compile(
    r"model_type|architectures|\w+_token_id|(torch_)?dtype|transformers_version|init_std|\w*layerdrop|initializer_range|use_cache"
    # of training, generation, and tasks other than language modelling
    r"|\w*(dropout|pdrop|drop_rate)\w*|gradient_checkpointing|id2label|label2id|num_labels|problem_type"
    r"|task_specific_params|summary_\w+|tokenizer_class|max_length|min_length|do_sample|temperature|top_k|top_p"
    r"|typical_p|num_beams|num_beam_groups|num_return_sequences|early_stopping|\w+_penalty|bad_words_ids|\w*no_repeat_ngram_size"
    # how it is computed, not what
    r"|return_dict|output_\w+|torchscript|use_bfloat16|chunk_size_feed_forward|reorder_and_upcast_attn|pretraining_tp"
    r"|masked_softmax_fusion|skip_bias_add\w*|(scale_)?attention_softmax_in_fp32|bias_dropout_fusion|offset_alibi"
    r"|slow_but_exact|attn_implementation\w*|use_flash\w*|is_decoder|n_ctx|max_sequence_length|attention_layers|prefix|tf_legacy_loss"
    # who wrote the file
    r"|_\w+|is_llama_config|predict_special_tokens|transformers\.js_config|unsloth\w*"
    # a program in the folder, which is never run; lengths of tokenizer and cache
    r"|auto_map|cache_implementation|model_max_length"
)
"""Fields of config.json that change nothing of what a language model computes."""
LAYER_KINDS = ("full_attention", "sliding_attention")
THEIR_ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "gelu_tanh": "gelu_new", "silu": "silu"}


class UnsupportedError(ValueError):
    """A configuration asks for something that the engine, or a family, doesn't have; the message says what."""


@dataclass(frozen=True)
class Weight:
    """Where one of our parameters is in a family's files, and how it is laid out there."""

    ours: str
    theirs: tuple[str, ...]
    """Several are stacked, as queries, keys and values are; without any, our parameter is filled with `shift`."""
    layout: Layout = "as it is"
    """"transposed": (in, out). "by group": the queries of the heads that share a key, the key, the value, then the
    next group's. "first half", "second half": of one matrix that holds two. "repeated": (d_head), once for all heads.
    "in rows": (head, d_head). "one row": (1, width)."""
    scale: float = 1.0
    """Ours = theirs · scale + shift."""
    shift: float = 0.0
    skipped: int = 0
    """Unused rows in their tensor before ours."""
    shapes: tuple[tuple[int, ...], ...] = ()
    """Shapes of theirs if ours is the product of two: (vocab, w) with (w, d_model), or with (d_model, w)."""
    query_scale: float = 1.0
    """Another factor for the queries of a matrix that holds keys and values too."""
    instead: tuple[str, ...] = ()
    """Other names for theirs."""
    missing: Callable[[tuple[int, ...]], Tensor] | None = None
    """Makes ours, by its shape, if their files leave it out."""


@dataclass(frozen=True)
class Family:
    """One architecture of pretrained models, and how to read and write it."""

    name: str
    """The name as people write it."""
    model_type: str
    """As in config.json."""
    architecture: str
    """The class that opens it, as in config.json."""
    prefix: str
    """May precede every name but those of the head."""
    ignored: str
    """A regular expression for names, without the prefix, of computed tables that are no weights."""
    read_config: Callable[[Fields], ModelConfig]
    write_config: Callable[[ModelConfig], dict[str, Any]]
    """config.json from our configuration; it leaves out what the family can't express."""
    weights: Callable[[ModelConfig, Fields], list[Weight]]
    """Where each parameter is in the files: the table of embeddings first, the unembedding last. The fields are those
    of the file that is read or written."""
    notes: Callable[[Fields], list[str]] = lambda fields: []
    """Sentences for the card on how the files were read."""
    shape: Architecture = "decoder-only"
    """Our name for its models' architecture."""
    head: tuple[str, ...] = ("lm_head.", "embed_out.")
    """Beginnings of the names without the prefix."""
    also: tuple[str, ...] = ()
    """Other classes in config.json whose files have all these weights, and more."""
    former: Mapping[str, str] = field(default_factory=dict)
    """Endings of names in older files, and their present form."""
    either: tuple[tuple[str, ...], ...] = ()
    """Names that one tensor may have; if files have several, the first of them counts."""


class Fields:
    """The fields of a config.json, read by name; errors are sentences."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self._fields = fields
        self._asked: set[str] = set()

    def get(self, name: str, default: Any = None) -> Any:
        """A field, or a default if it is missing or null."""
        self._asked.add(name)
        value = self._fields.get(name)
        return default if value is None else value

    def says(self, name: str) -> bool:
        """Whether a field is there, even if null."""
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
        """The number of layers, at most `MOST_LAYERS`."""
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
        """Raise UnsupportedError if a switch is on that the engine can't follow."""
        if self.get(name, False):
            raise UnsupportedError(f"it sets {name}, {why}")

    def expect(self, name: str, value: object) -> None:
        """Raise UnsupportedError if a field is there with any other value."""
        if (said := self.get(name, value)) != value:
            raise UnsupportedError(f"its {name} is {repr(said)[:60]}; known is {value!r}")

    def refuse_unread(self) -> None:
        """Raise UnsupportedError for a field that nobody has read, unless it is off or has no effect."""
        for name, value in self._fields.items():
            if value and name not in self._asked and not WITHOUT_EFFECT.fullmatch(name):
                raise UnsupportedError(
                    f"it sets {name[:60]}, which isn't known and may change what the model computes; if it doesn't, "
                    "take it out of config.json"
                )

    def windows(
        self, layers: int, default: Callable[[int], bool] = lambda layer: True, width: int | None = None
    ) -> tuple[int, ...]:
        """Each layer's window, by layer_types and sliding_window; 0 for none.

        default: which layers have a window, counted from 0, if layer_types is missing. width: the window if
        sliding_window is missing; null means none.
        """
        said = self.get("sliding_window", None if self.says("sliding_window") else width)
        kinds = self.layer_kinds(layers)
        kinds = kinds or [LAYER_KINDS[default(layer)] for layer in range(layers)]
        if said is None or LAYER_KINDS[1] not in kinds:
            return ()
        window = self.whole("sliding_window", width)
        return tuple(window if kind == LAYER_KINDS[1] else 0 for kind in kinds)

    def layer_kinds(self, layers: int) -> list[str] | None:
        """Each layer's kind of attention, if layer_types names it."""
        kinds = self.get("layer_types")
        if kinds is None:
            return None
        if not isinstance(kinds, list) or len(kinds) != layers:
            raise UnsupportedError("its layer_types don't name a kind for each layer")
        if unknown := [kind for kind in kinds if kind not in LAYER_KINDS]:
            raise UnsupportedError(f"it has layers of {str(unknown[0])[:60]!r}; known are {', '.join(LAYER_KINDS)}")
        return kinds


def read_sizes(fields: Fields, inner: str = "intermediate_size") -> dict[str, Any]:
    """Our sizes from the fields that most families have. inner: the name of the feed-forward layer's width."""
    return {
        "vocab_size": fields.whole("vocab_size"),
        "context_length": fields.whole("max_position_embeddings"),
        "n_layers": fields.layers("num_hidden_layers"),
        "n_heads": fields.whole("num_attention_heads"),
        "d_model": fields.whole("hidden_size"),
        "d_ff": fields.whole(inner),
    }


def write_sizes(config: ModelConfig, inner: str = "intermediate_size") -> dict[str, Any]:
    """The inverse of `read_sizes`."""
    return {
        "vocab_size": config.vocab_size,
        "max_position_embeddings": config.context_length,
        "num_hidden_layers": config.n_layers,
        "num_attention_heads": config.n_heads,
        "hidden_size": config.d_model,
        inner: config.d_ff,
    }


def read_weight(
    weight: Weight, config: ModelConfig, tensors: Sequence[Tensor], ours: tuple[int, ...], dtype: torch.dtype
) -> Tensor:
    """Our parameter, of the shape `ours`, from a family's tensors: the tensor itself if the layouts are equal, else
    computed in float32.
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
    """A family's tensors from our parameter, by name: the inverse of `read_weight`.

    Raises: UnsupportedError for numbers that the family can't store.
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
    """The shapes that a family's tensors need for our parameter."""
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
    """Multiply the queries among queries, keys and values by a factor."""
    if scale == 1:
        return ours
    queries, rest = ours.tensor_split([config.n_heads * config.d_head])
    return torch.cat((queries * scale, rest))


def _of_parts(weight: Weight, config: ModelConfig, rows: int) -> list[int]:
    """The rows of our parameter in each of a family's tensors."""
    if len(weight.theirs) > 1 and ".qkv." in weight.ours:
        return [heads * config.d_head for heads in of_qkv(config)]
    return [rows // len(weight.theirs) for _ in weight.theirs]


def _of_group(config: ModelConfig) -> list[int]:
    """The heads of queries, keys and values in one group."""
    return [config.n_heads // config.kv_heads, 1, 1]


def of_qkv(config: ModelConfig) -> tuple[int, int, int]:
    """The heads of queries, keys and values."""
    return config.n_heads, config.kv_heads, config.kv_heads


def linear(
    ours: str, *theirs: str, bias: bool, layout: Layout = "as it is", scale: float = 1.0, query_scale: float = 1.0
) -> list[Weight]:
    """A linear map's weight, and its bias if it has one; a bias isn't transposed."""
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
    """A norm's gain, and its shift if ours has one.

    theirs: None for a norm without either. bias: whether theirs has a shift, too. scale: a factor on its output. shift:
    subtracted from their stored gains.
    """
    gain = (f"{theirs}.weight",) if theirs else ()
    found = [Weight(f"{ours}.weight", gain, layout, scale, scale * (shift if theirs else 1.0))]
    if config.norm_kind == "layer":
        found.append(Weight(f"{ours}.bias", (f"{theirs}.bias",) if theirs and bias else (), layout, scale))
    return found


def unembedding(config: ModelConfig, theirs: str = "lm_head", *, bias: bool = False) -> list[Weight]:
    """W_U if it isn't tied, and before it its bias."""
    found = [Weight("unembed.bias", (f"{theirs}.bias",) if bias else ())] if config.unembed_bias else []
    return found if config.tie_embeddings else [*found, Weight("unembed.weight", (f"{theirs}.weight",))]
