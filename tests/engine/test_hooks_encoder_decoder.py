"""Tests the hook points of encoder–decoders."""

import threading

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from tests.helpers import close, encoder_decoder_configs, some_inputs, tiny_encoder_decoder, tiny_model, unpadded
from transformer import ActivationCache, HookPoint


def inputs_of(model) -> tuple[Tensor, Tensor]:
    return some_inputs(model.config, unpadded)


class TestWhatThePointsHold:
    @given(encoder_decoder_configs(residual=True, n_layers=2))
    def test_the_residual_stream_is_the_sum_of_what_was_added(self, config):
        """Under post-norm, what a sublayer adds to is the norm of the sum before it."""
        model = tiny_model(config)
        _, cache = model.run_with_cache(*some_inputs(config))
        post = config.norm == "post"
        for layer in range(config.n_layers):
            block = f"decoder.blocks.{layer}."
            mid, pre = cache[f"{block}hook_resid_mid"], cache[f"{block}hook_resid_pre"]
            close(mid, pre + cache[f"{block}hook_attn_out"])
            crossed = cache[f"{block}hook_resid_cross" if config.d_ff else f"{block}hook_resid_post"]
            stream = cache[f"{block}ln1.hook_normalized"] if post else mid
            close(crossed, stream + cache[f"{block}hook_cross_attn_out"])
            if config.d_ff:
                stream = cache[f"{block}ln_cross.hook_normalized"] if post else crossed
                close(cache[f"{block}hook_resid_post"], stream + cache[f"{block}hook_mlp_out"])

    @given(encoder_decoder_configs(n_layers=1))
    def test_the_results_of_all_heads_and_the_bias_are_what_cross_attention_adds(self, config):
        model = tiny_model(config)
        block = "decoder.blocks.0."
        names = [f"{block}cross_attn.hook_result", f"{block}cross_attn.hook_z", f"{block}hook_cross_attn_out"]
        logits, cache = model.run_with_cache(*some_inputs(config), names_filter=names)
        result, z, added = (cache[name] for name in names)
        out = model.decoder.blocks[0].cross_attn.out
        close(result.sum(2) + (0 if out.bias is None else out.bias), added)
        for head, weight in enumerate(out.weight.chunk(config.n_heads, dim=1)):
            close(result[:, :, head], z[:, :, head] @ weight.T)
        close(logits, model(*some_inputs(config)))

    @given(encoder_decoder_configs(n_layers=1, pad_token_id=0))
    def test_cross_attention_is_the_four_steps_over_the_memory(self, config):
        model = tiny_model(config)
        source, target = some_inputs(config)
        _, cache = model.run_with_cache(source, target)
        point = "decoder.blocks.0.cross_attn.hook_"
        linear = model.decoder.blocks[0].cross_attn.kv
        k, v = linear(model.encode(source)).chunk(2, -1)
        close(cache[f"{point}k"].flatten(2), k)
        close(cache[f"{point}v"].flatten(2), v)
        scores = torch.einsum("bqhd,bkhd->bhqk", cache[f"{point}q"], cache[f"{point}k"])
        close(cache[f"{point}raw_scores"], scores)
        close(cache[f"{point}scaled_scores"], scores / config.d_head**0.5)
        visible = (source != 0)[:, None, None, :].expand(-1, 1, target.shape[1], -1)
        assert torch.equal(cache[f"{point}mask"], visible)
        close(cache[f"{point}pattern"], (scores / config.d_head**0.5).masked_fill(~visible, -1e30).softmax(-1))
        z = torch.einsum("bhqk,bkhd->bqhd", cache[f"{point}pattern"], cache[f"{point}v"])
        close(cache[f"{point}z"], z)

    @given(encoder_decoder_configs(n_encoder_layers=1, n_layers=1, pad_token_id=None))
    def test_the_encoder_sees_all_of_the_source_and_the_decoder_only_its_past(self, config):
        model = tiny_model(config)
        source, target = some_inputs(config)
        _, cache = model.run_with_cache(source, target)
        assert cache["mask", 0, "encoder"].all()
        assert cache["mask", 0, "cross_attn"].all()
        assert torch.equal(cache["decoder.blocks.0.attn.hook_mask"], torch.ones(4, 4, dtype=torch.bool).tril())


