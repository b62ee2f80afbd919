"""Tests whole models: results, refused inputs, initialization."""

import copy

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given

from tests.helpers import (
    any_configs,
    configs,
    encoder_decoder_configs,
    some_inputs,
    some_tokens,
    tiny_config,
    tiny_encoder_decoder,
    tiny_model,
    unpadded,
)
from transformer import DecoderOnly, EncoderDecoder, KeyValueCache, build_model, sinusoidal_encoding, whole_pass
from transformer.training.evaluation import token_loss


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


@given(any_configs())
def test_a_seed_decides_every_weight(config):
    first, second = build_model(config, seed=3).state_dict(), build_model(config, seed=3).state_dict()
    other = build_model(config, seed=4).state_dict()
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert not all(torch.equal(first[name], other[name]) for name in first)


def test_building_leaves_the_global_generator_alone_with_a_seed():
    config = tiny_config(n_layers=0)
    before = build_model(config, seed=0).embed.weight
    torch.manual_seed(99)
    assert torch.equal(build_model(config, seed=0).embed.weight, before)


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


@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_the_rows_of_positions_are_the_callers_own(positions):
    model = build_model(tiny_config(positions=positions), seed=0)
    before = model.position_rows(0, 4).detach().clone()
    with torch.no_grad():
        model.position_rows(0, 4).zero_()
    assert torch.equal(model.position_rows(0, 4), before)


def test_a_shared_token_table_is_one_table_in_a_copy_too():
    config = tiny_config(architecture="encoder-decoder", tie_embeddings=True)
    model = build_model(config, seed=0)
    for one in (model, copy.deepcopy(model)):
        assert one.encoder.embed is one.decoder.embed is one.embed
        assert one.unembed.weight is one.embed.weight
    assert copy.deepcopy(model).embed is not model.embed
    assert [name for name in model.state_dict() if "embed" in name] == ["embed.weight", "unembed.weight"]


@given(configs(pad_token_id=None, n_layers=2))
def test_a_cache_gives_the_logits_of_one_pass(config):
    model = tiny_model(config)
    tokens = unpadded(config)
    whole = model(tokens)
    past, pieces = KeyValueCache.for_model(config), []
    for piece in tokens.split([3, 1, 2], dim=1):
        pieces.append(model(piece, past=past))
    assert past.length == 6
    torch.testing.assert_close(torch.cat(pieces, 1), whole, atol=1e-4, rtol=1e-4)


def test_without_blocks_it_is_a_table():
    model = tiny_model(n_layers=0, norm="none", positions="none")
    tokens = some_tokens(model.config)
    torch.testing.assert_close(model(tokens), F.linear(model.embed.weight, model.unembed.weight)[tokens])


@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_positions_are_added_to_embeddings(positions):
    model = tiny_model(positions=positions, scale_embeddings=True)
    tokens = some_tokens(model.config)
    _, cache = model.run_with_cache(tokens)
    table = sinusoidal_encoding(8, 8) if positions == "sinusoidal" else model.pos_embed.weight
    torch.testing.assert_close(cache["pos_embed"], table.expand(2, 8, 8))
    torch.testing.assert_close(cache["resid_pre", 0], model.embed.weight[tokens] * 8**0.5 + table)


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary", "none"])
def test_only_positions_tell_it_the_order(positions):
    """With one block, the last logits are those of a set of tokens unless positions tell their order."""
    model = tiny_model(positions=positions, n_layers=1)
    tokens = torch.tensor([[1, 2, 3, 4, 5]])
    shuffled = torch.tensor([[4, 2, 1, 3, 5]])
    distance = (model(tokens)[0, -1] - model(shuffled)[0, -1]).abs().max()
    assert (distance < 1e-5) == (positions == "none")


def test_the_order_of_a_batch_does_not_matter():
    model = tiny_model(pad_token_id=0)
    tokens = some_tokens(model.config, batch=3)
    torch.testing.assert_close(model(tokens.flip(0)), model(tokens).flip(0))


def test_tied_embeddings_are_one_table():
    model = tiny_model(tie_embeddings=True)
    assert model.unembed.weight is model.embed.weight
    loose = tiny_model(tie_embeddings=False)
    assert loose.parameter_count() - model.parameter_count() == 11 * 8


