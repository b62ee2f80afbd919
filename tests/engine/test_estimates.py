"""Tests the estimates of training costs."""

import dataclasses
import math
import time
import tracemalloc
from collections import deque

import pytest
import torch
from hypothesis import given

from tests.helpers import any_configs
from transformer import ModelConfig, build_model
from transformer.training import cost_estimate as estimates
from transformer.training.cost_estimate import (
    Machine,
    parameter_count,
    training_flops,
    training_memory,
    training_seconds,
)

MIDDLE = ModelConfig(vocab_size=65, context_length=32, n_layers=2, n_heads=4, d_model=32)


def changed(**fields) -> ModelConfig:
    return dataclasses.replace(MIDDLE, **{"d_ff": None, **fields})


@given(any_configs())
def test_parameters_are_those_of_the_model(config):
    assert parameter_count(config) == build_model(config, seed=0).parameter_count()


def test_counting_takes_no_memory():
    tracemalloc.start()
    assert parameter_count(changed(d_model=2**15)) > 2 * 12 * 2**30
    assert tracemalloc.get_traced_memory()[1] < 10_000_000
    tracemalloc.stop()


@pytest.mark.parametrize(
    "changes",
    [
        *({}, {"context_length": 128, "d_model": 64}, {"positions": "rotary", "activation": "gelu"}, {"d_ff": 0}),
        *({"norm": "none", "residual": False}, {"attention": "uniform"}, {"vocab_size": 400, "n_layers": 0}),
        *({"n_kv_heads": 1, "mlp_gate": True}, {"architecture": "encoder-only", "norm": "post"}),
        {"architecture": "encoder-decoder", "norm": "post", "tie_embeddings": True},
    ],
    ids=str,
)
def test_activations_are_about_what_autograd_keeps(changes):
    """Counted with PyTorch's own hook on what the backward pass needs; every tensor once, no weights."""
    config = changed(**changes)
    model = build_model(config, seed=0)
    tokens = torch.arange(4 * config.context_length).view(4, -1) % config.vocab_size
    weights = {weight.untyped_storage().data_ptr() for weight in model.parameters()}
    kept: dict[int, int] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        logits = model(tokens, tokens) if config.architecture == "encoder-decoder" else model(tokens)
        torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens.flatten())
    estimated = training_memory(config, 4) - 20 * parameter_count(config)
    assert sum(kept.values()) / 1.5 < estimated < 3 * sum(kept.values())


def test_a_step_takes_its_operations_its_sums_and_its_memory(monkeypatch):
    """FLOPs of one layer of width 4 without biases: 16 · (3 + 1 + 4 + 4) weights, and 4 · 10 in the unembedding."""
    config = ModelConfig(vocab_size=10, context_length=8, n_layers=1, n_heads=1, d_model=4)
    inside, tokens = 16 * 12, 3 * 8
    attention = 12 * 1 * 4 * 8 * tokens
    flops = 6 * (inside + 40) * tokens + attention + 30 * 4 * inside
    assert training_flops(config, 3) == flops
    kept = (training_memory(config, 3) - training_memory(config, 2)) // 4  # numbers kept for one sequence
    assert training_memory(config, 3) == 20 * parameter_count(config) + 4 * 3 * kept
    assert Machine(0.0, 2.0).step_seconds(config, 3) == (flops + 400 * 3 * kept) / 2
    tensors = len(list(build_model(config, seed=0).parameters()))
    assert Machine(3.0, 1e99).step_seconds(config, 3) == pytest.approx(3 * tensors)
    monkeypatch.setattr(estimates, "machine", lambda: Machine(3.0, 1e99))
    assert training_seconds(config, 3, 50) == pytest.approx(50 * 3 * tensors)


@pytest.mark.parametrize("seconds", [[30.0, 110.0], [1.0, 2000.0], [300.0, 1.0]])
def test_price_and_speed_come_from_two_measurements(monkeypatch, seconds):
    """20 operations and 10 FLOPs, 10 operations and 100 FLOPs; a disturbed measurement still gives numbers."""
    monkeypatch.setattr(estimates, "_parts", lambda: [(20, 10), (10, 100)])
    found = estimates._machine(*seconds)
    assert found.tensor_seconds > 0 and found.flops_per_second > 0
    if seconds == [30.0, 110.0]:
        assert (found.tensor_seconds, found.flops_per_second) == pytest.approx((1.0, 1.0))


def test_a_measurement_at_a_bad_moment_is_mended_by_the_next(monkeypatch):
    """The fastest counts of the last few, each taken a while after the one before."""
    clock, quiet = [0.0], estimates._measured()
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(estimates, "_measurements", deque(maxlen=estimates.KEPT))
    monkeypatch.setattr(estimates, "_measured_at", -math.inf)
    found = []
    for busy in [40, 1, *[7] * estimates.KEPT]:
        monkeypatch.setattr(estimates, "_measured", lambda busy=busy: [busy * seconds for seconds in quiet])
        found.append(training_seconds(MIDDLE, 16, 1000))
        clock[0] += estimates.AGAIN_AFTER - 1
        monkeypatch.setattr(estimates, "_measured", None)
        assert training_seconds(MIDDLE, 16, 1000) == found[-1]
        clock[0] += 2
    expected = [40, *[1] * estimates.KEPT, 7]  # a machine that has become slower for good is found slower
    assert found == pytest.approx([times * found[1] for times in expected])
