"""Computes and caches named tensors of a forward pass, whole or in part, for the API and the pages.

A name is a hook point, a parameter, `logits` or `probabilities`, perhaps with an index as in NumPy, without the batch
dimension: `blocks.2.attn.hook_q[:, 3]`. Dimensions are those that `tensors_of` gives. `tokens` is what a decoder has
before it, `source` what an encoder reads; `interventions` change the pass. A number is the same, bit for bit, whatever
else is asked for with it, except logits over a large vocabulary, which are computed row by row.
"""

import functools
import math
import re
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from ..checkpoints.folder import Checkpoint
from ..config import ModelConfig
from ..inference.attention_outline import names_around
from ..inference.inputs import inputs_of
from ..inference.interventions import Intervention, hooks_of
from ..inference.logits import probabilities_of, stream_of
from ..inference.pass_outline import TensorInfo, array_of, tensors_of
from ..inference.recording import plain_array
from ..inference.tracing import Trace, every_point, trace_pass
from ..model.effective_weights import linear_map, weight_of
from ..model.equations import LOGITS, PROBABILITIES, UNCAPPED_LOGITS
from ..model.registry import attention_modules
from .cache import SHARED_BYTES, cached
from .open_models import OpenModel

Tokens = tuple[int, ...]
Interventions = tuple[Intervention, ...]
Index = tuple[int | slice, ...]

WHOLE_BELOW = 12_000_000
"""Bytes of a pass that is cached whole; a longer one is cached block by block, as they are asked for."""
PROJECTIONS_BELOW = 16_000_000
"""Bytes of all queries, keys and values of a model: below this, one pass serves all layers."""
MOST_RECORDED = 256_000_000
"""The most bytes of the points that one answer is cut from."""
SMALL_PART = 16
"""A part of less than a sixteenth of its tensor is recorded by itself, in a pass that keeps nothing else."""
BY_ROW = 500_000
"""The most cells of a tensor over the vocabulary that is computed whole, not row by row."""
_NAME = re.compile(r"([\w.]{1,200})(?:\[([\d:, -]{1,80})\])?", re.ASCII)
_INDEX = re.compile(r"(N)|(N)?\s*:\s*(N)?(?:\s*:\s*(N)?)?".replace("N", r"-?\d{1,18}"), re.ASCII)
_BLOCK = re.compile(r"(encoder\.|decoder\.)?blocks\.\d+\.")
one_at_a_time = threading.Lock()
"""Held while a long text's whole pass is in memory: those of thirty visitors at once would fill it."""


@dataclass(frozen=True)
class Part:
    """A tensor, or the part of it that an index takes."""

    text: str
    """As it was asked for."""
    info: TensorInfo
    index: Index = ()
    """Indices count from the start; a slice may step backwards."""

    @property
    def cells(self) -> int:
        """How many numbers it has."""
        sizes = list(self.info.sizes)
        taken = [
            len(range(*at.indices(size))) if isinstance(at, slice) else 1
            for at, size in zip(self.index, sizes, strict=False)
        ]
        return math.prod([*taken, *sizes[len(taken) :]])

    @property
    def is_small(self) -> bool:
        """Whether it is a small part of its tensor."""
        return SMALL_PART * self.cells < math.prod(self.info.sizes)


@functools.lru_cache(maxsize=64)
def infos_of(config: ModelConfig, tokens: int, source: int) -> Mapping[str, TensorInfo]:
    """The tensors of a pass over so many tokens, from `tensors_of`."""
    return MappingProxyType(tensors_of(config, tokens, source))


