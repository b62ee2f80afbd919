"""Tests the logit lens, and that the parts of the residual stream sum to the logits."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers import any_configs, close, some_inputs, tiny_config, tiny_model
from transformer.inference import residual
from transformer.inference.analysis import token_statistics
from transformer.inference.recompute import Pass, whole_pass
from transformer.inference.residual import direct_logit_attribution, logit_lens, read_lens, shares
from transformer.model.equations import LOGITS


def some_pass(config) -> Pass:
    *source, tokens = (row[0].tolist() for row in some_inputs(config))
    return whole_pass(tiny_model(config), tokens, *source)


def chosen(found: Pass) -> torch.Tensor:
    """Another token at each position."""
    return torch.arange(len(found.tokens)) % found.config.vocab_size


@given(any_configs())
def test_the_last_height_of_the_lens_is_the_model_s_own_output(config):
    found = some_pass(config)
    lens = logit_lens(found)
    assert len(lens.heights) == config.n_layers + 1
    close(lens.logits[-1].float(), found.tensors[LOGITS])


@given(any_configs())
def test_the_lens_ranks_as_generation_does(config):
    found = some_pass(config)
    lens = logit_lens(found)
    probability, rank = lens.of(chosen(found))
    for height, row in enumerate(lens.logits):
        for pos, token in enumerate(chosen(found).tolist()):
            expected = token_statistics(row[pos], token)[:2]
            torch.testing.assert_close(float(probability[height, pos]), expected[0])
            assert int(rank[height, pos]) == expected[1]


@given(any_configs(), st.sampled_from([1, 40, residual.CELLS_AT_ONCE]))
def test_what_is_read_of_the_lens_piece_by_piece_is_what_it_says(config, at_once):
    found = some_pass(config)
    lens = logit_lens(found)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(residual, "CELLS_AT_ONCE", at_once)
        read = read_lens(found, chosen(found))
    assert read.heights == lens.heights
    assert torch.equal(read.likeliest, lens.logits.argmax(-1))
    torch.testing.assert_close(read.likeliest_probability, lens.logits.softmax(-1).amax(-1))
    probability, rank = lens.of(chosen(found))
    torch.testing.assert_close(read.probability, probability)
    assert torch.equal(read.rank, rank)


def test_all_logits_of_all_heights_are_never_held_at_once(monkeypatch):
    config = tiny_config(n_layers=3, vocab_size=50)
    sizes, standing = [], residual._standing

    def note(logits, *asked):
        sizes.append(logits.numel())
        return standing(logits, *asked)

    monkeypatch.setattr(residual, "CELLS_AT_ONCE", 200)
    monkeypatch.setattr(residual, "_standing", note)
    found = whole_pass(tiny_model(config), list(range(7)))
    read_lens(found, found.tokens)
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


@given(any_configs())
def test_a_difference_of_logits_is_the_difference_of_the_parts(config):
    found = some_pass(config)
    tokens, others = chosen(found), chosen(found).flip(0)
    with pytest.raises(ValueError, match=r"^1 tokens were given, and this pass has \d+ positions"):
        direct_logit_attribution(found, tokens[:1])
    both = direct_logit_attribution(found, tokens, others)
    apart = [direct_logit_attribution(found, each).values for each in (tokens, others)]
    torch.testing.assert_close(both.values, apart[0] - apart[1])


@given(any_configs())
def test_the_shares_sum_to_what_the_unembedding_reads(config):
    found = some_pass(config)
    total = torch.stack([share.vectors for share in shares(found)]).sum(0)
    logits = total @ found.tensors["unembed.weight"].double().T
    if config.unembed_bias:
        logits = logits + found.tensors["unembed.bias"].double()
    close(logits.float(), found.tensors[LOGITS])


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
    found = whole_pass(model, tokens)
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
