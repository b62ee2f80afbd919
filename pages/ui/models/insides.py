"""What the page Inside draws a forward pass from: an outline of all of it, and the tensors that are asked for.

Asked for as in `activations`, and remembered. `tokens` is what a decoder has before it; `source` what an encoder reads;
`interventions` change the pass. A tensor's name is its hook point or parameter, `logits` or `probabilities`, with the
part of it that is there in brackets. Its dimensions are those that `tensors_of` gives.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import re
import threading
import weakref
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import torch

from pages.ui.components.inside import BY_ROW
from pages.ui.models.activations import LARGEST_VOCABULARY
from pages.ui.models.cache import remembered
from pages.ui.models.library import OpenModel, opened
from transformer import Checkpoint, Intervention, ModelConfig, Recording, Tokenizer
from transformer.inference.interventions import hooks_of
from transformer.inference.logits import probabilities_of, stream_of
from transformer.inference.outline import (
    TensorInfo,
    array_of,
    lens_at,
    outline_of_text,
    statistics_of,
    tensors_of,
)
from transformer.inference.outline import outline as outline_of
from transformer.inference.recompute import Pass, deviations_of_text, whole_pass
from transformer.inference.residual import direct_logit_attribution
from transformer.inference.summaries import Statistics
from transformer.inference.whole_recording import circuit_parts
from transformer.model.equations import LOGITS

Tokens = tuple[int, ...]
Interventions = tuple[Intervention, ...]
WHOLE_BELOW = 12_000_000
"""Bytes of a pass: below this all of it is remembered, else a block of it, when something of that is asked for."""
LABELLED_VOCABULARY = 512
"""Tokens of a vocabulary that is named in full."""
NAMED = 64
"""Tokens that are named with a row over a large vocabulary: the likeliest, more than are drawn by hand."""
WHOLE = ("tensor", "slice")
"""What is asked for of which the whole tensor has to be there."""
READ = 1_000
"""Places, of all heights together, that the logit lens reads at first of a large vocabulary; others when asked for."""
_weights: weakref.WeakKeyDictionary[torch.nn.Module, Mapping[str, Statistics]] = weakref.WeakKeyDictionary()
_BLOCK = re.compile(r"(encoder\.|decoder\.)?blocks\.\d+\.")
one_at_a_time = threading.Lock()
"""Held by whoever holds all of a long text's pass: with thirty visitors, thirty of them would fill the memory."""


@dataclass(frozen=True)
class Found:
    """What is remembered of a pass."""

    outline: Recording
    tensors: Mapping[str, np.ndarray] | None
    """Its points and outputs; None where all of them together are too much."""


@dataclass(frozen=True)
class Check:
    """How far a tensor that was computed is from what its equation gives."""

    name: str
    largest: float | None
    """The largest difference of two cells; None where one is infinite and the other isn't."""
    magnitude: float
    """The tensor's largest absolute value."""
    set_by: tuple[str, ...] = ()
    """What was changed in it, in words."""


def outline(
    model: str | OpenModel, tokens: Tokens, source: Tokens = (), interventions: Interventions = ()
) -> Recording:  # fmt: skip
    """What is seen of a pass at first: what `transformer.inference.outline.outline` makes of it.

    Its metadata has besides: `labels` of text and source, and `vocabulary`, the labels of all tokens, or of those that
    are named by their number where there are many.
    """
    return _found(model, tokens, source, interventions).outline


