"""Whole models: what they compute, what they refuse, and how they begin."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given

from tests.helpers import configs, some_tokens, tiny_config, tiny_model, unpadded
from transformer import KeyValueCache, ModelConfig, build_model, sinusoidal_encoding
from transformer.training import token_loss


@given(configs())
def test_logits_have_a_row_for_every_position_and_a_gradient_reaches_every_parameter(config):
    model = tiny_model(config)
    tokens = unpadded(config)
    logits = model(tokens)
    assert logits.shape == (*tokens.shape, config.vocab_size)
    token_loss(logits, tokens.roll(-1, 1)).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name


@given(configs())
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
        (
            torch.zeros(1, 9, dtype=torch.long),
            "9 tokens are more than this model's context of 8; give it the last 8",
        ),
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
    loss = token_loss(
        model(tokens), torch.randint(50, tokens.shape, generator=torch.Generator().manual_seed(1))
    )
    assert loss.item() == pytest.approx(torch.tensor(50.0).log().item(), abs=0.3)


def test_an_architecture_that_cannot_be_built_is_refused_and_not_replaced_by_another():
    config = ModelConfig(
        architecture="encoder-decoder", vocab_size=5, context_length=4, n_layers=1, n_heads=1, d_model=4
    )
    with pytest.raises(ValueError, match=r"architecture is 'encoder-decoder'"):
        build_model(config)
