"""Tests the caches of keys and values: appending in pieces equals appending at once."""

import torch
from hypothesis import given
from hypothesis import strategies as some

from transformer.model import caches
from transformer.model.caches import KeyValues

HEADS, D_HEAD = 2, 3


def piece(length, seed):
    return torch.randn(2, length, HEADS, D_HEAD, generator=torch.Generator().manual_seed(seed))


@given(some.lists(some.integers(1, caches.SPARE), min_size=1, max_size=8))
def test_pieces_are_put_together_and_what_was_given_out_stays(lengths):
    past, keys, values, given_out = KeyValues(), [], [], []
    for at, length in enumerate(lengths):
        keys.append(piece(length, 2 * at))
        values.append(piece(length, 2 * at + 1))
        found = past.append(keys[-1], values[-1])
        given_out.append((found, [each.clone() for each in found]))
        assert torch.equal(found[0], torch.cat(keys, 1)) and torch.equal(found[1], torch.cat(values, 1))
        assert found == past.tensors
    for found, then in given_out:
        assert all(map(torch.equal, found, then))


def test_one_that_goes_on_from_another_writes_nothing_into_it():
    first = KeyValues()
    for seed in range(3):
        first.append(piece(1, seed), piece(1, seed))
    other, before = KeyValues(first.tensors), first.tensors[0].clone()
    other.append(piece(1, 8), piece(1, 8))
    first.append(piece(1, 9), piece(1, 9))
    assert torch.equal(first.tensors[0], torch.cat((before, piece(1, 9)), 1))
    assert torch.equal(other.tensors[0], torch.cat((before, piece(1, 8)), 1))


def test_keys_that_are_set_anew_are_gone_on_from():
    past = KeyValues()
    for seed in range(3):
        past.append(piece(1, seed), piece(1, seed))
    past.tensors = tuple(each[:, :1] for each in past.tensors)
    keys, _ = past.append(piece(1, 9), piece(1, 9))
    assert torch.equal(keys, torch.cat((piece(1, 0), piece(1, 9)), 1))
    past.clear()
    assert past.append(piece(1, 4), piece(1, 4))[0].shape[1] == 1


def test_with_a_history_nothing_is_written_in_place():
    past, weight = KeyValues(), torch.ones(1, requires_grad=True)
    for seed in range(3):
        keys, _ = past.append(weight * piece(1, seed), piece(1, seed))
    keys.square().sum().backward()
    torch.testing.assert_close(weight.grad, 2 * torch.cat([piece(1, seed) for seed in range(3)]).square().sum()[None])