class TestInterventions:
    @pytest.mark.parametrize("norm", ["pre", "post"])
    @pytest.mark.parametrize("tied", [False, True])
    @pytest.mark.parametrize("positions", ["learned", "rotary"])
    def test_every_point_reaches_the_logits(self, norm, tied, positions):
        model = tiny_encoder_decoder(norm=norm, tie_embeddings=tied, positions=positions, n_layers=1)
        source, target = inputs_of(model)
        plain = model(source, target)

        def change(tensor: Tensor, hook: HookPoint) -> Tensor:
            if tensor.dtype == torch.bool:
                return torch.eye(*tensor.shape, dtype=torch.bool)
            noise = torch.randn(tensor.shape, generator=torch.Generator().manual_seed(0))
            return (tensor + noise.abs()).nan_to_num(neginf=0.0)

        for name in model.hook_names():
            changed = model.run_with_hooks(source, target, fwd_hooks=[(name, change)])
            assert (changed - plain).abs().max() > 1e-4, name

    def test_a_pattern_put_in_decides_what_is_read_from_the_source(self):
        model = tiny_encoder_decoder(n_layers=1)
        source, target = inputs_of(model)
        looked = "decoder.blocks.0.cross_attn.hook_"

        def at_the_third(pattern: Tensor, hook: HookPoint) -> Tensor:
            return torch.zeros_like(pattern).index_fill_(-1, torch.tensor([2]), 1.0)

        hooks = [(f"{looked}pattern", at_the_third)]
        logits, cache = model.run_with_cache(source, target, fwd_hooks=hooks)
        third = cache[f"{looked}v"][:, 2:3]
        close(cache[f"{looked}z"], third.expand_as(cache[f"{looked}z"]))
        assert not torch.allclose(logits, model(source, target))

    def test_a_stream_put_into_the_encoder_is_what_the_decoder_reads(self):
        """With the stream of another source, the model answers that other source."""
        model = tiny_encoder_decoder()
        source, target = inputs_of(model)
        other = source.flip(1)
        point = "encoder.blocks.0.hook_resid_pre"
        stream = model.run_with_cache(other, target, names_filter=point)[1][point]
        swapped = model.run_with_hooks(source, target, fwd_hooks=[(point, lambda x, hook: stream)])
        close(swapped, model(other, target))
        assert not torch.allclose(swapped, model(source, target))

    def test_a_mask_put_in_hides_a_part_of_the_source(self):
        model = tiny_encoder_decoder()
        source, target = inputs_of(model)
        changed = source.clone()
        changed[:, -1] = (source[:, -1] + 1) % 11

        def hide_the_last(mask: Tensor, hook: HookPoint) -> Tensor:
            return mask & (torch.arange(mask.shape[-1]) < mask.shape[-1] - 1)

        reads_source = (
            "encoder.blocks.0.attn",
            "encoder.blocks.1.attn",
            "decoder.blocks.0.cross_attn",
            "decoder.blocks.1.cross_attn",
        )
        hidden = [(f"{name}.hook_mask", hide_the_last) for name in reads_source]
        first, second = (model.run_with_hooks(each, target, fwd_hooks=hidden) for each in (source, changed))
        close(first, second)
        assert not torch.allclose(model(source, target), model(changed, target))

    def test_gradients_flow_from_the_logits_to_the_source(self):
        model = tiny_encoder_decoder()
        direction = torch.zeros(8, requires_grad=True)
        hooks = [("encoder.hook_embed", lambda x, hook: x + direction)]
        model.run_with_hooks(*inputs_of(model), fwd_hooks=hooks).square().sum().backward()
        assert direction.grad.abs().sum() > 0