def part_of(text: str, infos: Mapping[str, TensorInfo]) -> Part:
    """Parse a tensor's name and index. Raises: ValueError, saying what is wrong, for one that a pass doesn't have."""
    match = _NAME.fullmatch(text)
    if match is None:
        raise ValueError(f"{text[:80]!r} is no name of a tensor; blocks.0.attn.hook_q[:, 3] is one")
    name, written = match.groups()
    if name not in infos:
        raise ValueError(f"this model has no {name[:80]}; it has {', '.join(list(infos)[:3])} and so on")
    info = infos[name]
    axes = written.split(",") if written else []
    if len(axes) > len(info.sizes):
        raise ValueError(f"{name} has {len(info.sizes)} dimensions ({', '.join(info.dims)}); {len(axes)} are indexed")
    chosen = zip(axes, info.dims, info.sizes, strict=False)
    return Part(text, info, tuple(_parsed_index(each.strip(), name, dim, size) for each, dim, size in chosen))


def _parsed_index(written: str, name: str, dim: str, size: int) -> int | slice:
    """An index or a slice along one dimension, as Python has them."""
    match = _INDEX.fullmatch(written)
    bounds = [None if each is None else int(each) for each in match.groups()] if match else [None, None, None, 0]
    at, start, stop, step = bounds
    if step == 0:
        raise ValueError(f"{written!r} is no index; 3, -1, :, 2:5 and ::2 are")
    if at is not None and -size <= at < size:
        return at % size
    taken = range(size)[start:stop:step] if at is None else range(0)
    if not taken:
        raise ValueError(f"{name} has {size} positions along {dim}; {written} isn't there")
    return slice(taken.start, None if taken.stop < 0 else taken.stop, taken.step)


def tensor(
    model: OpenModel, tokens: Tokens, source: Tokens, name: str, interventions: Interventions = ()
) -> np.ndarray:
    """One tensor or a part of it. Raises: ValueError for a name that the pass hasn't."""
    part = part_of(name, infos_of(model.checkpoint.model.config, len(tokens), len(source)))
    return tensors(model, tokens, source, [part], interventions)[name]


def tensors(
    model: OpenModel, tokens: Tokens, source: Tokens, parts: Iterable[Part], interventions: Interventions = ()
) -> dict[str, np.ndarray]:
    """Parts of a pass by their text: float32, truth values as bytes. One pass serves all of a block."""
    arrays: dict[str, np.ndarray] = {}
    small: list[Part] = []
    large: list[Part] = []
    config = model.checkpoint.model.config
    for part in parts:
        if part.info.kind == "parameter":
            weight = weight_of(model.checkpoint.model, part.info.name).reshape(part.info.sizes)
            arrays[part.text] = _unchangeable(_of_weight(weight, part.index))
        elif is_by_row(part.info):
            arrays[part.text] = _rows(model, tokens, source, part, interventions)
        else:
            is_alone = part.is_small or _is_too_large(config, tokens, source, part.info.name)
            (small if is_alone and part.info.kind == "point" else large).append(part)
    if (small or large) and bytes_of_pass(config, len(tokens), len(source)) < WHOLE_BELOW:
        everything = whole(model, tokens, source, interventions)
        return arrays | {part.text: everything[part.info.name][part.index] for part in (*small, *large)}
    there: Mapping[str, np.ndarray] = {}  # of the block before: no more than one is held, if none can be cached
    for part in large:
        if part.info.name not in there:
            there = _cached_by_block(model, tokens, source, part.info.name, interventions)
        arrays[part.text] = there[part.info.name][part.index]
    if small:
        wanted = tuple((part.info.name, _plain(part.index)) for part in small)
        recorded = _recorded_parts(model, tokens, source, wanted, interventions)
        arrays |= {part.text: array for part, array in zip(small, recorded, strict=True)}
    return arrays


def bytes_recorded(parts: Iterable[Part]) -> int:
    """The bytes of the points that these parts are cut from, which a pass has to keep whole."""
    infos = {part.info.name: part.info for part in parts}
    return sum(4 * math.prod(info.sizes) for info in infos.values() if info.kind == "point" and not is_by_row(info))


