"""Tests QK and OV circuits against the model's own products."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers import any_configs, configs, some_inputs, tiny_config, tiny_encoder_decoder, tiny_model
from transformer import attention_modules
from transformer.inference.circuits import circuits_of, ov_circuit, qk_circuit
from transformer.inference.recompute import whole_pass


@given(
    configs(norm="none", attention_bias=False, positions="rotary", attention="softmax", n_layers=1, n_heads=2),
    st.integers(0, 10),
    st.integers(0, 10),
    st.integers(0, 4),
)
def test_qk_is_the_score_that_two_tokens_have_in_the_first_layer(config, query, key, distance):
    """Without norm and biases the circuit leaves nothing out; rotary positions see the distance alone."""
    model = tiny_model(config)
    text = [key] * (distance + 1)
    text[-1] = query if distance else key
    query = text[-1]
    scores = whole_pass(model, text).tensors["blocks.0.attn.hook_scaled_scores"][1]
    circuit = qk_circuit(model, "blocks.0.attn", 1, distance)
    torch.testing.assert_close(float(circuit.row(query)[key]), float(scores[-1, 0]), atol=1e-4, rtol=1e-4)


@given(
    configs(
        norm="none",
        attention_bias=False,
        unembed_bias=False,
        positions="none",
        n_layers=1,
        d_ff=0,
        residual=False,
        n_heads=1,
        pad_token_id=None,
    )
)
def test_ov_is_what_a_model_of_one_head_says_after_one_token(config):
    """A text of one token looks at itself, and without residuals the head is all that is heard."""
    model = tiny_model(config)
    full = ov_circuit(model, "blocks.0.attn", 0).full()
    for token in range(config.vocab_size):
        logits = model(torch.tensor([[token]]))[0, 0]
        torch.testing.assert_close(full[token].float(), logits.detach(), atol=1e-4, rtol=1e-4)


def test_a_norm_s_gain_is_in_the_circuit_and_its_mean_is_not():
    """With a pre-norm the true score is the circuit's, divided by both norms' spread, if shift and biases are 0."""
    model = tiny_model(tiny_config(n_layers=1, positions="none", attention_bias=False))
    with torch.no_grad():
        model.blocks[0].ln1.bias.zero_()
    found = whole_pass(model, [3, 7])
    spread = found.tensors["blocks.0.ln1.hook_scale"][:, 0]
    score = found.tensors["blocks.0.attn.hook_scaled_scores"][0, 1, 0]
    circuit = qk_circuit(model, "blocks.0.attn", 0)
    torch.testing.assert_close(float(circuit.row(7)[3] / spread[0] / spread[1]), float(score), atol=1e-4, rtol=1e-4)


@given(any_configs())
def test_factored_is_full_for_every_head(config):
    model = tiny_model(config)
    for kind, modules in attention_modules(config).items():
        for module in modules:
            circuits = [] if kind == "encoder" else [ov_circuit(model, module, 0)]
            if config.attention == "softmax" or kind == "cross":
                circuits.append(qk_circuit(model, module, config.n_heads - 1))
            for circuit in circuits:
                assert circuit.full().shape == (config.vocab_size, config.vocab_size)
                full = circuit.full()
                torch.testing.assert_close(circuit.left @ circuit.right.T, full)
                torch.testing.assert_close(circuit.row(5), full[5])
                assert torch.linalg.matrix_rank(full) <= config.d_head
                some = torch.tensor([5, 1]), torch.tensor([2])
                torch.testing.assert_close(circuit.full(*some), full[some[0]][:, some[1]])
                assert all(map(math.isfinite, full.flatten().tolist()))


@given(any_configs(), st.integers(1, 20), st.sets(st.integers(0, 9), max_size=4))
def test_the_strongest_have_the_longest_rows_and_columns(config, most, among):
    for modules in attention_modules(config).values():
        for module in modules:
            for kind in circuits_of(config, module):
                circuit = (qk_circuit if kind == "qk" else ov_circuit)(tiny_model(config), module, 0)
                full = circuit.full()
                for found, matrix in zip(circuit.strongest(most, among), (full, full.T), strict=True):
                    assert found.tolist() == sorted(set(found.tolist()))
                    assert len(found) == min(most, config.vocab_size)
                    assert set(found.tolist()) >= set(sorted(among)[:most])
                    lengths, rest = matrix.norm(dim=-1), set(found.tolist()) - among
                    others = set(range(config.vocab_size)) - set(found.tolist())
                    assert not rest or not others or lengths[list(rest)].min() >= lengths[list(others)].max() - 1e-9


@given(any_configs())
def test_what_circuits_there_are_is_known_without_trying(config):
    model, make = tiny_model(config), {"qk": qk_circuit, "ov": ov_circuit}
    found = whole_pass(model, *reversed([row[0].tolist() for row in some_inputs(config)]))
    for modules in attention_modules(config).values():
        for module in modules:
            kinds = circuits_of(config, module)
            for kind in make:
                if kind in kinds:
                    of_pass, of_model = (make[kind](each, module, 0) for each in (found, model))
                    assert torch.equal(of_pass.full(), of_model.full())
                else:
                    with pytest.raises(ValueError):
                        make[kind](model, module, 0)


def test_what_isn_t_there_is_said():
    with pytest.raises(ValueError, match=r"no blocks\.5\.attn\.hook_q"):
        qk_circuit(tiny_model(), "blocks.5.attn", 0)
    with pytest.raises(ValueError, match=r"no blocks\.0\.attn\.hook_q"):
        qk_circuit(tiny_model(attention="uniform"), "blocks.0.attn", 0)
    with pytest.raises(ValueError, match="heads 0 to 1"):
        ov_circuit(tiny_model(), "blocks.0.attn", 2)
    with pytest.raises(ValueError, match="not to the logits"):
        ov_circuit(tiny_encoder_decoder(), "encoder.blocks.0.attn", 0)
