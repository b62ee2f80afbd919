"""Tests that padding changes nothing at real positions."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from tests.helpers import any_configs, configs, encoder_decoder_configs, some_inputs, tiny_model
from transformer import ModelConfig

PAD = 0
WITHOUT_PLACES = st.sampled_from(["none", "rotary"])
"""Positions under which a text may stand further to the right: only distances count, or nothing does."""

lengths = st.lists(st.integers(1, 6), min_size=1, max_size=4)


def exact_model(config: ModelConfig) -> nn.Module:
    """In float64, so that only what is wrong differs by more than 1e-6."""
    return tiny_model(config).double()


def texts(batch: int, pos: int, seed: int = 0) -> Tensor:
    """Ids (batch, pos), none of them padding."""
    return torch.randint(1, 11, (batch, pos), generator=torch.Generator().manual_seed(seed))


def pads(batch: int, pos: int) -> Tensor:
    return torch.full((batch, pos), PAD)


def logits(model: nn.Module, *inputs: Tensor, explicit: bool) -> Tensor:
    """By the fused way, or by the explicit one, which the recording of every point takes."""
    return model.run_with_cache(*inputs, names_filter=None if explicit else ())[0]


def close(actual: Tensor, expected: Tensor, *, positions: str = "none") -> None:
    """To 1e-6; a text that is turned by other angles only to what their float32 leaves, relative to all numbers."""
    if positions == "rotary":
        scale = expected.abs().max().clamp(min=1)
        actual, expected = actual / scale, expected / scale
    tolerance = 1e-4 if positions == "rotary" else 1e-6
    torch.testing.assert_close(actual, expected, atol=tolerance, rtol=tolerance)


def right_padded(rows: list[Tensor]) -> Tensor:
    return nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=PAD)


def of_lengths(sizes: list[int], seed: int = 0) -> list[Tensor]:
    """One text (pos,) of each length."""
    return [texts(1, size, seed + row)[0] for row, size in enumerate(sizes)]


class TestADecoderAlone:
    @given(configs(pad_token_id=PAD), st.integers(1, 3), st.booleans())
    def test_padding_on_the_right_changes_nothing_before_it(self, config, extra, explicit):
        model, tokens = exact_model(config), texts(2, 3)
        padded = logits(model, torch.cat((tokens, pads(2, extra)), 1), explicit=explicit)
        close(padded[:, :3], logits(model, tokens, explicit=explicit))

    @given(st.data(), st.integers(1, 3), st.booleans())
    def test_padding_on_the_left_changes_nothing_where_only_distances_count(self, data, extra, explicit):
        config = data.draw(configs(pad_token_id=PAD, positions=data.draw(WITHOUT_PLACES)))
        model, tokens = exact_model(config), texts(2, 3)
        padded = logits(model, torch.cat((pads(2, extra), tokens), 1), explicit=explicit)
        close(padded[:, extra:], logits(model, tokens, explicit=explicit), positions=config.positions)

    @given(configs(pad_token_id=PAD), lengths, st.booleans())
    def test_a_batch_of_unequal_lengths_gives_what_each_text_gives_alone(self, config, sizes, explicit):
        model, rows = exact_model(config), of_lengths(sizes)
        together = logits(model, right_padded(rows), explicit=explicit)
        for row, found in zip(rows, together, strict=True):
            close(found[: len(row)], logits(model, row[None], explicit=explicit)[0])

    @given(configs(n_layers=1, positions="none", attention="softmax", residual=True))
    def test_without_a_padding_token_the_same_ids_are_words_like_any_others(self, config):
        """The tests above can fail: the token that pads has an influence if the model doesn't know that it pads."""
        known = exact_model(ModelConfig.from_dict({**config.to_dict(), "pad_token_id": PAD}))
        unknown = exact_model(ModelConfig.from_dict({**config.to_dict(), "pad_token_id": None}))
        tokens = texts(2, 3)
        padded = torch.cat((pads(2, 2), tokens), 1)
        close(known(tokens), unknown(tokens))
        assert (known(padded)[:, 2:] - unknown(padded)[:, 2:]).abs().max() > 1e-4


