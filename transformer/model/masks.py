"""Attention masks: boolean matrices, True where a query may attend to a key.

Shapes: batch, pos, query, key.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .modes import is_true


def causal_mask(query: int, key: int, device: torch.device | str | None = None, window: int = 0) -> Tensor:
    """Hide the future: query i sees key j only where j is not after i; with a window, nor too far before it.

    The last query stands at the last key, so that with fewer queries than keys (as when earlier keys come
    from a cache) each query still sees everything up to its own position.

    window: how many keys a query sees at most, its own the last of them; 0 for all of the past.
    Returns: (query, key), boolean, True where the key may be seen.
    Raises: ValueError if there are more queries than keys.
    Sources: Vaswani et al. 2017, §3.2.3; the window, Child et al. 2019, "Generating long sequences with sparse
    transformers", *local attention*.

    >>> causal_mask(3, 3).int()
    tensor([[1, 0, 0],
            [1, 1, 0],
            [1, 1, 1]], dtype=torch.int32)
    """
    if not 0 <= query <= key:
        raise ValueError(f"A causal mask needs at least as many keys as queries, not {query} queries, {key} keys.")
    mask = torch.ones(query, key, dtype=torch.bool, device=device).tril_(key - query)
    return mask.triu_(key - query - window + 1) if window else mask


def full_mask(query: int, key: int, device: torch.device | str | None = None, window: int = 0) -> Tensor:
    """Hide nothing; with a window, hide keys that are this far away or further on either side.

    Returns: (query, key), boolean, True where the key may be seen.
    Source: the window, Beltagy et al. 2020, Longformer, §3.1.
    """
    mask = torch.ones(query, key, dtype=torch.bool, device=device)
    return mask.tril_(window - 1).triu_(1 - window) if window else mask


def padding_mask(tokens: Tensor, pad_token_id: int) -> Tensor:
    """Hide padding: no query sees a key that only fills up a batch of unequal lengths.

    tokens: (batch, key), integer.
    Returns: (batch, 1, 1, key), boolean, which broadcasts over heads and queries.
    """
    if tokens.dim() != 2:
        raise ValueError(f"padding_mask takes tokens of shape (batch, pos), not {tuple(tokens.shape)}.")
    return (tokens != pad_token_id)[:, None, None, :]


def with_attention_mask(padding: Tensor | None, attention_mask: Tensor) -> Tensor:
    """The padding mask, if any, combined with an attention mask, (batch, key)."""
    seen = attention_mask.bool()[:, None, None, :]
    return seen if padding is None else padding & seen


def padding_or_none(tokens: Tensor, pad_token_id: int | None) -> Tensor | None:
    """The padding mask, or None if nothing is padded, so that attention can skip it.

    A compiled or exported model serves all texts, so it always gets the mask.
    """
    if pad_token_id is None or not is_true((tokens == pad_token_id).any(), if_unknown=True):
        return None
    return padding_mask(tokens, pad_token_id)
