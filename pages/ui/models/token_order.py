"""Computes what a model predicts for shuffled tokens, with and without positions.

Asked and answered as in `activations`. Dimensions: order, pos, vocab.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from pages.ui.models import activations, library
from transformer import Intervention, ModelConfig, Without

Interventions = tuple[Intervention, ...]
SHUFFLES = 8
"""Random orders of a text that are tried; with a large model, which takes its time, only one."""
RULES = ("positions", "mask")


@dataclass(frozen=True)
class OrderComparison:
    """A text, the same tokens in another order, and what follows each."""

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

    What comes after a text depends on its last token most, so that one stays where it is. Changes that take positions
    or the mask away are left out of `interventions`, and made here.
    """
    kept = tuple(change for change in interventions if not removes_order(change))

    def after(text: tuple[int, ...], changes: Interventions = ()) -> np.ndarray:
        read = (tokens, text) if source else (text, ())
        return _softmax(activations.next_token(name, *read, kept + changes))

    text, shuffles = source or tokens, 1 if library.is_large(library.opened(name).checkpoint) else SHUFFLES
    first = after(text)
    other = max(_shuffled(text, not source, shuffles), key=lambda each: np.abs(after(each) - first).max())
    variants = _variants(library.config(name))
    probabilities = np.stack([[after(each, changes) for changes in variants.values()] for each in (text, other)])
    return OrderComparison(tuple(variants), (text, other), shuffles, probabilities)


def removes_order(change: Intervention) -> bool:
    """Whether a change takes away what this compares with and without."""
    return isinstance(change, Without) and change.rule in RULES


def _variants(config: ModelConfig) -> dict[str, Interventions]:
    """What a model can be left with, from all that it has to attention alone."""
    has_positions = _applies(Without("positions"), config)
    variants: dict[str, Interventions] = {"With positions" if has_positions else "This model, without positions": ()}
    if has_positions:
        variants["Without positions"] = (Without("positions"),)
    if config.architecture == "decoder-only" and _applies(Without("mask"), config):
        variants["No positions, no mask"] = (*[*variants.values()][-1], Without("mask"))
    return variants


def _applies(change: Intervention, config: ModelConfig) -> bool:
    """Whether a model has what a change takes away: one without layers turns nothing by its position."""
    try:
        change.check(config)
    except ValueError:
        return False
    return True


def _shuffled(text: tuple[int, ...], last_stays: bool, count: int) -> list[tuple[int, ...]]:
    """The same tokens in so many random orders, the same each time."""
    random, moves = np.random.default_rng(0), len(text) - last_stays
    return [tuple(text[i] for i in random.permutation(moves)) + text[moves:] for _ in range(count)]


def _softmax(logits: np.ndarray) -> np.ndarray:
    return torch.tensor(logits, dtype=torch.float64).softmax(-1).numpy()
