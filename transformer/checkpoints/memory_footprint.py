"""Estimates from its configuration alone how much memory a model can need.

The registry of hook points lists everything that a forward pass records, so the bound is a sum over it. What pages
compute besides (logits, tables) is counted by measured factors.
"""

from __future__ import annotations

import math
from dataclasses import replace

from ..config import ModelConfig
from ..model.registry import hook_points

NUMBER = 4
"""Bytes of a float32."""
LOGITS = 12
"""Copies of all positions' logits, in float32, at once: two passes compared, each as probabilities in float64."""
CHOICES = 128
"""Bytes per token of the vocabulary while the next token is chosen: sorted, cut off and summed in float64."""
CELLS = 600
"""Bytes per cell (query, key) of one head: a row of a table, sent to the browser and offered as CSV."""
TABLE, COLUMN = 80, 5_000
"""Bytes per number of a table of positions shown the same way, and per column."""


def largest_use(config: ModelConfig, parameters: int) -> int:
    """The most bytes that a model of this configuration can need at its full context.

    Counts its weights as float32; every hook point of one pass, including those on request; logits; and the tables of
    one head and of the positions. A model without layers counts as one with a single layer.
    parameters: the number of its weights.
    """
    context, vocabulary, width = config.context_length, config.vocab_size, config.d_model
    logits = LOGITS * NUMBER * context * vocabulary + CHOICES * vocabulary
    tables = CELLS * context**2 + (TABLE * context + COLUMN) * width
    return NUMBER * (parameters + recorded_numbers(config)) + logits + tables


def recorded_numbers(config: ModelConfig) -> int:
    """How many numbers one pass at full context records if every hook point is kept; at least one layer is counted."""
    context = config.context_length
    sizes = {
        "batch": 1,
        "1": 1,
        **dict.fromkeys(("pos", "query", "key"), context),
        "head": config.n_heads,
        "kv_head": config.kv_heads,
        "d_head": config.d_head,
        "d_model": config.d_model,
        "d_ff": config.d_ff,
        "vocab": config.vocab_size,
    }
    sides = ("n_layers", "n_encoder_layers") if config.architecture == "encoder-decoder" else ("n_layers",)
    deep = replace(config, **{side: max(getattr(config, side), 1) for side in sides})
    return sum(math.prod(sizes[dimension] for dimension in point.shape) for point in hook_points(deep).values())