def parts(
    model: str | OpenModel, tokens: Tokens, source: Tokens, wanted: Iterable[tuple], interventions: Interventions = ()
) -> Recording:  # fmt: skip
    """What is asked for: ("tensor", name), ("slice", name, head), ("row", name, place), ("who", pos, token),
    ("lens", pos), ("checks",) or ("circuit", kind, attention, head).

    Tensors are whole, of one head, or one row of a large one; `lens[pos]`, `lens.probability[pos]` and so on
    (height, 1) are what the outline has of other positions; with a row of logits or probabilities come the
    likeliest tokens' labels, in the metadata `vocabulary`; `who[pos, token]` (part,) has each part's share
    in a token's logit, of which the metadata `who` has the `names`; metadata `checks` says how far
    each tensor is from what its equation gives; circuits are what `circuit_parts` makes of them, and metadata
    `vocabulary` has the labels of their tokens where not
    all are named in the outline. Floats are float32, truth values bytes. What is asked for has to be there.
    """
    model = opened(model) if isinstance(model, str) else model
    tensors: dict[str, np.ndarray] = {}
    about: dict[str, Any] = {}
    wanted = list(wanted)
    whole = _tensors(model, tokens, source, {place[0] for what, *place in wanted if what in WHOLE}, interventions)
    for what, *place in wanted:
        if what == "tensor":
            tensors[place[0]] = whole[place[0]]
        elif what == "slice":
            name, head = place
            axis = infos(model, tokens, source)[name].dims.index("head")
            tensors[f"{name}[{head}]"] = whole[name].take(head, axis)
        elif what == "row":
            found = tensors[f"{place[0]}[{place[1]}]"] = row(model, tokens, source, *place, interventions)
            if infos(model, tokens, source)[place[0]].dims[-1] == "vocab":
                _name(about, model, np.argsort(-found, kind="stable")[:NAMED])
        elif what == "lens":
            found = _lens(model, tokens, source, *place, interventions)
            tensors |= {f"{name}[{place[0]}]": array for name, array in found.items()}
            _name(about, model, found["lens"])
        elif what == "who":
            names, shares = _who(model, tokens, source, *place, interventions)
            tensors[f"who[{place[0]}, {place[1]}]"], about["who"] = shares, {"names": names}
        elif what == "circuit":
            found = _circuit(model, *place, frozenset(tokens) | frozenset(source))
            tensors |= found.tensors
            about.setdefault("vocabulary", {}).update(found.metadata["vocabulary"])
        else:
            about["checks"] = [dataclasses.asdict(check) for check in checks(model, tokens, source, interventions)]
    return Recording(tensors, about)


def _name(about: dict[str, Any], model: OpenModel, ids: np.ndarray) -> None:
    """Add what tokens are called to the metadata `vocabulary`."""
    named = sorted({int(each) for each in ids.flat})
    labels = model.checkpoint.tokenizer.labels(named)
    about.setdefault("vocabulary", {}).update(zip(map(str, named), labels, strict=True))


def tensor(
    model: str | OpenModel, tokens: Tokens, source: Tokens, name: str, interventions: Interventions = ()
) -> np.ndarray:  # fmt: skip
    """One tensor of a pass, or a parameter, in the dimensions of its `infos`; KeyError for a name that it hasn't."""
    model = opened(model) if isinstance(model, str) else model
    return _tensors(model, tokens, source, {name}, interventions)[name]


def _tensors(
    model: OpenModel, tokens: Tokens, source: Tokens, names: Iterable[str], interventions: Interventions
) -> dict[str, np.ndarray]:
    """Several of them, as `tensor` has one. Where not even a block of a text is remembered, one pass serves all those
    of a block."""
    found = {}
    by_block: dict[str, list[str]] = {}
    for name in names:
        info = infos(model, tokens, source)[name]
        if info.kind == "parameter":
            found[name] = array_of(of_parameters(model.checkpoint), info)
            found[name].flags.writeable = False  # it may be the model's own memory
        else:
            by_block.setdefault(_block_of(name), []).append(name)
    everything = _found(model, tokens, source, interventions).tensors if by_block else None
    for block, among in by_block.items():
        there = _block(model, tokens, source, block, interventions) if everything is None else everything
        found |= {name: there[name] for name in among}
    return found


def row(
    model: OpenModel, tokens: Tokens, source: Tokens, name: str, place: int, interventions: Interventions = ()
) -> np.ndarray:  # fmt: skip
    """One row of a tensor that is too large to be had whole: of a token, or of a position."""
    engine, info = model.checkpoint.model, infos(model, tokens, source)[name]
    if info.kind == "parameter":
        return engine.get_parameter(name)[place].detach().numpy().copy()
    with torch.no_grad():
        logits = engine.unembed(torch.tensor(_stream(model, tokens, source, interventions)[place]))
    return (logits if name == LOGITS else probabilities_of(logits[None])[0]).numpy()


