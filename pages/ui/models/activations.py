"""What a model computes for a text: odds of the next token, where its newest token looked, its own answer.

Pages ask by the model's name, or with a model that is open; each question is computed once and answered in NumPy.
`tokens` is what a decoder has before it; `source` what an encoder reads, empty for a model that has none;
`interventions` change the pass, at positions that count from the text's start.
Dimensions: layer, head, key, position, d_model, vocab.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from pages.ui.models.cache import remembered
from pages.ui.models.library import OpenModel, opened
from transformer import (
    ActivationCache,
    Checkpoint,
    Intervention,
    Sampling,
    attention_modules,
    generate,
    token_statistics,
)
from transformer.hooks import ForwardHook, NamesFilter
from transformer.inference.interventions import hooks_of
from transformer.inference.windows import by_window, in_window, window_start

Interventions = tuple[Intervention, ...]


@dataclass(frozen=True)
class Scored:
    """What the model thought of each token of a text, before it saw it; index 0 of the text has no prediction."""

    probability: np.ndarray
    rank: np.ndarray
    entropy: np.ndarray
    logits: np.ndarray
    """(position, vocab), float32."""


def next_token(
    model: str | OpenModel, tokens: tuple[int, ...], source: tuple[int, ...] = (), interventions: Interventions = ()
) -> tuple[np.ndarray, Mapping[str, np.ndarray]]:
    """What follows a text: logits (vocab,), and where its last token looked, by attention: (layer, head, key)."""
    model = opened(model) if isinstance(model, str) else model
    begin = window_start(len(tokens), model.checkpoint.model.config.context_length)
    return _next_token(model, tokens[begin:], source, in_window(interventions, begin))


@remembered
def _next_token(
    checkpoint: Checkpoint, tokens: tuple[int, ...], source: tuple[int, ...], interventions: Interventions
) -> tuple[np.ndarray, Mapping[str, np.ndarray]]:
    model = checkpoint.model
    rows: dict[str, np.ndarray] = {}

    def see(pattern: torch.Tensor, hook: object) -> None:
        rows[hook.name] = pattern[0, :, -1].numpy().copy()  # the rest of it, which is much of a long text, can go

    readers = [(_is_newest_pattern, see)]
    inputs = [torch.tensor([part]) for part in (source, tokens) if part]
    with torch.no_grad(), model.hooked([*hooks_of(interventions, model), *readers]):
        logits = model(*inputs, newest=True)
    layers = {
        kind: [f"{module}.hook_pattern" for module in modules]
        for kind, modules in attention_modules(model.config).items()
    }
    found = {kind: np.stack([rows[name] for name in names]) for kind, names in layers.items() if names[0] in rows}
    return logits[0, -1].numpy(), found


@remembered
def scored(
    checkpoint: Checkpoint, tokens: tuple[int, ...], source: tuple[int, ...] = (), interventions: Interventions = ()
) -> Scored:
    """How likely each token was, given those before it in its window."""
    begin = 0
    hooks = hooks_of(interventions, checkpoint.model, lambda: begin)  # for all passes: another text is recorded once
    rows = []
    context = checkpoint.model.config.context_length
    for begin, lengths in by_window(range(1, len(tokens)), context, interventions):
        logits = _run(checkpoint, tokens[begin : lengths[-1]], source, (), hooks)[0][0]
        rows += [logits[length - 1 - begin].clone() for length in lengths]
    found = [token_statistics(row, token) for row, token in zip(rows, tokens[1:], strict=True)]
    probability, rank, entropy = zip(*found, strict=True) if found else ((), (), ())
    logits = torch.stack(rows) if rows else torch.empty(0, checkpoint.model.config.vocab_size)
    return Scored(np.array(probability), np.array(rank), np.array(entropy), logits.numpy())


@remembered
def pattern(
    checkpoint: Checkpoint,
    tokens: tuple[int, ...],
    source: tuple[int, ...],
    kind: str,
    layer: int,
    interventions: Interventions = (),
) -> np.ndarray:
    """Where each token of a text that fits the context looked, in one layer: (head, query, key)."""
    point = f"{attention_modules(checkpoint.model.config)[kind][layer]}.hook_pattern"
    hooks = hooks_of(interventions, checkpoint.model)
    return _run(checkpoint, tokens, source, point, hooks, newest=True)[1][point][0].numpy()


def greedy_answer(
    checkpoint: Checkpoint, tokens: tuple[int, ...], source: tuple[int, ...] = (), interventions: Interventions = ()
) -> tuple[int, ...]:
    """What the model itself would write after `tokens`, greedily, up to its end token or the end of its context."""
    written = generate(
        checkpoint.model,
        tokens,
        source=source or None,
        max_new_tokens=max(checkpoint.model.config.context_length - len(tokens), 0),
        sampling=Sampling(temperature=0),
        stop_tokens=checkpoint.card.stop_tokens,
        interventions=interventions,
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


def _is_newest_pattern(point: str) -> bool:
    """Whether a hook point has the weights with which the newest token looks at others: an encoder has no newest."""
    return point.endswith("hook_pattern") and not point.startswith("encoder.")


def _run(
    checkpoint: Checkpoint,
    tokens: tuple[int, ...],
    source: tuple[int, ...],
    names_filter: NamesFilter,
    hooks: Sequence[ForwardHook],
    *,
    newest: bool = False,
) -> tuple[torch.Tensor, ActivationCache]:
    inputs = (torch.tensor([source]), torch.tensor([tokens])) if source else (torch.tensor([tokens]),)
    with torch.no_grad():
        return checkpoint.model.run_with_cache(*inputs, names_filter=names_filter, fwd_hooks=hooks, newest=newest)
