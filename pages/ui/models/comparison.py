"""Compares models and prompts: the logit lens after a token, and shared vocabularies.

Asked and answered as in `activations`. Dimensions: depth, pos, vocab.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pages.ui.models import library
from pages.ui.models.activations import greedy_answer
from pages.ui.models.model_cache import cached
from transformer import TASKS, Checkpoint, Intervention, logit_lens, trace_pass
from transformer.inference.context_windows import in_window
from transformer.inference.residual_stream import stream_points

Interventions = tuple[Intervention, ...]


@dataclass(frozen=True)
class LayerPredictions:
    """The logit lens after one token: what each depth of the residual stream predicts."""

    names: tuple[str, ...]
    """Hook points: the embedding's first."""
    logits: np.ndarray
    """(depth, vocab); the last are the model's own."""


@cached
def logit_lens_at(
    checkpoint: Checkpoint,
    tokens: tuple[int, ...],
    source: tuple[int, ...],
    place: int,
    begin: int = 0,
    interventions: Interventions = (),
) -> LayerPredictions:
    """The logit lens at one place of a text that fits the context, 0 for its first token.

    begin: the first token's place in the whole text, from whose start the interventions count.
    """
    points = stream_points(checkpoint.model.config, "decoder." if source else "")
    wanted = frozenset(name for height in points for name in height)
    found = trace_pass(
        checkpoint.model,
        tokens,
        source,
        names=wanted.__contains__,
        interventions=in_window(interventions, begin),
        outputs=False,
    )
    at_place = {name: found.tensors[name][place : place + 1] for name in wanted}  # a height is read place by place
    lens = logit_lens(replace(found, tensors={**found.tensors, **at_place}))
    return LayerPredictions(lens.points, lens.logits[:, 0].numpy())


@cached
def decoder_tokens(
    checkpoint: Checkpoint, source: tuple[int, ...], interventions: Interventions = ()
) -> tuple[int, ...]:
    """What the decoder of an encoder–decoder reads: its start token, and the answer that it would give."""
    text = (checkpoint.card.start_token_id,)
    text += greedy_answer(checkpoint, text, source, interventions)
    return text[:-1] if len(text) > 1 and text[-1] == checkpoint.card.end_token_id else text


def can_read(name: str, text: str) -> bool:
    """Whether a model can read a text."""
    checkpoint = library.model(name)
    task = TASKS.get(checkpoint.card.task)
    return bool(text) and not checkpoint.tokenizer.unknown_pieces(text) and not (task and task.problem(text))


@cached
def vocabulary(checkpoint: Checkpoint) -> tuple[str, ...]:
    """What every token is called, no two of them alike."""
    return unique_labels(checkpoint.tokenizer.labels(range(checkpoint.tokenizer.vocab_size)))


def unique_labels(labels: Sequence[str]) -> tuple[str, ...]:
    """Labels by id, with the id where several tokens look alike."""
    count = Counter(labels)
    return tuple(label if count[label] == 1 else f"{label} [{token}]" for token, label in enumerate(labels))


def same_vocabulary(one: str, other: str) -> bool:
    """Whether two models have the same vocabulary, so that a token's number means the same to both."""
    return vocabulary(one) == vocabulary(other)


def other_models(name: str) -> list[str]:
    """The other models, those first that have most in common: what they were trained on, then the larger ones."""
    entries = library.usable()
    own = entries[name].card

    def order(other: str) -> tuple[bool, bool, int, str]:
        card = entries[other].card
        return card.corpus.get("name") != own.corpus.get("name"), card.group != own.group, -card.parameters, other

    return sorted((other for other in entries if other != name), key=order)


def first_readable(names: list[str], prompt: str) -> str:
    """The first of several models that can read a prompt, or the first of all."""
    return next((name for name in names if can_read(name, prompt)), names[0])
