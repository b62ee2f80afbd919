"""Tests the outline of a pass: every tensor is listed, with the engine's numbers."""

import json

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from tests.helpers import any_configs, encoder_configs, modern_config, some_pass, some_text, tiny_config, tiny_model
from transformer import Recording, attention_modules, hook_points, logit_lens
from transformer.inference.pass_outline import array_of, lens_at, outline, outline_of_text, tensors_of
from transformer.inference.pattern_pooling import HIDDEN
from transformer.inference.tensor_statistics import MOST_CELLS, statistics, strip
from transformer.model.equations import equations_json
from transformer.model.parameters import parameter_meaning

ANY = any_configs() | encoder_configs()


@given(ANY)
def test_every_tensor_is_named_in_order_and_has_the_shape_that_is_said(config):
    found = some_pass(config)
    infos = tensors_of(config, len(found.tokens), len(found.source))
    points, kinds = hook_points(config), [info.kind for info in infos.values()]
    assert list(infos)[: len(points) + 2] == [*points, "logits", "probabilities"]
    assert kinds == ["point"] * len(points) + ["output"] * 2 + ["parameter"] * (len(infos) - len(points) - 2)
    owned = {name for name, _ in tiny_model(config).named_parameters()}
    tables = {"embed.weight", "unembed.weight"}
    assert {*infos} - {*points, "logits", "probabilities"} | tables == owned | tables
    for name, info in infos.items():
        array = array_of(found, info)
        assert array.shape == info.sizes and len(info.dims) == len(info.sizes)
        assert (array.reshape(-1) == found.tensors[name].float().numpy().reshape(-1)).all()
        assert array.dtype == (np.uint8 if name.endswith("hook_mask") else np.float32)
        if point := points.get(name):
            assert info.dims == tuple(dim for dim in point.shape if dim != "batch")
            assert (info.meaning, info.formula) == (point.meaning, point.formula)
        assert info.meaning.endswith(".") and (config.is_causal or info.kind != "output" or "next" not in info.meaning)
    formulas = " ".join(point.formula for point in points.values())
    for bias, ends in {
        "b_V": ("qkv.bias", "kv.bias", ".v.bias"),
        "b_O": ("attn.out.bias",),
        "b_up": ("up.bias",),
    }.items():
        assert (bias in formulas) == any(name.endswith(ends) for name in owned), bias


@given(ANY, st.sampled_from([None, 3]))
def test_it_arrives_with_the_engine_s_own_numbers(config, mask):
    found = some_pass(config)
    there = Recording.from_bytes(outline(found, mask).to_bytes())
    about, infos = there.metadata, {info["name"]: info for info in there.metadata["tensors"]}
    assert about["equations"] == json.loads(json.dumps(equations_json(config)))
    check_stacks(about["stacks"], found, infos)
    assert about["ids"] == {"text": found.tokens.tolist(), "source": found.source.tolist()}
    assert there.tensors["statistics"].shape == (len(infos), 4)
    for name, row in zip(infos, there.tensors["statistics"], strict=True):
        values = found.tensors[name].double()
        values = values[values.isfinite()]
        own = [values.mean(), values.std(correction=0), values.min(), values.max()] if len(values) else [np.nan] * 4
        np.testing.assert_allclose(row, [float(each) for each in own], rtol=1e-4, atol=1e-5)
    wide = {name for name, info in infos.items() if info["kind"] == "point" and info["dims"] == ["pos", "d_model"]}
    assert wide == {name.removeprefix("strip.") for name in there.tensors if name.startswith("strip.")}
    for name in wide:
        cells, limit = strip(found.tensors[name].numpy())
        assert about["strip_limits"][name] == pytest.approx(limit)
        np.testing.assert_array_equal(there.tensors[f"strip.{name}"], cells)
    modules = [module for kind in attention_modules(config).values() for module in kind]
    assert {f"arcs.{module}" for module in modules} == {name for name in there.tensors if name.startswith("arcs.")}
    for module in modules:
        pattern, seen = (found.tensors[f"{module}.hook_{each}"].numpy() for each in ("pattern", "mask"))
        arcs = there.tensors[f"arcs.{module}"]
        assert ((arcs == HIDDEN) == ~np.broadcast_to(seen, arcs.shape)).all()
        np.testing.assert_allclose(np.where(seen, arcs, 0) / 254, np.where(seen, pattern, 0), atol=0.5 / 254 + 1e-6)
    check_predictions(there, found, mask)


def check_stacks(stacks, found, infos):
    config = found.config
    both = config.architecture == "encoder-decoder"
    sides = [("encoder.", "source"), ("decoder.", "text")] if both else [("", "text")]
    assert [(stack["prefix"], stack["tokens"]) for stack in stacks] == sides
    for stack in stacks:
        depth = config.n_encoder_layers if stack["prefix"] == "encoder." else config.n_layers
        assert stack["layers"] == depth == len(stack["heights"]) - 1
        assert all(infos[name]["dims"] == ["pos", "d_model"] for height in stack["heights"] for name in height)
        if config.residual and config.norm == "pre":
            for layer, height in enumerate(stack["heights"][:-1]):
                stream = sum(found.tensors[name] for name in height)
                torch.testing.assert_close(stream, found.tensors[f"{stack['prefix']}blocks.{layer}.hook_resid_pre"])
    assert stacks[-1]["heights"] == [name.split(" + ") for name in logit_lens(found).points]


