"""Describes the masked words of a text for the API: what an encoder expects at each of them."""

from typing import Any

import numpy as np
import torch

from ..checkpoints.folder import Checkpoint
from ..data.token_names import kinds_of
from ..inference.masked_words import masked_logits
from ..model.models import EncoderOnly
from .cache import cached
from .open_models import OpenModel
from .tensors import Interventions, Tokens

CANDIDATES = 10
"""Tokens that are named at a mask."""


def masked_words(model: OpenModel, tokens: Tokens, interventions: Interventions) -> dict[str, Any]:
    """`masks`, each {position, candidates}, the candidates {id, probability} with the likeliest first; and `kinds`, the
    names of the text's tokens and of the candidates. The model is an encoder."""
    expected = _candidates(model, tokens, interventions)
    positions, ids, probabilities = (expected[name].tolist() for name in ("positions", "ids", "probabilities"))
    masks = [
        {"position": position, "candidates": [{"id": id, "probability": p} for id, p in zip(*row, strict=True)]}
        for position, *row in zip(positions, ids, probabilities, strict=True)
    ]
    return {"masks": masks, "kinds": kinds_of(model.checkpoint.tokenizer, {*tokens, *expected["ids"].flat})}


@cached
def _candidates(checkpoint: Checkpoint, tokens: Tokens, interventions: Interventions) -> dict[str, np.ndarray]:
    model, mask = checkpoint.model, checkpoint.card.mask_token_id
    assert isinstance(model, EncoderOnly) and mask is not None  # as a checkpoint of an encoder has it
    positions, logits, _ = masked_logits(model, tokens, mask, interventions=interventions)
    best = torch.topk(logits.double().softmax(-1), min(CANDIDATES, logits.shape[-1] - 1))
    return {"positions": np.array(positions), "ids": best.indices.numpy(), "probabilities": best.values.numpy()}
