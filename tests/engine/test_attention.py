"""Tests attention's equation and what goes into it: masks, positions, cached keys and values, dropout."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from transformer import attention, causal_mask, padding_mask, sinusoidal_encoding
from transformer.model import caches, positions
from transformer.model.attention import safe_softmax
from transformer.model.caches import KeyValues
from transformer.model.dropout import dropout, dropout_from
from transformer.model.masks import full_mask


@given(
    st.integers(1, 5), st.integers(1, 5), st.integers(1, 4), st.sampled_from([None, 0.3, 0.7, 1.0]), st.integers(0, 99)
)
def test_the_equation_is_pytorchs_scaled_dot_product_attention(query, key, d_head, hidden, seed):
    random = torch.Generator().manual_seed(seed)
    q, k, v = (torch.randn(2, 3, length, d_head, generator=random) for length in (query, key, key))
    mask = None if hidden is None else torch.rand(2, 1, query, key, generator=random) >= hidden
    expected = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    if mask is not None:
        expected = expected.masked_fill(~mask.any(-1, keepdim=True), 0.0)  # PyTorch leaves open what these rows hold
    torch.testing.assert_close(attention(q, k, v, mask), expected, atol=1e-5, rtol=1e-5)


def test_safe_softmax_lets_real_faults_show():
    pattern = safe_softmax(torch.tensor([[math.nan, 0.0], [-math.inf, -math.inf], [1.0, 1.0]]))
    assert pattern[0].isnan().all() and pattern[1:].tolist() == [[0, 0], [0.5, 0.5]]


@given(st.integers(0, 9), st.integers(0, 9), st.integers(0, 4))
def test_masks_say_which_keys_a_query_sees(query, earlier, window):
    key = query + earlier
    near = window or 99
    causal = [[i - near < j <= i for j in range(key)] for i in range(earlier, key)]
    assert causal_mask(query, key, window=window).tolist() == causal
    assert full_mask(key, key, window=window).tolist() == [[abs(i - j) < near for j in range(key)] for i in range(key)]


def test_masks_of_padding_and_of_more_queries_than_keys():
    mask = padding_mask(torch.tensor([[5, 0, 7], [0, 0, 0]]), 0)
    assert mask.dtype == torch.bool and mask.tolist() == [[[[True, False, True]]], [[[False, False, False]]]]
    with pytest.raises(ValueError, match=r"\(batch, pos\), not \(3,\)"):
        padding_mask(torch.tensor([5, 0, 7]), 0)
    for query, key in ((3, 2), (-1, 2)):
        with pytest.raises(ValueError, match=f"{query} queries, {key} keys"):
            causal_mask(query, key)


@given(
    st.integers(0, 20) | st.just(10_000),
    st.integers(0, 5),
    st.integers(1, 8).map(lambda half: 2 * half),
    st.sampled_from([10000.0, 100.0]),
)
def test_sinusoidal_positions_are_the_table_of_the_paper(first, count, d_model, base):
    """PE(pos, 2i) = sin(pos / base^(2i/d_model)), PE(pos, 2i+1) = cos of it."""
    column = np.arange(d_model)
    angle = np.arange(first, first + count)[:, None] / base ** ((column - column % 2) / d_model)
    table = sinusoidal_encoding(first + count, d_model, base)
    assert table.dtype == torch.float32
    np.testing.assert_allclose(table[first:].numpy(), np.where(column % 2, np.cos(angle), np.sin(angle)), atol=1e-7)
    rows = positions.sinusoidal_rows(first, count, d_model, torch.device("cpu"))
    assert base != 10000.0 or torch.equal(rows, table[first:])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [((4, 7), "d_model is 7"), ((4, 0), "d_model is 0"), ((-1, 4), "length is -1"), ((4, 4, 0.0), "base is 0")],
)
def test_what_makes_no_table_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        sinusoidal_encoding(*arguments)


@given(st.integers(0, 20_000), st.sampled_from([6, 8]), st.sampled_from([None, 4]), st.booleans(), st.booleans())
def test_rotary_positions_turn_each_pair_by_its_own_angle(start, width, dims, halves, scaled):
    """Neighbours, or the halves of the part that is turned; the rest is left as it is."""
    vectors = torch.randn(2, 5, 3, width, generator=torch.Generator().manual_seed(0))
    count = dims or width
    factors = [1.0 + pair for pair in range(count // 2)] if scaled else [1.0] * (count // 2)
    more = {"factors": tuple(factors), "scale": 1.5, "base": 50.0} if scaled else {}
    turned = positions.rotate(vectors, start, dims=dims, halves=halves, **more)
    for pos in range(5):
        for pair, factor in enumerate(factors):
            first, second = (pair, pair + count // 2) if halves else (2 * pair, 2 * pair + 1)
            angle = (start + pos) / more.get("base", 10000.0) ** (2 * pair / count) / factor
            x, y = vectors[:, pos, :, first], vectors[:, pos, :, second]
            expected = (x * math.cos(angle) - y * math.sin(angle), x * math.sin(angle) + y * math.cos(angle))
            for column, value in zip((first, second), expected, strict=True):
                found = turned[:, pos, :, column] / more.get("scale", 1.0)
                torch.testing.assert_close(found, value, atol=1e-5, rtol=0)
    assert torch.equal(turned[..., count:], vectors[..., count:])
    assert positions.rotate(vectors.bfloat16()).dtype == torch.bfloat16


def keys_and_values(length: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    return tuple(torch.randn(2, 2, length, 2, 3, generator=torch.Generator().manual_seed(seed)))


events = st.sampled_from([*[""] * 6, "branch", "cut", "clear"])


@given(st.lists(st.tuples(st.integers(1, caches.SPARE), events, st.integers(0, 9))))
def test_what_is_cached_is_what_was_appended_and_what_was_given_out_stays(steps):
    """Also in caches that go on from one another, that are cut, or that begin anew."""
    pasts, given_out = [(KeyValues(), ())], []
    for seed, (length, event, which) in enumerate(steps):
        past, before = pasts[which % len(pasts)]
        if event == "branch":
            past = KeyValues(past.tensors)
            pasts.append((past, before))
        elif event == "cut":
            past.tensors = tuple(each[:, :1] for each in past.tensors)
            before = tuple(each[:, :1] for each in before)
        elif event == "clear":
            past.clear()
            before = ()
        new = keys_and_values(length, seed)
        expected = tuple(torch.cat((old, more), 1) for old, more in zip(before, new, strict=True)) if before else new
        found = past.append(*new)
        assert found == past.tensors
        given_out.append((found, expected))
        pasts = [(each, expected if each is past else held) for each, held in pasts]
    for found, expected in (*given_out, *((past.tensors, expected) for past, expected in pasts)):
        assert all(map(torch.equal, found, expected))


def test_cached_tensors_with_a_history_are_not_written_in_place():
    past, weight = KeyValues(), torch.ones(1, requires_grad=True)
    for seed in range(3):
        new, values = keys_and_values(1, seed)
        keys, _ = past.append(weight * new, values)
    keys.square().sum().backward()
    torch.testing.assert_close(weight.grad, 2 * keys.detach().square().sum()[None])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("p", [0.1, 0.9])
def test_dropout_is_that_of_pytorch_in_training_and_nothing_otherwise(p, dtype):
    numbers = torch.randn(4, 33, 8, generator=torch.Generator().manual_seed(0)).to(dtype)
    x, y = numbers.clone().requires_grad_(), numbers.clone().requires_grad_()
    for tensor, drop in ((x, nn.Dropout(p)), (y, lambda tensor: dropout(tensor, p, True))):
        torch.manual_seed(5)
        dropped = drop(tensor)
        dropped.sum().backward()
        assert dropped.dtype == dtype and torch.equal(dropped == 0, tensor.grad == 0)
    torch.testing.assert_close(y.grad, x.grad)
    before = torch.get_rng_state()
    assert dropout(x, p, False) is dropout(x, 0.0, True) is x
    assert torch.equal(torch.get_rng_state(), before)


def test_dropout_draws_from_the_generator_it_is_given_and_from_no_other():
    x, before = torch.ones(100), torch.get_rng_state()
    generator = torch.Generator().manual_seed(1)
    with dropout_from(generator):
        first, second = dropout(x, 0.5, True), dropout(x, 0.5, True)
    assert not torch.equal(first, second)
    assert torch.equal(torch.get_rng_state(), before)
    with pytest.raises(KeyError), dropout_from(generator.manual_seed(1)):
        assert torch.equal(dropout(x, 0.5, True), first)
        raise KeyError
    torch.manual_seed(1)
    assert torch.equal(dropout(x, 0.5, True), first)  # outside, from the global one, also after an error
