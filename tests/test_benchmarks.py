"""Tests that the benchmarks measure what they say."""

import itertools
import json
import sys

import pytest
import torch
import torch.nn.functional as F

from tests.benchmarks import __main__ as dispatcher
from tests.benchmarks import effects, generation, hooks, inside, latency, load, measuring, visitors
from tests.benchmarks import training as training_benchmark
from tests.helpers import tiny_model, unpadded
from transformer import HookPoint, TrainingConfig, build_model
from transformer.data.corpora import text_corpus
from transformer.training.evaluation import token_loss
from transformer.training.presets import Preset
from transformer.training.quick_presets import QUICK


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


def test_what_is_done_before_each_is_not_timed():
    now = [0.0]
    work, tidy = (lambda seconds=seconds: now.__setitem__(0, now[0] + seconds) for seconds in (1.0, 9.0))
    timings = measuring.alternate({"a": work, "b": work}, 3, clock=lambda: now[0], warm_up=0, before_each=tidy)
    assert timings["a"].seconds == timings["b"].seconds == (1.0, 1.0, 1.0)
    assert now[0] == 60.0


def test_of_the_frames_of_play_the_slow_ones_are_told():
    found = inside.figures_of_frames([120.0] + [30.0] * 4 + [17.0] * 95)
    assert found["play_frames"] == 100 and found["play_frame_ms_median"] == 17.0
    assert found["play_frame_ms_95"] == 17.0 and found["play_frame_ms_worst"] == 120.0
    assert found["play_frames_over_25_ms_percent"] == 5.0


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


def test_both_loops_of_the_throughput_benchmark_train():
    text = torch.arange(4000) % 7  # every token tells the next
    for steps in (training_benchmark._engine_steps(text), training_benchmark._textbook_steps(text)):
        losses = [steps() for _ in range(12)]
        assert losses[-1] < 0.8 * losses[0]


@pytest.fixture
def alternating():
    """A preset that learns in a few steps to tell a from b."""
    return Preset(
        name="tiny",
        title="Tiny",
        summary="",
        shape={"context_length": 4, "n_layers": 1, "n_heads": 1, "d_model": 8},
        training=TrainingConfig(steps=60, learning_rate=3e-2, warmup_steps=1),
        batch=4,
        evaluate_every=10,
        examples=(),
    )


def test_the_time_to_a_loss_ends_with_the_first_validation_that_shows_it(alternating):
    corpus = text_corpus("ab" * 1000, "alternating")
    reached = training_benchmark.train_until(0.3, alternating, corpus)
    assert reached.loss <= 0.3
    assert reached.step % 10 == 0
    assert reached.step < 60
    assert reached.seconds > 0


def test_a_loss_out_of_reach_is_not_said_to_be_reached(alternating):
    reached = training_benchmark.train_until(-1.0, alternating, text_corpus("ab" * 1000, "alternating"))
    assert (reached.step, reached.loss > -1.0) == (60, True)


def test_a_text_that_is_not_here_is_not_fetched(monkeypatch, tmp_path):
    monkeypatch.setattr(training_benchmark, "is_at_hand", lambda name, folder: False)
    monkeypatch.setattr(training_benchmark, "load_corpus", None)
    goal = training_benchmark.GOALS[0]
    assert training_benchmark.seconds_to(goal.loss, QUICK[goal.preset]) is None


def test_the_goals_are_of_presets_that_the_page_offers():
    for goal in training_benchmark.GOALS:
        assert QUICK[goal.preset].corpus
        assert not QUICK[goal.preset].shape.get("dropout")


@pytest.fixture
def tiny_gpt():
    """A model of GPT-2's shape, as the benchmark of writing measures it, but tiny."""
    return tiny_model(context_length=16, positions="learned", activation="gelu_tanh")


@pytest.fixture
def without_peers(monkeypatch):
    """As if neither of the other systems were installed."""
    for name in ("transformers", "transformer_lens"):
        monkeypatch.setitem(sys.modules, name, None)


def test_a_system_that_is_not_installed_is_named_and_the_rest_is_measured(tiny_gpt, without_peers, capsys):
    figures = generation.measure(tiny_gpt, [1, 2, 3], new_tokens=6, rounds=2)
    written = capsys.readouterr().out
    assert [sentence.partition(" was not measured")[0] for sentence in figures["not_measured"]] == [
        "Hugging Face transformers",
        "TransformerLens",
    ]
    assert all(sentence in written and "requirements.txt" in sentence for sentence in figures["not_measured"])
    for mode in ("greedy", "sampled"):
        assert figures[f"{mode}_of_bare"] > 0
        assert figures[f"{mode}_of_bare_target"] == 0.7
        for name in generation.CHANGED:
            assert figures[f"{mode}_{name}_of_unchanged"] > 0
            assert figures[f"{mode}_{name}_of_unchanged_target"] == 0.6
        assert figures[f"{mode}_ours_tokens_per_second"] > 0
    assert not any("hugging_face" in name for name in figures)


def test_what_is_measured_keeps_every_pattern_of_every_token(tiny_gpt):
    steps = generation.ours(tiny_gpt, [1, 2, 3], 6)(generation.MODES["greedy"])
    assert [[tuple(pattern.shape) for pattern in step.cache.values()] for step in steps] == [
        [(1, 2, 3, 3)] * 2,
        *([(1, 2, 1, length)] * 2 for length in range(4, 9)),
    ]


def test_the_bare_passes_compute_each_token_of_the_text_once(tiny_gpt):
    lengths = []
    tiny_gpt.hook_embed.register_forward_hook(lambda hook, _, x: lengths.append(x.shape[1]))
    generation.bare(tiny_gpt, [1, 2, 3], [4, 5, 6, 7])()
    assert lengths == [3, 1, 1, 1]


def test_hugging_faces_model_with_our_weights_has_our_logits(tiny_gpt):
    pytest.importorskip("transformers")
    tokens = unpadded(tiny_gpt.config)
    torch.testing.assert_close(generation.gpt2(tiny_gpt)(tokens).logits, tiny_gpt(tokens), atol=1e-5, rtol=1e-5)


def test_all_parts_are_silenced_at_once_as_one_by_one():
    model = tiny_model()
    figures = effects.measure(model, [1, 2, 3, 4], [1, 2, 3, 9], rounds=2)
    assert (figures["parts"], figures["tokens"]) == (model.config.n_layers * (model.config.n_heads + 1), 4)
    assert all(figures[f"{name}_seconds"] > 0 for name in ("silencing", "one_by_one", "patching"))


def test_a_walk_through_the_pages_makes_each_change_once():
    pages = ["a", "b", "c", "d", "e"]
    way = ["a", *latency._walk(pages)]
    assert way[-1] == "a"
    changes = list(itertools.pairwise(way))
    assert sorted(changes) == sorted(itertools.permutations(pages, 2))


@pytest.mark.parametrize(("percent", "expected"), [(50, 3), (95, 5), (100, 5), (20, 1), (21, 2)])
def test_a_percentile_is_one_of_the_values(percent, expected):
    assert load.percentile([5, 1, 4, 2, 3], percent) == expected


def test_a_text_is_seen_at_its_pace_or_as_it_comes():
    assert visitors.seen_at([1.0, 1.1, 1.2, 5.0, 5.1], pace=2) == [1.0, 1.5, 2.0, 5.0, 5.5]
