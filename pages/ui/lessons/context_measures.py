"""Measures contexts: their cost, the key–value cache, and how much of a context helps. See `measures`."""

import torch
import torch.nn.functional as F

from pages.ui.lessons.measure_registry import measure
from pages.ui.lessons.measure_setup import MeasureError, Setup
from pages.ui.models import library
from pages.ui.models.model_cache import cached
from transformer import Checkpoint, KeyValueCache

MAX_PREDICTED = 200


@measure
def score_count(setup: Setup) -> int:
    """How many scores a decoder computes in one pass over the text: one for each layer, head, query and key."""
    shape = library.config(setup.name)
    return shape.n_layers * shape.n_heads * len(_window(setup)) ** 2


@measure
def cached_count(setup: Setup) -> int:
    """How many numbers the key–value cache holds once a decoder has read the text."""
    cache, _ = _read_by_token(setup.name, _window(setup))
    return sum(tensor.numel() for kept in cache.blocks for tensor in kept.tensors)


@measure
def cache_difference(setup: Setup) -> float:
    """The largest difference between logits computed token by token with a key–value cache and in one pass."""
    _, by_token = _read_by_token(setup.name, _window(setup))
    with torch.no_grad():
        at_once = library.model(setup.name).model(torch.tensor([_window(setup)]))[0]
    return float((by_token - at_once).abs().max())


@cached
def _read_by_token(checkpoint: Checkpoint, tokens: tuple[int, ...]) -> tuple[KeyValueCache, torch.Tensor]:
    """The cache after the last token, and the logits after each, (pos, vocab)."""
    cache = KeyValueCache.for_model(checkpoint.model.config)
    with torch.no_grad():
        logits = [checkpoint.model(torch.tensor([[token]]), cache)[0, 0] for token in tokens]
    return cache, torch.stack(logits)


@measure
def short_sighted_loss(setup: Setup, context: int, last: int) -> float:
    """The mean loss of the last tokens of a text, were each predicted from no more than `context` tokens before it."""
    tokens = _window(setup)
    if not (1 <= last <= MAX_PREDICTED and 1 <= context <= len(tokens) - last):
        raise MeasureError(f"last is from 1 to {MAX_PREDICTED}, and context + last at most the {len(tokens)} tokens")
    windows = torch.tensor(tokens[-last - context :]).unfold(0, context + 1, 1)  # (last, context + 1)
    with torch.no_grad():
        logits = library.model(setup.name).model(windows[:, :-1])[:, -1]
    return float(F.cross_entropy(logits, windows[:, -1]))


def _window(setup: Setup) -> tuple[int, ...]:
    if setup.source or not library.config(setup.name).n_layers:
        raise MeasureError("it takes a decoder with attention")
    return setup.window
