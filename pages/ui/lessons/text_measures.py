"""What lessons can measure of a text: attention, logit lens, what is written after it. See `measures`."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import torch
import torch.nn.functional as F

from pages.ui.lessons.activation_measures import _tensor, logit_lens_losses
from pages.ui.lessons.measure_calls import measure
from pages.ui.lessons.measure_setup import MeasureError, Scene
from pages.ui.lessons.measures import probabilities, written
from pages.ui.models import comparison, library
from pages.ui.models.model_cache import remembered
from transformer import TASKS, Checkpoint, Intervention, attention_modules
from transformer.data.tasks import Induction
from transformer.inference.interventions import hooks_of
from transformer.inference.windows import in_window
from transformer.training.evaluation import measure_induction

SEQUENCES = 100
"""On which induction is measured."""


@measure
def pass_loss(scene: Scene) -> float:
    """The mean loss of a text read in one pass, in nats: without a mask each token is predicted with itself in sight.

    `loss` predicts each token from those before it alone, whatever is changed.
    """
    if scene.begin or len(scene.tokens) < 2:
        raise MeasureError("the text has at least two tokens, and no more than the context holds")
    return _pass_loss(scene.name, scene.tokens, scene.source, scene.interventions)


@remembered
def _pass_loss(
    checkpoint: Checkpoint, tokens: tuple[int, ...], source: tuple[int, ...], interventions: tuple[Intervention, ...]
) -> float:
    inputs = [torch.tensor([part]) for part in (source, tokens) if part]
    with torch.no_grad():
        logits = checkpoint.model.run_with_hooks(*inputs, fwd_hooks=hooks_of(interventions, checkpoint.model))[0]
    return float(F.cross_entropy(logits[:-1].double(), torch.tensor(tokens[1:])))


@measure
def softmax_top(scene: Scene, layer: int, head: int, added: float = 0.0, times: float = 1.0) -> float:
    """The largest weight of a head's last row, were its scores multiplied by `times` and `added` added to each."""
    kinds = attention_modules(library.config(scene.name))
    kind = next(reversed(kinds), "")
    if not (kind and 0 <= layer < len(kinds[kind]) and 0 <= head < library.config(scene.name).n_heads):
        raise MeasureError(f"{scene.model} has no head {layer}.{head}")
    if not (math.isfinite(added) and math.isfinite(times)):
        raise MeasureError("added and times are numbers")
    scores = _tensor(scene, f"{kinds[kind][layer]}.hook_attn_scores")[head, -1].astype(np.float64) * times + added
    weights = np.exp(scores - scores.max())
    return float(weights.max() / weights.sum())


@measure
def zero_share(scene: Scene, tensor: str) -> float:
    """The share of a tensor's numbers that are exactly zero: after a ReLU, of those that are inactive."""
    return float((_tensor(scene, tensor) == 0).mean())


@measure
def logit_lens_loss(scene: Scene, layers: int) -> float:
    """The mean loss of a text, had the model ended after so many layers: 0 for the embedding, −1 for all."""
    found = logit_lens_losses(scene)
    if not -len(found) <= layers < len(found):
        raise MeasureError(f"this model has {len(found) - 1} layers, not {layers}")
    return float(found[layers])


@measure
def lens_likeliest(scene: Scene, position: int = -1) -> list:
    """The token that the embedding would predict, and the stream after each layer; the model's own answer last."""
    return [scene.label(int(token)) for token in _lens(scene, position).argmax(-1)]


@measure
def settled_layer(scene: Scene, position: int = -1) -> int:
    """After how many layers the logit lens gives the final answer, and keeps it."""
    said = _lens(scene, position).argmax(-1)
    return int(np.flatnonzero(said != said[-1])[-1]) + 1 if (said != said[-1]).any() else 0


def _lens(scene: Scene, position: int) -> np.ndarray:
    """(layer, vocab), the embedding first."""
    position = scene.position(position) - scene.begin
    return comparison.said_at(scene.name, scene.window, scene.source, position, scene.begin, scene.interventions).logits


@measure
def vector_change(scene: Scene, other_prompt: str, tensor: str) -> float:
    """How far the last token's vector moves with another prompt of the same length, in parts of its own length."""
    other = replace(scene, prompt=other_prompt)
    if len(other.tokens) != len(scene.tokens):
        raise MeasureError("the other prompt has as many tokens as the prompt")
    own, there = _tensor(scene, tensor)[-1], _tensor(other, tensor)[-1]
    return float(np.linalg.norm(there - own) / np.linalg.norm(own))


@measure
def entropies(scene: Scene, positions: list[int]) -> list:
    """How undecided a model is of what follows each of these positions, in nats."""
    found = [probabilities(scene, position) for position in positions]
    return [float(-(each * np.log(np.maximum(each, np.finfo(float).tiny))).sum()) for each in found]


@measure
def repeated_words(scene: Scene, tokens: int = 100, seed: int = 1, temperature: float = 0.0) -> float:
    """The share of the words that a model writes which it has written before."""
    words = written(scene, tokens, seed, temperature).split()
    if not words:
        raise MeasureError("nothing that it writes is a word")
    return 1 - len(set(words)) / len(words)


@measure
def sink_share(scene: Scene, above: float = 0.5) -> float:
    """The share of a decoder's heads that give the first token more than `above` of their weight, on average.

    Queries that see nothing else don't count: Xiao et al. 2023, "Efficient streaming language models with attention
    sinks".
    """
    return float((_first_weights(scene) > above).mean())


@measure
def mean_first_weight(scene: Scene) -> float:
    """The weight on the first token, its mean over all heads of a decoder and all queries after the first."""
    return float(_first_weights(scene).mean())


def _first_weights(scene: Scene) -> np.ndarray:
    """(layer, head): the mean weight on the first token of the queries after it."""
    if scene.source or len(scene.window) < 2 or not library.config(scene.name).n_layers:
        raise MeasureError("it takes a decoder with attention and a text of two tokens or more")
    return _on_first(scene.name, scene.window, in_window(scene.interventions, scene.begin))


@remembered
def _on_first(checkpoint: Checkpoint, tokens: tuple[int, ...], interventions: tuple[Intervention, ...]) -> np.ndarray:
    hooks = hooks_of(interventions, checkpoint.model)
    with torch.no_grad():
        cache = checkpoint.model.run_until_recorded(
            torch.tensor([tokens]), names_filter=lambda name: name.endswith("hook_pattern"), fwd_hooks=hooks
        )
    return torch.stack([pattern[0, :, 1:, 0].mean(1) for pattern in cache.values()]).numpy()


@measure
def repeat_loss(scene: Scene, time: int = 2) -> float:
    """What a model of induction loses on random stretches that it never saw, the first time or the second, in nats."""
    task = TASKS.get(library.model(scene.name).card.task)
    if not isinstance(task, Induction):
        raise MeasureError(f"{scene.model} hasn't learned to continue what repeats")
    if time not in (1, 2):
        raise MeasureError("time is 1 or 2")
    return _repeat_losses(scene.name)[time - 1]


@remembered
def _repeat_losses(checkpoint: Checkpoint) -> tuple[float, float]:
    found = measure_induction(checkpoint.model, TASKS[checkpoint.card.task], SEQUENCES)
    return found.first_loss, found.second_loss
