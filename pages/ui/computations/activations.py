"""Runs models for pages, cached: next token, generated text, scores, ablations.

Pages ask by the model's name, or with a model that is open; each question is computed once and answered in NumPy.
Tensors of a pass come from `transformer.api.tensors`. `tokens` is what a decoder has before it; `source` what an
encoder reads, empty for a model that has none; `interventions` change the pass, at positions that count from the text's
start.
Dimensions: text, position, d_model, vocab.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch

from pages.ui.models.library import OpenModel, is_large, opened
from pages.ui.models.model_cache import cached
from pages.ui.session.visitor_share import visitor_share
from transformer import Checkpoint, EncoderDecoder, Sampling, generate
from transformer.api import ablation_and_patching, generated_texts
from transformer.api.tensors import Interventions, Tokens
from transformer.inference.analysis import check_logits
from transformer.inference.context_windows import in_window, window_start
from transformer.inference.interventions import hooks_of
from transformer.inference.recording import plain_array
from transformer.jobs import FairThreads
from transformer.model.layers import widened

_AHEAD = FairThreads(3, "ahead")


def compute_ahead(compute: Callable[..., object], model: OpenModel, *inputs: object) -> None:
    """Begin what an instrument will ask the API for first, while the browser still loads the instrument.

    compute: caches what it returns by these inputs, so that the API finds it. A large model's may not fit its cache.
    """
    if not is_large(model.checkpoint):
        _AHEAD.submit(visitor_share(), lambda: compute(model, *inputs))


def next_token(
    model: str | OpenModel, tokens: Tokens, source: Tokens = (), interventions: Interventions = ()
) -> np.ndarray:
    """The logits of what follows a text, or stands at its first mask, (vocab,)."""
    model = opened(model) if isinstance(model, str) else model
    begin = window_start(len(tokens), model.checkpoint.model.config.context_length)
    return _next_token(model, tokens[begin:], source, in_window(interventions, begin))


@cached
def _next_token(checkpoint: Checkpoint, tokens: Tokens, source: Tokens, interventions: Interventions) -> np.ndarray:
    return logits_after(checkpoint, [tokens], [source] if source else [], interventions)[0].numpy()


def logits_after(
    checkpoint: Checkpoint, tokens: Sequence[Tokens], sources: Sequence[Tokens], interventions: Interventions = ()
) -> torch.Tensor:
    """The logits of what follows each of several texts of one length, or stands at its first mask, (text, vocab).

    sources: empty for a model that has no encoder and decoder.
    """
    inputs = [torch.tensor(texts) for texts in (sources, tokens) if texts]
    positions = [checkpoint.predicted_position(text) for text in tokens]
    with torch.no_grad(), checkpoint.model.hooked(hooks_of(interventions, checkpoint.model)):
        streams = checkpoint.model.stream(*inputs)[torch.arange(len(tokens)), positions]
        return widened(checkpoint.model.unembed(streams))


def probabilities(name: str, tokens: Tokens, source: Tokens = (), interventions: Interventions = ()) -> np.ndarray:
    """How likely each token of a text but the first was, given those before it in its window."""
    scores = generated_texts.scores(opened(name), tokens, source, 1, Sampling(), interventions)
    return scores.tensors["probability"][:-1]


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
    position: int = -1,
    begin: int = 0,
    interventions: Interventions = (),
) -> ablation_and_patching.Ablation:
    """The ablation of each part by itself, as in `ablation_and_patching.ablation`."""
    return ablation_and_patching.ablation(checkpoint.model, tokens, source, position, begin, interventions)


@cached
def position_table(checkpoint: Checkpoint) -> np.ndarray | None:
    """The table that a model adds to its embeddings, (position, d_model); None if it adds none."""
    shape = checkpoint.model.config
    if shape.positions not in ("learned", "sinusoidal"):
        return None
    stack = checkpoint.model.decoder if isinstance(checkpoint.model, EncoderDecoder) else checkpoint.model
    return plain_array(stack.position_rows(0, shape.context_length))


def log_softmax(logits: np.ndarray) -> np.ndarray:
    """Log-probabilities, along the last axis, in float64. Raises: LogitsError for logits that are not numbers."""
    check_logits(logits.max(-1))
    shifted = logits.astype(np.float64) - logits.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
