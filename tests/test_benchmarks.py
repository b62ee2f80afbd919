"""The benchmarks measure what they say they measure; their figures are theirs alone."""

import json

import pytest
import torch

from tests.benchmarks import __main__ as dispatcher
from tests.benchmarks import hooks, measuring
from tests.helpers import tiny_model, unpadded
from transformer import HookPoint


def test_an_unknown_name_is_answered_with_the_known_ones(capsys):
    assert dispatcher.main(["speed"]) == 1
    written = capsys.readouterr()
    assert written.out == ""
    assert written.err.startswith("There is no benchmark 'speed'; there are ")
    assert "hooks" in dispatcher.benchmark_names()
    assert "measuring" not in dispatcher.benchmark_names()


def test_the_last_line_is_one_object_with_every_figure(capsys, monkeypatch):
    monkeypatch.setattr(hooks, "run", lambda quick: print("a table") or {"ratio": 1.5})
    assert dispatcher.main(["hooks", "--quick"]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert json.loads(last) == {"benchmark": "hooks", "quick": True, "ratio": 1.5}


@pytest.mark.parametrize("positions", ["sinusoidal", "rotary"])
@pytest.mark.parametrize("attention", ["softmax", "uniform"])
def test_the_model_without_hook_points_calls_none_and_computes_the_same(monkeypatch, positions, attention):
    model = tiny_model(positions=positions, attention=attention)
    tokens = unpadded(model.config)
    bare = hooks.model_without_hook_points(model)
    expected = model(tokens)

    def refuse(*args):
        raise AssertionError("a hook point was called, or asked whether anyone looks")

    monkeypatch.setattr(HookPoint, "__call__", refuse)
    monkeypatch.setattr(HookPoint, "is_watched", property(refuse))
    with pytest.raises(AssertionError):
        model(tokens)
    assert torch.equal(bare(tokens), expected)


def test_ratios_are_taken_round_by_round():
    slow = measuring.Timing((2.0, 4.0, 20.0, 200.0))
    fast = measuring.Timing((1.0, 2.0, 10.0, 100.0))
    assert measuring.ratio(slow, to=fast) == {"median": 2.0, "low": 2.0, "high": 2.0}


def test_things_are_measured_alternately_each_as_often_as_any_other():
    order = []
    timings = measuring.alternate({name: lambda name=name: order.append(name) for name in "ab"}, 4, warm_up=1)
    assert "".join(order) == "ab" + "abbaabba"
    assert {name: len(timing.seconds) for name, timing in timings.items()} == {"a": 4, "b": 4}
