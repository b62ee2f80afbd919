"""The configuration of a model: one small, frozen, validated dataclass that everything else is built from.

Sizes: d_model is the width of the residual stream, d_head that of one head (d_model / n_heads unless given), d_ff the
width of the feed-forward layer's inside, all counted in numbers per position.
"""

from __future__ import annotations

import dataclasses
import math
import sys
from dataclasses import dataclass
from typing import Any, Literal, TypeGuard, get_args

Architecture = Literal["decoder-only", "encoder-only", "encoder-decoder"]
Positions = Literal["sinusoidal", "learned", "rotary", "alibi", "relative", "none"]
AttentionKind = Literal["softmax", "uniform"]
Norm = Literal["pre", "post", "sandwich", "res-post", "none"]
QKNorm = Literal["none", "head", "all"]
NormKind = Literal["layer", "rms"]
Pairing = Literal["neighbours", "halves"]
Activation = Literal["relu", "gelu", "gelu_tanh", "silu"]


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """Everything that decides a model's parameters and its forward pass.

    The defaults are a small pre-norm decoder with the sinusoidal positions of Vaswani et al. (2017). What has been
    changed since is an option each, named with its paper.
    Raises ValueError, naming the field and what would be right, for a combination no model can have, and for a field
    that would change nothing.
    """

    vocab_size: int
    context_length: int
    n_layers: int
    n_heads: int
    d_model: int
    architecture: Architecture = "decoder-only"
    n_encoder_layers: int = None  # pyright: ignore[reportAssignmentType]  (filled in)
    """Depth of an encoder–decoder's encoder, where None means n_layers; None in models of one stack."""
    d_ff: int = None  # pyright: ignore[reportAssignmentType]  (filled in)
    """None means 4 · d_model, as in the paper (§3.3); 0 leaves the feed-forward layer out."""
    positions: Positions = "sinusoidal"
    """"alibi" and "relative" add nothing to embeddings but to scores: what the key's distance costs (Press et al.
    2022), or what has been learned for it (Raffel et al. 2020, T5, §2.1)."""
    attention: AttentionKind = "softmax"
    """"uniform" gives every visible position the same weight: attention without queries and keys."""
    norm: Norm = "pre"
    """Before each sublayer ("pre"), on the sum after it ("post"), before and after it ("sandwich", Ding et al. 2021),
    or after it, before it is added ("res-post", Liu et al. 2022, Swin v2)."""
    residual: bool = True
    activation: Activation = "relu"
    attention_bias: bool = True
    mlp_bias: bool = True
    unembed_bias: bool = False
    dropout: float = 0.0
    tie_embeddings: bool = False
    share_embeddings: bool = False
    """One table for source and target where the unembedding has its own (T5 1.1); tied, all three have one."""
    scale_embeddings: bool = False
    """Multiply token embeddings by √d_model (Vaswani et al. 2017, §3.4)."""
    pad_token_id: int | None = None
    layer_norm_eps: float = 1e-5
    norm_kind: NormKind = "layer"
    """"rms" divides by the root mean square alone: no mean is taken off, no shift added (Zhang & Sennrich 2019)."""
    mlp_gate: bool = False
    """Multiply the activation by a second linear map of the input; with "silu" it is SwiGLU (Shazeer 2020)."""
    n_kv_heads: int | None = None
    """Heads of keys and values, each shared by a group of query heads (Ainslie et al. 2023); None means n_heads."""
    head_width: int | None = None
    """d_head, where it isn't d_model / n_heads, which None means."""
    rotary_base: float = 10000.0
    """Rotary positions rotate the slowest pair by about 1 / base of a radian per position (Su et al. 2021, §3.2.2)."""
    rotary_dims: int | None = None
    """How many dimensions of a head are rotated, from the first on (Black et al. 2022, §2.1.1); None means all."""
    rotary_pairs: Pairing = "neighbours"
    """Which dimensions are rotated as a pair: (2i, 2i + 1), or "halves", i and i + half of all that are rotated."""
    parallel_residual: bool = False
    """Attention and feed-forward layer both read what enters the block (Wang & Komatsuzaki 2021, GPT-J)."""
    attention_windows: tuple[int, ...] = ()
    """How many positions a query sees, its own the last of them, layer by layer, then repeated; 0 for all (Child et
    al. 2019, local attention). Empty: every layer sees all. An encoder sees as far to the right."""
    attention_scale: bool = True
    """Divide scores by √d_head; a few families leave it to the weights (GPT-Neo, after Mesh TensorFlow's T5)."""
    attention_out_bias: bool | None = None
    """A bias behind W_O; None means as attention_bias, which is then about queries, keys and values alone."""
    qk_norm: QKNorm = "none"
    """A norm, of the kind `norm_kind`, on queries and on keys before they are rotated (Henry et al. 2020): over each
    head's dimensions ("head"), or over those of all heads together ("all", Dehghani et al. 2023, §2.1)."""
    qkv_clip: float | None = None
    """Queries, keys and values are kept between −qkv_clip and qkv_clip (MPT; OLMo, Groeneveld et al. 2024)."""
    score_cap: float | None = None
    """Scaled scores become cap · tanh(score / cap), which never exceeds the cap (Gemma 2, 2024, §2)."""
    logit_cap: float | None = None
    """The same for logits."""
    embed_norm: bool = False
    """A norm on the embeddings, positions included, before the first layer (BLOOM, Le Scao et al. 2022, §3.2)."""
    masked_word_head: bool = False
    """A linear layer with the activation and a norm before the unembedding (Devlin et al. 2019, BERT, §3.1)."""
    n_segments: int = 0
    """Segments that have an embedding each, which is added to those of their tokens (BERT, §3); 0 for none."""
    separator_token_id: int | None = None
    """The token that ends a segment, [SEP] in BERT: unless a text's segments are given, what comes after its first
    separator is in the second."""
    norm_first_input: bool = True
    """Whether the first layer's attention has a norm before it; embeddings that have one need no second (Warner et al.
    2024, ModernBERT)."""
    relative_buckets: int = 32
    """Into how many kinds relative positions sort distances, with a learned number for each head."""
    relative_distance: int = 128
    """From which distance on all are of one kind."""
    alibi_slopes: tuple[float, ...] = ()
    """Each head's penalty on a score for each position of distance; empty for the paper's, 2^(−8 h / n)."""
    rotary_factors: tuple[float, ...] = ()
    """How many times slower each rotated pair turns than the formula has it, to reach further than was trained on (Chen
    et al. 2023, position interpolation; Peng et al. 2023, YaRN); empty: as the formula has it."""
    rotary_scale: float = 1.0
    """The factor on rotated queries and keys (YaRN, §3.4)."""
    window_rotary_base: float | None = None
    """The base in layers that have a window, which then turn without factors and scale (Gemma 3, 2025, §2); None: as
    the others."""
    unrotated_layers: tuple[int, ...] = ()
    """Layers whose queries and keys aren't rotated: they know no positions (Yang et al. 2025, "RoPE to NoPE")."""

    def __post_init__(self) -> None:
        self._fill_in("d_ff", 4 * self.d_model if _is_int(self.d_model) else None)
        if self.architecture == "encoder-decoder":
            self._fill_in("n_encoder_layers", self.n_layers)
        elif self.n_encoder_layers == self.n_layers:  # as older files have it
            object.__setattr__(self, "n_encoder_layers", None)
        for name, choices in _CHOICES.items():
            value = getattr(self, name)
            if value not in choices:
                raise ValueError(f"{name} is {value!r}; it can be {_one_of(choices)}.")
        for name, smallest in _SMALLEST.items():
            value = getattr(self, name)
            if name == "n_encoder_layers" and value is None:
                continue
            if not _is_int(value) or value < smallest:
                raise ValueError(f"{name} is {value!r}; it must be a whole number, {smallest} or more.")
        for name in _AT_LEAST_ONE_OR_NONE:
            value = getattr(self, name)
            if value is not None and (not _is_int(value) or value < 1):
                raise ValueError(f"{name} is {value!r}; it must be None or a whole number, 1 or more.")
        for name in _SWITCHES:
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"{name} is {getattr(self, name)!r}; it must be True or False.")
        for name in _NUMBERS:  # as JSON has them, they are lists
            if isinstance(getattr(self, name), list):
                object.__setattr__(self, name, tuple(getattr(self, name)))
            value = getattr(self, name)
            if not isinstance(value, tuple) or not all(map(_is_number, value)):
                raise ValueError(f"{name} is {value!r}; it must be a tuple of numbers.")
        self._check_widths()
        self._check_rotation()
        self._check_kinds()
        self._check_numbers()
        self._check_effects()

    def _check_widths(self) -> None:
        if self.head_width is None and self.d_model % self.n_heads:
            raise ValueError(
                f"d_model is {self.d_model}, which {self.n_heads} heads can't share equally; "
                f"choose n_heads so that it divides d_model."
            )
        if self.n_heads % self.kv_heads:
            raise ValueError(
                f"n_kv_heads is {self.n_kv_heads}, which {self.n_heads} heads can't be grouped by; "
                f"choose it so that it divides n_heads."
            )
        if self.positions == "sinusoidal" and self.d_model % 2:
            raise ValueError(
                f"d_model is {self.d_model}; sinusoidal positions pair sines with cosines and need it even."
            )

    def _check_rotation(self) -> None:
        if self.positions != "rotary":
            if changed := [name for name, unchanged in _OF_ROTATION.items() if getattr(self, name) != unchanged]:
                raise ValueError(f"{changed[0]} is for rotary positions, and these are {self.positions!r}.")
            return
        if self.rotary_dims is not None and (self.rotary_dims % 2 or self.rotary_dims > self.d_head):
            raise ValueError(
                f"rotary_dims is {self.rotary_dims}; it must be an even number, at most d_head, which is {self.d_head}."
            )
        if self.rotated_dims % 2:
            raise ValueError(
                f"d_head = {'d_model / n_heads' if self.head_width is None else 'head_width'} is {self.d_head}; "
                f"rotary positions rotate pairs of dimensions and need it even."
            )
        factors, pairs = self.rotary_factors, self.rotated_dims // 2
        if factors and (len(factors) != pairs or not all(_is_positive(each) for each in factors)):
            raise ValueError(f"rotary_factors must be {pairs} numbers above 0, one for each pair that is rotated.")
        if not _is_positive(self.rotary_scale):
            raise ValueError(f"rotary_scale is {self.rotary_scale!r}; it must be a number above 0.")
        base = self.window_rotary_base
        if base is not None and (not _is_number(base) or not 1 < base < math.inf):
            raise ValueError(f"window_rotary_base is {base!r}; it must be None or a number above 1.")
        if any(not _is_int(layer) or layer < 0 for layer in self.unrotated_layers):
            raise ValueError(f"unrotated_layers is {self.unrotated_layers!r}; it must name layers, counted from 0.")

    def _check_kinds(self) -> None:
        """Check that the kinds of parts go together."""
        is_common = self.architecture == "decoder-only" and self.residual and self.norm != "post" and self.d_ff
        if self.parallel_residual and not is_common:
            raise ValueError(
                "parallel_residual is for a decoder-only model with residual connections, a feed-forward layer, "
                "and its norms, if any, before them."
            )
        if self.attention == "uniform" and self.kv_heads != self.n_heads:
            raise ValueError("n_kv_heads is for attention with queries; a uniform attention has none to group.")
        is_plain = self.residual and not self.parallel_residual and self.architecture != "encoder-decoder"
        if self.norms_what_is_added and not is_plain:
            raise ValueError(
                f"norm is {self.norm!r}, which is for sublayers that add to the stream one after the other."
            )
        if self.norm == "none" and (self.qk_norm != "none" or self.embed_norm):
            raise ValueError("qk_norm and embed_norm are for a model with norms, and norm is 'none'.")
        of_scores = self.qk_norm != "none" or self.qkv_clip or self.score_cap
        of_scores = of_scores or self.positions in ("alibi", "relative")
        if of_scores and self.attention == "uniform":
            raise ValueError("qk_norm, qkv_clip, score_cap, ALiBi and relative positions are for softmax attention.")
        if self.positions == "relative" and (self.relative_buckets < 4 or self.relative_buckets % 4):
            raise ValueError(f"relative_buckets is {self.relative_buckets}; it must be a multiple of 4.")
        if self.positions == "relative" and self.relative_distance <= self.relative_buckets:
            raise ValueError(f"relative_distance must be larger than relative_buckets, {self.relative_buckets}.")
        if self.masked_word_head and (self.architecture != "encoder-only" or self.norm == "none"):
            raise ValueError("masked_word_head is for an encoder-only model with norms.")
        is_pair = self.architecture == "encoder-decoder"
        if not self.norm_first_input and (is_pair or not self.norms_before):
            raise ValueError("norm_first_input is for a model with one stack and norms before its sublayers.")
        if self.share_embeddings and not is_pair:
            raise ValueError("share_embeddings is for an encoder–decoder.")
        if self.score_cap and is_pair:
            raise ValueError("score_cap is for a model with one stack.")
        if self.n_segments and self.architecture != "encoder-only":
            raise ValueError("n_segments is for an encoder-only model.")
        if self.separator_token_id is not None and self.n_segments < 2:
            raise ValueError("separator_token_id is for a model that knows two segments or more.")
        slopes = self.alibi_slopes
        if slopes and (self.positions != "alibi" or len(slopes) != self.n_heads or not all(map(_is_number, slopes))):
            raise ValueError("alibi_slopes are for positions 'alibi', a number for each head.")
        windows = self.attention_windows
        if any(not _is_int(each) or each < 0 for each in windows):
            raise ValueError(f"attention_windows is {windows!r}; it must be a tuple of whole numbers, 0 or more.")
        if any(windows) and (self.architecture == "encoder-decoder" or self.attention == "uniform"):
            raise ValueError("attention_windows are for a model with one stack and softmax attention.")
        if self.attention_out_bias is not None and not isinstance(self.attention_out_bias, bool):
            raise ValueError(f"attention_out_bias is {self.attention_out_bias!r}; it must be True, False or None.")

    def _check_numbers(self) -> None:
        if not _is_number(self.rotary_base) or not 1 < self.rotary_base < math.inf:
            raise ValueError(f"rotary_base is {self.rotary_base!r}; it must be a number above 1.")
        for name in ("qkv_clip", "score_cap", "logit_cap"):
            if (value := getattr(self, name)) is not None and not _is_positive(value):
                raise ValueError(f"{name} is {value!r}; it must be None or a number above 0.")
        if not _is_number(self.dropout) or not 0 <= self.dropout < 1:
            raise ValueError(f"dropout is {self.dropout!r}; it must be a probability of at least 0 and below 1.")
        if not _is_number(self.layer_norm_eps) or not 0 < self.layer_norm_eps < 1:
            raise ValueError(f"layer_norm_eps is {self.layer_norm_eps!r}; it must lie between 0 and 1.")
        separator = self.separator_token_id
        if separator is not None and (not _is_int(separator) or not 0 <= separator < self.vocab_size):
            raise ValueError(f"separator_token_id is {separator!r}; it must be None or a token id of this model.")
        pad = self.pad_token_id
        if pad is not None and (not _is_int(pad) or not 0 <= pad < self.vocab_size):
            raise ValueError(f"pad_token_id is {pad!r}; it must be None or a token id from 0 to {self.vocab_size - 1}.")

    def _check_effects(self) -> None:
        """Refuse a field that would change nothing; without layers, what a layer is like is no such field."""
        is_pair, has_mlp = self.architecture == "encoder-decoder", self.d_ff > 0
        of_norms, of_mlp = "a model with norms, and norm is 'none'", "a feed-forward layer, and d_ff is 0"
        depth = max(self.n_layers, self.n_encoder_layers or 0)
        for names, has_effect, purpose in (
            ("n_encoder_layers", is_pair, "an encoder–decoder; the depth of any other model is n_layers"),
            ("rotary_base rotary_dims rotary_pairs", self.positions == "rotary", "rotary positions"),
            ("relative_buckets relative_distance", self.positions == "relative", "positions 'relative'"),
            ("window_rotary_base", any(self.attention_windows), "layers that see a window, and there are none"),
            ("norm_kind layer_norm_eps", self.norm != "none", of_norms),
            ("mlp_bias mlp_gate", has_mlp, of_mlp),
            ("activation", has_mlp or self.masked_word_head, of_mlp),
            ("attention_scale", self.attention == "softmax" or is_pair, "softmax attention"),
        ):
            for name in names.split():
                default = _DEFAULTS[name]
                if getattr(self, name) != default and not has_effect:
                    raise _NoEffectError(f"{name} is for {purpose}.", {name: default})
        if self.positions == "rotary" and self.attention == "uniform":
            raise _NoEffectError("positions is 'rotary', and a uniform attention has nothing to rotate.", _UNROTATED)
        if beyond := [layer for layer in self.unrotated_layers if layer >= depth]:
            there = tuple(layer for layer in self.unrotated_layers if layer < depth)
            raise _NoEffectError(
                f"unrotated_layers names layer {beyond[0]}, and the last is {depth - 1}.", {"unrotated_layers": there}
            )

    def _fill_in(self, name: str, default: int | None) -> None:
        if getattr(self, name) is None:
            object.__setattr__(self, name, default)

    @property
    def d_head(self) -> int:
        """Width of one head's queries, keys and values."""
        return self.d_model // self.n_heads if self.head_width is None else self.head_width

    @property
    def kv_heads(self) -> int:
        """How many heads keys and values have."""
        return self.n_heads if self.n_kv_heads is None else self.n_kv_heads

    @property
    def rotated_dims(self) -> int:
        """How many dimensions of a head rotary positions rotate, from the first on."""
        return self.d_head if self.rotary_dims is None else self.rotary_dims

    @property
    def has_out_bias(self) -> bool:
        """Whether W_O has a bias."""
        return self.attention_bias if self.attention_out_bias is None else self.attention_out_bias

    @property
    def has_one_table(self) -> bool:
        """Whether source and target have the same embeddings, in an encoder–decoder."""
        return self.tie_embeddings or self.share_embeddings

    @property
    def is_causal(self) -> bool:
        """Whether a position sees none after it, in the stack that makes the logits."""
        return self.architecture != "encoder-only"

    @property
    def has_final_norm(self) -> bool:
        """Whether there is a norm before the unembedding: where the stream itself isn't normalised in each layer."""
        return self.norm in ("pre", "sandwich", "res-post")

    @property
    def norms_before(self) -> bool:
        """Whether a sublayer reads a normalised copy of the stream."""
        return self.norm in ("pre", "sandwich")

    @property
    def norms_what_is_added(self) -> bool:
        """Whether what a sublayer gives is normalised before it is added to the stream."""
        return self.norm in ("sandwich", "res-post")

    def is_rotated(self, layer: int) -> bool:
        """Whether this layer's queries and keys are rotated."""
        return self.positions == "rotary" and layer not in self.unrotated_layers

    @property
    def slopes(self) -> tuple[float, ...]:
        """Each head's penalty on a score for each position of distance, with ALiBi."""
        return self.alibi_slopes or tuple(alibi_slopes(self.n_heads))

    def rotation(self, layer: int) -> dict[str, Any]:
        """How a layer's queries and keys are rotated: what `rotate` is given."""
        pairs = {"dims": self.rotated_dims, "halves": self.rotary_pairs == "halves"}
        if self.window_rotary_base is not None and self.window(layer):
            return {"base": self.window_rotary_base, **pairs}
        return {"base": self.rotary_base, **pairs, "factors": self.rotary_factors, "scale": self.rotary_scale}

    def window(self, layer: int) -> int:
        """How many positions a query of this layer sees, its own the last of them; 0 for all."""
        return self.attention_windows[layer % len(self.attention_windows)] if self.attention_windows else 0

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready dictionary from which `from_dict` builds an equal configuration."""
        return {**dataclasses.asdict(self), **{name: list(getattr(self, name)) for name in _NUMBERS}}

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> ModelConfig:
        """Build a configuration from `to_dict`'s dictionary; ValueError for fields unknown or missing.

        Older files may name fields that change nothing in their model; those are left out.
        """
        if not isinstance(fields, dict):
            raise ValueError(f"A model configuration is a set of named fields, not a {type(fields).__name__}.")
        known = {field.name: field for field in dataclasses.fields(cls)}
        if unknown := sorted(set(fields) - set(known)):
            raise ValueError(f"A model configuration has no field {_one_of(unknown)}; it has {', '.join(known)}.")
        required = [name for name, field in known.items() if field.default is dataclasses.MISSING]
        if missing := [name for name in required if name not in fields]:
            raise ValueError(f"The model configuration lacks {', '.join(missing)}.")
        while True:
            try:
                return cls(**fields)
            except _NoEffectError as error:
                fields = {**fields, **error.instead}


class _NoEffectError(ValueError):
    """A field would change nothing; `instead`: what says the same without it."""

    def __init__(self, message: str, instead: dict[str, Any]) -> None:
        super().__init__(message)
        self.instead = instead


def alibi_slopes(heads: int) -> list[float]:
    """Each head's penalty on a score for each position of distance: 2^(−8 h / heads), h from 1 on.

    Of a number of heads that is no power of two, the first are those of the next smaller one, and the others every
    second one of twice as many.
    Source: Press et al. 2022, §3, and the code that belongs to it.

    >>> alibi_slopes(2)
    [0.0625, 0.00390625]
    """
    whole = 1 << (heads.bit_length() - 1)
    slopes = [2 ** (-8 * head / whole) for head in range(1, whole + 1)]
    return slopes + [2 ** (-4 * head / whole) for head in range(1, 2 * (heads - whole), 2)]


_CHOICES = {
    "architecture": get_args(Architecture),
    "positions": get_args(Positions),
    "attention": get_args(AttentionKind),
    "norm": get_args(Norm),
    "norm_kind": get_args(NormKind),
    "qk_norm": get_args(QKNorm),
    "rotary_pairs": get_args(Pairing),
    "activation": get_args(Activation),
}
_SMALLEST = {
    "vocab_size": 1,
    "context_length": 1,
    "n_layers": 0,
    "n_encoder_layers": 0,
    "n_heads": 1,
    "d_model": 1,
    "d_ff": 0,
    "n_segments": 0,
    "relative_buckets": 1,
    "relative_distance": 1,
}
_AT_LEAST_ONE_OR_NONE = ("n_kv_heads", "head_width", "rotary_dims")
_SWITCHES = (
    "residual",
    "attention_bias",
    "mlp_bias",
    "unembed_bias",
    "tie_embeddings",
    "share_embeddings",
    "scale_embeddings",
    "mlp_gate",
    "parallel_residual",
    "attention_scale",
    "embed_norm",
    "masked_word_head",
    "norm_first_input",
)
_DEFAULTS = {field.name: field.default for field in dataclasses.fields(ModelConfig)}
_UNROTATED: dict[str, Any] = {
    "positions": "none",
    **{name: default for name, default in _DEFAULTS.items() if "rotary_" in name or name == "unrotated_layers"},
}
_NUMBERS = ("attention_windows", "alibi_slopes", "rotary_factors", "unrotated_layers")
_OF_ROTATION = {"rotary_factors": (), "rotary_scale": 1.0, "window_rotary_base": None, "unrotated_layers": ()}


def _is_int(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, float) or (_is_int(value) and abs(value) < 2**63)  # PyTorch takes no larger whole number


def _is_positive(value: object) -> bool:
    return _is_number(value) and 0 < value <= sys.float_info.max


def _one_of(choices: tuple[str, ...] | list[str]) -> str:
    return " or ".join(f"{choice!r}" for choice in choices)
