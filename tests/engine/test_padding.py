"""Tests that padding changes nothing at real positions."""

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from tests.helpers import any_configs, configs, some_inputs, tiny_model
from transformer import KeyValueCache, ModelConfig

PAD = 0


def exact_model(config: ModelConfig) -> nn.Module:
    """In float64, so that only what is wrong differs by more than 1e-6."""
    return tiny_model(config).double()


def texts(batch: int, pos: int, seed: int = 0) -> Tensor:
    """Ids (batch, pos), none of them padding."""
    return torch.randint(1, 11, (batch, pos), generator=torch.Generator().manual_seed(seed))


def of_lengths(sizes: list[int], seed: int = 0) -> list[Tensor]:
    """One text (pos,) of each length."""
    return [texts(1, size, seed + row)[0] for row, size in enumerate(sizes)]


def pads(pos: int) -> Tensor:
    return torch.full((pos,), PAD)


def logits(model: nn.Module, *inputs: Tensor, explicit: bool = False) -> Tensor:
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


@given(any_configs(pad_token_id=PAD), st.data(), st.booleans())
def test_a_batch_of_unequal_lengths_gives_what_each_text_gives_alone(config, data, explicit):
    """Padded on the right; one that is nothing but padding leaves the others alone."""
    model, rows = exact_model(config), data.draw(st.integers(1, 4))
    sides = 1 if config.architecture == "decoder-only" else 2
    sizes = [data.draw(st.lists(st.integers(0, 6), min_size=rows, max_size=rows)) for _ in range(sides)]
    inputs = [of_lengths(each, seed=50 * side) for side, each in enumerate(sizes)]
    together = logits(model, *map(right_padded, inputs), explicit=explicit)
    for *source, target, found in zip(*inputs, together, strict=True):
        if len(target) and all(map(len, source)):
            alone = logits(model, *(each[None] for each in (*source, target)), explicit=explicit)[0]
            close(found[: len(target)], alone)
    if sides == 2 and sizes[0][0]:
        close(model.encode(right_padded(inputs[0]))[0, : sizes[0][0]], model.encode(inputs[0][0][None])[0])


@given(st.data(), st.integers(0, 3), st.integers(1, 3), st.booleans())
def test_padding_on_the_left_changes_nothing_where_only_distances_count(data, before, extra, explicit):
    config = data.draw(any_configs(pad_token_id=PAD, positions=data.draw(st.sampled_from(["none", "rotary"]))))
    model, target, source = exact_model(config), texts(1, 3)[0], [texts(1, 3, seed=1)[0]]
    source = source if config.architecture == "encoder-decoder" else []
    padded = [torch.cat((pads(before), each)) for each in source] + [torch.cat((pads(extra), target))]
    found = logits(model, *(each[None] for each in padded), explicit=explicit)[:, extra:]
    expected = logits(model, *(each[None] for each in (*source, target)), explicit=explicit)
    close(found, expected, positions=config.positions)


class TestAnAttentionMask:
    """Which says what is padding, whatever its id, and wherever it is."""

    @given(any_configs(), st.lists(st.integers(1, 6), min_size=1, max_size=4), st.data(), st.booleans())
    def test_a_batch_gives_what_each_text_gives_alone(self, config, sizes, data, explicit):
        model, rows = exact_model(config), of_lengths(sizes)
        longest = max(sizes)
        tokens, mask = texts(len(rows), longest, seed=9), torch.zeros(len(rows), longest)
        places = [slice(data.draw(st.sampled_from([0, longest - size])), None) for size in sizes]
        places = [slice(place.start, place.start + size) for place, size in zip(places, sizes, strict=True)]
        for row, place in enumerate(places):
            tokens[row, place], mask[row, place] = rows[row], 1
        before = (tokens,) if config.architecture == "decoder-only" else (tokens, texts(len(rows), 2))
        names = None if explicit else ()
        together = model.run_with_cache(*before, names_filter=names, attention_mask=mask)[0]
        for row, (place, found) in enumerate(zip(places, together, strict=True)):
            alone = logits(model, rows[row][None], *(each[row : row + 1] for each in before[1:]), explicit=explicit)[0]
            close(found if len(before) > 1 else found[place], alone, positions=config.positions)

    @given(configs())
    def test_a_text_that_is_padded_goes_on_from_its_cache(self, config):
        model, tokens, mask = exact_model(config), texts(2, 5), torch.tensor([[0, 0, 1, 1, 1], [1, 1, 1, 1, 1]])
        past = KeyValueCache.for_model(config)
        parts = [
            model(tokens[:, :3], past, attention_mask=mask[:, :3]),
            model(tokens[:, 3:], past, attention_mask=mask),
        ]
        whole = model(tokens, attention_mask=mask)
        close(torch.cat(parts, 1)[mask.bool()], whole[mask.bool()], positions=config.positions)


@given(any_configs(pad_token_id=PAD), st.booleans(), st.booleans())
def test_a_query_that_sees_nothing_gets_zeros_and_nothing_is_no_number(config, explicit, all_of_the_source):
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
    output.square().mean().backward()
    reached = {name: each.grad for name, each in model.named_parameters() if each.grad is not None}
    assert "unembed.weight" in reached or "embed.weight" in reached
    assert all(gradient.isfinite().all() for gradient in reached.values())


def _sees_nothing(tokens: Tensor, *, causal: bool) -> Tensor:
    """(batch, query): True where a query of self-attention has no real token among its keys."""
    real = tokens != PAD
    seen = real.cumsum(1) > 0 if causal else real.any(1, keepdim=True).expand_as(real)
    return ~seen
