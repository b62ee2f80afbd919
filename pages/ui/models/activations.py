"""What a model computes for a text: attention step by step, odds of the next token, its own answer.

Pages ask by the model's name, or with a model that is open; each question is computed once and answered in NumPy.
`tokens` is what a decoder has before it; `source` what an encoder reads, empty for a model that has none.
Dimensions: layer, head, query, key, pos, d_head, vocab.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch

from pages.ui.models.cache import remembered
from pages.ui.models.library import OpenModel, opened
from transformer import (
    ActivationCache,
    Checkpoint,
    ModelConfig,
    Sampling,
    ScoreArithmetic,
    attention_modules,
    generate,
    score_arithmetic,
    token_statistics,
)
from transformer.hooks import NamesFilter


@dataclass(frozen=True)
class Scores:
    """What softmax is taken of, and what it comes from: (head, query, key) each."""

    raw: np.ndarray
    scaled: np.ndarray
    masked: np.ndarray
    queries: np.ndarray
    """(query, head, d_head), rotated where positions are rotary."""
    keys: np.ndarray


@dataclass(frozen=True)
class Steps:
    """The steps from queries and keys to weights, of all heads of one layer."""

    mask: np.ndarray
    """(query, key), True where visible."""
    pattern: np.ndarray
    """(head, query, key)."""
    scores: Scores | None
    """None for uniform attention, which has no queries and keys."""


@dataclass(frozen=True)
class Scored:
    """What the model thought of each token of a text, before it saw it; index 0 of the text has no prediction."""

    probability: np.ndarray
    rank: np.ndarray
    entropy: np.ndarray


@remembered
def steps(
    checkpoint: Checkpoint, tokens: tuple[int, ...], layer: int, source: tuple[int, ...] = (), kind: str = "self"
) -> Steps:
    """The four steps of attention in one layer. tokens: no more than the context holds."""
    shape = checkpoint.model.config
    place = f"{attention_modules(shape)[kind][layer]}."
    rotated = "rot_" if shape.positions == "rotary" and kind != "cross" else ""
    points = {
        "raw": "hook_raw_scores",
        "scaled": "hook_scaled_scores",
        "masked": "hook_attn_scores",
        "queries": f"hook_{rotated}q",
        "keys": f"hook_{rotated}k",
    }
    has_scores = shape.attention == "softmax" or kind == "cross"
    wanted = [*(points.values() if has_scores else ()), "hook_mask", "hook_pattern"]
    _, cache = _run(checkpoint, tokens, source, [place + point for point in wanted])
    scores = {field: cache[place + point][0].numpy() for field, point in points.items()} if has_scores else None
    return Steps(
        mask=cache[f"{place}hook_mask"].numpy(),  # (query, key): one text has no padding
        pattern=cache[f"{place}hook_pattern"][0].numpy(),
        scores=Scores(**scores) if scores else None,
    )


def patterns(
    model: str | OpenModel, tokens: tuple[int, ...], source: tuple[int, ...] = (), kind: str = "self"
) -> np.ndarray:
    """Attention weights of all layers and heads: (layer, head, query, key)."""
    return _patterns(model, tokens, source)[kind]


@remembered
def _patterns(
    checkpoint: Checkpoint, tokens: tuple[int, ...], source: tuple[int, ...]
) -> Mapping[str, np.ndarray]:
    _, cache = _run(checkpoint, tokens, source, _is_pattern)
    found = _by_kind(cache, checkpoint.model.config)
    return {kind: np.stack([pattern[0].numpy() for pattern in layers]) for kind, layers in found.items()}


def next_token(
    model: str | OpenModel, tokens: tuple[int, ...], source: tuple[int, ...] = ()
) -> tuple[np.ndarray, Mapping[str, np.ndarray]]:
    """What follows a text: logits (vocab,), and where its last token looked, by attention: (layer, head, key)."""
    model = opened(model) if isinstance(model, str) else model
    return _next_token(model, tokens[-model.checkpoint.model.config.context_length :], source)


@remembered
def _next_token(
    checkpoint: Checkpoint, tokens: tuple[int, ...], source: tuple[int, ...]
) -> tuple[np.ndarray, Mapping[str, np.ndarray]]:
    logits, cache = _run(checkpoint, tokens, source, _is_pattern)
    return logits[0, -1].numpy(), newest_rows(cache, checkpoint.model.config)


@remembered
def scored(checkpoint: Checkpoint, tokens: tuple[int, ...], source: tuple[int, ...] = ()) -> Scored:
    """How likely each token was, given those before it that its context holds."""
    context = checkpoint.model.config.context_length
    logits = _run(checkpoint, tokens[:context], source, ())[0][0]
    found = [token_statistics(row, token) for row, token in zip(logits, tokens[1:], strict=False)]
    for end in range(context + 1, len(tokens)):
        logits = _run(checkpoint, tokens[end - context : end], source, ())[0][0]
        found.append(token_statistics(logits[-1], tokens[end]))
    probability, rank, entropy = (np.array(column) for column in zip(*found, strict=True)) if found else ([], [], [])
    return Scored(np.array(probability), np.array(rank), np.array(entropy))


def greedy_answer(checkpoint: Checkpoint, tokens: tuple[int, ...], source: tuple[int, ...] = ()) -> tuple[int, ...]:
    """What the model itself would write after `tokens`, greedily, up to its end token or the end of its context."""
    end = checkpoint.card.end_token_id
    written = generate(
        checkpoint.model,
        tokens,
        source=source or None,
        max_new_tokens=max(checkpoint.model.config.context_length - len(tokens), 0),
        sampling=Sampling(temperature=0),
        stop_tokens=() if end is None else (end,),
        names_filter=(),
    )
    return tuple(step.token_id for step in written)


answer = remembered(greedy_answer)

@remembered
def position_table(checkpoint: Checkpoint) -> np.ndarray | None:
    """The table that a model adds to its embeddings, (position, d_model); None if it adds none."""
    shape = checkpoint.model.config
    if shape.positions not in ("learned", "sinusoidal"):
        return None
    stack = checkpoint.model if shape.architecture == "decoder-only" else checkpoint.model.decoder
    return stack.position_rows(0, shape.context_length).detach().numpy()


def newest_rows(cache: ActivationCache, shape: ModelConfig) -> dict[str, np.ndarray]:
    """Where the newest token looked, by kind of attention, the encoder's left out: (layer, head, key) each."""
    return {kind: np.stack([pattern[0, :, -1].numpy() for pattern in found])
            for kind, found in _by_kind(cache, shape).items() if kind != "encoder"}  # fmt: skip