def test_parameters_are_counted():
    config = tiny_config(n_layers=1, positions="learned", d_ff=12)
    attention, feed_forward, norms = 4 * 8 * 8 + 4 * 8, 2 * 8 * 12 + 12 + 8, 3 * 16
    assert build_model(config).parameter_count() == 11 * 8 + 8 * 8 + attention + feed_forward + norms + 8 * 11


def test_dropout_acts_in_training_only():
    model = tiny_model(dropout=0.5)
    tokens = some_tokens(model.config)
    assert torch.equal(model(tokens), model(tokens))
    model.train()
    assert not torch.equal(model(tokens), model(tokens))


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        (torch.zeros(3, dtype=torch.long), r"shape \(batch, pos\), not torch.int64 \(3,\)"),
        (torch.zeros(1, 3), r"whole numbers .* not torch.float32"),
        (torch.zeros(1, 3, dtype=torch.bool), r"whole numbers .* not torch.bool"),
        (torch.zeros(1, 9, dtype=torch.long), "9 tokens are more than this model's context of 8; give it the last 8"),
        (torch.full((1, 3), 11), "between 0 and 10"),
        (torch.full((1, 3), -1), "between 0 and 10"),
    ],
)
def test_tokens_it_can_not_read_are_refused(tokens, message):
    with pytest.raises(ValueError, match=message):
        tiny_model()(tokens)


def test_no_tokens_and_no_texts_are_no_error():
    model = tiny_model(pad_token_id=0)
    for shape in ((1, 0), (0, 3), (0, 0)):
        logits, _ = model.run_with_cache(torch.zeros(shape, dtype=torch.long))
        assert logits.shape == (*shape, 11)


def test_a_context_of_a_billion_costs_nothing_until_it_is_used():
    model = tiny_model(context_length=10**12)
    assert model(torch.zeros(1, 30, dtype=torch.long)).shape == (1, 30, 11)


def test_a_fresh_model_is_nearly_as_unsure_as_can_be():
    model = build_model(tiny_config(vocab_size=50, d_model=64, context_length=32), seed=0).eval()
    tokens = some_tokens(model.config, batch=8)
    loss = token_loss(model(tokens), torch.randint(50, tokens.shape, generator=torch.Generator().manual_seed(1)))
    assert loss.item() == pytest.approx(torch.tensor(50.0).log().item(), abs=0.3)


@given(any_configs())
def test_the_configuration_decides_the_architecture(config):
    kinds = {"decoder-only": DecoderOnly, "encoder-decoder": EncoderDecoder}
    model = build_model(config)
    assert type(model) is kinds[config.architecture]
    assert model.config == config


