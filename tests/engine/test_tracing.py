"""Tests the table of equations: every tensor is recomputed from the others."""

import dataclasses

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers import any_configs, modern_config, some_pass, some_text, tiny_config, tiny_model
from transformer.inference import tracing as recomputing
from transformer.inference.logits import probabilities_of
from transformer.inference.recording import rounding_of
from transformer.inference.tracing import deviations, deviations_of_text, recompute, viewed
from transformer.model.equations import OPERATIONS, PROBABILITIES, TOKEN, equations


@given(
    any_configs() | any_configs(attention="softmax", qkv_clip=0.1),
    st.sampled_from([torch.float32, torch.bfloat16, torch.float16]),
)
def test_every_tensor_is_what_its_equation_says(config, dtype):
    """Each reads what was computed before it, or parameters; and all but the last, and what is only summed, is read."""
    table, parameters = equations(config), {*tiny_model(config).state_dict()}
    assert {equation.operation for equation in table.values()} <= set(OPERATIONS)
    known, read = set(parameters), set()
    for name, equation in table.items():
        read |= {operand.name for operand in equation.sources}
        assert read <= known, name
        known.add(name)
    tied = {"unembed.weight", "embed.weight"} if config.tie_embeddings else set()
    unread = {name for name in known - read - tied if not name.endswith("hook_result")}
    assert {name for name in unread if config.n_layers or not name.startswith("encoder.")} == {PROBABILITIES}
    for found in deviations(some_pass(config, dtype)):
        assert found.largest <= max(1e-5, rounding_of(dtype)) * max(found.magnitude, 1.0), found


@pytest.mark.parametrize("kind", ["llama", "all at once", "both sides"])
@pytest.mark.parametrize("at_once", [1, 40])
def test_what_is_compared_while_it_is_computed_deviates_as_much(kind, at_once, monkeypatch):
    config = tiny_config(architecture="encoder-decoder") if kind == "both sides" else modern_config(kind)
    monkeypatch.setattr(recomputing, "OUTPUTS_AT_ONCE", at_once)
    whole, found = deviations(some_pass(config)), deviations_of_text(tiny_model(config), *some_text(config))
    assert [each.name for each in found] == [each.name for each in whole]
    for one, other in zip(found, whole, strict=True):
        assert one.magnitude == pytest.approx(other.magnitude, rel=1e-5, abs=1e-6)
        assert one.largest <= 1e-5 * max(one.magnitude, 1.0)


@pytest.mark.parametrize(
    ("name", "place", "least", "apart"),
    [
        ("blocks.1.hook_attn_out", (3, 2), 1e-3, {"blocks.1.hook_attn_out", "blocks.1.hook_resid_mid"}),
        ("blocks.0.attn.hook_attn_scores", (0, 0, 1), 1e30, {"blocks.0.attn.hook_attn_scores"}),  # hidden, but seen
    ],
)
def test_a_tensor_that_was_changed_is_found(name, place, least, apart):
    found = some_pass(tiny_config())
    changed = found.tensors[name].clone()
    changed[place] = changed[place].nan_to_num(neginf=0.0) + 0.01
    wrong = dataclasses.replace(found, tensors={**found.tensors, name: changed})
    assert {each.name for each in deviations(wrong) if each.largest > least} == apart


@given(any_configs(), st.data())
def test_a_cell_depends_on_exactly_the_cells_that_are_named(config, data):
    """Changing any one cell of what an equation reads changes the cell in question only if the table says so."""
    found = some_pass(config)
    equation = data.draw(st.sampled_from([each for each in equations(config).values() if each.operands]))
    if equation.operation in ("average", "hide"):
        return  # of truth values, or −∞: there is nothing to differentiate
    operand = data.draw(st.sampled_from(equation.sources))
    tensor = found.tensors[operand.name].double().clone().requires_grad_()
    result = recompute(dataclasses.replace(found, tensors={**found.tensors, operand.name: tensor}), equation)
    place = {dim: data.draw(st.integers(0, size - 1)) for dim, size in zip(equation.dims, result.shape, strict=True)}
    (gradient,) = torch.autograd.grad(result[tuple(place.values())], tensor)
    gradient = gradient.nan_to_num()  # a row of nothing but −∞ has none
    read = found.source if equation.name.startswith("encoder.") else found.tokens
    named = torch.zeros_like(tensor, dtype=torch.bool)
    for each in equation.sources:
        if each.name == operand.name:
            token = int(read[place["pos"]]) if TOKEN in each.cells else None
            view = viewed(dataclasses.replace(found, tensors={operand.name: named}), each)
            view[each.at(place, token)] = True
    assert not gradient[~named].any()
    # What is hidden, or inactive, has no weight.
    may_be_zero = config.pad_token_id is not None or equation.name.endswith(("hook_z", "hook_mlp_out"))
    if equation.operation in ("look up", "add", "divide") or (equation.operation == "multiply" and not may_be_zero):
        assert gradient[named].all()


def test_probabilities_over_a_large_vocabulary_are_those_of_double_precision():
    """Added up in single precision, the most probable one was off by more than what counts as equal."""
    logits = torch.randn(3, 49_152, generator=torch.Generator().manual_seed(0)) * 2.5
    logits[:, 7042] = 17.371
    found, exact = probabilities_of(logits), logits.double().softmax(-1)
    assert found.dtype == logits.dtype
    torch.testing.assert_close(found.double(), exact, rtol=1e-7, atol=0)
    assert (logits.softmax(-1).double() - exact).abs().max() > (found.double() - exact).abs().max()
    assert torch.equal(torch.cat([probabilities_of(row[None]) for row in logits]), found)
