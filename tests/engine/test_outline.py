"""Tests the outline of a pass: every tensor is listed, with the engine's numbers."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from tests.helpers import any_configs, modern_config, some_inputs, some_pass, tiny_config, tiny_model
from transformer import Recording, attention_modules, equations, hook_points, logit_lens, trace_pass
from transformer.inference.pass_outline import array_of, lens_at, outline, outline_of_text, tensors_of
from transformer.inference.pattern_pooling import HIDDEN
from transformer.inference.tensor_statistics import MOST_CELLS, statistics, strip
from transformer.model.parameters import parameter_meaning

FLOATS = st.floats(-1e3, 1e3, width=32)


def drawn(found):
    """An outline as it arrives, and its tensors' infos by name."""
    there = Recording.from_bytes(outline(found).to_bytes())
    return there, {info["name"]: info for info in there.metadata["tensors"]}


@given(any_configs())
def test_every_tensor_is_named_in_order_and_has_the_shape_that_is_said(config):
    found = some_pass(config)
    infos = tensors_of(config, len(found.tokens), len(found.source))
    points = list(hook_points(config))
    assert list(infos)[: len(points) + 2] == [*points, "logits", "probabilities"]
    assert [infos[name].kind for name in infos][: len(points) + 2] == ["point"] * len(points) + ["output"] * 2
    parameters = {name for name, info in infos.items() if info.kind == "parameter"}
    assert parameters | {"embed.weight"} == {name for name, _ in tiny_model(config).named_parameters()} | {
        name for name in ("embed.weight", "unembed.weight")
    }
    for name, info in infos.items():
        array = array_of(found, info)
        assert array.shape == info.sizes and len(info.dims) == len(info.sizes)
        assert (array.reshape(-1) == found.tensors[name].float().numpy().reshape(-1)).all()
        assert array.dtype == (np.uint8 if name.endswith("hook_mask") else np.float32)
        if info.kind == "point":
            point = hook_points(config)[name]
            assert info.dims == tuple(dim for dim in point.shape if dim != "batch")
            assert (info.meaning, info.formula) == (point.meaning, point.formula)
        assert info.meaning.endswith(".")


@given(any_configs())
def test_the_table_arrives_as_it_is(config):
    there, _ = drawn(some_pass(config))
    table = equations(config)
    assert [row["name"] for row in there.metadata["equations"]] == list(table)
    for row in there.metadata["equations"]:
        equation = table[row["name"]]
        assert (row["operation"], tuple(row["dims"])) == (equation.operation, equation.dims)
        assert row["operands"].keys() == equation.operands.keys()
        for role, operands in equation.operands.items():
            assert row["operands"][role] == [
                {"name": each.name, "dims": list(each.dims), "cells": list(each.cells)} for each in operands
            ]


@given(any_configs())
def test_statistics_strips_and_arcs_are_of_the_engine_s_own_tensors(config):
    found = some_pass(config)
    there, infos = drawn(found)
    assert there.tensors["statistics"].shape == (len(infos), 4)
    for name, row in zip(infos, there.tensors["statistics"], strict=True):
        values = found.tensors[name].double()
        values = values[values.isfinite()]
        if not len(values):
            assert np.isnan(row).all()
            continue
        own = [values.mean(), values.std(correction=0), values.min(), values.max()]
        np.testing.assert_allclose(row, [float(each) for each in own], rtol=1e-4, atol=1e-5)
    wide = {name for name, info in infos.items() if info["kind"] == "point" and info["dims"] == ["pos", "d_model"]}
    assert wide == {name.removeprefix("strip.") for name in there.tensors if name.startswith("strip.")}
    for name in wide:
        limit, cells = there.metadata["strip_limits"][name], there.tensors[f"strip.{name}"]
        values = found.tensors[name].numpy()
        assert limit == pytest.approx(np.abs(values).max()) and cells.shape == values.shape  # narrower than 48 cells
        np.testing.assert_allclose((cells.astype(float) - 128) / 127 * limit, values, atol=limit / 127)
    modules = [module for kind in attention_modules(config).values() for module in kind]
    assert {f"arcs.{module}" for module in modules} == {name for name in there.tensors if name.startswith("arcs.")}
    for module in modules:
        pattern, mask = found.tensors[f"{module}.hook_pattern"].numpy(), found.tensors[f"{module}.hook_mask"].numpy()
        arcs = there.tensors[f"arcs.{module}"]
        assert ((arcs == HIDDEN) == ~np.broadcast_to(mask, arcs.shape)).all()
        np.testing.assert_allclose(np.where(mask, arcs, 0) / 254, np.where(mask, pattern, 0), atol=0.5 / 254 + 1e-6)


@given(any_configs())
def test_what_comes_next_and_the_lens_are_the_engine_s_own(config):
    found = some_pass(config)
    there, _ = drawn(found)
    probabilities, lens = found.tensors["probabilities"], logit_lens(found)
    best = probabilities.sort(descending=True, dim=-1).values[:, :3]
    np.testing.assert_allclose(there.tensors["next.probability"], best)
    at = torch.tensor(there.tensors["next"]).long()
    np.testing.assert_allclose(probabilities.gather(-1, at), best)
    odds = lens.logits.softmax(-1)
    assert there.tensors["lens"].shape == odds.shape[:2]
    np.testing.assert_allclose(there.tensors["lens.probability"], odds.max(-1).values, rtol=1e-5, atol=1e-30)
    np.testing.assert_allclose(there.tensors["lens.probability"][-1], best[:, 0], rtol=1e-4)
    right, rank = lens.of([*found.tokens[1:].tolist(), 0])
    np.testing.assert_allclose(there.tensors["lens.right"][:, :-1], right[:, :-1], rtol=1e-5, atol=1e-30)
    assert (there.tensors["lens.rank"][:, :-1] == rank[:, :-1].numpy()).all()
    assert np.isnan(there.tensors["lens.right"][:, -1]).all() and not there.tensors["lens.rank"][:, -1].any()


