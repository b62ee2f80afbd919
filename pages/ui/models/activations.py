"""Runs models for pages, cached: next token, generated text, scores, ablations.

Pages ask by the model's name, or with a model that is open; each question is computed once and answered in NumPy.
Tensors of a pass are had from `transformer.api.tensors`. `tokens` is what a decoder has before it; `source` what an
encoder reads, empty for a model that has none; `interventions` change the pass, at positions that count from the text's
start.
Dimensions: text, position, d_model, vocab.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from pages.ui.models.background_jobs import progress
from pages.ui.models.library import OpenModel, opened
from pages.ui.models.model_cache import cached
from transformer import Checkpoint, Intervention, Sampling, generate, token_statistics
from transformer.api import effects
from transformer.inference.interventions import hooks_of
from transformer.inference.windows import by_window, in_window, window_start

Tokens = tuple[int, ...]
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
    model: str | OpenModel, tokens: Tokens, source: Tokens = (), interventions: Interventions = ()
) -> np.ndarray:
    """The logits of what follows a text, (vocab,)."""
    model = opened(model) if isinstance(model, str) else model
    begin = window_start(len(tokens), model.checkpoint.model.config.context_length)
    return _next_token(model, tokens[begin:], source, in_window(interventions, begin))


@cached
def _next_token(checkpoint: Checkpoint, tokens: Tokens, source: Tokens, interventions: Interventions) -> np.ndarray:
    return logits_after(checkpoint, [tokens], [source] if source else [], interventions)[0].numpy()


def logits_after(
    checkpoint: Checkpoint, tokens: Sequence[Tokens], sources: Sequence[Tokens], interventions: Interventions = ()
) -> torch.Tensor:
    """The logits of what follows each of several texts of one length, (text, vocab). sources: empty without encoder."""
    inputs = [torch.tensor(texts) for texts in (sources, tokens) if texts]
    with torch.no_grad(), checkpoint.model.hooked(hooks_of(interventions, checkpoint.model)):
        return checkpoint.model(*inputs, newest=True)[:, -1]


@cached
def scored(checkpoint: Checkpoint, tokens: Tokens, source: Tokens = (), interventions: Interventions = ()) -> Scored:
    """How likely each token was, given those before it in its window."""
    begin = 0
    hooks = hooks_of(interventions, checkpoint.model, lambda: begin)  # for all passes: another text is recorded once
    rows = []
    context = checkpoint.model.config.context_length
    for begin, lengths in by_window(range(1, len(tokens)), context, interventions):
        inputs = [torch.tensor([part]) for part in (source, tokens[begin : lengths[-1]]) if part]
        with torch.no_grad():
            logits = checkpoint.model.run_with_hooks(*inputs, fwd_hooks=hooks)[0]
        rows += [logits[length - 1 - begin].clone() for length in lengths]
    found = [token_statistics(row, token) for row, token in zip(rows, tokens[1:], strict=True)]
    probability, rank, entropy = zip(*found, strict=True) if found else ((), (), ())
    logits = torch.stack(rows) if rows else torch.empty(0, checkpoint.model.config.vocab_size)
    return Scored(np.array(probability), np.array(rank), np.array(entropy), logits.numpy())


def write(
    checkpoint: Checkpoint,
    tokens: Tokens,
    source: Tokens,
    sampling: Sampling,
    count: int,
    interventions: Interventions = (),
) -> Tokens:
    """What the model writes after a text, the end token included where it writes one.

    count: tokens at most; after a source, the context holds no more than there is room for.
    """
    room = checkpoint.model.config.context_length - len(tokens) if source else count
    steps = generate(
        checkpoint.model,
        tokens,
        source=source or None,
        max_new_tokens=max(min(count, room), 0),
        sampling=sampling,
        stop_tokens=checkpoint.card.stop_tokens,
        interventions=interventions,
    )
    return tuple(step.token_id for step in steps)


written = cached(write)


def greedy_answer(
    checkpoint: Checkpoint, tokens: Tokens, source: Tokens = (), interventions: Interventions = ()
) -> Tokens:
    """What the model itself would write after `tokens`, greedily, up to its end token or the end of its context."""
    room = checkpoint.model.config.context_length - len(tokens)
    return write(checkpoint, tokens, source, Sampling(temperature=0), room, interventions)


answer = cached(greedy_answer)


@cached
def ablation(
    checkpoint: Checkpoint,
    tokens: Tokens,
    source: Tokens = (),
    place: int = -1,
    begin: int = 0,
    interventions: Interventions = (),
) -> effects.Ablation:
    """The ablation of each part by itself: as in `effects.ablation`, with the progress of a job."""
    return effects.ablation(checkpoint.model, tokens, source, place, begin, interventions, progress)


@cached
def position_table(checkpoint: Checkpoint) -> np.ndarray | None:
    """The table that a model adds to its embeddings, (position, d_model); None if it adds none."""
    shape = checkpoint.model.config
    if shape.positions not in ("learned", "sinusoidal"):
        return None
    stack = checkpoint.model if shape.architecture == "decoder-only" else checkpoint.model.decoder
    return stack.position_rows(0, shape.context_length).detach().numpy()