def arithmetic(found: Steps, head: int, query: int, key: int) -> ScoreArithmetic:
    """One cell of a head's pattern, recomputed number by number."""
    scores = found.scores
    q, k, mask = (torch.tensor(a) for a in (scores.queries[:, head], scores.keys[:, head], found.mask))
    return score_arithmetic(q, k, mask, query, key)


def _is_pattern(point: str) -> bool:
    return point.endswith("hook_pattern")


def _by_kind(cache: ActivationCache, shape: ModelConfig) -> dict[str, list[torch.Tensor]]:
    """The patterns of each attention, layer by layer; where the encoder didn't run, its are missing."""
    points = {kind: [f"{module}.hook_pattern" for module in modules]
              for kind, modules in attention_modules(shape).items()}  # fmt: skip
    return {kind: [cache[name] for name in names] for kind, names in points.items() if names[0] in cache}


def _run(
    checkpoint: Checkpoint, tokens: tuple[int, ...], source: tuple[int, ...], names_filter: NamesFilter
) -> tuple[torch.Tensor, ActivationCache]:
    inputs = (torch.tensor([source]), torch.tensor([tokens])) if source else (torch.tensor([tokens]),)
    with torch.no_grad():
        return checkpoint.model.run_with_cache(*inputs, names_filter=names_filter)
