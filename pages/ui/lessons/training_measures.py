"""Measures short trainings: gradients, and the losses of a small model after some steps. See `measures`."""

import copy
import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pages.ui.computations.activations import Tokens
from pages.ui.lessons.measure_registry import measure
from pages.ui.lessons.measure_setup import MeasureError, Setup
from pages.ui.models import library
from pages.ui.models.model_cache import cached
from transformer import Checkpoint

MAX_PARAMETERS, MAX_STEPS = 5_000_000, 60


@measure
def logit_slope(setup: Setup, right: str, token: str) -> float:
    """The slope of the loss in a token's logit, where `right` is what really follows the text."""
    tokens = torch.tensor([_decoder_s(setup)])
    logits = library.model(setup.name).model(tokens)[0, -1].detach().double().requires_grad_()
    F.cross_entropy(logits, torch.tensor(setup.token(right))).backward()
    return float(logits.grad[setup.token(token)])


@measure
def stepped_loss(setup: Setup, rate: float, steps: int = 1) -> float:
    """The loss of the text after steps of gradient descent on that very text, in nats; the model itself is left as it
    is."""
    return _stepped(setup, rate, steps, setup)


@measure
def stepped_other_loss(setup: Setup, other_prompt: str, rate: float, steps: int = 1) -> float:
    """The loss of another text after the same steps."""
    return _stepped(setup, rate, steps, Setup(setup.model, other_prompt))


def _stepped(setup: Setup, rate: float, steps: int, measured: Setup) -> float:
    checkpoint = library.model(setup.name)
    if checkpoint.model.parameter_count() > MAX_PARAMETERS:
        raise MeasureError(f"{setup.model} is too large to be trained here")
    if not (math.isfinite(rate) and 0 <= rate <= 10 and 0 <= steps <= MAX_STEPS):
        raise MeasureError(f"rate is from 0 to 10, and steps from 0 to {MAX_STEPS}")
    return _descended(setup.name, _decoder_s(setup), _decoder_s(measured), rate, steps)


@cached
def _descended(checkpoint: Checkpoint, tokens: Tokens, measured: Tokens, rate: float, steps: int) -> float:
    """Plain gradient descent: each parameter less the learning rate times its gradient."""
    model = copy.deepcopy(checkpoint.model).eval().requires_grad_()
    parameters = list(model.parameters())
    for _ in range(steps):
        gradients = torch.autograd.grad(_loss(model, tokens), parameters, allow_unused=True, materialize_grads=True)
        with torch.no_grad():
            for parameter, gradient in zip(parameters, gradients, strict=True):
                parameter -= rate * gradient
    with torch.no_grad():
        return float(_loss(model, measured))


def _loss(model: nn.Module, tokens: Tokens) -> Tensor:
    text = torch.tensor(tokens)
    return F.cross_entropy(model(text[None, :-1])[0], text[1:])


def _decoder_s(setup: Setup) -> Tokens:
    """The tokens of a text that a decoder reads in one pass."""
    if setup.source or setup.begin or len(setup.tokens) < 2:
        raise MeasureError("it takes a decoder, and a text of two tokens or more that fits its context")
    return setup.tokens
