"""The configuration of a model: one small, frozen, validated dataclass that everything else is built from.

Sizes: d_model is the width of the residual stream, d_head that of one head (d_model / n_heads unless given), d_ff the
width of the feed-forward layer's inside, all counted in numbers per position.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

Architecture = Literal["decoder-only", "encoder-decoder"]
Positions = Literal["sinusoidal", "learned", "rotary", "none"]
AttentionKind = Literal["softmax", "uniform"]
Norm = Literal["pre", "post", "none"]
NormKind = Literal["layer", "rms"]
Pairing = Literal["neighbours", "halves"]
Activation = Literal["relu", "gelu", "gelu_tanh", "silu"]


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """Everything that decides a model's parameters and its forward pass.

    The defaults are a small pre-norm decoder with the sinusoidal positions of Vaswani et al. (2017). What has been
    changed since is an option each, named with its paper.
    Raises ValueError, naming the field and what would be right, for a combination no model can have.
    """

    vocab_size: int
    context_length: int
    n_layers: int
    n_heads: int
    d_model: int
    architecture: Architecture = "decoder-only"
    n_encoder_layers: int = None  # pyright: ignore[reportAssignmentType]  (filled in)
    """Depth of the encoder; None means n_layers."""
    d_ff: int = None  # pyright: ignore[reportAssignmentType]  (filled in)
    """None means 4 · d_model, as in the paper (§3.3); 0 leaves the feed-forward layer out."""
    positions: Positions = "sinusoidal"
    attention: AttentionKind = "softmax"
    """"uniform" gives every visible position the same weight: attention without queries and keys."""
    norm: Norm = "pre"
    residual: bool = True
    activation: Activation = "relu"
    attention_bias: bool = True
    mlp_bias: bool = True
    unembed_bias: bool = False
    dropout: float = 0.0
    tie_embeddings: bool = False
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
    al. 2019, local attention). Empty: every layer sees all."""
    attention_scale: bool = True
    """Divide scores by √d_head; a few families leave it to the weights (GPT-Neo, after Mesh TensorFlow's T5)."""
    attention_out_bias: bool | None = None
    """A bias behind W_O; None means as attention_bias, which is then about queries, keys and values alone."""

    def __post_init__(self) -> None:
        self._fill_in("d_ff", 4 * self.d_model if _is_int(self.d_model) else None)
        self._fill_in("n_encoder_layers", self.n_layers)
        for name, choices in _CHOICES.items():
            value = getattr(self, name)
            if value not in choices:
                raise ValueError(f"{name} is {value!r}; it can be {_one_of(choices)}.")
        for name, smallest in _SMALLEST.items():
            value = getattr(self, name)
            if not _is_int(value) or value < smallest:
                raise ValueError(f"{name} is {value!r}; it must be a whole number, {smallest} or more.")
        for name in _AT_LEAST_ONE_OR_NONE:
            value = getattr(self, name)
            if value is not None and (not _is_int(value) or value < 1):
                raise ValueError(f"{name} is {value!r}; it must be None or a whole number, 1 or more.")
        for name in _SWITCHES:
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"{name} is {getattr(self, name)!r}; it must be True or False.")
        self._check_widths()
        self._check_rotation()
        self._check_kinds()
        self._check_numbers()

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

    def _check_kinds(self) -> None:
        """What goes together."""
        is_common = self.architecture == "decoder-only" and self.residual and self.norm != "post" and self.d_ff
        if self.parallel_residual and not is_common:
            raise ValueError(
                "parallel_residual is for a decoder-only model with residual connections, a feed-forward layer, "
                "and its norms, if any, before them."
            )
        if self.attention == "uniform" and self.kv_heads != self.n_heads:
            raise ValueError("n_kv_heads is for attention with queries; a uniform attention has none to group.")
        if isinstance(self.attention_windows, list):  # as JSON has it
            object.__setattr__(self, "attention_windows", tuple(self.attention_windows))
        windows = self.attention_windows
        if not isinstance(windows, tuple) or any(not _is_int(each) or each < 0 for each in windows):
            raise ValueError(f"attention_windows is {windows!r}; it must be a tuple of whole numbers, 0 or more.")
        if any(windows) and (self.architecture != "decoder-only" or self.attention == "uniform"):
            raise ValueError("attention_windows are for a decoder-only model with softmax attention.")
        if self.attention_out_bias is not None and not isinstance(self.attention_out_bias, bool):
            raise ValueError(f"attention_out_bias is {self.attention_out_bias!r}; it must be True, False or None.")

    def _check_numbers(self) -> None:
        if not _is_number(self.rotary_base) or not 1 < self.rotary_base < math.inf:
            raise ValueError(f"rotary_base is {self.rotary_base!r}; it must be a number above 1.")
        if not _is_number(self.dropout) or not 0 <= self.dropout < 1:
            raise ValueError(f"dropout is {self.dropout!r}; it must be a probability of at least 0 and below 1.")
        if not _is_number(self.layer_norm_eps) or not 0 < self.layer_norm_eps < 1:
            raise ValueError(f"layer_norm_eps is {self.layer_norm_eps!r}; it must lie between 0 and 1.")
        pad = self.pad_token_id
        if pad is not None and (not _is_int(pad) or not 0 <= pad < self.vocab_size):
            raise ValueError(f"pad_token_id is {pad!r}; it must be None or a token id from 0 to {self.vocab_size - 1}.")

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

    def window(self, layer: int) -> int:
        """How many positions a query of this layer sees, its own the last of them; 0 for all."""
        return self.attention_windows[layer % len(self.attention_windows)] if self.attention_windows else 0

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready dictionary from which `from_dict` builds an equal configuration."""
        return {**dataclasses.asdict(self), "attention_windows": list(self.attention_windows)}

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> ModelConfig:
        """Build a configuration from `to_dict`'s dictionary; ValueError for fields unknown or missing."""
        if not isinstance(fields, dict):
            raise ValueError(f"A model configuration is a set of named fields, not a {type(fields).__name__}.")
        known = {field.name: field for field in dataclasses.fields(cls)}
        if unknown := sorted(set(fields) - set(known)):
            raise ValueError(f"A model configuration has no field {_one_of(unknown)}; it has {', '.join(known)}.")
        required = [name for name, field in known.items() if field.default is dataclasses.MISSING]
        if missing := [name for name in required if name not in fields]:
            raise ValueError(f"The model configuration lacks {', '.join(missing)}.")
        return cls(**fields)


_CHOICES = {
    "architecture": get_args(Architecture),
    "positions": get_args(Positions),
    "attention": get_args(AttentionKind),
    "norm": get_args(Norm),
    "norm_kind": get_args(NormKind),
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
}
_AT_LEAST_ONE_OR_NONE = ("n_kv_heads", "head_width", "rotary_dims")
_SWITCHES = (
    "residual",
    "attention_bias",
    "mlp_bias",
    "unembed_bias",
    "tie_embeddings",
    "scale_embeddings",
    "mlp_gate",
    "parallel_residual",
    "attention_scale",
)


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _one_of(choices: tuple[str, ...] | list[str]) -> str:
    return " or ".join(f"{choice!r}" for choice in choices)
