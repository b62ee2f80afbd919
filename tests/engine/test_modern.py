"""Tests the modern parts of models against their papers."""

import math

import pytest
import torch

from tests.helpers import MODERN, close, modern_config, some_tokens, tiny_config, tiny_model, unpadded
from tests.tiny_models import save_tiny
from transformer import ModelConfig, direct_logit_attribution, equations, logit_lens
from transformer.checkpoints.folder import load_checkpoint
from transformer.inference.interventions import Without
from transformer.inference.pass_outline import array_of, outline, tensors_of
from transformer.inference.tracing import deviations, trace_pass
from transformer.model.equations import LOGITS, unembedding_equation
from transformer.model.masks import causal_mask


@pytest.mark.parametrize("kind", MODERN)
def test_every_model_keeps_what_all_keep(kind, tmp_path):
    config = modern_config(kind)
    model, tokens = tiny_model(config), some_tokens(config)
    found = trace_pass(model, tokens[0].tolist())
    for each in deviations(found):
        assert each.largest <= 1e-5 * max(each.magnitude, 1.0), each
    read = {operand.name for equation in equations(config).values() for operand in equation.sources}
    assert {name for name, _ in model.named_parameters()} <= read | {"unembed.weight"}
    logits = found.tensors[LOGITS].double()
    attributed = found.tensors[unembedding_equation(config).name].double()
    close(direct_logit_attribution(found, [1] * 8).values.sum(0), attributed[:, 1])
    close(logit_lens(found).logits[-1], logits)
    for info in tensors_of(config, 8).values():
        assert array_of(found, info).shape == info.sizes
    assert outline(found).metadata["config"] == config.to_dict()

    sizes = {name: getattr(config, name) for name in ("d_head", "d_model", "d_ff")} | {
        "batch": 2,
        "1": 1,
        "vocab": config.vocab_size,
    }
    sizes |= dict.fromkeys(("pos", "query", "key"), 8) | {"head": config.n_heads, "kv_head": config.kv_heads}
    _, cache = model.run_with_cache(unpadded(config), names_filter=model.hook_names())
    assert list(cache) == model.hook_names()
    for name, info in model.hook_points().items():
        assert tuple(cache[name].shape) == tuple(sizes[dim] for dim in info.shape), name
    for names in (model.hook_names(), lambda name: name.endswith("hook_pattern")):  # the explicit way and the fused
        close(model.run_with_cache(tokens, names_filter=names)[0], model(tokens))
    other = unpadded(config)
    other[:, 5] = other[:, 5] % (config.vocab_size - 1) + 1
    before, after = model(unpadded(config)), model(other)
    assert torch.equal(before[:, :5], after[:, :5]) and not torch.equal(before[:, 5], after[:, 5])

    saved = save_tiny(tmp_path, "model", **{"n_heads": 4, **MODERN[kind]}).model
    again = load_checkpoint(tmp_path / "model").model
    assert again.config == saved.config
    assert torch.equal(again(tokens), saved(tokens))


def test_a_window_hides_what_is_far_and_layers_take_turns():
    config = modern_config("windows")
    _, cache = tiny_model(config).run_with_cache(unpadded(config))
    assert torch.equal(cache["mask", 0], causal_mask(8, 8))
    queries, keys = torch.arange(8)[:, None], torch.arange(8)
    assert torch.equal(cache["mask", 1], (keys <= queries) & (keys > queries - 3))
    assert torch.equal(causal_mask(2, 8, window=3), cache["mask", 1][-2:])
    close(cache["scaled_scores", 1], cache["raw_scores", 1])


def test_a_scale_that_isn_t_there_can_t_be_taken_away():
    with pytest.raises(ValueError, match="doesn't divide its scores"):
        Without("scale").fwd_hooks(tiny_model(modern_config("windows")))


def test_an_old_configuration_means_what_it_meant():
    old = {"vocab_size": 11, "context_length": 8, "n_layers": 2, "n_heads": 2, "d_model": 8}
    config = ModelConfig.from_dict(old)
    assert (config.d_head, config.kv_heads, config.rotated_dims, config.has_out_bias) == (4, 2, 4, True)
    assert config.window(1) == 0 and math.isclose(config.rotary_base, 1e4)


@pytest.mark.parametrize("fields", [MODERN["rms"], MODERN["gated"], {"n_kv_heads": 1}, {"head_width": 6}])
def test_an_encoder_decoder_may_have_them_too(fields):
    config = tiny_config(architecture="encoder-decoder", **fields)
    for each in deviations(trace_pass(tiny_model(config), [1, 2, 3], [4, 5, 6, 7])):
        assert each.largest <= 1e-5 * max(each.magnitude, 1.0), each
