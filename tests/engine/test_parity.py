"""Tests attention, blocks and whole models against PyTorch's with the same weights."""

import math

import pytest
import torch
from torch import Tensor, nn

from tests.helpers import random_weights
from transformer import EncoderDecoder, ModelConfig, build_model, padding_mask
from transformer.model.attention import CrossAttention, SelfAttention, SoftmaxAttention
from transformer.model.blocks import Block, DecoderBlock, make_block, make_decoder_block
from transformer.model.layers import MLP, LayerNorm

ACTIVATIONS = {"relu": nn.ReLU(), "gelu": nn.GELU(), "gelu_tanh": nn.GELU(approximate="tanh"), "silu": nn.SiLU()}
PAD, VOCABULARY, SOURCE, TARGET = 0, 9, 5, 7
CAUSAL = nn.Transformer.generate_square_subsequent_mask(TARGET).isinf()
"""As PyTorch's modules take it: True where a key is hidden."""
KINDS = ("causal", "all", "cross")

either_way = pytest.mark.parametrize("explicit", [False, True])
with_padding_or_without = pytest.mark.parametrize("padded", [False, True])


def config(d_model: int = 12, n_heads: int = 3, **fields) -> ModelConfig:
    shape = {"vocab_size": VOCABULARY, "context_length": 16, "n_layers": 1, "positions": "none", "pad_token_id": PAD}
    return ModelConfig(**{"architecture": "encoder-decoder", "d_model": d_model, "n_heads": n_heads, **shape, **fields})


def padded_tokens(pos: int, *, lengths: tuple[int, ...]) -> Tensor:
    """Ids (batch, pos), padded on the right behind each text's length."""
    tokens = torch.randint(1, VOCABULARY, (len(lengths), pos), generator=torch.Generator().manual_seed(pos))
    for row, length in zip(tokens, lengths, strict=True):
        row[length:] = PAD
    return tokens


def stream(pos: int, d_model: int = 12) -> Tensor:
    return torch.randn(2, pos, d_model, generator=torch.Generator().manual_seed(pos))


def close(actual: Tensor, expected: Tensor, real: Tensor | None = None) -> None:
    """real: (batch, pos), the positions that are compared; at padding, PyTorch's and our numbers mean nothing."""
    chosen = ... if real is None else real
    torch.testing.assert_close(actual[chosen], expected[chosen], atol=1e-5, rtol=1e-5)


def watch(module: nn.Module, explicit: bool) -> list[Tensor]:
    """Let every attention take the explicit way; gives the patterns that are seen."""
    seen = []
    for part in module.modules():
        if explicit and isinstance(part, SoftmaxAttention):
            part.hook_pattern.register_forward_hook(lambda module, args, output: seen.append(output))
    return seen


def of_attention(ours: nn.Module) -> dict[str, Tensor]:
    """Our weights under the names of nn.MultiheadAttention."""
    kinds = ["weight"] if ours.out.bias is None else ["weight", "bias"]
    inward = [ours.q, ours.kv] if isinstance(ours, CrossAttention) else [ours.qkv]
    return {
        **{f"in_proj_{kind}": torch.cat([getattr(linear, kind) for linear in inward]) for kind in kinds},
        **{f"out_proj.{kind}": getattr(ours.out, kind) for kind in kinds},
    }


def of_block(ours: Block) -> dict[str, Tensor]:
    """Our weights under the names of nn.TransformerEncoderLayer or nn.TransformerDecoderLayer."""
    attentions, norms = {"self_attn": ours.attn}, [ours.ln1, ours.ln2]
    if isinstance(ours, DecoderBlock):
        attentions, norms = ({**attentions, "multihead_attn": ours.cross_attn}, [ours.ln1, ours.ln_cross, ours.ln2])
    plain = {"linear1": ours.mlp.up, "linear2": ours.mlp.down}
    plain |= {f"norm{number}": norm for number, norm in enumerate(norms, start=1)}
    weights = {
        f"{name}.{key}": weight
        for name, attention in attentions.items()
        for key, weight in of_attention(attention).items()
    }
    return weights | {
        f"{name}.{kind}": getattr(module, kind) for name, module in plain.items() for kind in ("weight", "bias")
    }


@either_way
@with_padding_or_without
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_attention_is_nn_multihead_attention(kind, bias, padded, explicit):
    shape = config(attention_bias=bias)
    ours = random_weights(CrossAttention(shape) if kind == "cross" else SelfAttention(shape, causal=kind == "causal"))
    theirs = nn.MultiheadAttention(12, 3, bias=bias, batch_first=True).eval()
    theirs.load_state_dict(of_attention(ours))
    x, memory = stream(TARGET), stream(SOURCE)
    keys = memory if kind == "cross" else x
    tokens = padded_tokens(keys.shape[1], lengths=(keys.shape[1], 2))
    hidden = {"key_padding_mask": tokens == PAD} if padded else {}
    mask = CAUSAL if kind == "causal" else None
    expected, pattern = theirs(x, keys, keys, attn_mask=mask, average_attn_weights=False, **hidden)
    seen = watch(ours, explicit)
    found = ours(*((x, memory) if kind == "cross" else (x,)), padding_mask(tokens, PAD) if padded else None)
    close(found, expected)
    if explicit:
        close(seen[0], pattern)


