"""Which attentions a model has, and which of them a page shows; their kinds are those of `attention_modules`."""

from __future__ import annotations

from collections.abc import Sequence

from transformer import ModelConfig, attention_modules


def attentions(shape: ModelConfig) -> list[str]:
    """The kinds of attention that a model has."""
    return list(attention_modules(shape))


def chosen_attention(shape: ModelConfig, wish: str, among: Sequence[str] | None = None) -> str | None:
    """The kind to show: the wish, if the model has it; else its own or its cross-attention; None without any.

    among: the kinds a page can show, if not all.
    """
    found = [kind for kind in attentions(shape) if among is None or kind in among]
    return wish if wish in found else next(reversed(found), None)


def depth(shape: ModelConfig, kind: str) -> int:
    """How many layers have an attention of this kind."""
    return len(attention_modules(shape).get(kind, ()))
