"""Tests that the benchmarks measure what they say."""

import itertools
import json

import pytest
import torch
import torch.nn.functional as F

from tests.benchmarks import __main__ as dispatcher
from tests.benchmarks import generation, hooks, latency
from tests.benchmarks import training as training_benchmark
from tests.helpers import tiny_model, unpadded
from transformer import HookPoint, build_model
from transformer.training.evaluation import token_loss


def test_an_unknown_name_is_answered_with_the_known_ones(capsys):
    assert dispatcher.main(["speed"]) == 1
    written = capsys.readouterr()
    assert written.out == ""
    assert written.err.startswith("There is no benchmark 'speed'; there are ")
    assert "hooks" in dispatcher.benchmark_names()
    assert not {"chromium", "engine_client", "measuring", "protocol", "visitors"} & set(dispatcher.benchmark_names())


def test_the_last_line_is_one_object_with_every_figure(capsys, monkeypatch):
    monkeypatch.setattr(hooks, "run", lambda quick: print("a table") or {"ratio": 1.5})
    assert dispatcher.main(["hooks", "--quick"]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert json.loads(last) == {"benchmark": "hooks", "quick": True, "ratio": 1.5}


@pytest.mark.parametrize(
    ("attention", "positions"), [("softmax", "sinusoidal"), ("softmax", "rotary"), ("uniform", "sinusoidal")]
)
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


def textbook_with_weights_of(model):
    """The textbook's model with the engine's weights: of each head its own rows of the stacked projection."""
    textbook = training_benchmark.TextbookModel(model.config)
    weights = {}
    for name, weight in model.state_dict().items():
        if not name.endswith("qkv.weight"):
            weights[name.replace("attn.out", "out").replace("mlp.", "")] = weight
            continue
        stacked = weight.unflatten(0, (3, model.config.n_heads, -1))
        for part, matrices in zip(("query", "key", "value"), stacked, strict=True):
            for head, matrix in enumerate(matrices):
                weights[name.replace("attn.qkv", f"heads.{head}.{part}")] = matrix
    left_out = textbook.load_state_dict(weights, strict=False)
    assert not left_out.unexpected_keys
    assert all(key.endswith("seen") for key in left_out.missing_keys)
    return textbook


def test_the_textbooks_model_has_the_engines_parameters_loss_and_gradient():
    config = training_benchmark.CONFIG
    model = build_model(config, seed=3)
    textbook = textbook_with_weights_of(model)
    assert sum(weight.numel() for weight in textbook.parameters()) == model.parameter_count()
    tokens = torch.randint(config.vocab_size, (2, config.context_length + 1))
    ours = token_loss(model(tokens[:, :-1]), tokens[:, 1:])
    theirs = F.cross_entropy(textbook(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
    assert ours.item() == pytest.approx(theirs.item(), abs=1e-5)
    ours.backward()
    theirs.backward()
    torch.testing.assert_close(model.embed.weight.grad, textbook.embed.weight.grad, atol=1e-6, rtol=1e-3)


@pytest.fixture
def tiny_gpt():
    """A model of GPT-2's shape, as the benchmark of writing measures it, but tiny."""
    return tiny_model(context_length=16, positions="learned", activation="gelu_tanh")


def test_hugging_faces_model_with_our_weights_has_our_logits(tiny_gpt):
    pytest.importorskip("transformers")
    tokens = unpadded(tiny_gpt.config)
    torch.testing.assert_close(generation.gpt2(tiny_gpt)(tokens).logits, tiny_gpt(tokens), atol=1e-5, rtol=1e-5)


def test_a_walk_through_the_pages_makes_each_change_once():
    pages = ["a", "b", "c", "d", "e"]
    way = ["a", *latency._walk(pages)]
    assert way[-1] == "a"
    changes = list(itertools.pairwise(way))
    assert sorted(changes) == sorted(itertools.permutations(pages, 2))