class TestActivationCache:
    @pytest.fixture
    def cache(self) -> ActivationCache:
        model = tiny_encoder_decoder()
        return model.run_with_cache(*inputs_of(model))[1]

    def test_a_third_part_tells_the_sides_apart(self, cache):
        assert cache["pattern", 0, "encoder"] is cache["encoder.blocks.0.attn.hook_pattern"]
        assert cache["pattern", 1, "cross_attn"] is cache["decoder.blocks.1.cross_attn.hook_pattern"]
        assert cache["pattern", 1, "decoder.blocks.1.attn"] is cache["decoder.blocks.1.attn.hook_pattern"]
        assert cache["resid_pre", 1, "decoder"] is cache["decoder.blocks.1.hook_resid_pre"]
        assert cache["mlp_out", 0, "encoder"] is cache["encoder.blocks.0.hook_mlp_out"]
        assert cache["cross_attn_out", 0] is cache["decoder.blocks.0.hook_cross_attn_out"]
        assert cache["scale", 0, "ln_cross"] is cache["decoder.blocks.0.ln_cross.hook_scale"]

    def test_without_it_a_name_of_both_sides_means_none(self, cache):
        several = (
            r"may mean encoder\.blocks\.0\.attn\.hook_pattern, decoder\.blocks\.0\.attn\.hook_pattern, "
            r"decoder\.blocks\.0\.cross_attn\.hook_pattern; say which"
        )
        with pytest.raises(KeyError, match=several):
            cache["pattern", 0]
        with pytest.raises(KeyError, match=r"may mean decoder\.blocks\.0\.attn.*cross_attn.*; say which"):
            cache["pattern", 0, "decoder"]
        with pytest.raises(KeyError, match=r"'hook_embed' was not recorded\. Did you mean .*encoder\.hook_embed"):
            cache["hook_embed"]
        with pytest.raises(KeyError, match="matches nothing"):
            cache["cross_attn_out", 0, "encoder"]


class TestCallsAreApart:
    @given(encoder_decoder_configs(), st.booleans())
    def test_nothing_is_left_on_the_model(self, config, fails):
        model = tiny_model(config)
        inputs = some_inputs(config)
        plain = model(*inputs)
        before = {name: dict(vars(module)) for name, module in model.named_modules()}

        def change(tensor: Tensor, hook: HookPoint) -> Tensor:
            if fails:
                raise RuntimeError("on purpose")
            return tensor + 1

        try:
            model.run_with_cache(*inputs, fwd_hooks=[("decoder.hook_embed", change)])
        except RuntimeError:
            assert fails
        for name, module in model.named_modules():
            assert vars(module).keys() == before[name].keys()
            assert all(vars(module)[key] is value for key, value in before[name].items())
        assert torch.equal(model(*inputs), plain)

    def test_two_threads_at_once_do_not_see_each_other(self):
        """Both stand in the middle of their passes, one that records and one that ablates, before either goes on."""
        model = tiny_encoder_decoder()
        source, target = inputs_of(model)
        other_source, other_target = source.flip(1), target.flip(1)
        barrier = threading.Barrier(2)
        found: dict[str, tuple] = {}

        def pause(tensor: Tensor, hook: HookPoint) -> None:
            barrier.wait(timeout=60)

        def paused(edits: list) -> list:
            return [*edits, ("encoder.blocks.1.hook_attn_out", pause), ("decoder.blocks.1.hook_resid_mid", pause)]

        silence = [(lambda name: name.endswith("cross_attn.hook_z"), lambda z, hook: z * 0)]

        def record() -> None:
            found["recorded"] = model.run_with_cache(source, target, fwd_hooks=paused([]))

        def ablate() -> None:
            found["ablated"] = (model.run_with_hooks(other_source, other_target, fwd_hooks=paused(silence)),)

        threads = [threading.Thread(target=work) for work in (record, ablate)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=60)
        logits, cache = model.run_with_cache(source, target)
        close(found["recorded"][0], logits)
        assert list(found["recorded"][1]) == list(cache)
        assert all(torch.equal(found["recorded"][1][name], cache[name]) for name in cache)
        close(found["ablated"][0], model.run_with_hooks(other_source, other_target, fwd_hooks=silence))
        assert not torch.allclose(found["ablated"][0], model(other_source, other_target))
