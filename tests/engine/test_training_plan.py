"""Tests training plans, and the snapshots that they ask for."""

import dataclasses
import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.training_plans import CORPUS, task_plan, text_plan
from transformer import TASKS, Sampling, build_model
from transformer.training import snapshots as training_snapshots
from transformer.training import trainer as training_runner
from transformer.training.snapshots import attention_patterns, sample_text, snapshot_steps
from transformer.training.trainer import Trainer


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"config": dataclasses.replace(text_plan().config, vocab_size=99)}, "vocab_size is 99, but .* needs 9"),
        *(({"snapshots": count}, f"snapshots is {count}; it must be from 0 to 60") for count in (-1, 61)),
        ({"evaluate_every": 0}, "evaluate_every is 0; it must be at least 1"),
        ({"probe_tokens": (0, 9)}, "probe_tokens has ids outside the vocabulary of 9"),
        ({"sample_prompt": (-1,)}, "sample_prompt has ids outside"),
        ({"probe_tokens": (0,) * 9}, "probe_tokens has 9 tokens; the model reads 8"),
    ],
)
def test_what_does_not_fit_is_refused(fields, message):
    assert text_plan(snapshots=0, evaluate_every=1).evaluate_every == 1
    with pytest.raises(ValueError, match=message):
        text_plan(**fields)
    with pytest.raises(ValueError, match="probe_source is empty"):
        dataclasses.replace(task_plan("next-vowel"), probe_source=())


@given(st.integers(1, 5000), st.integers(1, 60))
def test_snapshots_are_taken_from_the_first_step_to_the_last_and_ever_further_apart(steps, count):
    taken = snapshot_steps(text_plan(steps, snapshots=count))
    assert taken[0] == 0 and taken[-1] == steps
    assert list(taken) == sorted(set(taken))
    assert len(taken) == min(max(count, 2), steps + 1)
    apart = np.diff(taken)
    assert all(later >= earlier - 1 for earlier, later in itertools.pairwise(apart))  # up to rounding
    assert snapshot_steps(text_plan(1500, snapshots=40))[:9] == (0, 1, 2, 4, 8, 16, 32, 64, 109)


@pytest.mark.parametrize("plan", [text_plan(1000, snapshots=60), task_plan("next-vowel", n_encoder_layers=1)])
def test_their_patterns_are_the_model_s_and_stay_within_bounds(monkeypatch, plan):
    model = build_model(plan.config, seed=0)
    found = attention_patterns(model, plan)
    one = sum(patterns.nbytes for patterns in found.values())
    monkeypatch.setattr(training_snapshots, "LARGEST_SNAPSHOTS", 5 * one)
    assert len(snapshot_steps(plan)) == min(5, plan.snapshots)
    if plan.snapshots == 60:
        _, cache = model.run_with_cache(torch.tensor([plan.probe_tokens]))
        for layer in range(2):
            expected = cache["pattern", layer][0].detach().numpy()
            np.testing.assert_allclose(found["self"][layer].astype(float), expected, atol=1e-3)
    for without in ({"probe_tokens": ()}, {"config": dataclasses.replace(text_plan().config, n_layers=0)}):
        bare = text_plan(**without)  # without a probe or an attention there are none
        assert attention_patterns(build_model(bare.config, seed=0), bare) == {}


def test_those_that_would_take_too_much_time_are_left_out(monkeypatch):
    plan = text_plan(20, snapshots=12)
    trainer = Trainer(plan)
    trainer.go(lambda: False, lambda: True)
    assert [snapshot.step for snapshot in trainer.progress.snapshots] == [0]  # nobody looks when nobody wants to
    for share, expected in ((0.0, 7), (math.inf, 12)):  # the last one is always taken
        monkeypatch.setattr(training_runner, "LOOKING_SHARE", share)
        trainer = Trainer(plan)
        trainer.go(lambda: True, lambda: True)
        steps = [snapshot.step for snapshot in trainer.progress.snapshots]
        assert (len(steps), steps[0], steps[-1]) == (expected, 0, 20)
        validated = [step for step, _ in trainer.progress.validation_losses]
        assert validated == sorted(set(validated))  # none is taken twice


def test_the_last_sample_has_time_to_be_long_others_a_share_of_what_went_by(monkeypatch):
    budgets = []
    monkeypatch.setattr(training_runner, "sample_text", lambda model, plan, seconds: budgets.append(seconds) or "")
    trainer = Trainer(text_plan(6, snapshots=60))
    trainer.go()
    assert len(budgets) == 7 and budgets[-1] == training_runner.LAST_WRITING_SECONDS
    assert 0 <= max(budgets[:-1]) < 0.1 * trainer.progress.seconds + 1e-3


class TestSamples:
    def test_a_text_goes_on_always_in_the_same_way_and_without_time_is_short_but_not_nothing(self):
        plan = text_plan(sample_tokens=100)
        model = build_model(plan.config, seed=0)
        text = sample_text(model, plan, 1e9)
        assert len(text) == 100 and set(text) <= set(CORPUS.text)
        assert sample_text(model, plan, 1e9) == text != sample_text(build_model(plan.config, seed=1), plan, 1e9)
        assert len(sample_text(model, plan, 0.0)) == training_snapshots.SHORTEST_SAMPLE
        assert sample_text(model, dataclasses.replace(plan, sample_prompt=()), 1e9) == ""

    def test_a_text_is_drawn_at_its_temperature_and_a_task_greedily_up_to_its_end(self, monkeypatch):
        asked, end = [], TASKS["sort-letters"].tokenizer.special_id("[end]")

        def generate(model, prompt, **options):
            asked.append((options["sampling"], options["stop_tokens"], options["max_new_tokens"]))
            return iter(())

        monkeypatch.setattr(training_snapshots, "generate", generate)
        for plan in (text_plan(seed=3, sample_tokens=100), task_plan("sort-letters"), task_plan("induction")):
            sample_text(build_model(plan.config, seed=0), plan, 1.0)
        room = TASKS["sort-letters"].longest - len("cab=") + 1
        greedy = Sampling(temperature=0)
        assert asked[:2] == [(Sampling(temperature=0.8, seed=3), (), 100), (greedy, (end,), room)]
        assert asked[2] == (greedy, (), TASKS["induction"].longest - len("abab") + 1)

    def test_an_encoder_fills_the_masks(self):
        plan = task_plan("masked-stories")
        model, tokenizer = build_model(plan.config, seed=0), plan.objective.tokenizer
        with torch.no_grad():
            model.unembed.bias = torch.nn.Parameter(torch.zeros(plan.config.vocab_size))
            model.unembed.bias[tokenizer.encode("ball")] = 99.0
        assert sample_text(model, plan, 0.0) == "Mary took the ball. Who has the ball? Mary"
        assert attention_patterns(model, plan)["self"].shape == (2, 2, 11, 11)

    @pytest.mark.parametrize("name", ["next-vowel", "sort-letters"])
    def test_a_task_is_answered_up_to_its_end(self, name):
        """The sample is what measuring would count as right or wrong."""
        plan = task_plan(name)
        model, end = build_model(plan.config, seed=0), plan.objective.tokenizer.special_id("[end]")
        with torch.no_grad():
            model.unembed.weight.zero_()
            assert len(sample_text(model, plan, 1e9)) == plan.config.context_length - len(plan.sample_prompt) + 1
            model.unembed.bias = torch.nn.Parameter(torch.zeros(plan.config.vocab_size))
            model.unembed.bias[end] = 9.0
        assert sample_text(model, plan, 1e9) == ""
