"""Tests the modern parts of models against their papers."""

import math

import pytest
import torch
from torch import Tensor

from tests.helpers import MODERN, close, modern_config, some_tokens, tiny_config, tiny_model, unpadded
from tests.tiny_models import save_tiny
from transformer import (
    ModelConfig,
    Sampling,
    direct_logit_attribution,
    equations,
    generate,
    hook_points,
    logit_lens,
    ov_circuit,
    qk_circuit,
)
from transformer.checkpoints.folder import load_checkpoint
from transformer.inference.interventions import Scaled, Without
from transformer.inference.outline import array_of, outline, tensors_of
from transformer.inference.recompute import deviations, whole_pass
from transformer.inference.windows import window_start
from transformer.model.equations import LOGITS, PROBABILITIES
from transformer.model.masks import causal_mask
from transformer.model.positions import rotate

every_kind = pytest.mark.parametrize("kind", MODERN)


@every_kind
class TestWhatEveryModelKeeps:
    def test_every_tensor_is_what_its_equation_says(self, kind):
        config = modern_config(kind)
        found = whole_pass(tiny_model(config), some_tokens(config)[0].tolist())
        assert list(equations(config)) == [*hook_points(config), LOGITS, PROBABILITIES]
        for each in deviations(found):
            assert each.largest <= 1e-5 * max(each.magnitude, 1.0), each

    def test_every_parameter_is_read_by_an_equation(self, kind):
        config = modern_config(kind)
        read = {operand.name for equation in equations(config).values() for operand in equation.sources}
        assert {name for name, _ in tiny_model(config).named_parameters()} <= read | {"unembed.weight"}

    def test_every_point_fires_in_the_order_of_the_register_and_in_its_shape(self, kind):
        config = modern_config(kind)
        model, tokens = tiny_model(config), unpadded(config)
        _, cache = model.run_with_cache(tokens, names_filter=model.hook_names())
        assert list(cache) == model.hook_names()
        sizes = {
            "batch": 2,
            "pos": 8,
            "query": 8,
            "key": 8,
            "1": 1,
            "head": config.n_heads,
            "kv_head": config.kv_heads,
            "d_head": config.d_head,
            "d_model": config.d_model,
            "d_ff": config.d_ff,
        }
        for name, info in model.hook_points().items():
            assert tuple(cache[name].shape) == tuple(sizes[dim] for dim in info.shape), name

    def test_the_fused_and_the_explicit_way_agree(self, kind):
        config = modern_config(kind)
        model, tokens = tiny_model(config), some_tokens(config)
        for names in (model.hook_names(), lambda name: name.endswith("hook_pattern")):
            logits, _ = model.run_with_cache(tokens, names_filter=names)
            close(logits, model(tokens))

    def test_what_is_written_with_a_cache_is_what_is_written_without(self, kind):
        config = modern_config(kind)
        model = tiny_model(config)
        cached = list(generate(model, [1, 2, 3], max_new_tokens=8, sampling=Sampling(temperature=0)))
        text = [1, 2, 3]
        for step in cached:
            logits = model(torch.tensor([text[window_start(len(text), config.context_length) :]]))[0, -1]
            close(step.logits, logits)
            text.append(step.token_id)

    def test_the_future_can_not_change_the_past(self, kind):
        config = modern_config(kind)
        model, tokens = tiny_model(config), unpadded(config, batch=1)
        other = tokens.clone()
        other[0, 5] = tokens[0, 5] % (config.vocab_size - 1) + 1
        before, after = model(tokens), model(other)
        assert torch.equal(before[0, :5], after[0, :5])
        assert not torch.equal(before[0, 5], after[0, 5])

    def test_shares_sum_to_the_logit_and_the_lens_ends_in_it(self, kind):
        config = modern_config(kind)
        found = whole_pass(tiny_model(config), unpadded(config)[0].tolist())
        chosen = [1] * 8
        logits = found.tensors[LOGITS].double()
        close(direct_logit_attribution(found, chosen).values.sum(0), logits[:, 1])
        close(logit_lens(found).logits[-1], logits)

    def test_the_outline_of_a_pass_can_be_made_of_all_its_tensors(self, kind):
        config = modern_config(kind)
        found = whole_pass(tiny_model(config), unpadded(config)[0].tolist())
        for info in tensors_of(config, 8).values():
            assert array_of(found, info).shape == info.sizes
        assert outline(found).metadata["config"] == config.to_dict()

    def test_it_is_read_as_it_was_written(self, kind, tmp_path):
        checkpoint = save_tiny(tmp_path, "model", **{"n_heads": 4, **MODERN[kind]})
        again = load_checkpoint(tmp_path / "model")
        assert again.model.config == checkpoint.model.config
        tokens = unpadded(checkpoint.model.config)
        assert torch.equal(again.model(tokens), checkpoint.model(tokens))


