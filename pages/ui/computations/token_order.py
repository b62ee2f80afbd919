"""Computes what a model predicts for shuffled tokens, with and without positions.

Asked and answered as in `activations`. Dimensions: order, pos, vocab.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pages.ui.computations import activations
from pages.ui.models import library
from pages.ui.models.changes import problem_of
from transformer import Checkpoint, Intervention, ModelConfig, Without

Interventions = tuple[Intervention, ...]
SHUFFLES = 8
"""Random orders of a text that are tried; with a large model, which takes its time, only one."""
RULES = ("positions", "mask")


@dataclass(frozen=True)
class OrderComparison:
    """A text, the same tokens in another order, and what follows each, or stands at its mask."""

    variants: tuple[str, ...]
    """What the model is left with."""
    texts: tuple[tuple[int, ...], tuple[int, ...]]
    shuffles: int
    """Random orders, of which the other one is that which changes the prediction most."""
    probabilities: np.ndarray
    """(order, way, vocab)."""

    @property
    def largest_change(self) -> np.ndarray:
        """(way,): how far the order moves any probability, at most."""
        return np.abs(self.probabilities[1] - self.probabilities[0]).max(-1)


def compare_orders(
    name: str, tokens: tuple[int, ...], source: tuple[int, ...] = (), interventions: Interventions = ()
) -> OrderComparison:
    """Have a model read its text in two orders: an encoder–decoder its source, which the decoder's `tokens` follow.

    What comes after a text depends on its last token most, so that one stays where it is; an encoder's masks do.
    Changes that take positions or the mask away are left out of `interventions`, and made here.
    """
    kept = tuple(change for change in interventions if not removes_order(change))

    def after(text: tuple[int, ...], changes: Interventions = ()) -> np.ndarray:
        read = (tokens, text) if source else (text, ())
        return np.exp(activations.log_softmax(activations.next_token(name, *read, kept + changes)))

    checkpoint = library.opened(name).checkpoint
    text, shuffles = source or tokens, 1 if library.is_large(checkpoint) else SHUFFLES
    moves = range(len(text)) if source else movable(checkpoint, text)
    first = after(text)
    other = max(_shuffled(text, moves, shuffles), key=lambda order: np.abs(after(order) - first).max())
    variants = _variants(library.config(name))
    probabilities = np.stack([[after(order, changes) for changes in variants.values()] for order in (text, other)])
    return OrderComparison(tuple(variants), (text, other), shuffles, probabilities)


def movable(checkpoint: Checkpoint, text: tuple[int, ...]) -> list[int]:
    """The positions of a text that are shuffled: not the one that is predicted, or after which; and no special token,
    such as a mask."""
    tokenizer, stays = checkpoint.tokenizer, checkpoint.predicted_position(text)
    special = {token for token in set(text) if len(tokenizer.parted(tokenizer.label(token))) > 1}
    return [at for at, token in enumerate(text) if at != stays and token not in special]


def removes_order(change: Intervention) -> bool:
    """Whether a change takes away what this compares with and without."""
    return isinstance(change, Without) and change.rule in RULES


def _variants(config: ModelConfig) -> dict[str, Interventions]:
    """What a model can be left with, from all that it has to attention alone."""
    has_positions = not problem_of(Without("positions"), config)  # without layers, it turns nothing by its position
    variants: dict[str, Interventions] = {"With positions" if has_positions else "This model, without positions": ()}
    if has_positions:
        variants["Without positions"] = (Without("positions"),)
    if config.architecture == "decoder-only" and not problem_of(Without("mask"), config):
        variants["No positions, no mask"] = (*[*variants.values()][-1], Without("mask"))
    if not config.is_causal and any(map(config.window, range(config.n_layers))):
        variants["No positions, no windows"] = (*[*variants.values()][-1], Without("windows"))
    return variants


def _shuffled(text: tuple[int, ...], moves: Sequence[int], count: int) -> list[tuple[int, ...]]:
    """The same tokens in so many random orders of those that move, the same each time."""
    random, orders = np.random.default_rng(0), []
    for _ in range(count):
        order = list(text)
        for at, i in zip(moves, random.permutation(len(moves)), strict=True):
            order[at] = text[moves[i]]
        orders.append(tuple(order))
    return orders
