"""Tests the API's analyses: logit lens, attribution, checks, circuits."""

import numpy as np
import pytest

from tests.api.cases import TOKENS, open_model
from transformer import Deviation, attention_modules, deviations, qk_circuit
from transformer.api import analyses, outlines
from transformer.inference.circuits import circuits_of


@pytest.mark.parametrize(("pos", "token"), [(0, 3), (5, 10)])
def test_the_shares_in_a_logit_sum_to_it(case, pos, token):
    model, source, found = case
    there = analyses.attribution(model, TOKENS, source, pos, token)
    names, shares = there.metadata["names"], there.tensors["shares"]
    assert len(names) == len(shares) == len(set(names)) and shares.dtype == np.float32
    assert shares.sum() == pytest.approx(float(found.tensors["logits"][pos, token]), abs=1e-4)


def test_what_holds_is_checked(case):
    model, source, found = case
    told = analyses.checks(model, TOKENS, source)
    assert [check.name for check in told] == [each.name for each in deviations(found)]
    assert all(check.largest <= 1e-5 * max(check.magnitude, 1) for check in told)


def test_one_position_serves_whichever_token_is_asked_about(monkeypatch):
    runs, run = [], analyses.trace_pass
    monkeypatch.setattr(analyses, "trace_pass", lambda *args, **kwargs: runs.append(1) or run(*args, **kwargs))
    model = open_model({"n_layers": 3})
    for token in range(5):
        analyses.attribution(model, TOKENS, (), 2, token)
    assert len(runs) == 1


@pytest.mark.parametrize("position", [0, 3, 5])
def test_the_lens_at_a_position_is_that_of_the_outline(case, position):
    model, source, found = case
    there, outline = analyses.lens(model, TOKENS, source, position), outlines.outline(model, TOKENS, source)
    for name, array in there.tensors.items():
        np.testing.assert_allclose(array[:, 0], outline.tensors[name][:, position], atol=1e-5)
    label = model.checkpoint.tokenizer.label
    assert there.metadata["vocabulary"] == {str(each): label(each) for each in there.tensors["lens"].flat}
    assert there.tensors["lens"][-1, 0] == int(found.tensors["logits"][position].argmax())


def test_an_equation_that_fails_to_the_infinite_is_said_without_a_number(monkeypatch):
    monkeypatch.setattr(analyses, "deviations_of_text", lambda *text: [Deviation("x", float("inf"), 1.0)])
    (check,) = analyses.checks(open_model({}), TOKENS)
    assert check.largest is None


def test_a_circuit_s_factors_multiply_to_it(case):
    model, _, found = case
    for modules in attention_modules(found.config).values():
        for module in modules:
            if "qk" not in circuits_of(found.config, module):
                continue
            there, name = analyses.circuit(model, "qk", module, 1, frozenset()).tensors, f"circuit[qk, {module}, 1]"
            product = there[f"{name}.left"] @ there[f"{name}.right"].T
            np.testing.assert_allclose(product, qk_circuit(model.checkpoint.model, module, 1).full(), atol=1e-4)
