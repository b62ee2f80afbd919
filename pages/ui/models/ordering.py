"""What a model predicts for a text and for the same tokens in another order, with positions and without.

Asked and answered as in `activations`. Dimensions: order, pos, vocab.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from pages.ui.models import activations, library
from pages.ui.models.cache import remembered
from transformer import Checkpoint, Intervention, ModelConfig, Without
from transformer.inference.interventions import hooks_of

Interventions = tuple[Intervention, ...]
TRIED = 8
"""Random orders of a text, of which the one is shown that changes the prediction most."""
RULES = ("positions", "mask")


@dataclass(frozen=True)
class Ordered:
    """A text, the same tokens in another order, and what follows each."""

    ways: tuple[str, ...]
    """What the model is left with."""
    texts: tuple[tuple[int, ...], tuple[int, ...]]
    probabilities: np.ndarray
    """(order, way, vocab)."""

    @property
    def moved(self) -> np.ndarray:
        """(way,): how far the order moves any probability, at most."""
        return np.abs(self.probabilities[1] - self.probabilities[0]).max(-1)


def ordered(
    name: str, tokens: tuple[int, ...], source: tuple[int, ...] = (), interventions: Interventions = ()
) -> Ordered:
    """Have a model read its text in two orders: an encoder–decoder its source, which the decoder's `tokens` follow.

    What comes after a text depends on its last token most, so that one stays where it is. Changes that take positions
    or the mask away are left out of `interventions`, and made here.
    """
    kept = tuple(change for change in interventions if not takes_away(change))
    other = _most_moved(name, tokens, source, kept)
    texts = (source or tokens, other)
    ways = _ways(library.config(name))
    probabilities = np.stack([
        np.stack([_softmax(activations.next_token(name, tokens if source else text, text if source else (),
                                                  kept + changes)[0]) for changes in ways.values()])
        for text in texts
    ])  # fmt: skip
    return Ordered(tuple(ways), texts, probabilities)


def takes_away(change: Intervention) -> bool:
    """Whether a change takes away what this compares with and without."""
    return isinstance(change, Without) and change.rule in RULES


def _ways(config: ModelConfig) -> dict[str, Interventions]:
    """What a model can be left with, from all that it has to attention alone."""
    has_positions = config.positions != "none"
    ways: dict[str, Interventions] = {"With positions" if has_positions else "This model, without positions": ()}
    if has_positions:
        ways["Without positions"] = (Without("positions"),)
    if config.n_layers and config.architecture == "decoder-only":
        ways["No positions, no mask"] = (*[*ways.values()][-1], Without("mask"))
    return ways


@remembered
def _most_moved(
    checkpoint: Checkpoint, tokens: tuple[int, ...], source: tuple[int, ...], interventions: Interventions
) -> tuple[int, ...]:
    """The order, of TRIED random ones, that moves a probability most."""
    model, text = checkpoint.model, source or tokens
    stays = 0 if source else 1
    random = np.random.default_rng(0)
    orders = [tuple(text[i] for i in random.permutation(len(text) - stays)) + text[len(text) - stays :]
              for _ in range(TRIED)]  # fmt: skip
    batch = torch.tensor([text, *orders])
    inputs = [batch, torch.tensor([tokens]).expand(len(batch), -1)] if source else [batch]
    with torch.no_grad(), model.hooked(hooks_of(interventions, model)):
        found = model(*inputs, newest=True)[:, -1].double().softmax(-1)
    return orders[int((found[1:] - found[0]).abs().amax(-1).argmax())]


def _softmax(logits: np.ndarray) -> np.ndarray:
    return torch.from_numpy(logits).double().softmax(-1).numpy()
