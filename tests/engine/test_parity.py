"""Tests whole models against PyTorch's with the same weights."""

import math

import pytest
import torch
from torch import Tensor, nn

from tests.helpers import random_weights
from transformer import EncoderDecoder, ModelConfig, build_model
from transformer.model.attention import CrossAttention
from transformer.model.blocks import Block, DecoderBlock

PAD, VOCABULARY, SOURCE, TARGET = 0, 9, 5, 7
CAUSAL = nn.Transformer.generate_square_subsequent_mask(TARGET).isinf()
"""As PyTorch's modules take it: True where a key is hidden."""


def some_tokens(pos: int, lengths: tuple[int, ...]) -> Tensor:
    """Ids (batch, pos), padded on the right behind each text's length."""
    tokens = torch.randint(1, VOCABULARY, (len(lengths), pos), generator=torch.Generator().manual_seed(pos))
    for row, length in zip(tokens, lengths, strict=True):
        row[length:] = PAD
    return tokens


def close(actual: Tensor, expected: Tensor, real: Tensor | None = None) -> None:
    """real: (batch, pos), the positions that are compared; at padding, PyTorch's and our numbers mean nothing."""
    chosen = ... if real is None else real
    torch.testing.assert_close(actual[chosen], expected[chosen], atol=1e-5, rtol=1e-5)


def of_attention(ours: nn.Module) -> dict[str, Tensor]:
    """Our weights under the names of nn.MultiheadAttention."""
    inward = [ours.q, ours.kv] if isinstance(ours, CrossAttention) else [ours.qkv]
    return {
        **{f"in_proj_{kind}": torch.cat([getattr(linear, kind) for linear in inward]) for kind in ("weight", "bias")},
        **{f"out_proj.{kind}": getattr(ours.out, kind) for kind in ("weight", "bias")},
    }


def of_block(ours: Block) -> dict[str, Tensor]:
    """Our weights under the names of nn.TransformerEncoderLayer or nn.TransformerDecoderLayer."""
    parts = {"linear1": ours.mlp.up, "linear2": ours.mlp.down, "norm1": ours.ln1, "norm2": ours.ln2}
    weights = {f"self_attn.{name}": weight for name, weight in of_attention(ours.attn).items()}
    if isinstance(ours, DecoderBlock):
        parts |= {"norm2": ours.ln_cross, "norm3": ours.ln2}
        weights |= {f"multihead_attn.{name}": weight for name, weight in of_attention(ours.cross_attn).items()}
    return weights | {f"{name}.{kind}": each for name, part in parts.items() for kind, each in part.named_parameters()}


def of_stacks(model: EncoderDecoder) -> dict[str, Tensor]:
    """Our weights under the names of nn.Transformer."""
    weights = {}
    for side in ("encoder", "decoder"):
        stack = getattr(model, side)
        for layer, block in enumerate(stack.blocks):
            weights |= {f"{side}.layers.{layer}.{name}": weight for name, weight in of_block(block).items()}
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
@pytest.mark.parametrize("explicit", [False, True])
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("sizes", [(12, 3, 1, 3, 20), (64, 8, 2, 2, 100)])
def test_the_whole_model_is_nn_transformer(sizes, norm, activation, padded, explicit):
    """From tokens to logits: the table times √d_model and the sinusoids before it, the table itself after it."""
    d_model, n_heads, n_encoder_layers, n_layers, d_ff = sizes
    shape = {"d_model": d_model, "n_heads": n_heads, "n_layers": n_layers, "n_encoder_layers": n_encoder_layers}
    shape |= {"d_ff": d_ff, "vocab_size": VOCABULARY, "context_length": 16, "pad_token_id": PAD}
    shape |= {"norm": norm, "activation": activation, "layer_norm_eps": 1e-3, "positions": "sinusoidal"}
    shape |= {"architecture": "encoder-decoder", "scale_embeddings": True, "tie_embeddings": True}
    ours = random_weights(build_model(ModelConfig(**shape)))
    options = {"activation": activation, "layer_norm_eps": 1e-3, "norm_first": norm == "pre", "batch_first": True}
    theirs = nn.Transformer(*sizes, dropout=0.0, **options).eval()
    if norm == "post":  # the paper has no norm behind the last one; PyTorch adds it
        theirs.encoder.norm = theirs.decoder.norm = None
    theirs.load_state_dict(of_stacks(ours))
    source, target = some_tokens(SOURCE, (2 if padded else 5, 5)), some_tokens(TARGET, (7, 4 if padded else 7))
    x, y = (embedded(ours.embed.weight, tokens) for tokens in (source, target))
    hidden = {"src_key_padding_mask": source == PAD, "tgt_key_padding_mask": target == PAD} if padded else {}
    more = {"memory_key_padding_mask": source == PAD} if padded else {}
    expected = theirs(x, y, tgt_mask=CAUSAL, **hidden, **more)
    close(
        ours.encode(source), theirs.encoder(x, src_key_padding_mask=hidden.get("src_key_padding_mask")), source != PAD
    )
    logits = ours.run_with_cache(source, target, names_filter=None if explicit else ())[0]
    close(logits, expected @ ours.embed.weight.T, target != PAD)