@pytest.mark.parametrize("mask", [None, 3])
def test_an_encoder_s_lens_is_asked_about_the_token_that_stands_there_unless_it_is_masked(mask):
    model = tiny_model(architecture="encoder-only", context_length=8)
    tokens = [5, 1, 3, 4, 3, 7]
    found = trace_pass(model, tokens)
    whole, masked = outline(found, mask), torch.tensor([token == mask for token in tokens])
    assert whole.metadata["predicted_position"] == (5 if mask is None else 2)
    right, rank = logit_lens(found).of(tokens)
    expected = right.masked_fill(masked, torch.nan).numpy()
    np.testing.assert_allclose(whole.tensors["lens.right"], expected, rtol=1e-5)
    assert (whole.tensors["lens.rank"] == rank.masked_fill(masked, 0).numpy()).all()
    read = outline_of_text(model, tokens, mask_token_id=mask)
    assert read.metadata["predicted_position"] == whole.metadata["predicted_position"]
    there = [lens_at(model, tokens, (), position, mask_token_id=mask) for position in range(len(tokens))]
    for name in ("lens", "lens.right", "lens.rank"):
        np.testing.assert_allclose(read.tensors[name], whole.tensors[name], rtol=1e-5)
        np.testing.assert_allclose(np.hstack([one[name] for one in there]), whole.tensors[name], rtol=1e-5)
    meanings = tensors_of(model.config, 1)
    assert all("next" not in meanings[name].meaning for name in ("logits", "probabilities"))


@given(any_configs())
def test_the_stacks_say_what_the_stream_consists_of(config):
    found = some_pass(config)
    there, infos = drawn(found)
    stacks = there.metadata["stacks"]
    both = config.architecture == "encoder-decoder"
    assert [(stack["prefix"], stack["tokens"]) for stack in stacks] == (
        [("encoder.", "source"), ("decoder.", "text")] if both else [("", "text")]
    )
    for stack in stacks:
        encodes = stack["prefix"] == "encoder."
        depth = config.n_encoder_layers if encodes else config.n_layers
        assert stack["layers"] == depth == len(stack["heights"]) - 1
        assert all(infos[name]["dims"] == ["pos", "d_model"] for height in stack["heights"] for name in height)
        if config.residual and config.norm == "pre":
            for layer, height in enumerate(stack["heights"][:-1]):
                stream = sum(found.tensors[name] for name in height)
                torch.testing.assert_close(stream, found.tensors[f"{stack['prefix']}blocks.{layer}.hook_resid_pre"])
    assert stacks[-1]["heights"] == [name.split(" + ") for name in logit_lens(found).points]
    assert there.metadata["ids"] == {"text": found.tokens.tolist(), "source": found.source.tolist()}
    assert there.metadata["predicted_position"] == len(found.tokens) - 1


OF_TEXTS = {
    **{kind: modern_config(kind) for kind in ("llama", "all at once", "sandwich")},
    "2017": tiny_config(positions="sinusoidal"),
    "both sides": tiny_config(architecture="encoder-decoder"),
    "no layers": tiny_config(n_layers=0),
}


@pytest.mark.parametrize("kind", OF_TEXTS)
def test_an_outline_made_while_a_text_is_read_is_that_of_the_pass(kind):
    model = tiny_model(OF_TEXTS[kind])
    *source, tokens = (row[0].tolist() for row in some_inputs(model.config))
    source, unread = source[0] if source else [], len(tokens) - 2
    whole, found = outline(trace_pass(model, tokens, source)), outline_of_text(model, tokens, source, read=2)
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
    for position in (0, len(tokens) - 1):
        for name, array in lens_at(model, tokens, source, position).items():
            np.testing.assert_allclose(array[:, 0], whole.tensors[name][:, position], rtol=1e-4, err_msg=name)


# A strip


@given(arrays.arrays(np.float32, st.tuples(st.integers(1, 4), st.integers(1, 200)), elements=FLOATS))
def test_of_the_values_that_share_a_cell_the_farthest_from_zero_is_seen(values):
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


def test_a_strip_of_numbers_that_overflow_can_be_drawn():
    cells, limit = strip(np.array([[np.nan, np.inf, -2.0]], dtype=np.float32))
    assert limit == 2 and cells.tolist() == [[128, 128, 1]]


def test_statistics_leave_out_what_is_infinite():
    assert statistics(np.array([-np.inf, 1.0, 3.0, np.nan])) == (2, 1, 1, 3)
    assert np.isnan(statistics(np.array([-np.inf]))).all()


def test_a_parameter_that_no_model_has_is_refused():
    for name in ("blocks.0.attn.weight", "weight", "embed.bias", "ln1.gain", ""):
        with pytest.raises(ValueError, match="No model has"):
            parameter_meaning(name)


@given(any_configs())
def test_a_formula_names_a_bias_where_the_model_has_one(config):
    formulas = " ".join(point.formula for point in hook_points(config).values())
    names = list(tiny_model(config).state_dict())
    for bias, parameters in {
        "b_V": ("qkv.bias", "kv.bias", ".v.bias"),
        "b_O": ("attn.out.bias",),
        "b_up": ("up.bias",),
        "b_down": ("down.bias",),
    }.items():
        assert (bias in formulas) == any(name.endswith(parameters) for name in names), (bias, names)