def is_by_row(info: TensorInfo) -> bool:
    """Whether a tensor over the vocabulary is too large to be had whole."""
    return "vocab" in info.dims and math.prod(info.sizes) > BY_ROW


@remembered
def _stream(checkpoint: Checkpoint, tokens: Tokens, source: Tokens, interventions: Interventions) -> np.ndarray:
    """What the unembedding reads, (pos, d_model)."""
    return stream_of(checkpoint.model, tokens, source, hooks_of(interventions, checkpoint.model)).numpy()


@remembered
def _lens(
    checkpoint: Checkpoint, tokens: Tokens, source: Tokens, pos: int, interventions: Interventions
) -> Mapping[str, np.ndarray]:
    return lens_at(checkpoint.model, tokens, source, pos, interventions)


@remembered
def checks(
    checkpoint: Checkpoint, tokens: Tokens, source: Tokens = (), interventions: Interventions = ()
) -> tuple[Check, ...]:  # fmt: skip
    """Every tensor of a pass against its equation, in the order of the pass."""
    with one_at_a_time:
        found = deviations_of_text(checkpoint.model, tokens, source, interventions)
    return tuple(
        Check(each.name, each.largest if np.isfinite(each.largest) else None, each.magnitude, each.set_by)
        for each in found
    )


def infos(model: OpenModel, tokens: Tokens, source: Tokens) -> Mapping[str, TensorInfo]:
    """What there is of a pass, as `tensors_of` has it."""
    return _infos(model.checkpoint.model.config, len(tokens), len(source))


@functools.lru_cache(maxsize=64)
def _infos(config: ModelConfig, tokens: int, source: int) -> Mapping[str, TensorInfo]:
    return MappingProxyType(tensors_of(config, tokens, source))


@remembered
def _found(checkpoint: Checkpoint, tokens: Tokens, source: Tokens, interventions: Interventions) -> Found:
    shapes = _infos(checkpoint.model.config, len(tokens), len(source))
    size = sum(4 * int(np.prod(info.sizes)) for info in shapes.values() if info.kind != "parameter")
    if size < WHOLE_BELOW:
        found = whole_pass(checkpoint.model, tokens, source, interventions=interventions)
        sketched = outline_of(found)
        tensors = {name: array_of(found, info) for name, info in shapes.items()
                   if info.kind != "parameter" and not is_by_row(info)}  # fmt: skip
    else:
        known = _of_weights(checkpoint)
        with one_at_a_time:
            sketched = outline_of_text(checkpoint.model, tokens, source, interventions, of_parameters=known,
                                       read=_positions_read(checkpoint.model.config))  # fmt: skip
        tensors = None
    return Found(_labelled(sketched, checkpoint.tokenizer), tensors)


