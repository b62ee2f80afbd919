"""Tests that recordings satisfy the papers' equations, and that the future can't change the past."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from tests.helpers import configs, some_tokens, tiny_model, unpadded
from transformer import ActivationCache, DecoderOnly, ModelConfig


def record(config: ModelConfig) -> tuple[DecoderOnly, Tensor, ActivationCache]:
    """A model, its logits for some tokens, and everything that can be recorded of that pass."""
    model = tiny_model(config)
    return model, *model.run_with_cache(some_tokens(config), names_filter=model.hook_names())


def close(actual: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(actual, expected, atol=1e-5, rtol=1e-5)


class TestEquations:
    @given(configs())
    def test_the_fused_and_the_explicit_way_agree(self, config):
        model, logits, _ = record(config)
        close(logits, model(some_tokens(config)))

    @given(configs(residual=True))
    def test_the_residual_stream_is_a_sum(self, config):
        _, _, cache = record(config)
        for layer in range(config.n_layers):
            block = f"blocks.{layer}."
            middle = "hook_resid_mid" if config.d_ff else "hook_resid_post"
            close(cache[block + middle], cache[block + "hook_resid_pre"] + cache[block + "hook_attn_out"])
            if config.d_ff:
                entering = block + ("ln1.hook_normalized" if config.norm == "post" else middle)
                close(cache[block + "hook_resid_post"], cache[entering] + cache[block + "hook_mlp_out"])

    @given(configs(residual=True))
    def test_a_block_begins_where_the_one_before_it_ended(self, config):
        _, _, cache = record(config)
        stream = cache["hook_embed"] + cache.get("hook_pos_embed", 0)
        for layer in range(config.n_layers):
            block = f"blocks.{layer}."
            close(cache[block + "hook_resid_pre"], stream)
            last = f"ln{2 if config.d_ff else 1}.hook_normalized" if config.norm == "post" else "hook_resid_post"
            stream = cache[block + last]

    @given(configs(attention="softmax"))
    def test_scores_are_products_scaled_masked_and_normalised(self, config):
        _, _, cache = record(config)
        kind = "rot_" if config.positions == "rotary" else ""
        for layer in range(config.n_layers):
            attn = f"blocks.{layer}.attn."
            q, k = cache[f"{attn}hook_{kind}q"], cache[f"{attn}hook_{kind}k"]
            raw, scaled = cache[attn + "hook_raw_scores"], cache[attn + "hook_scaled_scores"]
            scores, mask = cache[attn + "hook_attn_scores"], cache[attn + "hook_mask"]
            close(raw, torch.einsum("bqhd,bkhd->bhqk", q, k))
            close(scaled, raw / math.sqrt(config.d_head))
            assert torch.equal(scores, torch.where(mask, scaled, -math.inf))
            exponentials = torch.where(mask, scaled, -math.inf).exp()
            sums = exponentials.sum(-1, keepdim=True)
            close(cache[attn + "hook_pattern"], exponentials / sums.clamp(min=1e-30))

    @given(configs())
    def test_rows_of_the_pattern_sum_to_one_and_hidden_cells_are_zero(self, config):
        _, _, cache = record(config)
        for layer in range(config.n_layers):
            pattern, mask = cache["pattern", layer], cache["mask", layer]
            visible = mask.expand_as(pattern)
            close(pattern.sum(-1), visible.any(-1).float())
            assert (pattern[~visible] == 0).all()
            if config.attention == "uniform":
                close(pattern, visible / visible.sum(-1, keepdim=True).clamp(min=1))

    @given(configs())
    def test_attention_writes_the_values_it_averaged_head_by_head(self, config):
        model, _, cache = record(config)
        for layer, block in enumerate(model.blocks):
            z = torch.einsum("bhqk,bkhd->bqhd", cache["pattern", layer], cache["v", layer])
            close(cache["z", layer], z)
            bias = block.attn.out.bias if config.attention_bias else 0
            close(cache["result", layer].sum(2) + bias, cache["attn_out", layer])
            head = block.attn.out.weight[:, : config.d_head]
            close(cache["result", layer][:, :, 0], cache["z", layer][:, :, 0] @ head.T)

    @given(configs(norm="pre", residual=True))
    def test_layer_norm_divides_by_the_recorded_scale(self, config):
        model, _, cache = record(config)
        for layer, block in enumerate(model.blocks):
            x = cache["resid_pre", layer]
            scale = (x.var(-1, keepdim=True, unbiased=False) + config.layer_norm_eps).sqrt()
            close(cache["scale", layer, "ln1"], scale)
            normalized = (x - x.mean(-1, keepdim=True)) / scale * block.ln1.weight + block.ln1.bias
            close(cache["normalized", layer, "ln1"], normalized)

    @given(configs(d_ff=None))
    def test_the_feed_forward_layer_is_two_linear_maps_around_an_activation(self, config):
        model, _, cache = record(config)
        for layer, block in enumerate(model.blocks):
            pre, post = cache["pre", layer, "mlp"], cache["post", layer, "mlp"]
            by_hand = {
                "relu": lambda x: x.clamp(min=0),
                "gelu": lambda x: x * (1 + torch.erf(x / math.sqrt(2))) / 2,
                "gelu_tanh": lambda x: x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2,
            }[config.activation]
            close(post, by_hand(pre))
            close(cache["mlp_out", layer], block.mlp.down(post))

    @given(configs())
    def test_embeddings_are_scaled_as_configured(self, config):
        model, _, cache = record(config)
        factor = math.sqrt(config.d_model) if config.scale_embeddings else 1
        close(cache["embed"], model.embed.weight[some_tokens(config)] * factor)


class TestTheFuture:
    @given(configs(), st.integers(0, 5), st.integers(0, 2**32 - 1))
    def test_it_can_not_change_the_past(self, config, changed, seed):
        model = tiny_model(config, seed=seed % 7)
        tokens = unpadded(config, batch=1, seed=seed)
        other = tokens.clone()
        other[0, changed] = next(t for t in range(1, 11) if t != tokens[0, changed])
        for names_filter in ((), None):  # the fused and the explicit way
            before, _ = model.run_with_cache(tokens, names_filter=names_filter)
            after, _ = model.run_with_cache(other, names_filter=names_filter)
            assert torch.equal(before[0, :changed], after[0, :changed])
            if config.residual:
                assert not torch.equal(before[0, changed], after[0, changed])

    @pytest.mark.parametrize("attention", ["softmax", "uniform"])
    def test_but_the_past_changes_the_future(self, attention):
        model = tiny_model(attention=attention)
        tokens = unpadded(model.config, batch=1)
        other = tokens.clone()
        other[0, 0] = (tokens[0, 0] + 1) % 11
        assert ((model(tokens) - model(other))[0].abs().amax(-1) > 1e-6).all()

    @given(configs(pad_token_id=0))
    def test_padding_changes_nothing_but_itself(self, config):
        model = tiny_model(config)
        tokens = unpadded(config, batch=1)
        padded = torch.cat((tokens[:, :4], torch.zeros_like(tokens[:, 4:])), dim=1)
        close(model(padded)[:, :4], model(tokens)[:, :4])
