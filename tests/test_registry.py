"""The register of hook points says what the forward pass does: every point, in order, with its shape."""

import torch
from hypothesis import given

from tests.helpers import configs, some_tokens, tiny_config, tiny_model
from transformer import HookPoint, build_model, hook_points


@given(configs())
def test_every_point_of_the_register_fires_in_its_order_and_no_other_does(config):
    model = tiny_model(config)
    _, cache = model.run_with_cache(some_tokens(config), names_filter=model.hook_names())
    assert list(cache) == model.hook_names()
    points = {name for name, module in model.named_modules() if isinstance(module, HookPoint)}
    assert points == set(model.hook_names())


@given(configs())
def test_every_tensor_has_the_shape_that_the_register_names(config):
    model, tokens = tiny_model(config), some_tokens(config)
    batch, pos = tokens.shape
    sizes = {
        "batch": batch, "pos": pos, "query": pos, "key": pos, "head": config.n_heads, "d_head": config.d_head,
        "d_model": config.d_model, "d_ff": config.d_ff, "1": 1,
    }  # fmt: skip
    _, cache = model.run_with_cache(tokens, names_filter=model.hook_names())
    for name, info in model.hook_points().items():
        shape = tuple(sizes[dimension] for dimension in info.shape)
        if name.endswith("hook_mask") and config.pad_token_id is not None:
            shape = (batch, 1, *shape)
        assert tuple(cache[name].shape) == shape, name


@given(configs())
def test_every_point_is_described(config):
    for name, info in hook_points(config).items():
        assert info.name == name
        assert info.meaning.endswith(".")
        assert info.formula
        assert info.shape


def test_the_points_of_the_contract_are_there():
    expected = {
        "hook_embed", "hook_pos_embed", "ln_final.hook_scale", "ln_final.hook_normalized",
        *(f"blocks.0.{name}" for name in (
            "hook_resid_pre", "hook_attn_out", "hook_resid_mid", "hook_mlp_out", "hook_resid_post", "mlp.hook_pre",
            "mlp.hook_post", "ln1.hook_scale", "ln1.hook_normalized", "ln2.hook_scale", "ln2.hook_normalized",
        )),
        *(f"blocks.0.attn.hook_{name}" for name in (
            "q", "k", "v", "raw_scores", "scaled_scores", "mask", "attn_scores", "pattern", "z", "result",
        )),
    }  # fmt: skip
    assert set(hook_points(tiny_config(n_layers=1))) == expected
    rotary = set(hook_points(tiny_config(n_layers=1, positions="rotary")))
    assert rotary - expected == {"blocks.0.attn.hook_rot_q", "blocks.0.attn.hook_rot_k"}
    assert expected - rotary == {"hook_pos_embed"}


def test_parameters_have_the_names_of_the_contract():
    model = build_model(tiny_config(n_layers=1, positions="learned", unembed_bias=True))
    linears = ("blocks.0.attn.qkv", "blocks.0.attn.out", "blocks.0.mlp.up", "blocks.0.mlp.down", "unembed")
    norms = ("blocks.0.ln1", "blocks.0.ln2", "ln_final")
    assert set(model.state_dict()) == {
        "embed.weight", "pos_embed.weight",
        *(f"{name}.{kind}" for name in (*linears, *norms) for kind in ("weight", "bias")),
    }  # fmt: skip
    assert model.blocks[0].attn.qkv.weight.shape == (24, 8)
    assert isinstance(model.state_dict()["embed.weight"], torch.Tensor)
