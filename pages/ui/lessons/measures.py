"""Defines the basic measures of lessons: functions that run a model and return a number, a text or a list.

A measure is a number, a text, a position (a whole number, counted from 0), or a list of these. Positions count the
tokens of the prompt and the text after it, from the end if negative.

A new one: a function whose first parameter is the setup, its others annotated str, int, float or list[int], under
`@measure`; its docstring's first sentence says what it is. What looks inside the model is in `activation_measures`.
"""

import numpy as np
import torch

from pages.ui.computations import activations
from pages.ui.lessons.measure_registry import measure
from pages.ui.lessons.measure_setup import MeasureError, Setup
from pages.ui.models import library
from pages.ui.models.model_cache import cached
from transformer import TASKS, Checkpoint, Intervention, Sampling, in_window, sampling_distribution
from transformer.inference.interventions import hooks_of
from transformer.training.evaluation import exact_matches

CARD = ("validation_loss", "train_loss", "accuracy")
MAX_EXAMPLES = 100
MAX_WRITTEN = 200


def probabilities(setup: Setup, position: int) -> np.ndarray:
    """(vocab,): the probability of each token after the one at a position; of an encoder, at its first mask."""
    if setup.fills_masks:
        if position != -1:
            raise MeasureError("an encoder is asked at its first mask; leave the position out")
        position = len(setup.tokens) - 1
    position = setup.position(position)
    logits = activations.next_token(
        setup.name, setup.tokens[: position + 1], setup.source, in_window(setup.interventions, 0)
    )
    return np.exp(activations.log_softmax(logits))


@measure
def probability(setup: Setup, token: str, position: int = -1) -> float:
    """How likely the model thinks a token is to follow the one at a position."""
    return probabilities(setup, position)[setup.token(token)]


@measure
def likeliest(setup: Setup, position: int = -1) -> str:
    """The token that the model thinks is likeliest to follow the one at a position."""
    return setup.label(int(probabilities(setup, position).argmax()))


@measure
def likeliest_probability(setup: Setup, position: int = -1) -> float:
    """How likely it thinks that one is."""
    return probabilities(setup, position).max()


@measure
def rank(setup: Setup, token: str, position: int = -1) -> int:
    """How many tokens the model thinks likelier to follow, and one: 1 for the likeliest."""
    distribution = probabilities(setup, position)
    return int((distribution > distribution[setup.token(token)]).sum()) + 1


@measure
def loss(setup: Setup, first: int = 1) -> float:
    """The mean loss of a text's tokens, from position `first` on: −ln of the probability of each, in nats."""
    if len(setup.tokens) < 2:
        raise MeasureError("a text of one token has no loss: nothing comes before it")
    of_tokens = activations.probabilities(setup.name, setup.tokens, setup.source, setup.interventions)
    if not 1 <= first <= len(of_tokens):
        raise MeasureError(f"first is from 1 to {len(of_tokens)} in this text, not {first}")
    return float(-np.log(np.maximum(of_tokens.astype(np.float64), np.finfo(float).tiny))[first - 1 :].mean())


@measure
def parameter_count(setup: Setup) -> int:
    """How many numbers the model has learned."""
    return library.model(setup.name).card.parameters


@measure
def shape(setup: Setup, field: str) -> int:
    """A number of the model's configuration: "n_layers", "n_heads", "d_model", "d_head", "vocab_size" and so on."""
    size = getattr(library.config(setup.name), field, None) if field.isidentifier() else None
    if type(size) is not int:
        raise MeasureError(f"a configuration has no number {field[:40]}")
    return size


@measure
def card(setup: Setup, field: str) -> float:
    """What was measured of the model when it was trained: "validation_loss", "train_loss" or "accuracy"."""
    value = getattr(library.model(setup.name).card, field, None) if field in CARD else None
    if value is None:
        raise MeasureError(f"the card of {setup.model} has no {field[:40]}; there can be {', '.join(CARD)}")
    return value


@measure
def token_at(setup: Setup, position: int) -> str:
    """The token at a position of the text."""
    return setup.label(setup.tokens[setup.position(position)])


@measure
def number_of_tokens(setup: Setup) -> int:
    """How many tokens the text has."""
    return len(setup.tokens)


@measure
def drawn_probability(setup: Setup, token: str, temperature: float = 1.0, top_k: int = 0) -> float:
    """How likely a token is to be drawn next, with these dials."""
    logits = activations.next_token(setup.name, setup.tokens, setup.source, setup.interventions)
    return float(sampling_distribution(torch.tensor(logits), _sampling(temperature, top_k, 0))[setup.token(token)])


@measure
def written(setup: Setup, tokens: int = 60, seed: int = 1, temperature: float = 0.0) -> str:
    """What the model writes on, without its end token; temperature 0 always takes the likeliest."""
    if not 1 <= tokens <= MAX_WRITTEN:
        raise MeasureError(f"it writes 1 to {MAX_WRITTEN} tokens, not {tokens}")
    answer = activations.written(
        setup.name, setup.tokens, setup.source, _sampling(temperature, 0, seed), tokens, setup.interventions
    )
    ends = library.model(setup.name).card.stop_tokens
    return setup.tokenizer.decode([token for token in answer if token not in ends])


def _sampling(temperature: float, top_k: int, seed: int) -> Sampling:
    try:
        return Sampling(temperature=temperature, top_k=top_k or None, seed=seed)
    except ValueError as error:
        raise MeasureError(str(error).rstrip(".")) from None


@measure
def accuracy(setup: Setup, examples: int = 50) -> float:
    """The share of a task's unseen examples that the model answers exactly, with the setup's changes in force."""
    task = library.model(setup.name).card.task
    if task not in TASKS or not TASKS[task].ends:
        raise MeasureError(f"{setup.model} has learned nothing that has one right answer")
    if not 1 <= examples <= MAX_EXAMPLES:
        raise MeasureError(f"examples is from 1 to {MAX_EXAMPLES}, not {examples}")
    return _accuracy(setup.name, examples, setup.interventions)


@cached
def _accuracy(checkpoint: Checkpoint, examples: int, interventions: tuple[Intervention, ...]) -> float:
    model, task = checkpoint.model, TASKS[checkpoint.card.task]
    with model.hooked(hooks_of(interventions, model)):
        return exact_matches(model, task, task.sample(examples))
