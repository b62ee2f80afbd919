"""The shape of a model: one small, frozen, validated description that everything else is built from.

Sizes: d_model is the width of the residual stream, d_head = d_model / n_heads the width of one head,
d_ff the width of the feed-forward layer's inside, all counted in numbers per position.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal, get_args

Architecture = Literal["decoder-only", "encoder-decoder"]
Positions = Literal["sinusoidal", "learned", "rotary", "none"]
AttentionKind = Literal["softmax", "uniform"]
Norm = Literal["pre", "post", "none"]
Activation = Literal["relu", "gelu", "gelu_tanh"]


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """Everything that decides a model's parameters and its forward pass.

    The defaults are a small pre-norm decoder with the sinusoidal positions of Vaswani et al. (2017).
    Raises ValueError, naming the field and what would be right, for a combination no model can have.
    """

    vocab_size: int
    context_length: int
    n_layers: int
    n_heads: int
    d_model: int
    architecture: Architecture = "decoder-only"
    n_encoder_layers: int | None = None
    """Depth of the encoder; None means n_layers."""
    d_ff: int | None = None
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
        for name in _SWITCHES:
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"{name} is {getattr(self, name)!r}; it must be True or False.")
        self._check_widths()
        self._check_numbers()

    def _check_widths(self) -> None:
        if self.d_model % self.n_heads:
            raise ValueError(
                f"d_model is {self.d_model}, which {self.n_heads} heads can't share equally; "
                f"choose n_heads so that it divides d_model."
            )
        if self.positions == "sinusoidal" and self.d_model % 2:
            raise ValueError(
                f"d_model is {self.d_model}; sinusoidal positions pair sines with cosines and need it even."
            )
        if self.positions == "rotary" and self.d_head % 2:
            raise ValueError(
                f"d_head = d_model / n_heads is {self.d_head}; "
                f"rotary positions turn pairs of dimensions and need it even."
            )

    def _check_numbers(self) -> None:
        if not _is_number(self.dropout) or not 0 <= self.dropout < 1:
            raise ValueError(f"dropout is {self.dropout!r}; it must be a probability of at least 0 and below 1.")
        if not _is_number(self.layer_norm_eps) or not 0 < self.layer_norm_eps < 1:
            raise ValueError(f"layer_norm_eps is {self.layer_norm_eps!r}; it must lie between 0 and 1.")
        pad = self.pad_token_id
        if pad is not None and (not _is_int(pad) or not 0 <= pad < self.vocab_size):
            raise ValueError(
                f"pad_token_id is {pad!r}; it must be None or a token id from 0 to {self.vocab_size - 1}."
            )

    def _fill_in(self, name: str, default: int | None) -> None:
        if getattr(self, name) is None:
            object.__setattr__(self, name, default)

    @property
    def d_head(self) -> int:
        """Width of one head's queries, keys and values."""
        return self.d_model // self.n_heads

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready dictionary from which `from_dict` builds an equal configuration."""
        return dataclasses.asdict(self)

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
_SWITCHES = ("residual", "attention_bias", "mlp_bias", "unembed_bias", "tie_embeddings", "scale_embeddings")


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _one_of(choices: tuple[str, ...] | list[str]) -> str:
    return " or ".join(f"{choice!r}" for choice in choices)
