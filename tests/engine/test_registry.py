"""Tests that the register of hook points agrees with the forward pass."""

import torch
from hypothesis import given

from tests.helpers import any_configs, encoder_decoder_configs, some_inputs, tiny_config, tiny_model
from transformer import HookPoint, ModelConfig, build_model, hook_points


@given(any_configs())
def test_every_point_of_the_register_fires_in_its_order_and_no_other_does(config):
    model = tiny_model(config)
    _, cache = model.run_with_cache(*some_inputs(config), names_filter=model.hook_names())
    assert list(cache) == model.hook_names()
    points = {name for name, module in model.named_modules() if isinstance(module, HookPoint)}
    assert points == set(model.hook_names())


@given(any_configs())
def test_every_tensor_has_the_shape_that_the_register_names(config):
    """In an encoder–decoder the encoder has the source's positions, and so have the keys of cross-attention."""
    model, inputs = tiny_model(config), some_inputs(config)
    batch = len(inputs[0])
    sizes = {
        "batch": batch,
        "head": config.n_heads,
        "d_head": config.d_head,
        "d_model": config.d_model,
        "d_ff": config.d_ff,
        "1": 1,
    }
    source, target = inputs[0].shape[1], inputs[-1].shape[1]
    _, cache = model.run_with_cache(*inputs, names_filter=model.hook_names())
    for name, info in model.hook_points().items():
        pos = source if name.startswith("encoder.") else target
        key = source if ".cross_attn." in name else pos
        lengths = {"pos": pos, "query": pos, "key": key}
        shape = tuple({**sizes, **lengths}[dimension] for dimension in info.shape)
        if name.endswith("hook_mask") and config.pad_token_id is not None:
            shape = (batch, 1, *shape)
        assert tuple(cache[name].shape) == shape, name


@given(any_configs())
def test_every_point_is_described(config):
    for name, info in hook_points(config).items():
        assert info.name == name
        assert info.meaning.endswith(".")
        assert info.formula
        assert info.shape


def test_the_points_of_the_contract_are_there():
    expected = {
        "hook_embed",
        "hook_pos_embed",
        "ln_final.hook_scale",
        "ln_final.hook_normalized",
        *(
            f"blocks.0.{name}"
            for name in (
                "hook_resid_pre",
                "hook_attn_out",
                "hook_resid_mid",
                "hook_mlp_out",
                "hook_resid_post",
                "mlp.hook_pre",
                "mlp.hook_post",
                "ln1.hook_scale",
                "ln1.hook_normalized",
                "ln2.hook_scale",
                "ln2.hook_normalized",
            )
        ),
        *(
            f"blocks.0.attn.hook_{name}"
            for name in ("q", "k", "v", "raw_scores", "scaled_scores", "mask", "attn_scores", "pattern", "z", "result")
        ),
    }
    assert set(hook_points(tiny_config(n_layers=1))) == expected
    rotary = set(hook_points(tiny_config(n_layers=1, positions="rotary")))
    assert rotary - expected == {"blocks.0.attn.hook_rot_q", "blocks.0.attn.hook_rot_k"}
    assert expected - rotary == {"hook_pos_embed"}


def test_the_points_of_an_encoder_decoder_are_those_of_its_sides():
    """Each side has a decoder-only model's; the decoder also has what attends to the memory."""
    of_one_side = set(hook_points(tiny_config(n_layers=1)))
    added = {
        "hook_cross_attn_out",
        "hook_resid_cross",
        "ln_cross.hook_scale",
        "ln_cross.hook_normalized",
        *(
            f"cross_attn.hook_{name}"
            for name in ("q", "k", "v", "raw_scores", "scaled_scores", "mask", "attn_scores", "pattern", "z", "result")
        ),
    }
    assert set(hook_points(tiny_config(n_layers=1, architecture="encoder-decoder"))) == {
        *(f"encoder.{name}" for name in of_one_side),
        *(f"decoder.{name}" for name in of_one_side),
        *(f"decoder.blocks.0.{name}" for name in added),
    }


def test_parameters_have_the_names_of_the_contract():
    model = build_model(tiny_config(n_layers=1, positions="learned", unembed_bias=True))
    linears = ("blocks.0.attn.qkv", "blocks.0.attn.out", "blocks.0.mlp.up", "blocks.0.mlp.down", "unembed")
    norms = ("blocks.0.ln1", "blocks.0.ln2", "ln_final")
    assert set(model.state_dict()) == {
        "embed.weight",
        "pos_embed.weight",
        *(f"{name}.{kind}" for name in (*linears, *norms) for kind in ("weight", "bias")),
    }
    assert model.blocks[0].attn.qkv.weight.shape == (24, 8)
    assert isinstance(model.state_dict()["embed.weight"], torch.Tensor)


def names_of_the_contract(config: ModelConfig) -> set[str]:
    """The names of an encoder–decoder's weights, as the design lists them."""
    attention = ("attn.qkv",) if config.attention == "softmax" else ("attn.v",)
    linears, norms = [*attention, "attn.out"], ["ln1"]
    cross_linears, cross_norms = ["cross_attn.q", "cross_attn.kv", "cross_attn.out"], ["ln_cross"]
    feed_forward = ["mlp.up", "mlp.down"] if config.d_ff else []
    if config.d_ff:
        norms.append("ln2")
    names = {"embed.weight"} if config.tie_embeddings else {"encoder.embed.weight", "decoder.embed.weight"}
    names |= {"unembed.weight", *(["unembed.bias"] if config.unembed_bias else [])}
    for side, depth in (("encoder", config.n_encoder_layers), ("decoder", config.n_layers)):
        crossing = side == "decoder"
        if config.positions == "learned":
            names.add(f"{side}.pos_embed.weight")
        if config.norm == "pre":
            names |= {f"{side}.ln_final.weight", f"{side}.ln_final.bias"}
        for layer in range(depth):
            modules = {name: config.attention_bias for name in (*linears, *(cross_linears if crossing else []))}
            modules |= {name: config.mlp_bias for name in feed_forward}
            if config.norm != "none":
                modules |= {name: True for name in (*norms, *(cross_norms if crossing else []))}
            for name, has_bias in modules.items():
                kinds = ("weight", "bias") if has_bias else ("weight",)
                names |= {f"{side}.blocks.{layer}.{name}.{kind}" for kind in kinds}
    return names


@given(encoder_decoder_configs())
def test_the_parameters_of_an_encoder_decoder_have_the_names_of_the_contract(config):
    weights = build_model(config, seed=0).state_dict()
    assert set(weights) == names_of_the_contract(config)
    shapes = {"qkv": (24, 8), "kv": (16, 8), "q": (8, 8), "v": (8, 8), "out": (8, 8), "embed": (11, 8)}
    for name, weight in weights.items():
        *_, module, kind = name.split(".")
        if kind == "weight" and module in shapes:
            assert tuple(weight.shape) == shapes[module], name
