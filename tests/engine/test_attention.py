"""Tests attention: both implementations agree, with caches and with fully masked rows."""

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from tests.helpers import tiny_config
from transformer import attention
from transformer.model.attention import SelfAttention, UniformAttention, safe_softmax
from transformer.model.caches import KeyValues

KINDS = {"softmax": SelfAttention, "uniform": UniformAttention}


def attention_layer(kind: str = "softmax", *, causal: bool = True, explicit: bool = False, **fields) -> nn.Module:
    """One attention layer; a hook of PyTorch's on the pattern is what makes it take the explicit way."""
    torch.manual_seed(0)
    layer = KINDS[kind](tiny_config(attention=kind, **fields), causal=causal)
    if explicit:
        layer.hook_pattern.register_forward_hook(lambda module, inputs, output: None)
    return layer


def inputs(batch: int = 3, pos: int = 5) -> torch.Tensor:
    return torch.randn(batch, pos, 8, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("explicit", [False, True])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("padded", [False, True])
def test_the_layer_computes_the_equation_in_every_head(explicit, causal, padded):
    layer, x = attention_layer(causal=causal, explicit=explicit), inputs()
    padding = torch.tensor([[0, 1, 1, 1, 1], [1, 1, 1, 0, 0], [0, 0, 0, 0, 0]]).bool()[:, None, None, :]
    mask = torch.ones(5, 5, dtype=torch.bool)
    mask = (mask.tril() if causal else mask) & (padding | (not padded))
    q, k, v = (part.unflatten(-1, (2, 4)).transpose(1, 2) for part in layer.qkv(x).chunk(3, dim=-1))
    expected = layer.out(attention(q, k, v, mask).transpose(1, 2).flatten(-2))
    torch.testing.assert_close(layer(x, padding if padded else None), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("explicit", [False, True])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_a_query_that_sees_nothing_gets_zeros_and_a_finite_gradient(kind, causal, explicit):
    layer = attention_layer(kind, causal=causal, explicit=explicit)
    x = inputs(batch=2).requires_grad_()
    padding = torch.tensor([[False] * 5, [False, False, True, True, True]])[:, None, None, :]
    seen = []
    layer.hook_z.register_forward_hook(lambda module, args, z: seen.append(z))
    out = layer(x, padding)
    blind = 2 if causal else 0
    assert (seen[0][0] == 0).all()
    assert (seen[0][1, :blind] == 0).all()
    assert (seen[0][1, blind:] != 0).any()
    torch.testing.assert_close(out[0], layer.out.bias.expand(5, 8))
    out.square().sum().backward()
    for tensor in (x, *layer.parameters()):
        assert tensor.grad.isfinite().all()


@pytest.mark.parametrize("explicit", [False, True])
@pytest.mark.parametrize("positions", ["none", "rotary"])
@pytest.mark.parametrize("kind", KINDS)
def test_cached_keys_and_values_give_what_one_pass_gives(kind, positions, explicit):
    layer = attention_layer(kind, explicit=explicit, positions=positions)
    x = inputs()
    whole = layer(x)
    for pieces in ([1, 1, 1, 1, 1], [2, 3], [3, 1, 1], [5]):
        past, start, outputs = KeyValues(), 0, []
        for size in pieces:
            outputs.append(layer(x[:, start : start + size], None, past, start))
            start += size
        torch.testing.assert_close(torch.cat(outputs, 1), whole, atol=1e-5, rtol=0)
        assert past.tensors[1].shape == (3, 5, 2, 4)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("pos", [1, 5])
@pytest.mark.parametrize("padded", [False, True])
def test_the_pattern_alone_is_that_of_the_four_steps(causal, pos, padded):
    x, seen = inputs(pos=pos), []
    padding = (torch.arange(pos) > 0).expand(3, 1, 1, pos) if padded else None
    for points in (["hook_pattern"], ["hook_pattern", "hook_raw_scores"], ["hook_pattern", "hook_mask"]):
        layer = attention_layer(causal=causal)
        for point in points:
            getattr(layer, point).register_forward_hook(lambda module, args, tensor: None)
        layer.hook_pattern.register_forward_hook(lambda module, args, pattern: seen.append(pattern))
        seen.append(layer(x, padding))
    for pattern, out in zip(seen[2::2], seen[3::2], strict=True):
        torch.testing.assert_close(pattern, seen[0], atol=1e-6, rtol=0)
        torch.testing.assert_close(out, seen[1], atol=1e-6, rtol=0)


@pytest.mark.parametrize("kind", KINDS)
def test_both_ways_agree_in_half_the_precision(kind):
    fused, explicit = attention_layer(kind), attention_layer(kind, explicit=True)
    x = inputs().bfloat16()
    out = explicit.bfloat16()(x)
    assert out.dtype == torch.bfloat16
    torch.testing.assert_close(fused.bfloat16()(x), out, atol=0.03, rtol=0)


def test_safe_softmax_lets_real_faults_show():
    pattern = safe_softmax(torch.tensor([[math.nan, 0.0], [-math.inf, -math.inf], [1.0, 1.0]]))
    assert pattern[0].isnan().all() and pattern[1:].tolist() == [[0, 0], [0.5, 0.5]]


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
