"""Tests the logit lens, and that the parts of the residual stream sum to the logits."""

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.helpers import any_configs, close, configs, encoder_configs, some_inputs, some_pass, tiny_config, tiny_model
from transformer import ActivationCache
from transformer.inference import residual_stream
from transformer.inference.analysis import token_statistics
from transformer.inference.residual_stream import direct_logit_attribution, logit_lens, logit_lens_summary
from transformer.inference.tracing import Trace, trace_pass
from transformer.model.equations import LOGITS


def chosen(found: Trace) -> torch.Tensor:
    """Another token at each position."""
    return torch.arange(len(found.tokens)) % found.config.vocab_size


@given(any_configs() | encoder_configs(), st.sampled_from([11, 40, residual_stream.CELLS_AT_ONCE]), st.integers(0, 6))
def test_the_lens_ends_in_the_model_s_output_and_can_be_read_piece_by_piece(config, at_once, last):
    found = some_pass(config)
    lens, tokens, sizes, standing = logit_lens(found), chosen(found), [], residual_stream._standing
    assert len(lens.points) == config.n_layers + 1
    close(lens.logits[-1].float(), found.tensors[LOGITS])
    probability, rank = lens.of(tokens)
    for depth, row in enumerate(lens.logits):
        for pos, token in enumerate(tokens.tolist()):
            expected = token_statistics(row[pos], token)[:2]
            assert (float(probability[depth, pos]), int(rank[depth, pos])) == pytest.approx(expected)

    def note(logits, *asked):
        sizes.append(logits.numel())
        return standing(logits, *asked)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(residual_stream, "CELLS_AT_ONCE", at_once)
        patch.setattr(residual_stream, "_standing", note)
        read = logit_lens_summary(found, tokens, last)
    assert max(sizes, default=0) <= at_once  # all logits of all depths are never held at once
    assert read.points == lens.points
    unread = max(len(tokens) - last, 0)
    most, likeliest = lens.logits.softmax(-1).max(-1)
    columns = ((read.likeliest, likeliest, -1), (read.likeliest_probability, most, torch.nan))
    for column, expected, blank in (*columns, (read.probability, probability, torch.nan), (read.rank, rank, 0)):
        expected = expected.clone()
        expected[:, :unread] = blank
        torch.testing.assert_close(column, expected, equal_nan=True)


@given(any_configs() | encoder_configs())
def test_the_parts_sum_to_the_logit(config):
    found = some_pass(config)
    tokens = chosen(found)
    attribution = direct_logit_attribution(found, tokens)
    logits = found.tensors[LOGITS].double().gather(1, tokens[:, None])[:, 0]
    scale = max(1.0, float(attribution.values.abs().max()))
    torch.testing.assert_close(attribution.values.sum(0), logits, atol=1e-4 * scale, rtol=0)
    assert len(set(attribution.names)) == len(attribution.names)
    others = tokens.flip(0)
    both = direct_logit_attribution(found, tokens, others)
    torch.testing.assert_close(both.values, attribution.values - direct_logit_attribution(found, others).values)
    with pytest.raises(ValueError, match=r"^1 token was given, and this pass has \d+ positions"):
        direct_logit_attribution(found, tokens[:1])


def test_every_part_of_a_gpt_is_named():
    biases = {"unembed_bias": True, "attention_bias": True, "mlp_bias": True}
    found = some_pass(tiny_config(n_layers=1, positions="learned", **biases))
    names = "hook_embed hook_pos_embed blocks.0.attn.hook_result[0] blocks.0.attn.hook_result[1] blocks.0.attn.out.bias"
    names += " blocks.0.hook_mlp_out blocks.0.mlp.down.bias ln_final.bias unembed.bias"
    assert direct_logit_attribution(found, chosen(found)).names == tuple(names.split())


@given(configs(norm="pre") | configs(norm="none") | configs(norm="pre", architecture="encoder-only"))
def test_the_cache_tells_what_heads_add_as_the_attribution_does(config):
    model, tokens = tiny_model(config), some_inputs(config)[0][:1]
    assume(config.residual and config.n_layers)
    _, cache = model.run_with_cache(tokens, names_filter=model.hook_names())
    heads, labels = cache.stack_head_results(return_labels=True)
    assert labels[-1] == f"L{config.n_layers - 1}H{config.n_heads - 1}"
    close(heads, torch.cat([cache["result", layer].movedim(2, 0) for layer in range(config.n_layers)]))
    assert torch.equal(cache.stack_head_results(1), heads[: config.n_heads])
    found = trace_pass(model, tokens[0])
    asked = chosen(found)
    attribution = direct_logit_attribution(found, asked.tolist())
    named = zip(attribution.names, attribution.values, strict=True)
    expected = torch.stack([row for name, row in named if "hook_result[" in name])
    close(cache.logit_attrs(heads, asked[None])[:, 0], expected.float())
    assert cache.logit_attrs(heads, 1, 1).abs().max() == 0


def test_what_a_cache_can_t_tell_is_said():
    def recorded(**fields):
        return tiny_model(**fields).run_with_cache(torch.tensor([[1, 2]]))[1]

    cache, encoder = recorded(norm="post"), recorded(architecture="encoder-only", masked_word_head=True)
    for ask, words in (
        (lambda: cache.stack_head_results(3), "it must be from 1 to 2, or -1 for all"),
        (lambda: cache.logit_attrs(cache.stack_head_results(), 1), "direct_logit_attribution follows them"),
        (lambda: recorded(norm="sandwich").stack_head_results(), "direct_logit_attribution follows it"),
        (lambda: recorded(n_layers=0).stack_head_results(), "has no layer"),
        (lambda: ActivationCache(dict(cache)).stack_head_results(), "weights, which this cache doesn't carry"),
        (lambda: encoder.logit_attrs(encoder.stack_head_results(), 1), "a layer that isn't linear"),
    ):
        with pytest.raises(ValueError, match=words):
            ask()
