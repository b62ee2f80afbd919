"""Tests QK and OV circuits against the model's own products."""

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers import any_configs, configs, some_pass, tiny_encoder_decoder, tiny_model
from transformer import attention_modules
from transformer.inference.circuits import circuits_of, ov_circuit, qk_circuit
from transformer.inference.tracing import trace_pass

ALONE = {"norm": "none", "attention_bias": False, "n_layers": 1}
"""Models of which circuits leave nothing out."""


@given(
    configs(**ALONE, positions="rotary", attention="softmax", n_heads=2),
    st.integers(0, 10),
    st.integers(0, 10),
    st.integers(0, 4),
)
def test_qk_is_the_score_that_two_tokens_have_in_the_first_layer(config, query, key, distance):
    """Rotary positions see the distance alone."""
    model = tiny_model(config)
    query = query if distance else key
    scores = trace_pass(model, [*[key] * distance, query]).tensors["blocks.0.attn.hook_scaled_scores"][1]
    circuit = qk_circuit(model, "blocks.0.attn", 1, distance)
    torch.testing.assert_close(float(circuit.row(query)[key]), float(scores[-1, 0]), atol=1e-4, rtol=1e-4)


@given(configs(**ALONE, unembed_bias=False, positions="none", d_ff=0, residual=False, n_heads=1, pad_token_id=None))
def test_ov_is_what_a_model_of_one_head_says_after_one_token(config):
    """A text of one token looks at itself, and without residuals the head is all that is heard."""
    model = tiny_model(config)
    logits = model(torch.arange(config.vocab_size)[:, None])[:, 0].detach()
    torch.testing.assert_close(ov_circuit(model, "blocks.0.attn", 0).full().float(), logits, atol=1e-4, rtol=1e-4)


MAKE = {"qk": qk_circuit, "ov": ov_circuit}


@given(any_configs(), st.integers(1, 20), st.sets(st.integers(0, 9), max_size=4))
def test_every_circuit_that_there_is(config, most, among):
    """Factored is full; the strongest have the longest rows and columns; which there are is known without trying."""
    model, found = tiny_model(config), some_pass(config)
    for kind, module in itertools.product(MAKE, itertools.chain(*attention_modules(config).values())):
        if kind not in circuits_of(config, module):
            with pytest.raises(ValueError):
                MAKE[kind](model, module, 0)
            continue
        circuit = MAKE[kind](model, module, config.n_heads - 1)
        full = circuit.full()
        assert full.shape == (config.vocab_size, config.vocab_size) and full.isfinite().all()
        assert torch.equal(MAKE[kind](found, module, config.n_heads - 1).full(), full)
        torch.testing.assert_close(circuit.left @ circuit.right.T, full)
        torch.testing.assert_close(circuit.row(5), full[5])
        assert torch.linalg.matrix_rank(full) <= config.d_head
        some = torch.tensor([5, 1]), torch.tensor([2])
        torch.testing.assert_close(circuit.full(*some), full[some[0]][:, some[1]])
        for strongest, matrix in zip(circuit.strongest(most, among), (full, full.T), strict=True):
            names = set(strongest.tolist())
            assert strongest.tolist() == sorted(names) and len(strongest) == min(most, config.vocab_size)
            assert names >= set(sorted(among)[:most])
            lengths, rest, others = matrix.norm(dim=-1), names - among, set(range(config.vocab_size)) - names
            assert not rest or not others or lengths[list(rest)].min() >= lengths[list(others)].max() - 1e-9


@pytest.mark.parametrize(
    ("make", "model", "attention", "head", "words"),
    [
        (qk_circuit, tiny_model(), "blocks.5.attn", 0, r"no blocks\.5\.attn\.hook_q"),
        (qk_circuit, tiny_model(attention="uniform"), "blocks.0.attn", 0, r"no blocks\.0\.attn\.hook_q"),
        (qk_circuit, tiny_model(qk_norm="head"), "blocks.0.attn", 0, "normalises queries and keys"),
        (ov_circuit, tiny_model(qkv_clip=0.1), "blocks.0.attn", 0, "clips queries, keys and values"),
        (ov_circuit, tiny_model(), "blocks.0.attn", 2, "heads 0 to 1"),
        (ov_circuit, tiny_encoder_decoder(), "encoder.blocks.0.attn", 0, "not to the logits"),
    ],
)
def test_what_isn_t_there_is_said(make, model, attention, head, words):
    with pytest.raises(ValueError, match=words):
        make(model, attention, head)