def recorded(kind: str, **fields) -> tuple[ModelConfig, torch.nn.Module, dict[str, Tensor]]:
    config = modern_config(kind, **fields)
    model = tiny_model(config)
    return config, model, model.run_with_cache(unpadded(config), names_filter=model.hook_names())[1]


def test_rms_norm_divides_by_the_length_and_takes_no_mean_off():
    config, model, cache = recorded("rms")
    x = cache["resid_pre", 0]
    expected = x / (x.square().mean(-1, keepdim=True) + config.layer_norm_eps).sqrt() * model.blocks[0].ln1.weight
    close(cache["normalized", 0, "ln1"], expected)
    assert "blocks.0.ln1.bias" not in model.state_dict()


def test_the_gate_multiplies_what_goes_up():
    _, model, cache = recorded("gated")
    mlp, x = model.blocks[0].mlp, cache["normalized", 0, "ln2"]
    gate = mlp.gate(x)
    close(cache["post", 0], gate / (1 + (-gate).exp()) * mlp.up(x))


def test_neighbouring_heads_share_their_keys_and_values():
    """Four heads over two: what makes heads 0 and 1 differ is their queries, so equal queries see the same."""
    config, model, cache = recorded("shared")
    assert model.blocks[0].attn.qkv.weight.shape == ((4 + 2 * 2) * 2, 8)
    assert cache["k", 0].shape == cache["v", 0].shape == (2, 8, 2, 2)
    with torch.no_grad():
        for tensor in (model.blocks[0].attn.qkv.weight, model.blocks[0].attn.qkv.bias):
            tensor[2:4], tensor[4:6] = tensor[0:2], tensor[0:2]  # the queries of heads 1 and 2 as those of head 0
    _, cache = model.run_with_cache(unpadded(config))
    pattern = cache["pattern", 0]
    assert torch.equal(pattern[:, 0], pattern[:, 1]) and not torch.equal(pattern[:, 0], pattern[:, 2])


