"""Computes what a page shows first: every attention head at a glance, or an outline of the whole pass.

Asked for and cached as in `tensors`. Dimensions: layer, head, query, key, depth, pos, vocab.
"""

import weakref
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..checkpoints.folder import Checkpoint
from ..data.tokenizers import Tokenizer
from ..inference.attention_outline import outline as attention_outline
from ..inference.attention_outline import outline_of_layer
from ..inference.interventions import hooks_of
from ..inference.logits import stream_of
from ..inference.pass_outline import outline as outline_of
from ..inference.pass_outline import outline_of_text, statistics_of
from ..inference.recording import Recording, rounding_of
from ..inference.tensor_statistics import Statistics
from ..model.registry import attention_modules
from . import tensors
from .cache import cached
from .tensors import Interventions, Tokens

LABELLED_VOCABULARY = 512
"""The largest vocabulary that is labelled in full."""
LARGEST_VOCABULARY = 4096
"""The largest vocabulary with which the logit lens reads every position at first."""
READ = 1_000
"""Positions, over all depths, that the logit lens reads at first with a larger one; others on request."""
_weights: weakref.WeakKeyDictionary[torch.nn.Module, Mapping[str, Statistics]] = weakref.WeakKeyDictionary()


@cached
def overview(
    checkpoint: Checkpoint, tokens: Tokens, source: Tokens = (), kind: str = "self", interventions: Interventions = ()
) -> Recording:
    """All heads of one kind of attention, as `whole_overview` has them, without what a causal mask hides."""
    overview = whole_overview(checkpoint, tokens, source, kind, interventions)
    return Recording(_packed(overview), overview.metadata)


def whole_overview(
    checkpoint: Checkpoint, tokens: Tokens, source: Tokens, kind: str, interventions: Interventions
) -> Recording:
    """All heads of one kind of attention, as `attention_outline.outline` has them, with `rounding` as `rounding_of` has
    it of the model's numbers. One layer's patterns at a time are held in memory."""
    shape = checkpoint.model.config
    modules = attention_modules(shape)[kind]
    looks_at_itself = None if kind == "cross" else torch.tensor(source if kind == "encoder" else tokens)
    labels = checkpoint.tokenizer.labels
    words = {"text": labels(tokens), "source": labels(source)}
    cells, measures = [], []
    masks: dict[str, Tensor] = {}

    def see_mask(mask: Tensor, hook: object) -> None:
        masks["newest"] = mask.reshape(mask.shape[-2:])

    def see_pattern(pattern: Tensor, hook: object) -> None:
        own = words["source" if kind == "encoder" else "text"]
        layer = outline_of_layer(pattern[0], masks["newest"], looks_at_itself, own)  # the mask is made before it
        cells.append(layer[0])
        measures.append(layer[1])

    sees = {"hook_mask": see_mask, "hook_pattern": see_pattern}
    model, readers = checkpoint.model, [(f"{module}.{point}", see) for module in modules for point, see in sees.items()]
    stream_of(model, tokens, source, [*hooks_of(interventions, model), *readers])
    looks_first = None if kind == "encoder" else checkpoint.predicted_position(tokens)
    found = attention_outline(shape, kind, words, cells, measures, interventions, looks_first)
    return Recording(found.tensors, {**found.metadata, "rounding": rounding_of(model.W_U.dtype)})


@cached
def outline(
    checkpoint: Checkpoint, tokens: Tokens, source: Tokens = (), interventions: Interventions = ()
) -> Recording:
    """The picture of a whole pass: what `inference.pass_outline.outline` makes of it.

    Its metadata has besides: `labels` of text and source; and `vocabulary`, the labels of all tokens, or of those that
    are named by their number where there are many.
    """
    model, mask = checkpoint.model, checkpoint.card.mask_token_id
    if tensors.bytes_of_pass(model.config, len(tokens), len(source)) < tensors.WHOLE_BELOW:
        outlined = outline_of(tensors.trace_pass(model, tokens, source, interventions=interventions), mask)
    else:
        known = _of_weights(checkpoint)
        with tensors.one_at_a_time:
            outlined = outline_of_text(
                model,
                tokens,
                source,
                interventions,
                of_parameters=known,
                read=None
                if model.config.vocab_size <= LARGEST_VOCABULARY
                else max(1, READ // (model.config.n_layers + 1)),
                mask_token_id=mask,
            )
    return Recording(outlined.tensors, {**outlined.metadata, **_labels(outlined, checkpoint.tokenizer)})


def _packed(outline: Recording) -> dict[str, np.ndarray]:
    """An overview's tensors, of a causal attention only on and below the diagonal, unless its mask was removed."""
    tensors = dict(outline.tensors)
    cells = tensors["overview"]
    if outline.metadata["causal"] and not any(change["rule"] == "mask" for change in outline.metadata["changed"]):
        tensors["overview"] = cells[..., *np.tril_indices(cells.shape[-1])]
    return tensors


def _of_weights(checkpoint: Checkpoint) -> Mapping[str, Statistics]:
    """The statistics of a model's parameters; they take longer than a short text does, and stay the same."""
    with tensors.one_at_a_time:
        if checkpoint.model not in _weights:
            _weights[checkpoint.model] = statistics_of(checkpoint.model)
        return _weights[checkpoint.model]


def labels_of(tokenizer: Tokenizer, ids: Iterable[int]) -> dict[str, str]:
    """The labels of tokens, by id."""
    named = sorted(set(map(int, ids)))
    return dict(zip(map(str, named), tokenizer.labels(named), strict=True))


def _labels(outline: Recording, tokenizer: Tokenizer) -> dict[str, Any]:
    """The labels of an outline's tokens."""
    ids = outline.metadata["ids"]
    read = (ids["text"], ids["source"], outline.tensors["next"].flat, outline.tensors["lens"].flat)
    used = set(map(int, chain(*read))) - {-1}
    is_small = tokenizer.vocab_size <= LABELLED_VOCABULARY
    return {
        "labels": {text: tokenizer.labels(ids_of_text) for text, ids_of_text in ids.items()},
        "vocabulary": tokenizer.labels(range(tokenizer.vocab_size)) if is_small else labels_of(tokenizer, used),
    }