def is_by_row(info: TensorInfo) -> bool:
    """Whether a tensor over the vocabulary is too large to compute whole."""
    return "vocab" in info.dims and math.prod(info.sizes) > BY_ROW


def bytes_of_pass(config: ModelConfig, tokens: int, source: int) -> int:
    """The bytes of all points and outputs of a pass."""
    infos = infos_of(config, tokens, source).values()
    return sum(4 * math.prod(info.sizes) for info in infos if info.kind != "parameter")


def about_pass(checkpoint: Checkpoint, tokens: Tokens, source: Tokens) -> dict[str, Any]:
    """The metadata of a recording of a pass."""
    read = {"text": tokens, "source": source}
    labels = {name: checkpoint.tokenizer.labels(ids) for name, ids in read.items()}
    return {"config": checkpoint.model.config.to_dict(), "labels": labels, "ids": read}


@cached
def whole(
    checkpoint: Checkpoint, tokens: Tokens, source: Tokens, interventions: Interventions
) -> Mapping[str, np.ndarray]:
    """All points and outputs of a pass."""
    trace = trace_pass(checkpoint.model, tokens, source, interventions=interventions)
    shapes = infos_of(trace.config, len(tokens), len(source)).items()
    return {name: array_of(trace, info) for name, info in shapes if info.kind != "parameter" and not is_by_row(info)}


def _cached_by_block(
    model: OpenModel, tokens: Tokens, source: Tokens, name: str, interventions: Interventions
) -> Mapping[str, np.ndarray]:
    """A point of a longer text: with all queries, keys and values, or with all others of its block."""
    config = model.checkpoint.model.config
    projections = _projections_of(config)
    if name in projections:
        read = len(tokens) + len(source)
        is_small = 4 * read * config.n_heads * config.d_head * len(projections) < PROJECTIONS_BELOW
        names = projections if is_small else tuple(each for each in projections if _block_of(each) == _block_of(name))
        return _points(model, tokens, source, names, interventions)
    return _block(model, tokens, source, _block_of(name), interventions)


def _is_too_large(config: ModelConfig, tokens: Tokens, source: Tokens, name: str) -> bool:
    """Whether the block of a point is too large to be kept, so that the point is recorded by itself."""
    infos = _infos_of_block(config, len(tokens), len(source), _block_of(name)).values()
    return name not in _projections_of(config) and sum(4 * math.prod(info.sizes) for info in infos) > SHARED_BYTES


@functools.lru_cache(maxsize=256)
def _infos_of_block(config: ModelConfig, tokens: int, source: int, block: str) -> dict[str, TensorInfo]:
    """The points of one block, or all others where its name is empty, and the outputs."""
    return {
        name: info
        for name, info in infos_of(config, tokens, source).items()
        if info.kind != "parameter" and _block_of(name) == block and not is_by_row(info)
    }


@functools.lru_cache(maxsize=64)
def _projections_of(config: ModelConfig) -> tuple[str, ...]:
    """The queries, keys and values that enter each attention's product."""
    around = [
        names_around(config, kind, layer)
        for kind, modules in attention_modules(config).items()
        for layer in range(len(modules))
    ]
    return tuple(name for of_attention in around for which in ("q", "k", "v") if (name := of_attention[which]))


@cached
def _points(
    checkpoint: Checkpoint, tokens: Tokens, source: Tokens, names: Iterable[str], interventions: Interventions
) -> Mapping[str, np.ndarray]:
    return _recorded(checkpoint, tokens, source, names, interventions)


@cached
def _block(
    checkpoint: Checkpoint, tokens: Tokens, source: Tokens, block: str, interventions: Interventions
) -> Mapping[str, np.ndarray]:
    chosen = _infos_of_block(checkpoint.model.config, len(tokens), len(source), block)
    if chosen.keys().isdisjoint((LOGITS, PROBABILITIES)):
        return _recorded(checkpoint, tokens, source, chosen, interventions)
    names = [name for name, info in chosen.items() if info.kind == "point"]
    trace = trace_pass(checkpoint.model, tokens, source, names=names, interventions=interventions)
    return {name: array_of(trace, info) for name, info in chosen.items()}


