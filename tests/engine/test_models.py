"""Tests whole models: results, causality, refused inputs, initialization."""

import copy
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers import (
    any_configs,
    close,
    configs,
    encoder_decoder_configs,
    some_inputs,
    tiny_config,
    tiny_encoder_decoder,
    tiny_model,
    unpadded,
)
from transformer import DecoderOnly, EncoderDecoder, build_model, trace_pass
from transformer.training.evaluation import token_loss

either = pytest.mark.parametrize("architecture", ["decoder-only", "encoder-decoder"])


@given(configs() | encoder_decoder_configs(n_layers=1))
def test_logits_have_a_row_for_every_position_and_a_gradient_reaches_every_parameter(config):
    model = tiny_model(config)
    *source, tokens = some_inputs(config, unpadded)
    logits = model(*source, tokens)
    assert logits.shape == (*tokens.shape, config.vocab_size)
    token_loss(logits, tokens.roll(-1, 1)).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name


@given(configs(residual=True))
def test_weights_are_there_as_formulas_have_them(config):
    model, tokens = tiny_model(config), unpadded(config)
    _, cache = model.run_with_cache(tokens)
    for layer in range(config.n_layers):
        x = cache["out", layer, "ln1"] if config.norm == "pre" else cache["resid_pre", layer]
        each = torch.arange(config.n_heads) // (config.n_heads // config.kv_heads)
        for name in "qkv" if config.attention == "softmax" else "v":
            found = torch.einsum("bpd,hde->bphe", x, getattr(model, f"W_{name.upper()}")[layer])
            found = found + getattr(model, f"b_{name.upper()}")[layer]
            recorded = cache[name, layer] if name == "q" else cache[name, layer][:, :, each]
            close(found, recorded if recorded.shape == found.shape else cache[name, layer])
        out = torch.einsum("bphe,hed->bpd", cache["z", layer], model.W_O[layer]) + model.b_O[layer]
        close(out, cache["attn_out", layer])
        if config.d_ff:
            close(cache["mlp.hook_post", layer] @ model.W_out[layer] + model.b_out[layer], cache["mlp_out", layer])
            if config.norm == "pre":
                up = cache["out", layer, "ln2"] @ model.W_in[layer] + model.b_in[layer]
                close(up, cache["pre_linear" if config.mlp_gate else "pre", layer, "mlp"])
    assert hasattr(model, "W_Q") == (config.attention == "softmax" and config.n_layers > 0)
    assert hasattr(model, "W_pos") == (config.positions in ("learned", "sinusoidal"))
    scale = config.d_model**0.5 if config.scale_embeddings else 1
    close(model.W_E[tokens] * scale, cache["embed"])
    stream = model.stream(tokens)
    close(stream @ model.W_U + model.b_U, model(tokens))


@given(any_configs())
def test_the_configuration_decides_the_architecture_and_a_seed_every_weight(config):
    first = build_model(config, seed=3)
    assert type(first) is {"decoder-only": DecoderOnly, "encoder-decoder": EncoderDecoder}[config.architecture]
    assert first.config == config
    torch.manual_seed(99)
    second, other = (build_model(config, seed=seed).state_dict() for seed in (3, 4))
    assert all(torch.equal(weight, second[name]) for name, weight in first.state_dict().items())
    assert not all(torch.equal(other[name], second[name]) for name in other)


@given(any_configs(), st.data())
def test_the_future_can_not_change_the_past(config, data):
    model, (*source, tokens) = tiny_model(config), some_inputs(config, unpadded)
    place, other = data.draw(st.integers(0, tokens.shape[1] - 1)), tokens.clone()
    other[:, place] = tokens[:, place] % (config.vocab_size - 1) + 1
    for names_filter in ((), None):  # the fused and the explicit way
        before, after = (model.run_with_cache(*source, each, names_filter=names_filter)[0] for each in (tokens, other))
        assert torch.equal(before[:, :place], after[:, :place])
        if config.residual and not torch.equal(tokens, other):
            assert not torch.equal(before[:, place], after[:, place])


