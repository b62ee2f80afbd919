"""Tests decoders against PyTorch's layers with the same weights."""

import pytest
import torch
from torch import nn

from tests.helpers import random_weights
from transformer import ModelConfig, padding_mask
from transformer.model.attention import SelfAttention
from transformer.model.blocks import make_block
from transformer.model.layers import MLP, LayerNorm

SIZES = [(12, 3), (512, 8)]
ACTIVATIONS = {"relu": nn.ReLU(), "gelu": nn.GELU(), "gelu_tanh": nn.GELU(approximate="tanh")}


def config(d_model: int = 12, n_heads: int = 3, **fields) -> ModelConfig:
    return ModelConfig(
        vocab_size=5, context_length=16, n_layers=1, n_heads=n_heads, d_model=d_model, positions="none", **fields
    )


def inputs(d_model: int, batch: int = 2, pos: int = 7) -> torch.Tensor:
    return torch.randn(batch, pos, d_model, generator=torch.Generator().manual_seed(1))


def close(actual: torch.Tensor, expected: torch.Tensor) -> None:
    torch.testing.assert_close(actual, expected, atol=1e-5, rtol=1e-5)


def watch(attention: SelfAttention, explicit: bool) -> None:
    if explicit:
        attention.hook_pattern.register_forward_hook(lambda module, args, output: None)


CAUSAL = nn.Transformer.generate_square_subsequent_mask(7).isinf()
"""As PyTorch's modules take it: True where a key is hidden."""


@pytest.mark.parametrize("explicit", [False, True])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(("d_model", "n_heads"), SIZES)
def test_self_attention_is_nn_multihead_attention(d_model, n_heads, bias, padded, causal, explicit):
    ours = random_weights(SelfAttention(config(d_model, n_heads, attention_bias=bias), causal=causal))
    theirs = nn.MultiheadAttention(d_model, n_heads, bias=bias, batch_first=True).eval()
    weights = {"in_proj_weight": ours.qkv.weight, "out_proj.weight": ours.out.weight}
    if bias:
        weights |= {"in_proj_bias": ours.qkv.bias, "out_proj.bias": ours.out.bias}
    theirs.load_state_dict(weights)
    watch(ours, explicit)

    x = inputs(d_model)
    tokens = torch.ones(2, 7, dtype=torch.long)
    tokens[1, 4:] = 0
    hidden = {"key_padding_mask": tokens == 0} if padded else {}
    expected, pattern = theirs(x, x, x, attn_mask=CAUSAL if causal else None, average_attn_weights=False, **hidden)
    seen = []
    if explicit:
        ours.hook_pattern.register_forward_hook(lambda module, args, output: seen.append(output))
    close(ours(x, padding_mask(tokens, 0) if padded else None), expected)
    if explicit:
        close(seen[0], pattern)


@pytest.mark.parametrize("explicit", [False, True])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize(("d_model", "n_heads"), SIZES)
def test_a_block_is_nn_transformer_encoder_layer(d_model, n_heads, activation, norm, causal, explicit):
    shape = config(d_model, n_heads, activation=activation, norm=norm, layer_norm_eps=1e-3)
    ours = random_weights(make_block(shape, causal=causal))
    theirs = nn.TransformerEncoderLayer(
        d_model,
        n_heads,
        dim_feedforward=4 * d_model,
        dropout=0.0,
        activation=activation,
        layer_norm_eps=1e-3,
        batch_first=True,
        norm_first=norm == "pre",
    ).eval()
    pairs = {
        "self_attn.in_proj_": ours.attn.qkv,
        "self_attn.out_proj.": ours.attn.out,
        "linear1.": ours.mlp.up,
        "linear2.": ours.mlp.down,
        "norm1.": ours.ln1,
        "norm2.": ours.ln2,
    }
    theirs.load_state_dict(
        {f"{name}{kind}": getattr(module, kind) for name, module in pairs.items() for kind in ("weight", "bias")}
    )
    watch(ours.attn, explicit)
    x = inputs(d_model)
    close(ours(x), theirs(x, src_mask=CAUSAL if causal else None))


@pytest.mark.parametrize("watched", [False, True])
@pytest.mark.parametrize("d_model", [12, 512])
def test_layer_norm_is_nn_layer_norm(d_model, watched):
    ours = random_weights(LayerNorm(config(d_model, layer_norm_eps=1e-2, n_heads=1)))
    theirs = nn.LayerNorm(d_model, eps=1e-2)
    theirs.load_state_dict(ours.state_dict())
    if watched:  # the way that an edited scale takes
        ours.hook_scale.register_forward_hook(lambda module, args, output: None)
    x = inputs(d_model) * 3 + 1
    close(ours(x), theirs(x))


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("bias", [False, True])
def test_the_feed_forward_layer_is_two_linear_layers(activation, bias):
    ours = random_weights(MLP(config(activation=activation, mlp_bias=bias, d_ff=20)))
    theirs = nn.Sequential(nn.Linear(12, 20, bias=bias), ACTIVATIONS[activation], nn.Linear(20, 12, bias=bias))
    theirs.load_state_dict(
        {name.replace("up", "0").replace("down", "2"): weight for name, weight in ours.state_dict().items()}
    )
    close(ours(inputs(12)), theirs(inputs(12)))
