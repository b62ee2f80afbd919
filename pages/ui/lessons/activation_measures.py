"""Measures activations: heads, the residual stream by layer, any number of a pass. See `measures`."""

import numpy as np
import torch

from pages.ui.computations import activations
from pages.ui.computations.activations import Interventions, Tokens
from pages.ui.lessons.measure_registry import measure
from pages.ui.lessons.measure_setup import MeasureError, Setup
from pages.ui.models import attention_kinds, library
from pages.ui.models.model_cache import cached
from transformer import (
    MEASURES,
    Checkpoint,
    attention_modules,
    causal_mask,
    direct_logit_attribution,
    head_measures,
    in_window,
    logit_lens,
    trace_pass,
)
from transformer.api import tensors
from transformer.api.ablation_and_patching import Ablation


def _attention(setup: Setup, layer: int, head: int, attention: str) -> tuple[str, str]:
    """The kind of attention, and its module. attention: as in a link, "" for the model's own."""
    kinds = attention_modules(library.config(setup.name))
    kind = attention or next(reversed(kinds), "")
    if kind not in kinds or not 0 <= layer < len(kinds[kind]) or not 0 <= head < library.config(setup.name).n_heads:
        of = f" of its {attention}" if attention else ""
        raise MeasureError(f"{setup.model} has no head {head} of layer {layer}{of}")
    return kind, kinds[kind][layer]


def _pattern(setup: Setup, layer: int, head: int, attention: str) -> np.ndarray:
    """(query, key): the weights of one head over the tokens that fit the context."""
    _, module = _attention(setup, layer, head, attention)
    return _tensor(setup, f"{module}.hook_pattern[{head}]")


def _row(setup: Setup, layer: int, head: int, query: int, attention: str) -> np.ndarray:
    pattern = _pattern(setup, layer, head, attention)
    begin = 0 if attention == "encoder" else setup.begin
    if query == -1 and setup.fills_masks:
        query = setup.asked_position
    row = query + len(pattern) if query < 0 else query - begin
    if not 0 <= row < len(pattern):
        raise MeasureError(f"a query is from {begin} to {begin + len(pattern) - 1} in this text, not {query}")
    return pattern[row]


def _begin_of_keys(setup: Setup, attention: str) -> int:
    return setup.begin if attention in ("", "self", "decoder") and not setup.source else 0


@measure
def weight(setup: Setup, layer: int, head: int, query: int, key: int, attention: str = "") -> float:
    """The weight that a head gives a key, seen from a query: from 0 to 1."""
    row = _row(setup, layer, head, query, attention)
    column = key + len(row) if key < 0 else key - _begin_of_keys(setup, attention)
    if not 0 <= column < len(row):
        raise MeasureError(f"there is no key {key} in this text")
    return row[column]


@measure
def weight_after(setup: Setup, layer: int, head: int, query: int = -1, attention: str = "") -> float:
    """How much of its weight a head gives to the tokens after a query, which a causal mask would hide."""
    row = _row(setup, layer, head, query, attention)
    place = setup.asked_position if query == -1 and setup.fills_masks else query
    return float(row[place + 1 :].sum()) if place >= 0 else 0.0


@measure
def heaviest_key(setup: Setup, layer: int, head: int, query: int = -1, attention: str = "") -> int:
    """The position that a head looks at most, seen from a query."""
    return int(_row(setup, layer, head, query, attention).argmax()) + _begin_of_keys(setup, attention)


@measure
def heaviest_weight(setup: Setup, layer: int, head: int, query: int = -1, attention: str = "") -> float:
    """The weight that a head gives that position."""
    return _row(setup, layer, head, query, attention).max()


@measure
def heaviest_cell(setup: Setup, layer: int, head: int, attention: str = "") -> list:
    """The query and the key of the largest weight in a head's whole picture; of equal ones the first."""
    pattern = _pattern(setup, layer, head, attention)
    query, key = np.unravel_index(pattern.argmax(), pattern.shape)
    return [int(query) + (0 if attention == "encoder" else setup.begin), int(key) + _begin_of_keys(setup, attention)]


@measure
def least_weight(setup: Setup, query: int, key: int) -> float:
    """The smallest weight that any head of a decoder gives a key, seen from a query."""
    shape = library.config(setup.name)
    heads = [(layer, head) for layer in range(shape.n_layers) for head in range(shape.n_heads)]
    if not heads:
        raise MeasureError(f"{setup.model} has no attention")
    return min(weight(setup, layer, head, query, key) for layer, head in heads)


@measure
def opening_key(setup: Setup, query: int = -1) -> int:
    """The position looked at most by the head on which pages open: the one that the card finds most telling."""
    return heaviest_key(setup, *_opening(setup), query)


@measure
def opening_weight(setup: Setup, query: int = -1) -> float:
    """The weight that this head gives that position."""
    return heaviest_weight(setup, *_opening(setup), query)


def _opening(setup: Setup) -> tuple[int, int]:
    """The layer and the head on which the page Attention opens."""
    shape = library.config(setup.name)
    kinds = attention_modules(shape)
    if not kinds:
        raise MeasureError(f"{setup.model} has no attention")
    return attention_kinds.first_layer_and_head(shape, library.model(setup.name).card, next(reversed(kinds)))


@measure
def mean_heaviest_weight(setup: Setup, layer: int = -1) -> float:
    """The largest weight of a row, its mean over all queries that see several keys and heads, of a layer or of all."""
    layers = range(library.config(setup.name).n_layers) if layer < 0 else [layer]
    heads = range(library.config(setup.name).n_heads)
    return float(np.mean([_pattern(setup, at, head, "")[1:].max(-1) for at in layers for head in heads]))


