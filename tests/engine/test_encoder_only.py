"""Tests models that read in both directions, and relative positions: against their equations and definitions."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers import close, random_weights
from transformer import ModelConfig, Sampling, build_model, direct_logit_attribution, fill_masks, generate, logit_lens
from transformer.inference.interventions import Without
from transformer.inference.tracing import deviations, deviations_of_text, trace_pass
from transformer.model.equations import equations, unembedding_equation
from transformer.model.masks import full_mask
from transformer.model.positions import relative_buckets

SIZES = {"vocab_size": 13, "context_length": 12, "n_layers": 2, "n_heads": 2, "d_model": 8}


@st.composite
def configs(draw, **fixed) -> ModelConfig:
    """Any configuration of an encoder at a tiny size."""
    options = {
        "positions": ["learned", "sinusoidal", "rotary", "relative", "alibi"],
        "norm": ["pre", "post", "sandwich", "res-post"],
        "norm_kind": ["layer", "rms"],
        "masked_word_head": [True, False],
        "n_segments": [0, 2],
        "embed_norm": [True, False],
        "attention_windows": [(), (3, 0)],
        "qk_norm": ["none", "head", "all"],
        "tie_embeddings": [True, False],
    }
    drawn = {name: draw(st.sampled_from(values)) for name, values in options.items()} | fixed
    if drawn["norm"] in ("pre", "sandwich"):
        drawn["norm_first_input"] = draw(st.booleans())
    return ModelConfig(**SIZES, architecture="encoder-only", relative_buckets=8, relative_distance=16, **drawn)


def made(config):
    return random_weights(build_model(config, seed=0))


@given(configs(), st.integers(1, 12))
def test_every_tensor_is_what_its_equation_gives(config, length):
    model = made(config)
    tokens = torch.arange(length) % 13
    segments = (torch.arange(length) > length // 2).long() if config.n_segments else ()
    found = trace_pass(model, tokens, segments=segments)
    assert list(equations(config)) == list(found.tensors)[-len(equations(config)) :]
    for each in deviations(found):
        assert each.largest <= 1e-5 * max(each.magnitude, 1.0), each
    if not config.n_segments:
        assert [each.name for each in deviations_of_text(model, tokens)] == list(equations(config))
    logits = found.tensors[unembedding_equation(config).name].double()
    close(logit_lens(found).logits[-1], logits)
    close(direct_logit_attribution(found, [1] * length).values.sum(0), logits[:, 1])
    given_segments = [segments[None]] if config.n_segments else []
    close(model(tokens[None], *given_segments)[0].double(), logits)  # nobody looks: in one call


@given(configs(positions="learned", attention_windows=()))
def test_what_comes_after_changes_what_is_said_and_padding_doesn_t(config):
    model = made(config)
    tokens = torch.tensor([[1, 2, 3, 4, 5]])
    other = tokens.clone()
    other[0, 4] = 9
    assert not torch.equal(model(tokens)[:, 0], model(other)[:, 0])
    padded = torch.cat((tokens, torch.zeros(1, 3, dtype=torch.long)), 1)
    close(model(padded, attention_mask=(torch.arange(8) < 5).long()[None])[:, :5], model(tokens))


def test_a_window_is_as_wide_on_both_sides():
    at = torch.arange(6)
    assert torch.equal(full_mask(6, 6, window=3), (at[:, None] - at).abs() < 3)
    assert full_mask(2, 3).all()


def test_relative_positions_have_a_kind_each_while_near_and_share_it_when_far():
    config = ModelConfig(**SIZES, positions="relative", relative_buckets=8, relative_distance=16)
    ahead = relative_buckets(config, 30, 30, causal=True)
    assert ahead[29, 29 - torch.arange(4)].tolist() == [0, 1, 2, 3]
    assert ahead[29, :14].unique().tolist() == [7] and not ahead[0].any()  # what comes after is hidden anyway
    both = relative_buckets(config, 30, 30, causal=False)
    assert both[10, [8, 9, 10, 11, 12]].tolist() == [2, 1, 0, 5, 6]
    assert torch.equal(relative_buckets(config, 1, 30, causal=True), ahead[-1:])


def test_gaps_are_filled_the_surest_first_and_each_knows_those_before_it():
    model = made(ModelConfig(**SIZES, architecture="encoder-only", positions="learned", norm="post"))
    tokens, mask = [3, 12, 5, 12, 12], 12
    steps = list(fill_masks(model, tokens, mask))
    assert sorted(step.position for step in steps) == [1, 3, 4]
    first = model(torch.tensor([tokens]))[0, [1, 3, 4]]
    first[:, mask] = -torch.inf
    surest = first.softmax(-1).amax(-1).argmax()
    assert steps[0].position == [1, 3, 4][surest] and steps[0].token_id == first[surest].argmax()
    written = list(tokens)
    for step in steps:
        expected = model(torch.tensor([written]))[0, step.position]
        assert step.token_id == int(expected[:12].argmax())
        written[step.position] = step.token_id
    again = [step.token_id for step in fill_masks(model, tokens, mask, sampling=Sampling(seed=1))]
    assert again == [step.token_id for step in fill_masks(model, tokens, mask, sampling=Sampling(seed=1))]


def test_what_it_can_t_do_is_a_sentence():
    encoder = made(ModelConfig(**SIZES, architecture="encoder-only"))
    decoder = made(ModelConfig(**SIZES))
    with pytest.raises(ValueError, match="fill_masks"):
        generate(encoder, [1], max_new_tokens=1)
    with pytest.raises(ValueError, match="generate"):
        next(fill_masks(decoder, [1], 1))
    with pytest.raises(ValueError, match="no segments"):
        encoder(torch.tensor([[1]]), torch.tensor([[0]]))
    with pytest.raises(ValueError, match="causal mask"):
        Without("mask").check(encoder.config)
    segmented = made(ModelConfig(**SIZES, architecture="encoder-only", n_segments=2))
    with pytest.raises(ValueError, match="between 0 and 1"):
        segmented(torch.tensor([[1]]), torch.tensor([[2]]))


def test_a_separator_ends_the_first_segment():
    config = ModelConfig(**SIZES, architecture="encoder-only", n_segments=2, separator_token_id=9)
    model = made(config)
    tokens, segments = torch.tensor([[1, 2, 9, 3, 4, 9, 5]]), torch.tensor([[0, 0, 0, 1, 1, 1, 1]])
    close(model(tokens), model(tokens, segments))
    assert not torch.equal(model(tokens), model(tokens, torch.zeros_like(tokens)))
    for deviation in deviations(trace_pass(model, tokens[0])):
        assert deviation.largest <= 1e-5 * max(deviation.magnitude, 1.0), deviation
    with pytest.raises(ValueError, match="separator_token_id is for a model that knows two segments"):
        ModelConfig(**SIZES, architecture="encoder-only", separator_token_id=9)