def check_predictions(there, found, mask):
    """What each position predicts: the next token, or in an encoder its own, unless it is masked."""
    probabilities, lens, tokens = found.tensors["probabilities"], logit_lens(found), found.tokens
    best = probabilities.sort(descending=True, dim=-1).values[:, :3]
    np.testing.assert_allclose(there.tensors["next.probability"], best)
    np.testing.assert_allclose(probabilities.gather(-1, torch.tensor(there.tensors["next"]).long()), best)
    np.testing.assert_array_equal(there.tensors["lens"], lens.logits.argmax(-1))
    likeliest = lens.logits.softmax(-1).max(-1).values
    np.testing.assert_allclose(there.tensors["lens.probability"], likeliest, rtol=1e-5, atol=1e-30)
    is_causal, last = found.config.is_causal, len(tokens) - 1
    unknown = torch.arange(len(tokens)) == last if is_causal else tokens == (-1 if mask is None else mask)
    right, rank = lens.of(tokens.roll(-1) if is_causal else tokens)
    right = right.masked_fill(unknown, torch.nan)
    np.testing.assert_allclose(there.tensors["lens.right"], right, rtol=1e-5, atol=1e-30)
    np.testing.assert_array_equal(there.tensors["lens.rank"], rank.masked_fill(unknown, 0))
    first = last if is_causal or mask not in tokens.tolist() else tokens.tolist().index(mask)
    assert there.metadata["predicted_position"] == first


OF_TEXTS = {
    **{kind: modern_config(kind) for kind in ("llama", "all at once", "sandwich")},
    "2017": tiny_config(positions="sinusoidal"),
    "both sides": tiny_config(architecture="encoder-decoder"),
    "both ways": tiny_config(architecture="encoder-only"),
    "no layers": tiny_config(n_layers=0),
}


@pytest.mark.parametrize("kind", OF_TEXTS)
def test_one_made_while_a_text_is_read_is_that_of_the_pass(kind):
    config = OF_TEXTS[kind]
    model, (tokens, source) = tiny_model(config), some_text(config)
    mask, unread = (None if config.is_causal else tokens[2]), len(tokens) - 2
    whole = outline(some_pass(config), mask)
    found = outline_of_text(model, tokens, source, read=2, mask_token_id=mask)
    limits, expected = (each.metadata.pop("strip_limits") for each in (found, whole))
    assert limits == pytest.approx(expected) and found.metadata == whole.metadata
    assert found.tensors.keys() == whole.tensors.keys()
    for name, array in found.tensors.items():
        expected = whole.tensors[name]
        if name.startswith("lens"):
            array, expected = array[:, unread:], expected[:, unread:]
        if array.dtype == np.uint8:  # one step of the scale, where rounding makes it so
            assert np.abs(array.astype(int) - expected).max(initial=0) <= 1, name
        else:
            np.testing.assert_allclose(array, expected, rtol=1e-4, atol=1e-5, err_msg=name)
    assert (found.tensors["lens"][:, :unread] == -1).all() and not found.tensors["lens.rank"][:, :unread].any()
    assert np.isnan(found.tensors["lens.probability"][:, :unread]).all()
    for position in range(len(tokens)):
        for name, array in lens_at(model, tokens, source, position, mask_token_id=mask).items():
            np.testing.assert_allclose(array[:, 0], whole.tensors[name][:, position], rtol=1e-4, err_msg=name)


@given(
    arrays.arrays(
        np.float32, st.tuples(st.integers(1, 4), st.integers(1, 200)), elements=st.floats(-1e3, 1e3, width=32)
    )
)
def test_of_the_values_that_share_a_cell_of_a_strip_the_farthest_from_zero_is_seen(values):
    cells, limit = strip(values)
    pos, width = values.shape
    assert cells.shape == (pos, min(width, MOST_CELLS)) and limit == np.abs(values).max()
    seen = (cells.astype(float) - 128) / 127 * limit
    for at in range(cells.shape[1]):
        low, high = (edge * width // cells.shape[1] for edge in (at, at + 1))
        largest = np.abs(values[:, low:high]).max(axis=1)
        np.testing.assert_allclose(np.abs(seen[:, at]), largest, atol=0.51 * limit / 127 + 1e-6)
    if not limit:
        assert (cells == 128).all()


def test_what_overflows_is_left_out():
    cells, limit = strip(np.array([[np.nan, np.inf, -2.0]], dtype=np.float32))
    assert limit == 2 and cells.tolist() == [[128, 128, 1]]
    assert statistics(np.array([-np.inf, 1.0, 3.0, np.nan])) == (2, 1, 1, 3)
    assert np.isnan(statistics(np.array([-np.inf]))).all()


@pytest.mark.parametrize("name", ["blocks.0.attn.weight", "weight", "embed.bias", "ln1.gain", ""])
def test_a_parameter_that_no_model_has_is_refused(name):
    with pytest.raises(ValueError, match="No model has"):
        parameter_meaning(name)
