"""What a page draws attention from: an overview of all heads, what one head starts from, and one row in every step.

Asked for as in `activations`, and remembered. `tokens` is what a decoder has before it; `source` what an encoder reads;
`kind` as in `attention_modules`; `interventions` change the pass. A tensor's name is its hook point or parameter, with
the part of it that is there in brackets, as in NumPy and without the batch dimension: `blocks.2.attn.hook_z[17, 3]`.
Dimensions: layer, head, query, key, d_head, d_model.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

import numpy as np
import torch
from torch import Tensor

from pages.ui.models.cache import remembered
from pages.ui.models.library import OpenModel, opened
from transformer import (
    ActivationCache,
    Checkpoint,
    Intervention,
    ModelConfig,
    Recording,
    attention_modules,
    hook_points,
    record,
)
from transformer.inference.attention_outline import has_scores, names_around, outline, outline_of_layer
from transformer.inference.interventions import hooks_of
from transformer.inference.overview import LIMIT
from transformer.inference.recording import as_array

Tokens = tuple[int, ...]
Interventions = tuple[Intervention, ...]

ALL_LAYERS_BELOW = 16_000_000
"""Bytes of all queries, keys and values of a model: below this, one pass serves all layers."""
STEPS = ("hook_raw_scores", "hook_scaled_scores", "hook_attn_scores", "hook_pattern")


@remembered
def overview(
    checkpoint: Checkpoint, tokens: Tokens, source: Tokens = (), kind: str = "self", interventions: Interventions = ()
) -> Recording:
    """All heads at a glance, and what is where. One layer's patterns at a time are held in memory.

    What is in it is said at `outline`.
    """
    shape = checkpoint.model.config
    modules = attention_modules(shape)[kind]
    looks_at_itself = None if kind == "cross" else torch.tensor(source if kind == "encoder" else tokens)
    cells, measures = [], []
    masks: dict[str, Tensor] = {}

    def see_mask(mask: Tensor, hook: object) -> None:
        masks["newest"] = mask.reshape(mask.shape[-2:])

    def see_pattern(pattern: Tensor, hook: object) -> None:
        layer = outline_of_layer(pattern[0], masks["newest"], looks_at_itself)  # its mask is made before its pattern
        cells.append(layer[0])
        measures.append(layer[1])

    sees = {"hook_mask": see_mask, "hook_pattern": see_pattern}
    model, readers = checkpoint.model, [(f"{each}.{point}", see) for each in modules for point, see in sees.items()]
    with torch.no_grad(), model.hooked([*hooks_of(interventions, model), *readers]):
        model(*_inputs(tokens, source), newest=True)
    labels = checkpoint.tokenizer.labels
    words = {"text": labels(tokens), "source": labels(source)}
    return outline(shape, kind, words, cells, measures, interventions)


def head(
    model: str | OpenModel, tokens: Tokens, source: Tokens, kind: str, layer: int, head: int,
    interventions: Interventions = (),
) -> Recording:  # fmt: skip
    """What the arithmetic of one head starts from: its queries, keys and values; values alone for a plain average.

    Tensors: (pos, d_head) each, float32: those of `names_around` called q, k and v, followed by `[:, head]`, or by the
    head of keys and values that it shares with others.
    Raises: ValueError for a layer or head that the model doesn't have.
    """
    model = opened(model) if isinstance(model, str) else model
    shape = model.checkpoint.model.config
    _check(shape, kind, layer, head)
    queries, keys = _lengths(tokens, source, kind)
    rows = queries + 2 * keys if has_scores(shape, kind) else keys
    width = shape.n_heads * shape.d_head
    together = len(attention_modules(shape)[kind]) * rows * width * np.dtype(np.float32).itemsize
    passes = None if together < ALL_LAYERS_BELOW else layer
    found = _queries_keys_values(model, tokens, source, kind, passes, interventions)
    shared = head * shape.kv_heads // shape.n_heads
    own = {name: shared if name.endswith(("k", "v")) else head for name in _starting_points(shape, kind, layer)}
    tensors = {f"{name}[:, {at}]": found[name][:, at] for name, at in own.items()}
    return Recording(tensors, {"kind": kind, "layer": layer, "head": head})


@remembered
def row(
    checkpoint: Checkpoint, tokens: Tokens, source: Tokens, kind: str, layer: int, head: int, query: int,
    interventions: Interventions = (),
) -> Recording:  # fmt: skip
    """What the model computed for one query of one head, step by step, so that what is derived can be compared.

    Tensors: each of the `STEPS` that there is `[head, query]` (key,), −∞ among the masked scores where hidden;
    `hook_z` (d_head,) and `hook_result` (d_model,) `[query, head]`; attention's output and the residual stream before
    and after it, where there is one, `[query]` (d_model,); `out.weight[:, head]` (d_model, d_head), the head's part
    of W_O.
    Raises: ValueError for a layer, head or query that there isn't.
    """
    shape = checkpoint.model.config
    _check(shape, kind, layer, head)
    if not 0 <= query < _lengths(tokens, source, kind)[0]:
        raise ValueError(f"There is no query {query} in this text.")
    module, around = attention_modules(shape)[kind][layer], names_around(shape, kind, layer)
    steps = STEPS if has_scores(shape, kind) else STEPS[-1:]
    parts: dict[str, tuple[int, ...]] = {f"{module}.{point}": (head, query) for point in steps}
    parts |= {f"{module}.{point}": (query, head) for point in ("hook_z", "hook_result")}
    parts |= {name: (query,) for name in (around["before"], around["out"], around["after"]) if name}
    found = _recorded(checkpoint, tokens, source, interventions, parts)
    tensors = {f"{name}[{', '.join(map(str, part))}]": found[name][0][part].numpy().copy()
               for name, part in parts.items()}  # fmt: skip
    weight = checkpoint.model.get_parameter(f"{module}.out.weight").detach().unflatten(-1, (shape.n_heads, -1))
    tensors[f"{module}.out.weight[:, {head}]"] = weight[:, head].numpy().copy()
    return Recording(tensors, {"kind": kind, "layer": layer, "head": head, "query": query})


def whole_layer(
    model: OpenModel, tokens: Tokens, source: Tokens, kind: str, layer: int, interventions: Interventions = ()
) -> Recording:
    """Every hook point of one attention, all heads, as `record` names them: for a file that a visitor takes along."""
    checkpoint = model.checkpoint
    module = attention_modules(checkpoint.model.config)[kind][layer]
    labels = {"text": checkpoint.tokenizer.labels(tokens), "source": checkpoint.tokenizer.labels(source)}
    return record(checkpoint.model, _inputs(tokens, source), lambda point: point.startswith(f"{module}."),
                  labels=labels, interventions=interventions)  # fmt: skip


def whole_attention(
    model: OpenModel, tokens: Tokens, source: Tokens, kind: str, interventions: Interventions = ()
) -> Recording:
    """All that the picture of an attention is derived from, in every layer: for a page that has no server to ask.

    Weights are there for a short text only: of a long one they are most of the bytes, and follow from the rest.
    """
    checkpoint = model.checkpoint
    shape = checkpoint.model.config
    modules = attention_modules(shape)[kind]
    around = [names_around(shape, kind, layer) for layer in range(len(modules))]
    names = [name for each in around for name in each.values() if name]
    is_short = max(_lengths(tokens, source, kind)) <= LIMIT
    points = ("hook_z", "hook_result", "hook_pattern") if is_short else ("hook_z",)
    names += [f"{module}.{point}" for module in modules for point in points]
    return record(checkpoint.model, _inputs(tokens, source), names, interventions=interventions,
                  parameters=[f"{module}.out.weight" for module in modules])  # fmt: skip


def identity(
    model: str | OpenModel, tokens: Tokens, source: Tokens = (), kind: str = "self", interventions: Interventions = ()
) -> str:
    """What recordings of this pass are called between server and browser: the same only for the same numbers."""
    model = opened(model) if isinstance(model, str) else model
    told = repr((model.version, tokens, source, kind, interventions))
    return hashlib.sha256(told.encode("utf-8", "backslashreplace")).hexdigest()[:16]


@remembered
def _queries_keys_values(
    checkpoint: Checkpoint, tokens: Tokens, source: Tokens, kind: str, layer: int | None, interventions: Interventions
) -> Mapping[str, np.ndarray]:
    """Of all heads of one layer, or of all layers where that is None: (pos, head, d_head) each, by hook point."""
    shape = checkpoint.model.config
    layers = range(len(attention_modules(shape)[kind])) if layer is None else (layer,)
    names = [name for each in layers for name in _starting_points(shape, kind, each)]
    points, found = hook_points(shape), _recorded(checkpoint, tokens, source, interventions, names)
    return {name: as_array(tensor, points[name].shape) for name, tensor in found.items()}


def _starting_points(shape: ModelConfig, kind: str, layer: int) -> list[str]:
    around = names_around(shape, kind, layer)
    return [name for name in (around["q"], around["k"], around["v"]) if name]


def _lengths(tokens: Tokens, source: Tokens, kind: str) -> tuple[int, int]:
    """How many queries and keys an attention has."""
    return len(source if kind == "encoder" else tokens), len(tokens if kind in ("self", "decoder") else source)


def _check(shape: ModelConfig, kind: str, layer: int, head: int) -> None:
    if not 0 <= layer < len(attention_modules(shape).get(kind, ())):
        raise ValueError(f"This model has no layer {layer} of this attention.")
    if not 0 <= head < shape.n_heads:
        raise ValueError(f"This model has no head {head}.")


def _recorded(
    checkpoint: Checkpoint, tokens: Tokens, source: Tokens, interventions: Interventions, names: Iterable[str]
) -> ActivationCache:
    """A forward pass as far as it takes to see these points, as the interventions left them."""
    model = checkpoint.model
    with torch.no_grad():
        return model.run_until_recorded(
            *_inputs(tokens, source), names_filter=list(names), fwd_hooks=hooks_of(interventions, model)
        )


def _inputs(tokens: Tokens, source: Tokens) -> list[Tensor]:
    return [torch.tensor([part]) for part in (source, tokens) if part]