@measure
def head_measure(setup: Setup, layer: int, head: int, name: str) -> float:
    """How much a head does one of the things that heads are sorted by on the page Attention, such as "induction"."""
    names = [kind.name for kind in MEASURES]
    if name not in names:
        raise MeasureError(f"name is one of {', '.join(names)}")
    kind, _ = _attention(setup, layer, head, "")
    if kind != "self":
        raise MeasureError(f"{setup.model} has heads of other kinds, too; this is for decoders")
    pattern = torch.tensor(_pattern(setup, layer, head, ""))[None]
    measured = head_measures(pattern, causal_mask(pattern.shape[1], pattern.shape[2]), torch.tensor(setup.window))
    return float(measured[0, names.index(name)])


@measure
def ablation(setup: Setup, layer: int, head: int) -> float:
    """How much the text's mean loss rises, in nats, when a head of a decoder is ablated; head −1: the feed-forward."""
    effects = _ablated(setup)
    if effects.loss is None:
        raise MeasureError("a text of one token has no loss: nothing comes before it")
    ending = f"{layer}.hook_mlp_out" if head == -1 else f"{layer}.attn.hook_z"
    wanted = None if head == -1 else head
    for part, rise in zip(effects.parts, effects.loss, strict=True):
        if part.point.endswith(f"blocks.{ending}") and part.head == wanted and not part.point.startswith("encoder"):
            return float(rise)
    raise MeasureError(f"{setup.model} has no head {head} of layer {layer}")


@measure
def spare_heads(setup: Setup, below: float) -> int:
    """How many heads can be ablated, each alone, with the text's mean loss rising by less than `below` nats."""
    effects = _ablated(setup)
    if effects.loss is None:
        return 0
    return sum(rise < below for part, rise in zip(effects.parts, effects.loss, strict=True) if part.head is not None)


@measure
def number_of_heads(setup: Setup) -> int:
    """How many heads the model has in all its layers and attentions."""
    shape = library.config(setup.name)
    return shape.n_heads * sum(map(len, attention_modules(shape).values()))


def _ablated(setup: Setup) -> Ablation:
    return activations.ablation(setup.name, setup.window, setup.source, -1, setup.begin, setup.interventions)


@measure
def logit_lens_losses(setup: Setup) -> list:
    """The mean loss of the text, had the model ended at the embedding, or after each of its layers."""
    if setup.begin or len(setup.tokens) < 2:
        raise MeasureError("the text has at least two tokens, and no more than the context holds")
    return _lens_losses(setup.name, setup.tokens, setup.source, setup.interventions).tolist()


@cached
def _lens_losses(checkpoint: Checkpoint, tokens: Tokens, source: Tokens, interventions: Interventions) -> np.ndarray:
    logits = logit_lens(trace_pass(checkpoint.model, tokens, source, interventions=interventions)).logits
    right = torch.tensor(tokens[1:])[None, :, None].expand(len(logits), -1, 1)
    return -logits.double().log_softmax(-1)[:, :-1].gather(-1, right)[..., 0].mean(1).numpy()


@measure
def head_logit(setup: Setup, token: str, layer: int, head: int, attention: str = "") -> float:
    """How much a head adds to a token's logit after the last token: its direct logit attribution."""
    _, module = _attention(setup, layer, head, attention)
    contributions = _attributed(
        setup.name, setup.window, setup.source, setup.token(token), in_window(setup.interventions, setup.begin)
    )
    return contributions[f"{module}.hook_result[{head}]"]


@cached
def _attributed(
    checkpoint: Checkpoint, tokens: Tokens, source: Tokens, token: int, interventions: Interventions
) -> dict[str, float]:
    """By part, what it adds to the logit of a token after the last one."""
    trace = trace_pass(checkpoint.model, tokens, source, interventions=interventions)
    parts = direct_logit_attribution(trace, [token] * len(tokens))
    return dict(zip(parts.names, parts.values[:, -1].tolist(), strict=True))


@measure
def cell(setup: Setup, tensor: str, at: list[int]) -> float:
    """One number of the pass: a tensor by its name on the page Inside, and the indices of the number."""
    numbers = _tensor(setup, tensor)
    try:
        return float(numbers[tuple(at)])
    except (IndexError, TypeError):
        raise MeasureError(f"{tensor} has the shape {numbers.shape}, and no cell {at}") from None


@measure
def vector_length(setup: Setup, tensor: str, position: int = -1) -> float:
    """The length of the vector that a tensor holds for a position."""
    return float(np.linalg.norm(_tensor(setup, tensor)[setup.position(position) - setup.begin]))


@measure
def heads_length(setup: Setup, layer: int, heads: list[int], attention: str = "") -> float:
    """The length of what some heads of a layer add together to the last token's stream."""
    _, module = _attention(setup, layer, max(heads), attention)
    return float(np.linalg.norm(_tensor(setup, f"{module}.hook_result")[-1, heads].sum(0)))


def _tensor(setup: Setup, name: str) -> np.ndarray:
    changes = in_window(setup.interventions, setup.begin)
    try:
        return tensors.tensor(library.opened(setup.name), setup.window, setup.source, name, changes)
    except ValueError:
        raise MeasureError(
            f"this model has no tensor {name[:60]}; the page Inside shows the names of those it has"
        ) from None
