"""Measures texts: attention, logit lens, generated continuations. See `measures`."""

import math
from dataclasses import replace

import numpy as np
import torch
import torch.nn.functional as F

from pages.ui.computations.activations import Interventions, Tokens
from pages.ui.lessons.activation_measures import _attention, _tensor, logit_lens_losses
from pages.ui.lessons.measure_registry import measure
from pages.ui.lessons.measure_setup import MeasureError, Setup
from pages.ui.lessons.measures import probabilities, written
from pages.ui.models import library
from pages.ui.models.model_cache import cached
from transformer import TASKS, Checkpoint, Intervention, logit_lens, trace_pass
from transformer.data.tasks import Induction
from transformer.inference.context_windows import in_window
from transformer.inference.interventions import hooks_of
from transformer.inference.residual_stream import stream_points
from transformer.model.registry import pattern_names
from transformer.training.evaluation import measure_induction

SEQUENCES = 100
"""On which induction is measured."""


@measure
def pass_loss(setup: Setup) -> float:
    """The mean loss of a text read in one pass, in nats: without a mask each token is predicted with itself in sight.

    `loss` predicts each token from those before it alone, whatever is changed.
    """
    if setup.begin or len(setup.tokens) < 2:
        raise MeasureError("the text has at least two tokens, and no more than the context holds")
    model = library.model(setup.name).model
    inputs = [torch.tensor([part]) for part in (setup.source, setup.tokens) if part]
    with torch.no_grad():
        logits = model.run_with_hooks(*inputs, fwd_hooks=hooks_of(setup.interventions, model))[0]
    return float(F.cross_entropy(logits[:-1].double(), torch.tensor(setup.tokens[1:])))


@measure
def softmax_top(setup: Setup, layer: int, head: int, added: float = 0.0, times: float = 1.0) -> float:
    """The largest weight of a head's last row, were its scores multiplied by `times` and `added` added to each."""
    _, module = _attention(setup, layer, head, "")
    if not (math.isfinite(added) and math.isfinite(times)):
        raise MeasureError("added and times are numbers")
    scores = _tensor(setup, f"{module}.hook_attn_scores")[head, -1].astype(np.float64) * times + added
    weights = np.exp(scores - scores.max())
    return float(weights.max() / weights.sum())


@measure
def zero_share(setup: Setup, tensor: str) -> float:
    """The share of a tensor's numbers that are exactly zero: after a ReLU, of those that are inactive."""
    return float((_tensor(setup, tensor) == 0).mean())


@measure
def logit_lens_loss(setup: Setup, layers: int) -> float:
    """The mean loss of a text, had the model ended after so many layers: 0 for the embedding, −1 for all."""
    losses = logit_lens_losses(setup)
    if not -len(losses) <= layers < len(losses):
        raise MeasureError(f"this model has {len(losses) - 1} layers, not {layers}")
    return float(losses[layers])


@measure
def lens_likeliest(setup: Setup, position: int = -1) -> list:
    """The token that the embedding would predict, and the stream after each layer; the model's own answer last."""
    return [setup.label(int(token)) for token in _lens(setup, position).argmax(-1)]


@measure
def settled_layer(setup: Setup, position: int = -1) -> int:
    """After how many layers the logit lens gives the final answer, and keeps it."""
    likeliest = _lens(setup, position).argmax(-1)
    return int(np.flatnonzero(likeliest != likeliest[-1])[-1]) + 1 if (likeliest != likeliest[-1]).any() else 0


def _lens(setup: Setup, position: int) -> np.ndarray:
    """(layer, vocab), the embedding first."""
    changes = in_window(setup.interventions, setup.begin)
    return _lens_logits(setup.name, setup.window, setup.source, setup.position(position) - setup.begin, changes)


@cached
def _lens_logits(
    checkpoint: Checkpoint, tokens: Tokens, source: Tokens, position: int, interventions: Interventions
) -> np.ndarray:
    points = stream_points(checkpoint.model.config, "decoder." if source else "")
    wanted = frozenset(name for joined in points for name in joined)
    trace = trace_pass(checkpoint.model, tokens, source, names=wanted, interventions=interventions, outputs=False)
    here = {name: trace.tensors[name][position : position + 1] for name in wanted}
    return logit_lens(replace(trace, tensors={**trace.tensors, **here})).logits[:, 0].numpy()


@measure
def vector_change(setup: Setup, other_prompt: str, tensor: str) -> float:
    """How far the last token's vector moves with another prompt of the same length, in parts of its own length."""
    other = replace(setup, prompt=other_prompt, beside=" ".join(setup.tokenizer.new_words))
    if len(other.tokens) != len(setup.tokens):
        raise MeasureError("the other prompt has as many tokens as the prompt")
    own, there = _tensor(setup, tensor)[-1], _tensor(other, tensor)[-1]
    return float(np.linalg.norm(there - own) / np.linalg.norm(own))


@measure
def entropies(setup: Setup, positions: list[int]) -> list:
    """How undecided a model is of what follows each of these positions, in nats."""
    distributions = [probabilities(setup, position) for position in positions]
    return [float(-(row * np.log(np.maximum(row, np.finfo(float).tiny))).sum()) for row in distributions]


@measure
def repeated_words(setup: Setup, tokens: int = 100, seed: int = 1, temperature: float = 0.0) -> float:
    """The share of the words that a model writes which it has written before."""
    words = written(setup, tokens, seed, temperature).split()
    if not words:
        raise MeasureError("nothing that it writes is a word")
    return 1 - len(set(words)) / len(words)


@measure
def sink_share(setup: Setup, above: float = 0.5) -> float:
    """The share of a decoder's heads that give the first token more than `above` of their weight, on average.

    Queries that see nothing else don't count: Xiao et al. 2023, "Efficient streaming language models with attention
    sinks".
    """
    return float((_first_weights(setup) > above).mean())


@measure
def mean_first_weight(setup: Setup) -> float:
    """The weight on the first token, its mean over all heads of a decoder and all queries after the first."""
    return float(_first_weights(setup).mean())


def _first_weights(setup: Setup) -> np.ndarray:
    """(layer, head): the mean weight on the first token of the queries after it."""
    if setup.source or len(setup.window) < 2 or not library.config(setup.name).n_layers:
        raise MeasureError("it takes a decoder with attention and a text of two tokens or more")
    return _on_first(setup.name, setup.window, in_window(setup.interventions, setup.begin))


@cached
def _on_first(checkpoint: Checkpoint, tokens: tuple[int, ...], interventions: tuple[Intervention, ...]) -> np.ndarray:
    hooks = hooks_of(interventions, checkpoint.model)
    with torch.no_grad():
        cache = checkpoint.model.run_until_recorded(
            torch.tensor([tokens]), names_filter=pattern_names(checkpoint.model.config), fwd_hooks=hooks
        )
    return torch.stack([pattern[0, :, 1:, 0].mean(1) for pattern in cache.values()]).numpy()


@measure
def repeat_loss(setup: Setup, time: int = 2) -> float:
    """What a model of induction loses on random stretches that it never saw, the first time or the second, in nats."""
    task = TASKS.get(library.model(setup.name).card.task)
    if not isinstance(task, Induction):
        raise MeasureError(f"{setup.model} hasn't learned to continue what repeats")
    if time not in (1, 2):
        raise MeasureError("time is 1 or 2")
    return _repeat_losses(setup.name, task)[time - 1]


@cached
def _repeat_losses(checkpoint: Checkpoint, task: Induction) -> tuple[float, float]:
    measured = measure_induction(checkpoint.model, task, SEQUENCES)
    return measured.first_loss, measured.second_loss
