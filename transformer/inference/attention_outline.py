"""The attention outline: a coarse picture of every head, and the names of the tensors around them.

Shapes: layer, head, query, key, measure.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from torch import Tensor

from ..config import ModelConfig
from ..model.equations import equations
from ..model.registry import attention_modules, hook_points
from .head_measures import MEASURES, head_measures
from .interventions import Intervention
from .overwritten_values import overwritten_records
from .pattern_pooling import pool, quantise
from .recording import Recording, plain_array


def outline_of_layer(
    pattern: Tensor, mask: Tensor, tokens: Tensor | None, labels: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    """The part of one layer in an outline.

    pattern: (head, query, key); mask: (query, key), True where visible; tokens: ids of what looks at itself, else None.
    labels: what these are called.
    Returns: cells (head, query, key), uint8, pooled to at most 64 × 64; measures (head, measure), float32.
    """
    cells = quantise(*pool(plain_array(pattern), ~mask.numpy()))
    return cells, head_measures(pattern, mask, tokens, labels).numpy()


def outline(
    config: ModelConfig,
    kind: str,
    labels: Mapping[str, Sequence[str]],
    cells: Sequence[np.ndarray],
    measures: Sequence[np.ndarray],
    interventions: Sequence[Intervention] = (),
    predicted_position: int | None = None,
) -> Recording:
    """The overview of all heads. cells, measures: each layer's, from `outline_of_layer`.

    interventions: those of the pass. predicted_position: the query to show first; None for the last.

    Tensors: `overview` (layer, head, query, key), uint8 as `quantise` makes it, pooled to 64 × 64 cells a head;
    `measures` (layer, head, measure), float32 as `head_measures` makes them.
    Metadata: `config`; `labels` of text and source; `kind`; `modules`, the attention's dotted name by layer; `names`
    by layer, from `names_around`; `causal`, `uniform`: whether the mask is causal, and weights are plain averages;
    `cap` of scores and `bias`, from `position_bias`, None for none;
    `measures`, the records of `MEASURES`; `queries`, `keys`: how many there are; `predicted_position`; `changed`, the
    records of what interventions have set, as `overwritten_values` has them.
    """
    modules = attention_modules(config)[kind]
    of_text, is_causal = kind in ("self", "decoder"), kind == "decoder" or (kind == "self" and config.is_causal)
    queries = len(labels["source" if kind == "encoder" else "text"])
    return Recording(
        {"overview": np.stack(cells), "measures": np.stack(measures)},
        {
            "config": config.to_dict(),
            "labels": {text: list(words) for text, words in labels.items()},
            "kind": kind,
            "modules": modules,
            "names": [names_around(config, kind, layer) for layer in range(len(modules))],
            "causal": is_causal,
            "uniform": not has_scores(config, kind),
            "cap": config.score_cap if kind != "cross" else None,
            "bias": position_bias(config, modules[0]),
            "measures": [dataclasses.asdict(measure) for measure in MEASURES],
            "queries": queries,
            "keys": len(labels["text" if of_text else "source"]),
            "predicted_position": queries - 1 if predicted_position is None else predicted_position,
            "changed": overwritten_records(interventions, config),
        },
    )


def has_scores(shape: ModelConfig, kind: str) -> bool:
    """Whether an attention has queries and keys, rather than plain averages."""
    return shape.attention == "softmax" or kind == "cross"


def position_bias(shape: ModelConfig, module: str) -> Mapping[str, Any] | None:
    """The parameters of an attention's position bias: the heads' slopes, or the buckets of distances with a learned
    bias; None without a bias."""
    equation = equations(shape).get(f"{module}.hook_position_bias")
    return None if equation is None else equation.constants


def names_around(shape: ModelConfig, kind: str, layer: int) -> dict[str, str | None]:
    """The hook points around one attention; None for missing ones.

    `q`, `k`, `v` as they enter the product (normalised, and rotated, where they are); `out`, what attention adds;
    `given`, what all heads give, where that is normalised before it is added; `before` and `after`, the residual
    stream: `after` is `before` + `out`. A parallel block has neither: what
    its stream becomes has the feed-forward layer's share in it too.
    """
    module = attention_modules(shape)[kind][layer]
    block, cross = module.rpartition(".")[0], kind == "cross"
    points = hook_points(shape)
    enters = {}
    for part in "qk":
        candidates = (f"{module}.{name}" for name in (f"hook_rot_{part}", f"{part}_norm.hook_out", f"hook_{part}"))
        enters[part] = next((name for name in candidates if name in points), None)
    stream = shape.residual and not shape.parallel_residual
    # Under post-norm, cross-attention adds to the output of a norm.
    before = "hook_resid_pre" if not cross else "ln1.hook_out" if shape.norm == "post" else "hook_resid_mid"
    after = f"{block}.hook_resid_{'cross' if cross else 'mid'}"
    return {
        **enters,
        "v": f"{module}.hook_v",
        "given": f"{module}.hook_out" if shape.norms_what_is_added else None,
        "out": f"{block}.hook_{'cross_' if cross else ''}attn_out",
        "before": f"{block}.{before}" if stream else None,
        "after": (after if after in points else f"{block}.hook_resid_post") if stream else None,
    }