@pytest.mark.parametrize("halves", [False, True])
def test_rotated_products_depend_on_distance_alone_and_the_rest_is_left_as_it_is(halves):
    q, k = torch.randn(2, 1, 6, 1, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    q, k = q[:, :1].expand(1, 6, 1, 8), k[:, :1].expand(1, 6, 1, 8)  # the same vector everywhere
    turned = [rotate(each, base=50.0, dims=4, halves=halves)[0, :, 0] for each in (q, k)]
    products = turned[0] @ turned[1].T
    for distance in range(6):
        diagonal = products.diagonal(-distance)
        torch.testing.assert_close(diagonal, diagonal[:1].expand_as(diagonal), atol=1e-6, rtol=1e-6)
    assert torch.equal(turned[0][:, 4:], q[0, :, 0, 4:])
    second = 2 if halves else 1  # the partner of dimension 0
    angle = torch.tensor(1.0, dtype=torch.float64)
    first = q[0, 1, 0, 0] * angle.cos() - q[0, 1, 0, second] * angle.sin()
    torch.testing.assert_close(turned[0][1, 0], first, atol=1e-6, rtol=1e-6)


def test_in_a_parallel_block_neither_sublayer_reads_the_other():
    config, model, cache = recorded("parallel")
    close(cache["resid_post", 0], cache["resid_pre", 0] + cache["attn_out", 0] + cache["mlp_out", 0])
    assert not [name for name in hook_points(config) if name.endswith("resid_mid")]
    silenced = Scaled("blocks.0.hook_attn_out").fwd_hooks(model)
    _, without = model.run_with_cache(unpadded(config), fwd_hooks=silenced)
    assert torch.equal(without["mlp_out", 0], cache["mlp_out", 0])


def test_a_window_hides_what_is_far_and_layers_take_turns():
    _, _, cache = recorded("windows")
    assert torch.equal(cache["mask", 0], causal_mask(8, 8))
    queries, keys = torch.arange(8)[:, None], torch.arange(8)
    assert torch.equal(cache["mask", 1], (keys <= queries) & (keys > queries - 3))
    assert torch.equal(causal_mask(2, 8, window=3), cache["mask", 1][-2:])
    close(cache["scaled_scores", 1], cache["raw_scores", 1])


def test_a_scale_that_isn_t_there_can_t_be_taken_away():
    with pytest.raises(ValueError, match="doesn't divide its scores"):
        Without("scale").fwd_hooks(tiny_model(modern_config("windows")))


def test_circuits_read_the_group_s_keys_and_values():
    """Without norms, positions and biases in the way, a circuit is what a text of two tokens shows."""
    config = modern_config("one for all", norm="none", positions="none", n_layers=1, d_ff=0, attention_out_bias=False)
    model = tiny_model(config)
    found = whole_pass(model, [3, 5])
    for head in (0, 3):
        score = found.tensors["blocks.0.attn.hook_scaled_scores"][head, 1, 0].double()
        close(qk_circuit(model, "blocks.0.attn", head).full()[5, 3], score)
        written = found.tensors["blocks.0.attn.hook_v"][0, 0].double() @ (
            model.blocks[0].attn.out.weight.double()[:, 2 * head : 2 * head + 2].T
        )
        close(ov_circuit(model, "blocks.0.attn", head).row(3), model.unembed.weight.double() @ written)


def test_an_old_configuration_means_what_it_meant():
    old = {"vocab_size": 11, "context_length": 8, "n_layers": 2, "n_heads": 2, "d_model": 8}
    config = ModelConfig.from_dict(old)
    assert (config.d_head, config.kv_heads, config.turned_dims, config.has_out_bias) == (4, 2, 4, True)
    assert config.window(1) == 0 and math.isclose(config.rotary_base, 1e4)


@pytest.mark.parametrize(
    "fields, words",
    [
        ({"n_kv_heads": 3}, "divides n_heads"),
        ({"n_kv_heads": 0}, "1 or more"),
        ({"n_kv_heads": 1, "attention": "uniform"}, "none to group"),
        ({"positions": "rotary", "rotary_dims": 6}, "at most d_head, which is 4"),
        ({"positions": "rotary", "rotary_dims": 3}, "even number"),
        ({"positions": "rotary", "head_width": 3}, "head_width is 3"),
        ({"rotary_base": float("inf")}, "a number above 1"),
        ({"rotary_pairs": "thirds"}, "'neighbours' or 'halves'"),
        ({"norm_kind": "batch"}, "'layer' or 'rms'"),
        ({"parallel_residual": True, "norm": "post"}, "norms, if any, before"),
        ({"parallel_residual": True, "d_ff": 0}, "a feed-forward layer"),
        ({"attention_windows": (1, -1)}, "whole numbers, 0 or more"),
        ({"attention_windows": 4}, "whole numbers, 0 or more"),
        ({"attention_windows": (4,), "architecture": "encoder-decoder"}, "decoder-only model"),
        ({"attention_out_bias": 1}, "True, False or None"),
        ({"mlp_gate": 1}, "True or False"),
    ],
)
def test_what_no_model_can_have_is_refused_in_a_sentence(fields, words):
    with pytest.raises(ValueError, match=words):
        tiny_config(**fields)


@pytest.mark.parametrize("fields", [MODERN["rms"], MODERN["gated"], {"n_kv_heads": 1}, {"head_width": 6}])
def test_an_encoder_decoder_may_have_them_too(fields):
    config = tiny_config(architecture="encoder-decoder", **fields)
    for each in deviations(whole_pass(tiny_model(config), [1, 2, 3], [4, 5, 6, 7])):
        assert each.largest <= 1e-5 * max(each.magnitude, 1.0), each
