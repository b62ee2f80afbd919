"""Finds models to compare with: the same vocabulary, the same data; and the logit lens at a position.

Asked and answered as in `activations`. Dimensions: depth, pos, vocab.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pages.ui.computations.activations import Interventions, Tokens, greedy_answer
from pages.ui.models import library
from pages.ui.models.model_cache import cached
from transformer import TASKS, Checkpoint, logit_lens, trace_pass
from transformer.inference.context_windows import in_window
from transformer.inference.residual_stream import stream_points


@dataclass(frozen=True)
class LayerPredictions:
    """The logit lens at one position: what each depth of the residual stream predicts."""

    names: tuple[str, ...]
    """Hook points: the embedding's first."""
    logits: np.ndarray
    """(depth, vocab); the last are the model's own."""


@cached
def logit_lens_at(
    checkpoint: Checkpoint, tokens: Tokens, source: Tokens, position: int, begin: int, interventions: Interventions
) -> LayerPredictions:
    """The logit lens at one position of a text that fits the context, 0 for its first token.

    begin: the first token's position in the whole text, from whose start the interventions count.
    """
    points = stream_points(checkpoint.model.config, "decoder." if source else "")
    wanted = frozenset(name for joined in points for name in joined)
    changes = in_window(interventions, begin)
    trace = trace_pass(checkpoint.model, tokens, source, names=wanted, interventions=changes, outputs=False)
    at_position = {name: trace.tensors[name][position : position + 1] for name in wanted}
    lens = logit_lens(replace(trace, tensors={**trace.tensors, **at_position}))
    return LayerPredictions(lens.points, lens.logits[:, 0].numpy())


@cached
def decoder_tokens(checkpoint: Checkpoint, source: Tokens, interventions: Interventions = ()) -> Tokens:
    """What the decoder of an encoder–decoder reads: its start token, and the answer that it would give."""
    start = checkpoint.card.start_tokens
    text = start + greedy_answer(checkpoint, start, source, interventions)
    return text[:-1] if len(text) > 1 and text[-1] == checkpoint.card.end_token_id else text


def can_read(name: str, text: str) -> bool:
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
    """The other models that predict the same, the next token or what is masked; those first that have most in common:
    training data, language, group; then the larger ones."""
    entries = library.usable()
    own, is_causal = entries[name].card, entries[name].config.is_causal

    def order(one: str) -> tuple[bool, bool, bool, int, str]:
        card = entries[one].card
        return not same_corpus(name, one), card.language != own.language, card.group != own.group, -card.parameters, one

    able = (other for other, entry in entries.items() if other != name and entry.config.is_causal == is_causal)
    return sorted(able, key=order)


def same_corpus(one: str, other: str) -> bool:
    """Whether two models were trained on the same data."""
    cards = [library.usable()[name].card for name in (one, other)]
    return cards[0].corpus.get("name") == cards[1].corpus.get("name")
