"""Tests our dropout against PyTorch's, with generators and threads."""

import pytest
import torch
from torch import nn

from transformer.model.dropout import dropout, dropout_from


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_it_is_that_of_pytorch(p, dtype):
    numbers = torch.randn(4, 33, 8, generator=torch.Generator().manual_seed(0)).to(dtype)
    x, y = numbers.clone().requires_grad_(), numbers.clone().requires_grad_()
    torch.manual_seed(5)
    expected = nn.Dropout(p)(x)
    torch.manual_seed(5)
    found = dropout(y, p, True)
    assert found.dtype == dtype
    torch.testing.assert_close(found, expected)
    expected.sum().backward()
    found.sum().backward()
    torch.testing.assert_close(y.grad, x.grad)


def test_it_does_nothing_in_evaluation_or_at_zero():
    x = torch.randn(5)
    before = torch.get_rng_state()
    assert dropout(x, 0.5, False) is x
    assert dropout(x, 0.0, True) is x
    assert torch.equal(torch.get_rng_state(), before)


def test_it_draws_from_the_generator_it_is_given_and_from_no_other():
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