class TestAnEncoderDecoder:
    @given(encoder_decoder_configs(pad_token_id=PAD), st.integers(1, 3), st.booleans())
    def test_a_source_padded_on_the_right_is_read_as_it_stands(self, config, extra, explicit):
        model, source, target = exact_model(config), texts(2, 3), texts(2, 4, seed=1)
        padded = torch.cat((source, pads(2, extra)), 1)
        close(model.encode(padded)[:, :3], model.encode(source))
        close(logits(model, padded, target, explicit=explicit), logits(model, source, target, explicit=explicit))

    @given(st.data(), st.integers(1, 3), st.booleans())
    def test_and_on_the_left_where_only_distances_count(self, data, extra, explicit):
        config = data.draw(encoder_decoder_configs(pad_token_id=PAD, positions=data.draw(WITHOUT_PLACES)))
        model, source, target = exact_model(config), texts(2, 3), texts(2, 4, seed=1)
        padded = torch.cat((pads(2, extra), source), 1)
        expected = logits(model, source, target, explicit=explicit)
        close(logits(model, padded, target, explicit=explicit), expected, positions=config.positions)

    @given(encoder_decoder_configs(pad_token_id=PAD, positions="none"), st.permutations(range(5)))
    def test_and_anywhere_where_no_place_counts(self, config, places):
        model, source, target = exact_model(config), texts(2, 3), texts(2, 4, seed=1)
        close(model(torch.cat((source, pads(2, 2)), 1)[:, places], target), model(source, target))

    @given(encoder_decoder_configs(pad_token_id=PAD), st.integers(1, 3), st.booleans())
    def test_a_target_padded_on_the_right_goes_on_as_before(self, config, extra, explicit):
        model, source, target = exact_model(config), texts(2, 5), texts(2, 3, seed=1)
        padded = logits(model, source, torch.cat((target, pads(2, extra)), 1), explicit=explicit)
        close(padded[:, :3], logits(model, source, target, explicit=explicit))

    @given(st.data(), st.integers(1, 3), st.booleans())
    def test_and_on_the_left_of_the_target_where_only_distances_count(self, data, extra, explicit):
        config = data.draw(encoder_decoder_configs(pad_token_id=PAD, positions=data.draw(WITHOUT_PLACES)))
        model, source, target = exact_model(config), texts(2, 5), texts(2, 3, seed=1)
        padded = logits(model, source, torch.cat((pads(2, extra), target), 1), explicit=explicit)
        close(padded[:, extra:], logits(model, source, target, explicit=explicit), positions=config.positions)

    @given(encoder_decoder_configs(pad_token_id=PAD), lengths, st.data(), st.booleans())
    def test_a_batch_of_unequal_lengths_gives_what_each_pair_gives_alone(self, config, sizes, data, explicit):
        other_sizes = data.draw(st.lists(st.integers(1, 6), min_size=len(sizes), max_size=len(sizes)))
        model, sources, targets = exact_model(config), of_lengths(sizes), of_lengths(other_sizes, seed=50)
        together = logits(model, right_padded(sources), right_padded(targets), explicit=explicit)
        for source, target, found in zip(sources, targets, together, strict=True):
            close(found[: len(target)], logits(model, source[None], target[None], explicit=explicit)[0])


class TestAQueryThatSeesNothing:
    """A text that is nothing but padding, and padding before which there is nothing."""

    @given(any_configs().filter(lambda config: config.pad_token_id == PAD), st.booleans(), st.booleans())
    def test_gets_zeros_and_nothing_is_no_number(self, config, explicit, all_of_the_source):
        model = tiny_model(config)
        inputs = some_inputs(config)  # padded on the left in the first row
        inputs[0][0] = PAD if all_of_the_source else inputs[0][0]
        points = ["hook_z", "hook_pattern"] if explicit else ["hook_z"]
        output, cache = model.run_with_cache(*inputs, names_filter=lambda name: name.endswith(tuple(points)))
        assert output.isfinite().all()
        for name, tensor in cache.items():
            assert tensor.isfinite().all(), name
            if name.endswith("hook_pattern"):
                close(tensor.sum(-1), (tensor != 0).any(-1).float())  # one, or nothing at all
            elif "cross_attn" in name:
                assert bool((tensor[0] == 0).all()) == all_of_the_source, name
            else:
                tokens = inputs[0] if not name.startswith("decoder.") else inputs[1]
                blind = _sees_nothing(tokens, causal=not name.startswith("encoder."))
                zeros = (tensor == 0).all(-1).all(-1)
                assert zeros[blind].all(), name
                if config.residual:  # without, zeros may also be what an earlier block handed on
                    assert torch.equal(zeros, blind), name

    @given(any_configs().filter(lambda config: config.pad_token_id == PAD), st.booleans(), st.booleans())
    def test_has_no_gradient_that_is_no_number(self, config, explicit, all_of_the_source):
        model = tiny_model(config)
        inputs = some_inputs(config)
        inputs[0][0] = PAD if all_of_the_source else inputs[0][0]
        logits(model, *inputs, explicit=explicit).square().mean().backward()
        gradients = {name: parameter.grad for name, parameter in model.named_parameters()}
        reached = {name: gradient for name, gradient in gradients.items() if gradient is not None}
        assert "unembed.weight" in reached or "embed.weight" in reached
        assert all(gradient.isfinite().all() for gradient in reached.values())

    @pytest.mark.parametrize("attention", ["softmax", "uniform"])
    @pytest.mark.parametrize("explicit", [False, True])
    def test_its_text_leaves_the_others_of_the_batch_alone(self, attention, explicit):
        config = ModelConfig(
            architecture="encoder-decoder",
            vocab_size=11,
            context_length=8,
            n_layers=2,
            n_heads=2,
            d_model=8,
            attention=attention,
            pad_token_id=PAD,
        )
        model, source, target = exact_model(config), texts(1, 4), texts(1, 3, seed=1)
        together = logits(model, torch.cat((pads(1, 4), source)), torch.cat((pads(1, 3), target)), explicit=explicit)
        close(together[1:], logits(model, source, target, explicit=explicit))


def _sees_nothing(tokens: Tensor, *, causal: bool) -> Tensor:
    """(batch, query): True where a query of self-attention has no real token among its keys."""
    real = tokens != PAD
    seen = real.cumsum(1) > 0 if causal else real.any(1, keepdim=True).expand_as(real)
    return ~seen
