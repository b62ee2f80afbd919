"""Computes what a model predicts when its masks are changed, and what an encoder predicts of what is masked.

Dimensions: pos, query, key, vocab.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from pages.ui.computations.activations import Interventions, Tokens, greedy_answer
from pages.ui.models.model_cache import cached
from transformer import Checkpoint, ModelConfig, causal_mask, in_window, token_statistics
from transformer.api.predictions import logits_at
from transformer.hooks import ForwardHook, HookPoint
from transformer.inference.interventions import hooks_of
from transformer.inference.logits import logits_in_pieces, stream_of
from transformer.model.masks import full_mask


@dataclass(frozen=True)
class TextPredictions:
    """What a model expected after each token of a text, or in its place."""

    probability: np.ndarray
    """(known,): of the token that really came next, or stands there, where one does."""
    entropy: np.ndarray
    """(pos,), in nats."""

    @property
    def loss(self) -> np.ndarray:
        """(known,): −ln of the probability, in nats."""
        return -np.log(np.maximum(self.probability, np.finfo(float).tiny))


@cached
def predict_text(
    checkpoint: Checkpoint, tokens: Tokens, following: Tokens, source: Tokens = (), interventions: Interventions = ()
) -> TextPredictions:
    """What the model expects after each of `tokens`.

    tokens: no more than the context holds. following: the token that came after each; the last may be missing.
    """
    known = min(len(following), len(tokens))
    there = (*following, 0)[: len(tokens)]  # for the last one's entropy, which no token decides
    pieces = logits_at(checkpoint, tokens, source, range(len(tokens)), interventions)
    rows = (row for logits in pieces for row in logits)
    statistics = [token_statistics(row, token) for row, token in zip(rows, there, strict=True)]
    probability, _, entropy = (np.array(column) for column in zip(*statistics, strict=True))
    return TextPredictions(probability[:known], entropy)


@cached
def predict_masked(
    checkpoint: Checkpoint, tokens: Tokens, begin: int, end: int, interventions: Interventions = ()
) -> TextPredictions:
    """What an encoder expects at each position from `begin` to before `end` when the token there is masked, which is a
    pass for each. What is masked in the text stays so; what stands there isn't known, and has no probability (NaN)."""
    pieces = logits_at(checkpoint, tokens, (), range(begin, end), interventions)
    probabilities = torch.cat([logits.double().softmax(-1) for logits in pieces])
    there = torch.tensor(tokens[begin:end])
    right = probabilities[torch.arange(len(there)), there].where(there != checkpoint.card.mask_token_id, torch.nan)
    return TextPredictions(right.numpy(), torch.special.entr(probabilities).sum(-1).numpy())


def filler_token(shape: ModelConfig) -> int:
    """What stands for padding when the model reads it: its padding token, or else its first token."""
    return shape.pad_token_id or 0


@cached
def padding_effect(
    checkpoint: Checkpoint,
    prompt: Tokens,
    filler: int,
    side: str,
    *,
    causal: bool,
    padding: bool,
    interventions: Interventions = (),
) -> float:
    """How far padding moves any probability that the model gives at a real token of the prompt, at most.

    filler: how many padding tokens stand on the "left" or "right". causal, padding: which masks are in force where
    the prompt is read; the prompt by itself is read with the same causal mask or none. For an encoder–decoder
    the prompt is the source, and the probabilities are those of each token of its own answer to it.
    """
    shape = checkpoint.model.config
    fill = (filler_token(shape),) * filler
    padded = fill + prompt if side == "left" else prompt + fill
    real = slice(filler, None) if side == "left" else slice(len(prompt))
    is_real = torch.zeros(len(padded), dtype=torch.bool)
    is_real[real] = True
    reads_prompt = _is_of_source if shape.architecture == "encoder-decoder" else _is_of_text

    def mask_of(keys: Tensor) -> ForwardHook:
        def replace(mask: Tensor, hook: HookPoint) -> Tensor:
            query, key = mask.shape[-2:]
            window = shape.window(int(hook.name.partition("blocks.")[2].partition(".")[0]))
            if causal:
                visible = causal_mask(query, key, window=window)
            else:
                visible = full_mask(query, key, window=0 if shape.is_causal else window)
            return (visible & keys).expand_as(mask)

        return reads_prompt, replace

    seen = is_real if padding else torch.ones_like(is_real)
    if shape.architecture != "encoder-decoder":
        moved = in_window(interventions, -filler if side == "left" else 0)
        alone = _logits(checkpoint, prompt, (), [mask_of(is_real[real])], interventions)
        filled = _logits(checkpoint, padded, (), [mask_of(seen)], moved, real)
    else:
        start = checkpoint.card.start_tokens
        target = (start + greedy_answer(checkpoint, start, prompt, interventions))[: shape.context_length]
        alone = _logits(checkpoint, target, prompt, [], interventions)
        filled = _logits(checkpoint, target, padded, [mask_of(seen)], interventions)
    return max(
        float((with_it.double().softmax(-1) - without.double().softmax(-1)).abs().max())
        for (_, with_it), (_, without) in zip(filled, alone, strict=True)
    )


def _is_of_text(point: str) -> bool:
    """Whether a hook point is the mask of an attention to the text itself, rather than to a source."""
    return point.endswith(".attn.hook_mask") and not point.startswith("encoder.")


def _is_of_source(point: str) -> bool:
    """Whether a hook point is a mask over the tokens of the source."""
    return point.endswith("hook_mask") and not _is_of_text(point)


def _logits(
    checkpoint: Checkpoint,
    tokens: Tokens,
    source: Tokens,
    hooks: list[ForwardHook],
    interventions: Interventions,
    positions: slice = slice(None),
) -> Iterator[tuple[slice, Tensor]]:
    """Some positions' logits after others, as `logits_in_pieces` gives them."""
    model = checkpoint.model
    stream = stream_of(model, tokens, source, [*hooks_of(interventions, model), *hooks])
    return logits_in_pieces(model, stream[positions])
