"""Fills masked tokens with a model that reads in both directions, one after another, the surest first.

Shapes: pos, vocab; there is no batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from ..choice_checks import check_index
from ..hooks import ActivationCache, NamesFilter
from ..model.models import EncoderOnly
from .analysis import check_logits
from .generation import GenerationStep
from .inputs import Ids, ids_of, inputs_of
from .interventions import Intervention, hooks_of
from .sampling import Sampling, random_points, token_at


def fill_masks(
    model: EncoderOnly,
    tokens: Ids,
    mask_token_id: int,
    *,
    segments: Ids = (),
    sampling: Sampling = Sampling(temperature=0),
    names_filter: NamesFilter = (),
    interventions: Sequence[Intervention] = (),
) -> Iterator[GenerationStep]:
    """Fill every masked token, each time the one whose likeliest token has the highest probability.

    Each one depends on those filled before it, so each needs a pass.

    tokens: (pos,); those that are `mask_token_id` are filled. segments: (pos,), left out for one segment.
    sampling: greedy by default. The mask itself is never drawn.
    Returns: an iterator of steps, whose `position` is the filled one. The model must be in evaluation mode.
    Raises: ValueError for a model that doesn't read in both directions, or a text that it can't read.
    Source: Devlin et al. 2019, BERT, §3.1; the order, Ghazvininejad et al. 2019, Mask-Predict, §3.
    """
    written = ids_of(tokens)
    while True:
        gaps, candidates, cache = masked_logits(
            model, written, mask_token_id, segments=segments, names_filter=names_filter, interventions=interventions
        )
        if not gaps:
            return
        surest = int(candidates.softmax(-1).amax(-1).argmax())
        position, own = gaps[surest], candidates[surest]
        point = next(random_points(sampling, position, ahead=1))
        written[position] = token_at(point, own, sampling)
        yield GenerationStep(position, written[position], own, cache, point)


def masked_logits(
    model: EncoderOnly,
    tokens: Ids,
    mask_token_id: int,
    *,
    segments: Ids = (),
    names_filter: NamesFilter = (),
    interventions: Sequence[Intervention] = (),
) -> tuple[list[int], Tensor, ActivationCache]:
    """The positions of the masks, their logits, (mask, vocab), −∞ for the mask itself, and the recording.

    Raises: ValueError for a model that doesn't read in both directions, or a text that it can't read; LogitsError for
        logits that are not numbers.
    """
    if model.config.is_causal:
        raise ValueError("This model sees nothing after a token, so it can't fill gaps; it writes on: generate.")
    check_index("token", mask_token_id, model.config.vocab_size)
    ids = ids_of(tokens)
    masks = [position for position, token in enumerate(ids) if token == mask_token_id]
    inputs, hooks = inputs_of(model, ids, segments=segments), hooks_of(interventions, model)
    with torch.no_grad():
        logits, cache = model.run_with_cache(*inputs, names_filter=names_filter, fwd_hooks=hooks)
    candidates = logits[0, masks].float()
    if masks:
        check_logits(float(candidates.max()))
    candidates[:, mask_token_id] = -torch.inf
    return masks, candidates, cache
