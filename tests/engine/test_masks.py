"""Tests the masks: True where a key is visible."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from transformer import causal_mask, padding_mask


@given(st.integers(0, 9), st.integers(0, 9))
def test_a_query_sees_the_keys_up_to_its_own_place(query, earlier):
    key = query + earlier
    mask = causal_mask(query, key)
    assert mask.shape == (query, key)
    assert mask.dtype == torch.bool
    for i in range(query):
        for j in range(key):
            assert mask[i, j] == (j <= i + earlier)


@pytest.mark.parametrize(("query", "key"), [(3, 2), (-1, 2)])
def test_more_queries_than_keys_are_refused(query, key):
    with pytest.raises(ValueError, match=f"{query} queries, {key} keys"):
        causal_mask(query, key)


def test_padding_is_hidden_and_nothing_else():
    tokens = torch.tensor([[5, 0, 7], [0, 0, 0]])
    mask = padding_mask(tokens, 0)
    assert mask.shape == (2, 1, 1, 3)
    assert mask.dtype == torch.bool
    assert mask[:, 0, 0].tolist() == [[True, False, True], [False, False, False]]
    with pytest.raises(ValueError, match=r"\(batch, pos\), not \(3,\)"):
        padding_mask(tokens[0], 0)
