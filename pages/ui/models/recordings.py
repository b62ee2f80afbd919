"""What is saved of the page Attention: a layer's numbers, or all that the picture of an attention is derived from.

`tokens` is what a decoder has before it; `source` what an encoder reads; `kind` as in `attention_modules`;
`interventions` change the pass.
"""

from __future__ import annotations

import hashlib

import torch
from torch import Tensor

from pages.ui.models.library import OpenModel, opened
from transformer import Recording, attention_modules, record
from transformer.api.tensors import Interventions, Tokens
from transformer.inference.attention_outline import names_around
from transformer.inference.overview import LIMIT


def whole_layer(
    model: OpenModel, tokens: Tokens, source: Tokens, kind: str, layer: int, interventions: Interventions = ()
) -> Recording:
    """Every hook point of one attention, all heads, as `record` names them: for a file that a visitor takes along."""
    checkpoint = model.checkpoint
    module = attention_modules(checkpoint.model.config)[kind][layer]
    labels = {"text": checkpoint.tokenizer.labels(tokens), "source": checkpoint.tokenizer.labels(source)}
    return record(checkpoint.model, _inputs(tokens, source), lambda point: point.startswith(f"{module}."),
                  labels=labels, interventions=interventions)  # fmt: skip


def whole_attention(
    model: OpenModel, tokens: Tokens, source: Tokens, kind: str, interventions: Interventions = ()
) -> Recording:
    """All that the picture of an attention is derived from, in every layer: for a page that has no server to ask.

    Weights are there for a short text only: of a long one they are most of the bytes, and follow from the rest.
    """
    checkpoint = model.checkpoint
    shape = checkpoint.model.config
    modules = attention_modules(shape)[kind]
    around = [names_around(shape, kind, layer) for layer in range(len(modules))]
    names = [name for each in around for name in each.values() if name]
    is_short = max(_lengths(tokens, source, kind)) <= LIMIT
    points = ("hook_z", "hook_result", "hook_pattern") if is_short else ("hook_z",)
    names += [f"{module}.{point}" for module in modules for point in points]
    return record(checkpoint.model, _inputs(tokens, source), names, interventions=interventions,
                  parameters=[f"{module}.out.weight" for module in modules])  # fmt: skip


def identity(
    model: str | OpenModel, tokens: Tokens, source: Tokens = (), kind: str = "self", interventions: Interventions = ()
) -> str:
    """What recordings of this pass are called between server and browser: the same only for the same numbers."""
    model = opened(model) if isinstance(model, str) else model
    told = repr((model.version, tokens, source, kind, interventions))
    return hashlib.sha256(told.encode("utf-8", "backslashreplace")).hexdigest()[:16]


def _lengths(tokens: Tokens, source: Tokens, kind: str) -> tuple[int, int]:
    """How many queries and keys an attention has."""
    return len(source if kind == "encoder" else tokens), len(tokens if kind in ("self", "decoder") else source)


def _inputs(tokens: Tokens, source: Tokens) -> list[Tensor]:
    return [torch.tensor([part]) for part in (source, tokens) if part]
