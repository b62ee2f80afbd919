"""What a training on a page is to do is checked before it begins; what is looked at on the way is what is there."""

import dataclasses
import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers import tiny_model
from tests.test_training_jobs import CORPUS, task_plan, text_plan
from transformer import TASKS, TrainingConfig, build_model, evaluate_loss
from transformer.training import measures as training_measures
from transformer.training import plan as training_plan
from transformer.training import runner as training_work
from transformer.training.evaluation import exact_matches
from transformer.training.measures import TaskMeasure, TextMeasure
from transformer.training.objectives import TaskObjective, TextObjective
from transformer.training.plan import attention_patterns, sample_text, snapshot_steps
from transformer.training.runner import Progress, Work

VOWEL = TASKS["next-vowel"]


class TestPlan:
    @pytest.mark.parametrize(
        ("fields", "message"),
        [
            ({"config": dataclasses.replace(text_plan().config, vocab_size=99)}, "vocab_size is 99, but .* needs 9"),
            ({"config": dataclasses.replace(text_plan().config, dropout=0.1)}, "dropout is 0.1; .* need it to be 0"),
            ({"snapshots": 0}, "snapshots is 0; it must be from 1 to 60"),
            ({"snapshots": 61}, "snapshots is 61"),
            ({"evaluate_every": 0}, "evaluate_every is 0; it must be at least 1"),
            ({"probe_tokens": (0, 9)}, "probe_tokens has ids outside the vocabulary of 9"),
            ({"sample_prompt": (-1,)}, "sample_prompt has ids outside"),
            ({"probe_tokens": (0,) * 9}, "probe_tokens has 9 tokens; the model reads 8"),
        ],
    )
    def test_what_does_not_fit_is_refused(self, fields, message):
        with pytest.raises(ValueError, match=message):
            text_plan(**fields)

    def test_an_encoder_decoder_has_to_read_something(self):
        with pytest.raises(ValueError, match="probe_source is empty"):
            dataclasses.replace(task_plan("next-vowel"), probe_source=())


class TestWhenSnapshotsAreTaken:
    @given(st.integers(1, 5000), st.integers(1, 60))
    def test_from_the_first_step_to_the_last_and_ever_further_apart(self, steps, count):
        taken = snapshot_steps(text_plan(steps, snapshots=count))
        assert taken[0] == 0 and taken[-1] == steps
        assert list(taken) == sorted(set(taken))
        assert len(taken) == min(max(count, 2), steps + 1)
        apart = np.diff(taken)
        assert all(later >= earlier - 1 for earlier, later in itertools.pairwise(apart))  # up to rounding

    def test_much_happens_early(self):
        assert snapshot_steps(text_plan(1500, snapshots=40))[:9] == (0, 1, 2, 4, 8, 16, 32, 64, 109)

    def test_their_patterns_stay_within_bounds(self, monkeypatch):
        plan = text_plan(1000, snapshots=60)
        one = sum(found.nbytes for found in attention_patterns(build_model(plan.config, seed=0), plan).values())
        assert one == training_plan._pattern_bytes(plan)
        monkeypatch.setattr(training_plan, "LARGEST_SNAPSHOTS", 10 * one)
        assert len(snapshot_steps(plan)) == 10

    def test_of_an_encoder_decoder_too(self):
        plan = task_plan("next-vowel", n_encoder_layers=1)
        found = attention_patterns(build_model(plan.config, seed=0), plan)
        assert sum(patterns.nbytes for patterns in found.values()) == training_plan._pattern_bytes(plan)

    def test_those_that_would_take_too_much_time_are_left_out(self, monkeypatch):
        plan = text_plan(20, snapshots=12)
        for share, expected in ((0.0, 6), (math.inf, 12)):
            monkeypatch.setattr(training_work, "LOOKING_SHARE", share)
            work = Work(plan, Progress(20))
            work.go(lambda: True, lambda: True)
            steps = [snapshot.step for snapshot in work.progress.snapshots]
            assert len(steps) == expected + (share == 0.0)  # the last one is always taken
            assert (steps[0], steps[-1]) == (0, 20)

    def test_nobody_looks_when_nobody_wants_to(self):
        work = Work(text_plan(10), Progress(10))
        work.go(lambda: False, lambda: True)
        assert [snapshot.step for snapshot in work.progress.snapshots] == [0]