WIDE = {"vocab_size": 200, "d_model": 64, "n_heads": 4, "context_length": 100, "positions": "learned"}


@pytest.mark.parametrize("d_ff", [0, 256])
@pytest.mark.parametrize("architecture", ["decoder-only", "encoder-decoder"])
def test_weights_are_drawn_with_the_spread_that_their_source_says(architecture, d_ff):
    """√(2 / 5 d_model), and what writes to the stream one over the root of the number of its writers less."""
    shape = {**WIDE, "architecture": architecture, "d_ff": d_ff, "n_layers": 3}
    sides = {} if architecture == "decoder-only" else {"n_encoder_layers": 2}
    model = build_model(tiny_config(**shape, **sides), seed=0)
    small, feed_forward = (2 / (5 * 64)) ** 0.5, d_ff > 0
    for name, weight in model.named_parameters():
        if weight.dim() != 2:
            assert (weight == (0 if name.endswith("bias") else 1)).all(), name
            continue
        writers = {"encoder": 2 * (1 + feed_forward), "decoder": 3 * (2 + feed_forward)}
        writers = writers.get(name.split(".")[0], 3 * (1 + feed_forward))
        writes = name.endswith(("attn.out.weight", "mlp.down.weight"))
        assert weight.std().item() == pytest.approx(small / (writers**0.5 if writes else 1), rel=0.06), name
        assert abs(weight.mean().item()) < 0.1 * small, name


def test_scaled_embeddings_are_drawn_so_that_scaling_makes_their_spread_one():
    model = build_model(tiny_config(**WIDE, scale_embeddings=True), seed=0)
    assert model.embed.weight.std().item() * 8 == pytest.approx(1, rel=0.05)


@pytest.mark.parametrize("tied", [True, False])
def test_a_shared_token_table_is_one_table_in_a_copy_too(tied):
    model = tiny_encoder_decoder(tie_embeddings=tied, share_embeddings=True)
    for one in (model, copy.deepcopy(model)):
        assert one.encoder.embed is one.decoder.embed is one.embed
        assert (one.unembed.weight is one.embed.weight) == tied
    assert copy.deepcopy(model).embed is not model.embed
    assert [name for name in model.state_dict() if "embed" in name] == ["embed.weight", "unembed.weight"]
    decoder = tiny_model(tie_embeddings=True)
    assert decoder.unembed.weight is decoder.embed.weight


def test_parameters_are_counted():
    attention, feed_forward, norm, table = 4 * 8 * 8 + 4 * 8, 2 * 8 * 12 + 12 + 8, 16, 11 * 8
    encoder = 2 * (attention + feed_forward + 2 * norm) + norm
    decoder = 2 * attention + feed_forward + 3 * norm + norm
    shape = {"d_ff": 12, "n_layers": 1}
    for model, expected in (
        (tiny_model(positions="learned", **shape), 2 * table + 8 * 8 + attention + feed_forward + 3 * norm),
        (tiny_model(tie_embeddings=True, **shape), table + attention + feed_forward + 3 * norm),
        (tiny_encoder_decoder(n_encoder_layers=2, tie_embeddings=True, **shape), table + encoder + decoder),
        (tiny_encoder_decoder(n_encoder_layers=2, **shape), 3 * table + encoder + decoder),
    ):
        assert model.parameter_count() == expected


@either
def test_dropout_acts_in_training_only(architecture):
    model = tiny_model(architecture=architecture, dropout=0.5)
    inputs = some_inputs(model.config)
    assert torch.equal(model(*inputs), model(*inputs))
    model.train()
    assert not torch.equal(model(*inputs), model(*inputs))


