"""Measures whole models, and the formulas that they are built on. See `measures`."""

import math

import numpy as np
import torch

from pages.ui.computations import activations
from pages.ui.lessons.measure_registry import measure, uncached_measure
from pages.ui.lessons.measure_setup import MeasureError, Setup
from pages.ui.models import library
from transformer import hook_points
from transformer.training.presets import Group

PARTS = {
    "attention": (".attn.", ".cross_attn."),
    "feed-forward": (".mlp.",),
    "embedding": ("embed.",),
    "norm": (".ln", "ln_final."),
}
"""What the names of each part's parameters contain, the first that fits."""
DRAWS = 20_000
"""Pairs of random vectors: enough for the second digit of their products' spread."""
WIDEST = 512


@measure
def perplexity(setup: Setup) -> float:
    """Between how many equally likely tokens a model hesitates on text it never saw: e to the power of its loss."""
    loss = library.model(setup.name).card.validation_loss
    if loss is None:
        raise MeasureError(f"no loss is known of {setup.model} on text it never saw")
    return math.exp(loss)


@measure
def blind_guess(setup: Setup) -> float:
    """The loss of giving every token of the vocabulary the same probability, in nats."""
    return math.log(library.config(setup.name).vocab_size)


@measure
def entropy_rate(setup: Setup) -> float:
    """How undecided a model that sees one token leaves the next, in nats: the mean over the tokens that come up.

    Were its table exactly right, this would be its loss: Shannon 1948, §7, the entropy of a Markov source.
    """
    shape = library.config(setup.name)
    if shape.n_layers or shape.positions != "none":
        raise MeasureError(f"{setup.model} sees more than the last token, so that it is no table of pairs")
    with torch.no_grad():
        table = (
            library.model(setup.name).model(torch.arange(shape.vocab_size)[:, None])[:, 0].double().softmax(-1)
        )  # (token, next)
    how_often = torch.full((len(table),), 1 / len(table), dtype=torch.double)
    for _ in range(200):  # what comes up in a long text that it writes itself
        how_often = how_often @ table
    return float(how_often @ torch.special.entr(table).sum(-1))


@uncached_measure
def ladder_losses(setup: Setup, first: int = 8) -> list:
    """The validation losses of the ladder's first rungs, in nats, from the lowest rung up."""
    rungs = list(library.rungs(Group.LADDER).values())
    if not 1 <= first <= len(rungs):
        raise MeasureError(f"first is from 1 to {len(rungs)}, not {first}")
    return [entry.card.validation_loss for entry in rungs[:first]]


@measure
def parameter_share(setup: Setup, part: str) -> float:
    """The share of a model's parameters that is in one kind of part: attention, feed-forward, embedding or norm."""
    if part not in PARTS:
        raise MeasureError(f"part is one of {', '.join(PARTS)}")
    counts = dict.fromkeys([*PARTS, ""], 0)
    for name, values in library.model(setup.name).model.named_parameters():
        kind = next((kind for kind, signs in PARTS.items() if any(sign in name for sign in signs)), "")
        counts[kind] += values.numel()
    return counts[part] / sum(counts.values())


@uncached_measure
def size_ratio(setup: Setup, other_model: str) -> float:
    """How many times as many parameters a model has as another one."""
    return library.model(setup.name).card.parameters / library.model(Setup(other_model).name).card.parameters


@measure
def norm_count(setup: Setup) -> int:
    """How many norms a model has."""
    return sum(name.endswith("hook_scale") for name in hook_points(library.config(setup.name)))


@measure
def hidden_share(setup: Setup) -> float:
    """The share of a text's pairs of query and key that the causal mask hides."""
    return (len(setup.tokens) - 1) / (2 * len(setup.tokens))


@measure
def random_products(setup: Setup, width: int) -> float:
    """The standard deviation of q · k, for vectors of `width` random numbers with mean 0 and variance 1.

    Source: Vaswani et al. 2017, footnote 4.
    """
    if not 1 <= width <= WIDEST:
        raise MeasureError(f"width is from 1 to {WIDEST}, not {width}")
    queries, keys = np.random.default_rng(0).standard_normal((2, DRAWS, width))
    return float((queries * keys).sum(-1).std())


@measure
def position_similarity(setup: Setup, one: int, other: int) -> float:
    """The cosine of the angle between two rows of the table of positions that a model adds to its embeddings."""
    table = activations.position_table(setup.name)
    if table is None:
        raise MeasureError(f"{setup.model} adds no positions to its embeddings")
    if not (0 <= one < len(table) and 0 <= other < len(table)):
        raise MeasureError(f"a position is from 0 to {len(table) - 1} in this model")
    rows = table[[one, other]].astype(np.float64)
    return float(rows[0] @ rows[1] / np.linalg.norm(rows, axis=1).prod())