@either_way
@with_padding_or_without
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_block_is_a_layer_of_nn_transformer(kind, norm, activation, padded, explicit):
    shape = config(norm=norm, activation=activation, layer_norm_eps=1e-3)
    ours = random_weights(make_decoder_block(shape) if kind == "cross" else make_block(shape, causal=kind == "causal"))
    layer = nn.TransformerDecoderLayer if kind == "cross" else nn.TransformerEncoderLayer
    options = {"dropout": 0.0, "activation": activation, "layer_norm_eps": 1e-3, "batch_first": True}
    theirs = layer(12, 3, 48, norm_first=norm == "pre", **options).eval()
    theirs.load_state_dict(of_block(ours))
    watch(ours, explicit)
    x, memory = stream(TARGET), stream(SOURCE)
    source, target = padded_tokens(SOURCE, lengths=(2, 5)), padded_tokens(TARGET, lengths=(7, 4))
    real = target != PAD if padded else None
    if kind == "cross":
        hidden = {"tgt_key_padding_mask": target == PAD, "memory_key_padding_mask": source == PAD} if padded else {}
        visible = {"padding": padding_mask(target, PAD), "memory_padding": padding_mask(source, PAD)} if padded else {}
        close(ours(x, memory, **visible), theirs(x, memory, tgt_mask=CAUSAL, **hidden), real)
    else:
        hidden = {"src_key_padding_mask": target == PAD} if padded else {}
        expected = theirs(x, src_mask=CAUSAL if kind == "causal" else None, **hidden)
        close(ours(x, padding_mask(target, PAD) if padded else None), expected, real)


@either_way
@pytest.mark.parametrize("d_model", [12, 512])
def test_layer_norm_is_nn_layer_norm(d_model, explicit):
    ours = random_weights(LayerNorm(config(d_model, layer_norm_eps=1e-2, n_heads=1)))
    theirs = nn.LayerNorm(d_model, eps=1e-2)
    theirs.load_state_dict(ours.state_dict())
    if explicit:  # the way that an edited scale takes
        ours.hook_scale.register_forward_hook(lambda module, args, output: None)
    x = stream(TARGET, d_model) * 3 + 1
    close(ours(x), theirs(x))


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("bias", [False, True])
def test_the_feed_forward_layer_is_two_linear_layers(activation, bias):
    ours = random_weights(MLP(config(activation=activation, mlp_bias=bias, d_ff=20)))
    theirs = nn.Sequential(nn.Linear(12, 20, bias=bias), ACTIVATIONS[activation], nn.Linear(20, 12, bias=bias))
    theirs.load_state_dict(
        {name.replace("up", "0").replace("down", "2"): weight for name, weight in ours.state_dict().items()}
    )
    close(ours(stream(TARGET)), theirs(stream(TARGET)))


def of_stacks(model: EncoderDecoder) -> dict[str, Tensor]:
    """Our weights under the names of nn.Transformer."""
    weights = {}
    for side in ("encoder", "decoder"):
        stack = getattr(model, side)
        for layer, block in enumerate(stack.blocks):
            weights |= {f"{side}.layers.{layer}.{name}": weight for name, weight in of_block(block).items()}
        if isinstance(stack.ln_final, LayerNorm):
            weights |= {f"{side}.norm.{name}": weight for name, weight in stack.ln_final.named_parameters()}
    return weights


def embedded(table: Tensor, tokens: Tensor) -> Tensor:
    """Rows of the table times √d_model, plus the sines and cosines of Vaswani et al. 2017, §3.4 and §3.5."""
    d_model = table.shape[1]
    place = torch.arange(tokens.shape[1], dtype=torch.float64)[:, None]
    angle = place / 10000 ** (torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    sinusoids = torch.stack((angle.sin(), angle.cos()), -1).flatten(1)
    return table[tokens] * math.sqrt(d_model) + sinusoids.float()


@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")
@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize(
    ("d_model", "n_heads", "n_encoder_layers", "n_layers", "d_ff"), [(12, 3, 1, 3, 20), (64, 8, 2, 2, 100)]
)
def test_the_whole_model_is_nn_transformer(d_model, n_heads, n_encoder_layers, n_layers, d_ff, norm):
    """From tokens to logits: the table times √d_model and the sinusoids before it, the table itself after it."""
    shape = config(
        d_model,
        n_heads,
        n_layers=n_layers,
        n_encoder_layers=n_encoder_layers,
        d_ff=d_ff,
        norm=norm,
        positions="sinusoidal",
        scale_embeddings=True,
        tie_embeddings=True,
    )
    ours = random_weights(build_model(shape))
    theirs = nn.Transformer(
        d_model, n_heads, n_encoder_layers, n_layers, d_ff, dropout=0.0, batch_first=True, norm_first=norm == "pre"
    ).eval()
    if norm == "post":  # the paper has no norm behind the last one; PyTorch adds it
        theirs.encoder.norm = theirs.decoder.norm = None
    theirs.load_state_dict(of_stacks(ours))
    source, target = padded_tokens(SOURCE, lengths=(2, 5)), padded_tokens(TARGET, lengths=(7, 4))
    table = ours.embed.weight
    hidden = source == PAD
    expected = theirs(
        embedded(table, source),
        embedded(table, target),
        tgt_mask=CAUSAL,
        src_key_padding_mask=hidden,
        tgt_key_padding_mask=target == PAD,
        memory_key_padding_mask=hidden,
    )
    memory = theirs.encoder(embedded(table, source), src_key_padding_mask=hidden)
    close(ours.encode(source), memory, source != PAD)
    close(ours(source, target), expected @ table.T, target != PAD)