FEW, MANY = torch.ones(1, 3).long(), torch.ones(1, 9).long()


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        *(
            ((*before, tokens), message)
            for before in ((), (FEW,))
            for tokens, message in (
                (FEW[0], r"shape \(batch, pos\), not torch.int64 \(3,\)"),
                (FEW.float(), r"whole numbers .* not torch.float32"),
                (FEW.bool(), r"whole numbers .* not torch.bool"),
                (MANY, "9 tokens are more than this model's context of 8; give it the last 8"),
                (11 * FEW, "between 0 and 10"),
                (-FEW, "between 0 and 10"),
            )
        ),
        ((FEW.expand(2, 3), FEW.expand(3, 3)), "2 sources were given with 3 targets"),
        ((FEW[0], FEW), r"shape \(batch, pos\), not torch.int64 \(3,\)"),
        ((torch.tensor(1), FEW), r"shape \(batch, pos\), not torch.int64 \(\)"),
        ((MANY, FEW), "9 tokens are more than this model's context of 8"),
        ((11 * FEW, FEW), "between 0 and 10"),
    ],
)
def test_what_it_can_not_read_is_refused(inputs, message):
    with pytest.raises(ValueError, match=message):
        (tiny_model if len(inputs) == 1 else tiny_encoder_decoder)()(*inputs)


@pytest.mark.parametrize(
    "shapes", [[(1, 0)], [(0, 3)], [(0, 0)], [(1, 0), (1, 2)], [(1, 2), (1, 0)], [(0, 3), (0, 2)], [(1, 0), (1, 0)]]
)
def test_no_tokens_and_no_texts_are_no_error(shapes):
    model = (tiny_model if len(shapes) == 1 else tiny_encoder_decoder)(pad_token_id=0)
    inputs = [torch.full(shape, at) for at, shape in enumerate(shapes)]
    for logits in (model(*inputs), model.run_with_cache(*inputs)[0]):
        assert logits.shape == (*shapes[-1], 11) and logits.isfinite().all()


def test_a_context_of_a_billion_costs_nothing_until_it_is_used():
    model = tiny_model(context_length=10**12)
    assert model(torch.zeros(1, 30, dtype=torch.long)).shape == (1, 30, 11)


@either
def test_a_fresh_model_is_nearly_as_unsure_as_can_be(architecture):
    shape = {"architecture": architecture, "vocab_size": 50, "d_model": 64, "context_length": 32}
    model = build_model(tiny_config(**shape), seed=0).eval()
    *source, tokens = some_inputs(model.config)
    targets = torch.randint(50, tokens.shape, generator=torch.Generator().manual_seed(2))
    assert token_loss(model(*source, tokens), targets).item() == pytest.approx(math.log(50), abs=0.3)


@given(encoder_decoder_configs())
def test_an_encoder_decoder_encodes_and_then_decodes(config):
    model, (source, target) = tiny_model(config), some_inputs(config)
    memory = model.encode(source)
    assert memory.shape == (*source.shape, config.d_model)
    padding = None if config.pad_token_id is None else (source != config.pad_token_id)[:, None, None, :]
    close(model.decode(target, memory, padding), model(source, target))


@pytest.mark.parametrize("make", [tiny_model, tiny_encoder_decoder])
def test_text_is_no_tensor_of_ids(make):
    model = make()
    inputs = ["hello"] if make is tiny_model else ["hello", torch.tensor([[1]])]
    with pytest.raises(TypeError, match=r"^A model reads token ids, a tensor \(batch, pos\), and not a str; of a text"):
        model(*inputs)
    with pytest.raises(TypeError, match=r"give it tokenizer\.encode\('hello'\)"):
        trace_pass(model, "hello")


def test_inference_mode_has_no_gradients():
    model = tiny_model()
    with torch.inference_mode(), pytest.raises(RuntimeError, match=r"no gradients inside torch\.inference_mode\(\)"):
        model.run_with_gradients(torch.tensor([[1]]), of=lambda logits: logits.sum())