@cached
def _recorded_parts(
    checkpoint: Checkpoint,
    tokens: Tokens,
    source: Tokens,
    wanted: tuple[tuple[str, tuple], ...],
    interventions: Interventions,
) -> tuple[np.ndarray, ...]:
    recorded = _recorded(checkpoint, tokens, source, {name for name, _ in wanted}, interventions)
    return tuple(recorded[name][_index(plain)].copy() for name, plain in wanted)


def _recorded(
    checkpoint: Checkpoint, tokens: Tokens, source: Tokens, names: Iterable[str], interventions: Interventions
) -> dict[str, np.ndarray]:
    """A forward pass as far as it takes to see these points, as the interventions left them."""
    model, shapes = checkpoint.model, infos_of(checkpoint.model.config, len(tokens), len(source))
    inputs = inputs_of(model, tokens, source)
    with torch.no_grad():
        cache = model.run_until_recorded(
            *inputs, names_filter=set(names), fwd_hooks=hooks_of(interventions, model), watched=every_point
        )
    read = Trace(model.config, torch.tensor(list(tokens)), torch.tensor(list(source)), cache)
    return {name: array_of(read, shapes[name]) for name in names}


def _rows(model: OpenModel, tokens: Tokens, source: Tokens, part: Part, interventions: Interventions) -> np.ndarray:
    """A part of the logits or probabilities over a large vocabulary."""
    first, *others = part.index or (slice(None),)
    with torch.no_grad():
        stream = torch.tensor(_stream(model, tokens, source, interventions)[first].copy())
        unembed = model.checkpoint.model.unembed
        inputs = torch.atleast_2d(stream).type_as(weight_of(model.checkpoint.model, "unembed.weight"))
        if part.info.name == UNCAPPED_LOGITS:
            maps = linear_map(unembed, inputs.shape[-1], "unembed")
            rows = plain_array(F.linear(inputs, *maps))
        else:
            logits = unembed(inputs)
            rows = plain_array(logits if part.info.name == LOGITS else probabilities_of(logits))
    return (rows[0] if isinstance(first, int) else rows)[(..., *others) if others else ...]


@cached
def _stream(checkpoint: Checkpoint, tokens: Tokens, source: Tokens, interventions: Interventions) -> np.ndarray:
    """The unembedding's input, (pos, d_model)."""
    return plain_array(stream_of(checkpoint.model, tokens, source, hooks_of(interventions, checkpoint.model)))


def _block_of(name: str) -> str:
    match = _BLOCK.match(name)
    return match[0] if match else ""


def _plain(index: Index) -> tuple:
    """An index that can be hashed."""
    return tuple((at.start, at.stop, at.step) if isinstance(at, slice) else at for at in index)


def _index(plain: tuple) -> Index:
    return tuple(slice(*at) if isinstance(at, tuple) else at for at in plain)


def _of_weight(weight: torch.Tensor, index: Index) -> np.ndarray:
    """A part of a weight; PyTorch's slices have no steps backwards."""
    steps = [at.step or 1 for at in index if isinstance(at, slice)]
    ranges = [range(size)[at] if isinstance(at, slice) else at for at, size in zip(index, weight.shape, strict=False)]
    ahead = [each[:: 1 if each.step > 0 else -1] if isinstance(each, range) else each for each in ranges]
    part = weight[tuple(slice(each.start, each.stop, each.step) if isinstance(each, range) else each for each in ahead)]
    return plain_array(part)[tuple(slice(None, None, 1 if step > 0 else -1) for step in steps)]


def _unchangeable(array: np.ndarray) -> np.ndarray:
    """The same numbers, which may be the model's own memory, for reading only."""
    array = np.asarray(array).view()
    array.flags.writeable = False
    return array
