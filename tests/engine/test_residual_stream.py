"""Tests the logit lens, and that the parts of the residual stream sum to the logits."""

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.helpers import any_configs, close, configs, some_inputs, some_pass, tiny_config, tiny_model
from transformer import ActivationCache
from transformer.inference import residual_stream
from transformer.inference.analysis import token_statistics
from transformer.inference.residual_stream import direct_logit_attribution, logit_lens, logit_lens_summary
from transformer.inference.tracing import Trace, trace_pass
from transformer.model.equations import LOGITS


def chosen(found: Trace) -> torch.Tensor:
    """Another token at each position."""
    return torch.arange(len(found.tokens)) % found.config.vocab_size


@given(any_configs())
def test_the_last_height_of_the_lens_is_the_model_s_own_output_and_it_ranks_as_generation_does(config):
    found = some_pass(config)
    lens = logit_lens(found)
    assert len(lens.points) == config.n_layers + 1
    close(lens.logits[-1].float(), found.tensors[LOGITS])
    probability, rank = lens.of(chosen(found))
    for depth, row in enumerate(lens.logits):
        for pos, token in enumerate(chosen(found).tolist()):
            expected = token_statistics(row[pos], token)[:2]
            torch.testing.assert_close(float(probability[depth, pos]), expected[0])
            assert int(rank[depth, pos]) == expected[1]


@given(configs(norm="pre") | configs(norm="none") | configs(norm="pre", architecture="encoder-only"))
def test_the_cache_tells_what_heads_add_as_the_attribution_does(config):
    model, tokens = tiny_model(config), some_inputs(config)[0][:1]
    assume(config.residual and config.n_layers)
    _, cache = model.run_with_cache(tokens, names_filter=model.hook_names())
    heads, labels = cache.stack_head_results(return_labels=True)
    assert labels[-1] == f"L{config.n_layers - 1}H{config.n_heads - 1}"
    close(heads, torch.cat([cache["result", layer].movedim(2, 0) for layer in range(config.n_layers)]))
    assert torch.equal(cache.stack_head_results(1), heads[: config.n_heads])
    asked = chosen(trace_pass(model, tokens[0]))
    found = direct_logit_attribution(trace_pass(model, tokens[0]), asked.tolist())
    expected = [row for name, row in zip(found.names, found.values, strict=True) if "hook_result[" in name]
    close(cache.logit_attrs(heads, asked[None])[:, 0], torch.stack(expected).float())
    assert cache.logit_attrs(heads, 1, 1).abs().max() == 0


def test_what_a_cache_can_t_tell_is_said():
    _, cache = tiny_model(norm="post").run_with_cache(torch.tensor([[1, 2]]))
    with pytest.raises(ValueError, match="it must be from 1 to 2, or -1 for all"):
        cache.stack_head_results(3)
    with pytest.raises(ValueError, match="direct_logit_attribution follows them"):
        cache.logit_attrs(cache.stack_head_results(), 1)
    with pytest.raises(ValueError, match="run_with_cache recorded of a decoder-only or an encoder-only"):
        ActivationCache(dict(cache)).stack_head_results()
    encoder = tiny_model(architecture="encoder-only", masked_word_head=True)
    _, cache = encoder.run_with_cache(torch.tensor([[1, 2]]))
    with pytest.raises(ValueError, match="a layer that isn't linear"):
        cache.logit_attrs(cache.stack_head_results(), 1)


@given(any_configs(), st.sampled_from([1, 40, residual_stream.CELLS_AT_ONCE]))
def test_what_is_read_of_the_lens_piece_by_piece_is_what_it_says(config, at_once):
    found = some_pass(config)
    lens = logit_lens(found)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(residual_stream, "CELLS_AT_ONCE", at_once)
        read = logit_lens_summary(found, chosen(found))
    assert read.points == lens.points
    assert torch.equal(read.likeliest, lens.logits.argmax(-1))
    torch.testing.assert_close(read.likeliest_probability, lens.logits.softmax(-1).amax(-1))
    probability, rank = lens.of(chosen(found))
    torch.testing.assert_close(read.probability, probability)
    assert torch.equal(read.rank, rank)


def test_all_logits_of_all_heights_are_never_held_at_once(monkeypatch):
    config = tiny_config(n_layers=3, vocab_size=50)
    sizes, standing = [], residual_stream._standing

    def note(logits, *asked):
        sizes.append(logits.numel())
        return standing(logits, *asked)

    monkeypatch.setattr(residual_stream, "CELLS_AT_ONCE", 200)
    monkeypatch.setattr(residual_stream, "_standing", note)
    found = trace_pass(tiny_model(config), list(range(7)))
    logit_lens_summary(found, found.tokens)
    assert max(sizes) == 200 and sum(sizes) == 4 * 7 * 50


@given(any_configs())
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
    with pytest.raises(ValueError, match=r"^1 tokens were given, and this pass has \d+ positions"):
        direct_logit_attribution(found, tokens[:1])


def test_every_part_of_a_gpt_is_named():
    biases = {"unembed_bias": True, "attention_bias": True, "mlp_bias": True}
    found = some_pass(tiny_config(n_layers=1, positions="learned", **biases))
    assert direct_logit_attribution(found, chosen(found)).names == (
        "hook_embed",
        "hook_pos_embed",
        "blocks.0.attn.hook_result[0]",
        "blocks.0.attn.hook_result[1]",
        "blocks.0.attn.out.bias",
        "blocks.0.hook_mlp_out",
        "blocks.0.mlp.down.bias",
        "ln_final.bias",
        "unembed.bias",
    )


def test_a_head_that_is_taken_away_takes_its_share_with_it():
    """Under frozen statistics the logit falls by exactly what the head was said to say for it."""
    config = tiny_config(n_layers=1, norm="none", d_ff=0)
    model = tiny_model(config)
    tokens = list(range(6))
    found = trace_pass(model, tokens)
    said = direct_logit_attribution(found, chosen(found))
    share = said.values[said.names.index("blocks.0.attn.hook_result[1]")]

    def without(result, hook):
        result = result.clone()
        result[:, :, 1] = 0
        return result

    logits = model.run_with_hooks(torch.tensor([tokens]), fwd_hooks=[("blocks.0.attn.hook_result", without)])[0]
    own = chosen(found)[:, None]
    fallen = (found.tensors[LOGITS].gather(1, own) - logits.gather(1, own))[:, 0]
    torch.testing.assert_close(fallen.double(), share, atol=1e-5, rtol=1e-5)