class TestPatterns:
    def test_they_are_those_of_the_model(self):
        plan = text_plan()
        model = build_model(plan.config, seed=0)
        _, cache = model.run_with_cache(torch.tensor([plan.probe_tokens]))
        found = attention_patterns(model, plan)["self"]
        for layer in range(2):
            expected = cache["pattern", layer][0].detach().numpy()
            np.testing.assert_allclose(found[layer].astype(float), expected, atol=1e-3)

    def test_without_a_probe_or_an_attention_there_are_none(self):
        plan = text_plan(probe_tokens=())
        assert attention_patterns(build_model(plan.config, seed=0), plan) == {}
        plan = text_plan(config=dataclasses.replace(plan.config, n_layers=0))
        assert attention_patterns(build_model(plan.config, seed=0), plan) == {}


class TestSamples:
    def test_a_text_goes_on_always_in_the_same_way(self):
        plan = text_plan(sample_tokens=20)
        model = build_model(plan.config, seed=0)
        text = sample_text(model, plan, 1e9)
        assert len(text) == 20 and set(text) <= set(CORPUS.text)
        assert sample_text(model, plan, 1e9) == text != sample_text(build_model(plan.config, seed=1), plan, 1e9)
        assert sample_text(model, dataclasses.replace(plan, sample_prompt=()), 1e9) == ""

    def test_without_time_it_is_short_but_not_nothing(self):
        plan = text_plan(sample_tokens=100)
        model = build_model(plan.config, seed=0)
        assert len(sample_text(model, plan, 0.0)) == training_plan.SHORTEST_SAMPLE
        assert len(sample_text(model, plan, 1e9)) == 100

    @pytest.mark.parametrize("name", ["next-vowel", "sort-letters"])
    def test_a_task_is_answered_up_to_its_end(self, name):
        """The sample is what measuring would count as right or wrong."""
        plan = task_plan(name)
        model = build_model(plan.config, seed=0)
        end = plan.objective.tokenizer.special_id("[end]")
        with torch.no_grad():  # a model that writes the same token twice, then ends
            model.unembed.weight.zero_()
        assert len(sample_text(model, plan, 1e9)) == plan.config.context_length - len(plan.sample_prompt) + 1
        tied = model.unembed.weight
        with torch.no_grad():
            tied[end] = 0.0
            model.unembed.bias = torch.nn.Parameter(torch.zeros(plan.config.vocab_size))
            model.unembed.bias[end] = 9.0
        assert sample_text(model, plan, 1e9) == ""