class TestAnEncoderDecoder:
    def test_it_has_as_many_blocks_on_either_side_as_it_should(self):
        model = tiny_encoder_decoder(n_encoder_layers=3, n_layers=1)
        assert (len(model.encoder.blocks), len(model.decoder.blocks)) == (3, 1)
        alike = tiny_encoder_decoder(n_layers=2)
        assert (len(alike.encoder.blocks), len(alike.decoder.blocks)) == (2, 2)

    @given(encoder_decoder_configs())
    def test_it_encodes_and_then_decodes(self, config):
        model = tiny_model(config)
        source, target = some_inputs(config)
        memory = model.encode(source)
        assert memory.shape == (*source.shape, config.d_model)
        padding = None if config.pad_token_id is None else (source != config.pad_token_id)[:, None, None, :]
        torch.testing.assert_close(model.decode(target, memory, padding), model(source, target))

    @given(encoder_decoder_configs(pad_token_id=None, residual=True))
    def test_a_token_of_the_target_reaches_what_follows_it_and_nothing_before(self, config):
        model = tiny_model(config)
        source, target = some_inputs(config)
        changed = target.clone()
        changed[:, 2] = (target[:, 2] + 1) % config.vocab_size
        before, after = model(source, target), model(source, changed)
        torch.testing.assert_close(after[:, :2], before[:, :2])
        assert (after[:, 2] - before[:, 2]).abs().max() > 1e-5

    @given(encoder_decoder_configs(pad_token_id=None, n_encoder_layers=1, n_layers=1, residual=True))
    def test_a_token_of_the_source_reaches_every_position(self, config):
        model = tiny_model(config)
        source, target = some_inputs(config)
        for place in (0, -1):
            changed = source.clone()
            changed[:, place] = (source[:, place] + 1) % config.vocab_size
            memory, other = model.encode(source), model.encode(changed)
            assert ((memory - other).abs().amax(-1) > 1e-6).all()
            assert ((model(source, target) - model(changed, target)).abs().amax(-1) > 1e-6).all()

    def test_tied_embeddings_are_one_table_for_both_sides_and_the_output(self):
        model = tiny_encoder_decoder(tie_embeddings=True)
        tables = [name for name, _ in model.named_parameters() if "embed" in name]
        assert tables == ["embed.weight"]
        assert model.unembed.weight is model.embed.weight
        loose = tiny_encoder_decoder(tie_embeddings=False)
        assert loose.parameter_count() - model.parameter_count() == 2 * 11 * 8

    def test_parameters_are_counted(self):
        model = tiny_encoder_decoder(n_encoder_layers=2, n_layers=1, d_ff=12, tie_embeddings=True)
        attention, feed_forward, norm = 4 * 8 * 8 + 4 * 8, 2 * 8 * 12 + 12 + 8, 16
        encoder = 2 * (attention + feed_forward + 2 * norm) + norm
        decoder = 2 * attention + feed_forward + 3 * norm + norm
        assert model.parameter_count() == 11 * 8 + encoder + decoder

    @pytest.mark.parametrize(
        ("source", "target", "message"),
        [
            (torch.ones(2, 3), torch.ones(3, 3), "2 sources were given with 3 targets"),
            (torch.ones(3), torch.ones(1, 3), r"shape \(batch, pos\), not torch.int64 \(3,\)"),
            (torch.ones(1, 3), torch.ones(3), r"shape \(batch, pos\), not torch.int64 \(3,\)"),
            (torch.tensor(1), torch.ones(1, 3), r"shape \(batch, pos\), not torch.int64 \(\)"),
            (torch.ones(1, 9), torch.ones(1, 3), "9 tokens are more than this model's context of 8"),
            (torch.ones(1, 3), torch.ones(1, 9), "9 tokens are more than this model's context of 8"),
            (torch.full((1, 3), 11), torch.ones(1, 3), "between 0 and 10"),
            (torch.ones(1, 3), torch.full((1, 3), -1), "between 0 and 10"),
        ],
    )
    def test_what_it_can_not_read_is_refused(self, source, target, message):
        with pytest.raises(ValueError, match=message):
            tiny_encoder_decoder()(source.long(), target.long())

    def test_no_tokens_and_no_texts_are_no_error(self):
        model = tiny_encoder_decoder(pad_token_id=0)
        for source, target in (((1, 0), (1, 2)), ((1, 2), (1, 0)), ((0, 3), (0, 2)), ((1, 0), (1, 0))):
            inputs = torch.zeros(source, dtype=torch.long), torch.ones(target, dtype=torch.long)
            for logits in (model(*inputs), model.run_with_cache(*inputs)[0]):
                assert logits.shape == (*target, 11)
                assert logits.isfinite().all()

    def test_dropout_acts_in_training_only(self):
        model = tiny_encoder_decoder(dropout=0.5)
        inputs = some_inputs(model.config)
        assert torch.equal(model(*inputs), model(*inputs))
        model.train()
        assert not torch.equal(model(*inputs), model(*inputs))

    def test_a_fresh_one_is_nearly_as_unsure_as_can_be(self):
        shape = {"architecture": "encoder-decoder", "vocab_size": 50, "d_model": 64, "context_length": 32}
        model = build_model(tiny_config(**shape), seed=0).eval()
        *source, tokens = some_inputs(model.config)
        targets = torch.randint(50, tokens.shape, generator=torch.Generator().manual_seed(2))
        loss = token_loss(model(*source, tokens), targets)
        assert loss.item() == pytest.approx(torch.tensor(50.0).log().item(), abs=0.3)


@pytest.mark.parametrize("make", [tiny_model, tiny_encoder_decoder])
def test_text_is_no_tensor_of_ids(make):
    model = make()
    inputs = ["hello"] if make is tiny_model else ["hello", torch.tensor([[1]])]
    with pytest.raises(TypeError, match=r"^A model reads token ids, a tensor \(batch, pos\), and not a str; of a text"):
        model(*inputs)
    with pytest.raises(TypeError, match=r"give it tokenizer\.encode\('hello'\)"):
        whole_pass(model, "hello")


def test_inference_mode_has_no_gradients():
    model = tiny_model()
    with torch.inference_mode(), pytest.raises(RuntimeError, match=r"no gradients inside torch\.inference_mode\(\)"):
        model.run_with_gradients(torch.tensor([[1]]), of=lambda logits: logits.sum())
