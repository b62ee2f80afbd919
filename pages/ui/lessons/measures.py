"""What lessons can measure: small functions of a scene, each of which asks a model and returns what it did.

A measure is a number, a text, a place (a whole number, counted from 0), or a list of these. Places count the tokens of
the prompt and the text after it, from the end if negative.

A new one: a function whose first parameter is the scene, its others annotated str, int, float or list[int], under
`@measure`; its docstring's first sentence says what it is. What looks inside the model is in `inner_measures`.
"""

from __future__ import annotations

import numpy as np
import torch

from pages.ui.lessons.calls import MEASURES, measure
from pages.ui.lessons.scenes import MeasureError, Scene
from pages.ui.models import activations, changed, library
from pages.ui.models.cache import remembered
from transformer import TASKS, Checkpoint, Intervention, Sampling, in_window, sampling_distribution

CARD = ("validation_loss", "train_loss", "accuracy")
MOST_EXAMPLES = 100
MOST_WRITTEN = 200


def _odds(scene: Scene, place: int) -> np.ndarray:
    """(vocab,): the probability of each token after the one at a place."""
    place = scene.place(place)
    logits = activations.next_token(
        scene.name, scene.tokens[: place + 1], scene.source, in_window(scene.interventions, 0)
    )[0]
    odds = np.exp(logits.astype(np.float64) - logits.max())
    return odds / odds.sum()


@measure
def probability(scene: Scene, token: str, place: int = -1) -> float:
    """How likely the model thinks a token is to follow the one at a place."""
    return _odds(scene, place)[scene.token(token)]


@measure
def likeliest(scene: Scene, place: int = -1) -> str:
    """The token that the model thinks is likeliest to follow the one at a place."""
    return scene.label(int(_odds(scene, place).argmax()))


@measure
def likeliest_probability(scene: Scene, place: int = -1) -> float:
    """How likely it thinks that one is."""
    return _odds(scene, place).max()


@measure
def rank(scene: Scene, token: str, place: int = -1) -> int:
    """How many tokens the model thinks likelier to follow, and one: 1 for the likeliest."""
    odds = _odds(scene, place)
    return int((odds > odds[scene.token(token)]).sum()) + 1


@measure
def entropy(scene: Scene, place: int = -1) -> float:
    """How undecided the model is of what follows, in nats; 0 when it is sure."""
    odds = _odds(scene, place)
    return float(-(odds * np.log(np.maximum(odds, np.finfo(float).tiny))).sum())


@measure
def losses(scene: Scene) -> list:
    """What each token but the first cost the model, −ln of its probability, in nats."""
    if len(scene.tokens) < 2:
        raise MeasureError("a text of one token has no loss: nothing comes before it")
    found = activations.scored(scene.name, scene.tokens, scene.source, scene.interventions).probability
    return -np.log(np.maximum(found.astype(np.float64), np.finfo(float).tiny))


@measure
def loss(scene: Scene, first: int = 1) -> float:
    """The mean loss of a text's tokens, from place `first` on, in nats per token."""
    found = losses(scene)
    if not 1 <= first <= len(found):
        raise MeasureError(f"first is from 1 to {len(found)} in this text, not {first}")
    return float(np.mean(found[first - 1 :]))


@measure
def parameter_count(scene: Scene) -> int:
    """How many numbers the model has learnt."""
    return library.model(scene.name).card.parameters


@measure
def shape(scene: Scene, field: str) -> int:
    """A number of the model's configuration: "n_layers", "n_heads", "d_model", "d_head", "vocab_size" and so on."""
    found = getattr(library.config(scene.name), field, None) if field.isidentifier() else None
    if type(found) is not int:
        raise MeasureError(f"a configuration has no number {field[:40]}")
    return found


@measure
def card(scene: Scene, field: str) -> float:
    """What was measured of the model when it was trained: "validation_loss", "train_loss" or "accuracy"."""
    found = getattr(library.model(scene.name).card, field, None) if field in CARD else None
    if found is None:
        raise MeasureError(f"the card of {scene.model} has no {field[:40]}; there can be {', '.join(CARD)}")
    return found


@measure
def token_at(scene: Scene, place: int) -> str:
    """The token at a place of the text."""
    return scene.label(scene.tokens[scene.place(place)])


@measure
def number_of_tokens(scene: Scene) -> int:
    """How many tokens the text has."""
    return len(scene.tokens)


@measure
def chosen(scene: Scene, temperature: float = 1.0, top_k: int = 0, seed: int = 1) -> str:
    """The token that is drawn next, with these dials."""
    found = changed.written(
        scene.name, scene.tokens, scene.source, _sampling(temperature, top_k, seed), 1, scene.interventions
    )
    return scene.label(found[0])


@measure
def drawn_probability(scene: Scene, token: str, temperature: float = 1.0, top_k: int = 0) -> float:
    """How likely a token is to be drawn next, with these dials."""
    logits = activations.next_token(scene.name, scene.tokens, scene.source, scene.interventions)[0]
    return float(sampling_distribution(torch.tensor(logits), _sampling(temperature, top_k, 0))[scene.token(token)])


@measure
def written(scene: Scene, tokens: int = 60, seed: int = 1, temperature: float = 0.0) -> str:
    """What the model writes on, without its end token; temperature 0 always takes the likeliest."""
    if not 1 <= tokens <= MOST_WRITTEN:
        raise MeasureError(f"it writes 1 to {MOST_WRITTEN} tokens, not {tokens}")
    found = changed.written(
        scene.name, scene.tokens, scene.source, _sampling(temperature, 0, seed), tokens, scene.interventions
    )
    ends = library.model(scene.name).card.stop_tokens
    return scene.tokenizer.decode([token for token in found if token not in ends])


MEASURES["generate"] = written


def _sampling(temperature: float, top_k: int, seed: int) -> Sampling:
    try:
        return Sampling(temperature=temperature, top_k=top_k or None, seed=seed)
    except ValueError as error:
        raise MeasureError(str(error).rstrip(".")) from None


@measure
def accuracy(scene: Scene, examples: int = 50) -> float:
    """The share of a task's unseen examples that the model answers exactly, with the scene's changes in force."""
    task = library.model(scene.name).card.task
    if task not in TASKS or not TASKS[task].ends:
        raise MeasureError(f"{scene.model} has learnt nothing that has one right answer")
    if not 1 <= examples <= MOST_EXAMPLES:
        raise MeasureError(f"examples is from 1 to {MOST_EXAMPLES}, not {examples}")
    return _accuracy(scene.name, examples, scene.interventions)


@remembered
def _accuracy(checkpoint: Checkpoint, examples: int, interventions: tuple[Intervention, ...]) -> float:
    asked, tokenizer, known = (TASKS[checkpoint.card.task].sample(examples), checkpoint.tokenizer, checkpoint.card)
    translates = checkpoint.model.config.architecture == "encoder-decoder"
    right = 0
    for example in asked:
        read = tuple(tokenizer.encode(example.source))
        text, source = ((known.start_token_id,), read) if translates else (read, ())
        found = activations.greedy_answer(checkpoint, text, source, interventions)
        ended = bool(found) and found[-1] == known.end_token_id
        right += ended and tokenizer.decode(found[:-1]) == example.target
    return right / len(asked)