class TestMeasuring:
    @pytest.mark.parametrize("length", [1000, 1003, 1008, 1009])
    def test_with_enough_time_it_is_the_whole_text(self, monkeypatch, length):
        monkeypatch.setattr(training_measures, "GLANCE_TOKENS", 32)
        objective = TextObjective(CORPUS, 8, 4, 0)
        objective.train, objective.validation = objective.train[:length], objective.train[:997]
        model = tiny_model(vocab_size=objective.tokenizer.vocab_size)
        found = TextMeasure(objective, 8).measure(model, 1e9, lambda: None)
        assert found.validation_loss == pytest.approx(evaluate_loss(model, objective.validation), rel=1e-5)
        assert found.train_loss == pytest.approx(evaluate_loss(model, objective.train), rel=1e-5)
        assert found.measured_on == "all of the part held out, and on all of the part trained on"

    def test_without_it_a_part_is_named_and_evenly_spread(self, monkeypatch):
        monkeypatch.setattr(training_measures, "GLANCE_TOKENS", 8)
        objective = TextObjective(CORPUS, 8, 4, 0)
        measured = []

        def loss(model, piece, batch):
            measured.append(piece)
            return 1.0

        monkeypatch.setattr(training_measures, "evaluate_loss", loss)
        clock = iter(range(10_000))
        monkeypatch.setattr(training_measures.time, "monotonic", lambda: next(clock))
        found = TextMeasure(objective, 8).measure(None, 9.5, lambda: None)
        assert found.measured_on == (
            "80 of 179 tokens of the part held out, evenly spread, and on "
            "16 of 1,619 tokens of the part trained on, evenly spread"
        )
        starts = sorted(piece.storage_offset() - len(objective.train) for piece in measured[:10])
        assert max(np.diff(starts)) <= 40  # of 180 in ten

    def test_a_glance_is_of_the_same_windows_every_time_from_all_over_the_text(self, monkeypatch):
        monkeypatch.setattr(training_measures, "GLANCE_TOKENS", 40)
        objective = TextObjective(CORPUS, 8, 4, 0)
        objective.validation = torch.arange(9).repeat_interleave(24)[:209]
        windows = TextMeasure(objective, 8)._windows
        assert windows.tolist() == [objective.validation[at : at + 9].tolist() for at in (0, 48, 96, 144, 200)]
        model = tiny_model(vocab_size=9)
        monkeypatch.setattr(training_measures, "GLANCE_TOKENS", 10**6)
        whole = TextMeasure(objective, 8)
        assert whole.glance(model) == pytest.approx(evaluate_loss(model, objective.validation), rel=1e-5)
        objective.validation = objective.validation[:5]  # shorter than a window
        assert TextMeasure(objective, 8).glance(model) == pytest.approx(evaluate_loss(model, objective.validation))

    def test_a_task_is_measured_as_its_objective_does(self):
        objective = TaskObjective(VOWEL, 8, 0)
        model = tiny_model(vocab_size=objective.tokenizer.vocab_size, context_length=3, architecture="encoder-decoder")
        found = TaskMeasure(objective).measure(model, 5, lambda: None)
        expected = objective.scores(model)
        assert found.train_loss == pytest.approx(expected.train_loss)
        assert found.validation_loss == pytest.approx(expected.validation_loss)
        assert found.accuracy == exact_matches(model, VOWEL, VOWEL.sample(200))
        assert found.measured_on == "512 examples held out, 200 of them written out"

    @given(st.integers(1, 9))
    @settings(max_examples=5)
    def test_it_can_be_broken_off(self, after):
        calls = []

        def check():
            calls.append(None)
            if len(calls) == after:
                raise KeyError("enough")

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(training_measures, "GLANCE_TOKENS", 8)
            objective = TextObjective(CORPUS, 8, 4, 0)
            with pytest.raises(KeyError):
                TextMeasure(objective, 8).measure(tiny_model(vocab_size=9), 1e9, check)
        assert len(calls) == after


def test_the_time_left_is_that_of_the_last_while(monkeypatch):
    """Ten steps in a second, then five in one: of the last ten seconds, pauses aside."""
    now = [100.0]
    monkeypatch.setattr(training_work.time, "perf_counter", lambda: now[0])
    clock = training_work._Clock()
    assert (clock.tokens_per_second, clock.seconds_left(1000)) == (0, None)
    clock.start()
    for step in range(1, 101):
        now[0] += 0.1
        clock.step_done(step, 30)
    assert clock.tokens_per_second == pytest.approx(300)
    assert clock.seconds_left(1000) == pytest.approx(90)
    with clock.stopped():
        now[0] += 1000
    for step in range(101, 201):
        now[0] += 0.2
        clock.step_done(step, 30)
    assert clock.tokens_per_second == pytest.approx(150)
    assert clock.seconds_left(1000) == pytest.approx(160)
    assert clock.seconds == pytest.approx(30)
    assert clock.seconds_left(200) == 0


def test_a_card_holds_no_number_that_is_none():
    plan = text_plan(5)
    work = Work(dataclasses.replace(plan, training=TrainingConfig(steps=5)), Progress(5))
    work.go(lambda: True, lambda: True)
    with torch.no_grad():
        for weight in work.run.model.parameters():
            weight.mul_(1e30)  # finite, but the loss is not
    card = work.checkpoint("", lambda: None).card
    assert card.validation_loss is None or math.isfinite(card.validation_loss)
