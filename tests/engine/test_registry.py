"""Tests that the register of hook points agrees with the forward pass."""

from hypothesis import given

from tests.helpers import any_configs, some_inputs, tiny_config, tiny_model
from transformer import HookPoint, hook_points


@given(any_configs())
def test_every_point_fires_in_its_order_and_in_the_shape_that_the_register_names(config):
    model, inputs = tiny_model(config), some_inputs(config)
    _, cache = model.run_with_cache(*inputs, names_filter=model.hook_names())
    assert list(cache) == model.hook_names()
    points = {name for name, module in model.named_modules() if isinstance(module, HookPoint)}
    assert points == set(model.hook_names())
    batch = len(inputs[0])
    sizes = {
        "batch": batch,
        "head": config.n_heads,
        "d_head": config.d_head,
        "d_model": config.d_model,
        "d_ff": config.d_ff,
        "1": 1,
    }
    source, target = inputs[0].shape[1], inputs[-1].shape[1]  # and cross-attention has the source's keys
    for name, info in model.hook_points().items():
        pos = source if name.startswith("encoder.") else target
        key = source if ".cross_attn." in name else pos
        lengths = {"pos": pos, "query": pos, "key": key}
        shape = tuple({**sizes, **lengths}[dimension] for dimension in info.shape)
        if name.endswith("hook_mask") and config.pad_token_id is not None:
            shape = (batch, 1, *shape)
        assert tuple(cache[name].shape) == shape, name
        assert info.name == name and info.meaning.endswith(".") and info.formula and info.shape


OF_ATTENTION = ("q", "k", "v", "raw_scores", "scaled_scores", "mask", "attn_scores", "pattern", "z", "result")
OF_A_BLOCK = (
    *(f"hook_{name}" for name in ("resid_pre", "attn_out", "resid_mid", "mlp_out", "resid_post")),
    *(f"{norm}.hook_{name}" for norm in ("ln1", "ln2") for name in ("scale", "out")),
    *("mlp.hook_pre", "mlp.hook_post", *(f"attn.hook_{name}" for name in OF_ATTENTION)),
)
OF_THE_MEMORY = (
    *("hook_cross_attn_out", "hook_resid_cross", "ln_cross.hook_scale", "ln_cross.hook_out"),
    *(f"cross_attn.hook_{name}" for name in OF_ATTENTION),
)


def test_the_points_of_the_contract_are_there():
    """Each side of an encoder–decoder has a decoder-only model's; the decoder also has what attends to the memory."""
    expected = {"hook_embed", "hook_pos_embed", "ln_final.hook_scale", "ln_final.hook_out"}
    expected |= {f"blocks.0.{name}" for name in OF_A_BLOCK}
    assert set(hook_points(tiny_config(n_layers=1))) == expected
    rotary = set(hook_points(tiny_config(n_layers=1, positions="rotary")))
    assert rotary - expected == {"blocks.0.attn.hook_rot_q", "blocks.0.attn.hook_rot_k"}
    assert expected - rotary == {"hook_pos_embed"}
    assert set(hook_points(tiny_config(n_layers=1, architecture="encoder-decoder"))) == {
        *(f"{side}.{name}" for name in expected for side in ("encoder", "decoder")),
        *(f"decoder.blocks.0.{name}" for name in OF_THE_MEMORY),
    }
