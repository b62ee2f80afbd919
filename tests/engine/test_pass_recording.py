"""Tests recordings of a whole pass."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers import any_configs, some_text, tiny_config, tiny_model
from transformer import Recording, attention_modules, qk_circuit, record_pass, trace_pass
from transformer.inference import pass_recording
from transformer.inference.circuits import circuits_of
from transformer.inference.pass_outline import tensors_of
from transformer.inference.pass_recording import LARGE, circuit_parts, fitted, is_whole, pass_of, whole_view


def named(tokens):
    return [f"t{token}" for token in tokens]


@given(any_configs())
def test_the_pass_comes_back_from_its_bytes(config):
    model, text = tiny_model(config), some_text(config)
    there = Recording.from_bytes(record_pass(model, *text, labels=named).to_bytes())
    assert is_whole(there) and there.metadata["labels"]["text"] == named(text[0])
    again, found = pass_of(there), trace_pass(model, *text)
    assert again.config == config
    assert torch.equal(again.tokens, found.tokens) and torch.equal(again.source, found.source)
    assert again.tensors.keys() == found.tensors.keys()
    assert all(torch.equal(again.tensors[name], tensor) for name, tensor in found.tensors.items())


def test_what_a_recording_lacks_is_said():
    whole = record_pass(tiny_model(), [3, 1])
    for name in ("blocks.1.attn.hook_z", "unembed.weight", "probabilities"):
        less = {other: array for other, array in whole.tensors.items() if other != name}
        with pytest.raises(ValueError, match=f"lacks {name}; record_pass"):
            pass_of(Recording(less, whole.metadata))


@given(any_configs())
def test_a_view_has_all_that_it_could_ask_for(config):
    found = trace_pass(tiny_model(config), *some_text(config))
    labels = named(range(config.vocab_size))
    sketched, whole = whole_view(found, labels)
    infos = tensors_of(config, len(found.tokens), len(found.source))
    for name, info in infos.items():
        assert whole.tensors[name].shape == info.sizes
    logits, names = found.tensors["logits"], whole.metadata["attribution"]["names"]
    for pos, row in enumerate(sketched.tensors["next"]):
        for token in row:
            shares = whole.tensors[f"attribution[{pos}, {token}]"]
            assert len(shares) == len(names)
            assert shares.sum() == pytest.approx(float(logits[pos, token]), abs=1e-3)
    for modules in attention_modules(config).values():
        for module in modules:
            for kind in circuits_of(config, module):
                for head in range(config.n_heads):
                    assert f"circuit[{kind}, {module}, {head}].left" in whole.tensors
    assert len(whole.metadata["checks"]) > 0 and sketched.metadata["vocabulary"] == labels
    assert sketched.metadata["labels"]["text"] == [labels[token] for token in found.tokens.tolist()]


@given(any_configs(), st.integers(0, 200_000))
def test_no_more_is_left_out_than_has_to_be(config, most):
    infos = tensors_of(config, 9, 4)
    fit = fitted(infos, most)
    bytes_of = {name: int(np.prod(info.sizes)) * (1 if "mask" in name else 4) for name, info in infos.items()}
    assert fit.size == sum(size for name, size in bytes_of.items() if name not in fit.names)
    assert fit.size <= most or fit.kinds == LARGE
    if fit.kinds:
        less = {name for name in fit.names if name.endswith(fit.kinds[-1])} or {
            name for name in fit.names if infos[name].kind == "parameter"
        }
        assert fit.size + sum(bytes_of[name] for name in less) > most
    assert all(infos[name].sizes[1:] for name in fit.names)  # biases and gains are small


def test_a_circuit_s_factors_give_it_and_say_whether_that_is_the_full_one():
    model = tiny_model(tiny_config(positions="rotary"))
    parts = circuit_parts(model, "qk", "blocks.1.attn", 1, [3, 4])
    name = "circuit[qk, blocks.1.attn, 1]"
    full = qk_circuit(model, "blocks.1.attn", 1).full()
    np.testing.assert_allclose(parts[f"{name}.left"] @ parts[f"{name}.right"].T, full, atol=1e-6)
    assert parts[f"{name}.rows"].tolist() == list(range(len(full)))
    deviation, magnitude = parts[f"{name}.check"]
    assert deviation < 1e-12 and magnitude == pytest.approx(float(full.abs().max()))


def test_of_a_large_vocabulary_the_text_s_tokens_and_the_strongest_are_sent(monkeypatch):
    monkeypatch.setattr(pass_recording, "MOST_TOKENS", 5)
    model = tiny_model()
    parts = circuit_parts(model, "ov", "blocks.0.attn", 0, [7, 7, 2])
    name = "circuit[ov, blocks.0.attn, 0]"
    assert parts[f"{name}.left"].shape == (5, model.config.d_head)
    assert {2, 7} <= set(parts[f"{name}.rows"].tolist()) and {2, 7} <= set(parts[f"{name}.columns"].tolist())


def test_circuits_that_would_fill_a_page_are_left_out(monkeypatch):
    monkeypatch.setattr(pass_recording, "CIRCUIT_BYTES", 100)
    _, whole = whole_view(trace_pass(tiny_model(), [1, 2]), named(range(tiny_config().vocab_size)))
    assert not any(name.startswith("circuit") for name in whole.tensors)