def _positions_read(config: ModelConfig) -> int | None:
    """How many positions the logit lens reads at first; None for all."""
    return None if config.vocab_size <= LARGEST_VOCABULARY else max(1, READ // (config.n_layers + 1))


def _of_weights(checkpoint: Checkpoint) -> Mapping[str, Statistics]:
    """The statistics of a model's parameters; they take longer than a short text does, and stay the same."""
    with one_at_a_time:
        if checkpoint.model not in _weights:
            _weights[checkpoint.model] = statistics_of(checkpoint.model)
        return _weights[checkpoint.model]


@remembered
def _block(
    checkpoint: Checkpoint, tokens: Tokens, source: Tokens, block: str, interventions: Interventions
) -> Mapping[str, np.ndarray]:
    """The points of one block, or all others where its name is empty, and the outputs."""
    shapes = _infos(checkpoint.model.config, len(tokens), len(source))
    chosen = {name for name, info in shapes.items()
              if info.kind != "parameter" and _block_of(name) == block and not is_by_row(info)}  # fmt: skip
    found = whole_pass(checkpoint.model, tokens, source, names=points_among(chosen), interventions=interventions,
                       outputs=LOGITS in chosen)  # fmt: skip
    return {name: array_of(found, shapes[name]) for name in chosen}


def _who(
    model: OpenModel, tokens: Tokens, source: Tokens, pos: int, token: int, interventions: Interventions
) -> tuple[tuple[str, ...], np.ndarray]:
    """Each part's name and share (part,) in the logit of a token, after the token at `pos`.

    A logit is a sum of what is at its position, so the pass is cut to that.
    """
    checkpoint, found = model.checkpoint, _found(model, tokens, source, interventions).tensors
    if found is None:
        found = _position(model, tokens, source, pos, interventions)
    else:
        found = {name: found[name][pos : pos + 1] for name in _local(infos(model, tokens, source))}
    tensors = {**checkpoint.model.state_dict(), **{name: torch.tensor(array) for name, array in found.items()}}
    here = Pass(checkpoint.model.config, torch.tensor(tokens[pos : pos + 1]), torch.tensor(source), tensors)
    shares = direct_logit_attribution(here, [token])
    return shares.names, shares.values[:, 0].float().numpy()


@remembered
def _position(
    checkpoint: Checkpoint, tokens: Tokens, source: Tokens, pos: int, interventions: Interventions
) -> Mapping[str, np.ndarray]:
    """The points of one position, (1, …) each."""
    shapes = _infos(checkpoint.model.config, len(tokens), len(source))
    names = _local(shapes)
    found = whole_pass(checkpoint.model, tokens, source, names=points_among(names), interventions=interventions,
                       outputs=False)  # fmt: skip
    return {name: array_of(found, shapes[name])[pos : pos + 1] for name in names}


@remembered
def _circuit(checkpoint: Checkpoint, kind: str, attention: str, head: int, read: frozenset[int]) -> Recording:
    """A circuit of a head; read: the text's tokens. It is the weights' alone, whatever is changed in the pass."""
    tensors = circuit_parts(checkpoint.model, kind, attention, head, read)
    named: list[int] = []
    if checkpoint.tokenizer.vocab_size > LABELLED_VOCABULARY:
        named = sorted({int(each) for ids in tensors.values() if ids.dtype == np.int32 for each in ids})
    labels = dict(zip(map(str, named), checkpoint.tokenizer.labels(named), strict=True))
    return Recording(tensors, {"vocabulary": labels})


def _local(shapes: Mapping[str, TensorInfo]) -> list[str]:
    """The points that have something at each position of the text, of those that a logit is added up from."""
    return [name for name, info in shapes.items() if info.kind == "point" and info.dims[0] == "pos"
            and not name.startswith("encoder.") and not name.endswith("hook_result")]  # fmt: skip


def _block_of(name: str) -> str:
    found = _BLOCK.match(name)
    return found[0] if found else ""


def points_among(names: Iterable[str]) -> Any:
    """A filter for `whole_pass`, which may come to nothing."""
    return frozenset(names).__contains__


def of_parameters(checkpoint: Checkpoint) -> Pass:
    """A pass over nothing, that has a model's parameters."""
    nothing = torch.tensor([], dtype=torch.long)
    return Pass(checkpoint.model.config, nothing, nothing, checkpoint.model.state_dict())


def _labelled(sketched: Recording, tokenizer: Tokenizer) -> Recording:
    """An outline that says what its tokens are called."""
    ids = sketched.metadata["ids"]
    used = sorted({*ids["text"], *ids["source"], *map(int, sketched.tensors["next"].flat),
                   *map(int, sketched.tensors["lens"].flat)} - {-1})  # fmt: skip
    if tokenizer.vocab_size <= LABELLED_VOCABULARY:
        vocabulary: Any = tokenizer.labels(range(tokenizer.vocab_size))
    else:
        vocabulary = dict(zip(map(str, used), tokenizer.labels(used), strict=True))
    labels = {text: tokenizer.labels(found) for text, found in ids.items()}
    return Recording(sketched.tensors, {**sketched.metadata, "labels": labels, "vocabulary": vocabulary})
