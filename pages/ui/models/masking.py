"""What a model predicts when its masks are changed: cached as in `activations`, answered in NumPy.

Dimensions: pos, query, key, vocab.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import streamlit as st
import torch
from torch import Tensor

from pages.ui.models import activations, library
from transformer import causal_mask, token_statistics
from transformer.hooks import ForwardHook


@dataclass(frozen=True)
class Predicted:
    """What a model expected after each token of a text."""

    probability: np.ndarray
    """(known,): of the token that really came next, where one did."""
    entropy: np.ndarray
    """(pos,), in nats."""
    last: np.ndarray
    """(vocab,): every token's probability after the last one."""

    @property
    def loss(self) -> np.ndarray:
        """(known,): −ln of the probability, in nats."""
        return -np.log(np.maximum(self.probability, np.finfo(float).tiny))


def predicted(
    name: str, tokens: tuple[int, ...], following: tuple[int, ...], source: tuple[int, ...] = (), *, masked: bool
) -> Predicted:
    """What the model expects after each of `tokens`, with its causal mask or with every position visible.

    tokens: no more than the context holds. following: the token that came after each; the last may be missing.
    """
    return _predicted(name, library.changed_at(name), tokens, following, source, masked)


def padding_effect(
    name: str, prompt: tuple[int, ...], filler: int, side: str, *, causal: bool, padding: bool
) -> float:
    """How far padding moves any probability that the model gives at a real token of the prompt, at most.

    filler: how many padding tokens stand on the "left" or "right". causal, padding: which masks are in force where
    the prompt is read; the prompt by itself is read with the same causal mask or none. For an encoder–decoder
    the prompt is the source, and the probabilities are those of each token of its own answer to it.
    """
    return _padding_effect(name, library.changed_at(name), prompt, filler, side, causal, padding)


def filler_token(name: str) -> int:
    """What stands for padding when the model reads it: its padding token, or else its first token."""
    return library.config(name).pad_token_id or 0


@st.cache_data(max_entries=48, show_spinner=False)
def _predicted(
    name: str,
    changed: float,
    tokens: tuple[int, ...],
    following: tuple[int, ...],
    source: tuple[int, ...],
    masked: bool,
) -> Predicted:
    hooks: list[ForwardHook] = [] if masked else [(_is_causal, lambda mask, hook: torch.ones_like(mask))]
    logits = _logits(name, tokens, source, hooks)
    if len(following) < len(tokens):
        following = (*following, 0)  # for its entropy, which no token decides
        known = len(tokens) - 1
    else:
        known = len(tokens)
    found = [token_statistics(row, token) for row, token in zip(logits, following, strict=True)]
    probability, _, entropy = (np.array(column) for column in zip(*found, strict=True))
    return Predicted(probability[:known], entropy, logits[-1].double().softmax(-1).numpy())


@st.cache_data(max_entries=96, show_spinner=False)
def _padding_effect(
    name: str, changed: float, prompt: tuple[int, ...], filler: int, side: str, causal: bool, padding: bool
) -> float:
    fill = (filler_token(name),) * filler
    padded = fill + prompt if side == "left" else prompt + fill
    real = slice(filler, None) if side == "left" else slice(len(prompt))
    is_real = torch.zeros(len(padded), dtype=torch.bool)
    is_real[real] = True

    def mask_of(keys: Tensor) -> ForwardHook:
        def replace(mask: Tensor, hook: object) -> Tensor:
            query, key = mask.shape[-2:]
            visible = causal_mask(query, key) if causal else torch.ones(query, key, dtype=torch.bool)
            return (visible & keys).expand_as(mask)

        return _reads_prompt(name), replace

    seen = is_real if padding else torch.ones_like(is_real)
    if library.config(name).architecture == "decoder-only":
        alone = _logits(name, prompt, (), [mask_of(is_real[real])])
        filled = _logits(name, padded, (), [mask_of(seen)])[real]
    else:
        start = (library.model(name).card.start_token_id,)
        target = (start + activations.answer(name, start, prompt))[: library.config(name).context_length]
        alone, filled = _logits(name, target, prompt, []), _logits(name, target, padded, [mask_of(seen)])
    return float((filled.double().softmax(-1) - alone.double().softmax(-1)).abs().max())


def _reads_prompt(name: str):
    """Which masks lie between a prompt and what is predicted: a predicate on names of hook points."""
    if library.config(name).architecture == "decoder-only":
        return _is_causal
    return lambda point: point.endswith("hook_mask") and not _is_causal(point)


def _is_causal(point: str) -> bool:
    """Whether a hook point is the mask of a decoder's attention to its own tokens."""
    return point.endswith(".attn.hook_mask") and not point.startswith("encoder.")


def _logits(name: str, tokens: tuple[int, ...], source: tuple[int, ...], hooks: list[ForwardHook]) -> Tensor:
    inputs = [torch.tensor([part]) for part in (source, tokens) if part]
    with torch.no_grad():
        return library.model(name).model.run_with_hooks(*inputs, fwd_hooks=hooks)[0]
