"""Computes what a model predicts when its masks are changed.

Dimensions: pos, query, key, vocab.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from pages.ui.models import library
from pages.ui.models.activations import greedy_answer
from pages.ui.models.model_cache import cached
from transformer import Checkpoint, Intervention, ModelConfig, causal_mask, in_window, token_statistics
from transformer.hooks import ForwardHook, HookPoint
from transformer.inference.interventions import hooks_of
from transformer.inference.logits import logits_in_pieces, stream_of

Interventions = tuple[Intervention, ...]
TOP_K = 5
"""Tokens that are kept of a prediction."""


@dataclass(frozen=True)
class TextPredictions:
    """What a model expected after each token of a text."""

    probability: np.ndarray
    """(known,): of the token that really came next, where one did."""
    entropy: np.ndarray
    """(pos,), in nats."""
    last: np.ndarray
    """(vocab,): every token's probability after the last one."""
    top_tokens: np.ndarray
    """(pos, LIKELIEST): the tokens that it gave most probability, in order."""
    top_probabilities: np.ndarray
    """(pos, LIKELIEST): how much."""

    @property
    def loss(self) -> np.ndarray:
        """(known,): −ln of the probability, in nats."""
        return -np.log(np.maximum(self.probability, np.finfo(float).tiny))


@cached
def predict_text(
    checkpoint: Checkpoint,
    tokens: tuple[int, ...],
    following: tuple[int, ...],
    source: tuple[int, ...] = (),
    interventions: Interventions = (),
) -> TextPredictions:
    """What the model expects after each of `tokens`.

    tokens: no more than the context holds. following: the token that came after each; the last may be missing.
    """
    if len(following) < len(tokens):
        following = (*following, 0)  # for its entropy, which no token decides
        known = len(tokens) - 1
    else:
        known = len(tokens)
    found, last, most = [], np.empty(0), []
    for rows, logits in _logits(checkpoint, tokens, source, [], interventions):
        found += [token_statistics(row, token) for row, token in zip(logits, following[rows], strict=True)]
        last = logits[-1].double().softmax(-1).numpy()
        most.append(logits.double().softmax(-1).topk(min(TOP_K, logits.shape[-1])))
    top_probabilities, top_tokens = (torch.cat(parts).numpy() for parts in zip(*most, strict=True))
    probability, _, entropy = (np.array(column) for column in zip(*found, strict=True))
    return TextPredictions(probability[:known], entropy, last, top_tokens, top_probabilities)


def filler_token(name: str) -> int:
    """What stands for padding when the model reads it: its padding token, or else its first token."""
    return _filler(library.config(name))


@cached
def padding_effect(
    checkpoint: Checkpoint,
    prompt: tuple[int, ...],
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
    fill = (_filler(shape),) * filler
    padded = fill + prompt if side == "left" else prompt + fill
    real = slice(filler, None) if side == "left" else slice(len(prompt))
    is_real = torch.zeros(len(padded), dtype=torch.bool)
    is_real[real] = True
    reads_prompt = _is_causal if shape.architecture == "decoder-only" else _is_of_source

    def mask_of(keys: Tensor) -> ForwardHook:
        def replace(mask: Tensor, hook: HookPoint) -> Tensor:
            query, key = mask.shape[-2:]
            window = shape.window(_layer_of(hook.name))
            visible = causal_mask(query, key, window=window) if causal else torch.ones(query, key, dtype=torch.bool)
            return (visible & keys).expand_as(mask)

        return reads_prompt, replace

    seen = is_real if padding else torch.ones_like(is_real)
    if shape.architecture == "decoder-only":
        moved = in_window(interventions, -filler if side == "left" else 0)
        alone = _logits(checkpoint, prompt, (), [mask_of(is_real[real])], interventions)
        filled = _logits(checkpoint, padded, (), [mask_of(seen)], moved, real)
    else:
        start = (checkpoint.card.start_token_id,)
        target = (start + greedy_answer(checkpoint, start, prompt, interventions))[: shape.context_length]
        alone = _logits(checkpoint, target, prompt, [], interventions)
        filled = _logits(checkpoint, target, padded, [mask_of(seen)], interventions)
    return max(
        float((with_it.double().softmax(-1) - without.double().softmax(-1)).abs().max())
        for (_, with_it), (_, without) in zip(filled, alone, strict=True)
    )


def _filler(shape: ModelConfig) -> int:
    return shape.pad_token_id or 0


def _layer_of(point: str) -> int:
    return int(point.partition("blocks.")[2].partition(".")[0])


def _is_causal(point: str) -> bool:
    """Whether a hook point is the mask of a decoder's attention to its own tokens."""
    return point.endswith(".attn.hook_mask") and not point.startswith("encoder.")


def _is_of_source(point: str) -> bool:
    """Whether a hook point is a mask over the tokens of the source."""
    return point.endswith("hook_mask") and not _is_causal(point)


def _logits(
    checkpoint: Checkpoint,
    tokens: tuple[int, ...],
    source: tuple[int, ...],
    hooks: list[ForwardHook],
    interventions: Interventions,
    positions: slice = slice(None),
) -> Iterator[tuple[slice, Tensor]]:
    """Some positions' logits after others, as `logits_in_pieces` gives them."""
    model = checkpoint.model
    stream = stream_of(model, tokens, source, [*hooks_of(interventions, model), *hooks])
    return logits_in_pieces(model, stream[positions])
