"""Tests evaluation: losses, accuracy, induction; the model stays unchanged."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers import tiny_model
from tests.training_plans import CORPUS, model_for
from transformer import TASKS, evaluate_loss, induction_score
from transformer.data.batches import task_batch
from transformer.data.tasks import Example
from transformer.training import evaluation
from transformer.training.evaluation import (
    TaskEvaluator,
    TextEvaluator,
    evaluating,
    evaluator_of,
    exact_matches,
    measure_induction,
    measure_reading,
    token_loss,
    translations,
)
from transformer.training.objectives import TaskObjective, TextObjective

VOWEL, NUMBERS, SORT, INDUCTION, STORIES, _ = TASKS.values()


def text_objective(train: int | None = None, validation: int | None = None) -> TextObjective:
    objective = TextObjective(CORPUS, 8, 4, 0)
    objective.train, objective.validation = objective.train[:train], objective.validation[:validation]
    return objective


@pytest.mark.parametrize(
    ("model", "measure"),
    [
        (tiny_model(), lambda model: evaluate_loss(model, [1, 2, 3])),
        (tiny_model(vocab_size=9), lambda model: TextEvaluator(text_objective(), 8).glance(model)),
        (model_for(NUMBERS), lambda model: exact_matches(model, NUMBERS, [Example("one", "uno")])),
        (model_for(INDUCTION), lambda model: measure_induction(model, INDUCTION, 2)),
        (model_for(STORIES), lambda model: measure_reading(model, STORIES, 2)),
        (model_for(VOWEL), lambda model: TaskEvaluator(TaskObjective(VOWEL, 1, 0)).glance(model)),
    ],
)
def test_a_measurement_that_fails_leaves_a_model_that_goes_on_learning(model, measure):
    def fail(*call):
        raise MemoryError

    model.train().unembed.register_forward_hook(fail)
    with pytest.raises(MemoryError):
        measure(model)
    assert all(module.training for module in model.modules())


class TestLoss:
    @pytest.mark.parametrize("length", [2, 5, 8, 9, 10, 16, 17, 30])
    def test_it_is_the_mean_over_every_token_but_the_first(self, length):
        """Also those of the last window, which may be shorter."""
        model = tiny_model()
        text = torch.randint(11, (length,), generator=torch.Generator().manual_seed(0)).tolist()
        total = 0.0
        for place in range(1, length):
            begin = (place - 1) // 8 * 8
            logits = model(torch.tensor([text[begin:place]]))[0, -1]
            total -= logits.double().log_softmax(-1)[text[place]].item()
        for batch in (1, 2, None):
            assert evaluate_loss(model, text, batch) == pytest.approx(total / (length - 1), rel=1e-5)

    @pytest.mark.parametrize("text", [[], [3]])
    def test_a_text_without_a_next_token_is_refused(self, text):
        with pytest.raises(ValueError, match="at least two tokens"):
            evaluate_loss(tiny_model(), text)


@pytest.mark.parametrize(("task", "wrong"), [(VOWEL, "b"), (NUMBERS, "cero"), (SORT, "zz"), (STORIES, "map")])
def test_what_is_written_exactly_counts_and_another_answer_or_one_without_end_does_not(task, wrong, monkeypatch):
    encode, (pad, start, end) = task.tokenizer.encode, map(task.tokenizer.special_id, ("[pad]", "[start]", "[end]"))
    examples, model = task.sample(60), model_for(task).train()
    expected = [wrong if at == 3 else "" if at == 10 else example.target for at, example in enumerate(examples)]
    expected[-1] = None
    answers = {tuple(encode(each.source)): answer for each, answer in zip(examples, expected, strict=True)}

    def write(model, begun, most, source=None, end_token=None):
        assert not model.training and end_token == end
        assert source is None or begun.tolist() == [[start]] * len(source)
        found = [answers[tuple(row)] for row in (begun if source is None else source).tolist()]
        ids = [[] if answer is None else [*encode(answer), end] for answer in found]
        return torch.tensor([[*each, *[pad] * (most - len(each))] for each in ids])

    monkeypatch.setattr(evaluation, "write_greedily", write)
    assert translations(model, task, examples) == expected
    assert exact_matches(model, task, iter(examples)) == pytest.approx(57 / 60) and model.training
    for name, count in {"HELD_OUT": 60, "ANSWERED_AT_ONCE": 7}.items():  # lot by lot
        monkeypatch.setattr(evaluation, name, count)
    found = TaskEvaluator(TaskObjective(task, 8, 0)).measure(model)
    assert found.accuracy == pytest.approx(57 / 60) and found.measured_on.endswith("and 60 written out")


@given(st.integers(2, 6), st.integers(0, 9), st.integers(0, 99))
def test_the_induction_score_is_the_weight_on_what_followed_the_earlier_occurrence(period, more, seed):
    """On average over texts, and over queries of the second stretch on."""
    pos = period + 1 + more
    patterns = torch.rand(2, 3, pos, pos, generator=torch.Generator().manual_seed(seed))
    weights = [patterns[:, :, query, query - period + 1] for query in range(period, pos)]
    assert induction_score(patterns, period).tolist() == pytest.approx(torch.stack(weights).mean((0, 1)).tolist())


def test_each_loss_of_repeated_stretches_belongs_to_one_of_both():
    model, random = model_for(INDUCTION), np.random.default_rng(0)
    found = measure_induction(model, INDUCTION, 3)
    batch = task_batch(INDUCTION, [INDUCTION.repeated(random, found.period) for _ in range(3)])
    with torch.no_grad():
        losses = F.cross_entropy(model(*batch.inputs).mT, batch.targets, reduction="none").mean(0)
    expected = losses[: found.period - 1].mean(), losses[found.period - 1 :].mean()
    assert (found.first_loss, found.second_loss) == pytest.approx(tuple(map(float, expected)))


class TestATextIsMeasured:
    @pytest.mark.parametrize("length", [993, 1000, 1008, 1009])
    def test_whole_with_enough_time(self, monkeypatch, length):
        monkeypatch.setattr(evaluation, "GLANCE_TOKENS", 32)
        objective, model, checks = text_objective(length), tiny_model(vocab_size=9), []
        found = TextEvaluator(objective, 8).measure(model, 1e9, lambda: checks.append(None))
        losses = [evaluate_loss(model, text) for text in (objective.validation, objective.train)]
        assert [found.validation_loss, found.train_loss] == pytest.approx(losses, rel=1e-5)
        assert evaluator_of(objective, 8).validation_loss(model) == losses[0]
        assert found.measured_on == "all of the part held out, and on all of the part trained on"
        for after in (1, len(checks)):
            left = iter(range(after - 1))
            with pytest.raises(StopIteration):  # it can be broken off
                TextEvaluator(objective, 8).measure(model, 1e9, lambda left=left: next(left))

    def test_in_parts_that_are_evenly_spread_without_it(self, monkeypatch):
        monkeypatch.setattr(evaluation, "GLANCE_TOKENS", 8)
        objective, measured, clock = text_objective(), [], iter(range(10_000))
        monkeypatch.setattr(evaluation, "evaluate_loss", lambda model, piece, batch: measured.append(piece) or 1.0)
        monkeypatch.setattr(evaluation.time, "monotonic", lambda: next(clock))
        found = TextEvaluator(objective, 8).measure(None, 9.5, lambda: None)
        assert found.measured_on == (
            "80 of 179 tokens of the part held out, evenly spread, and on "
            "32 of 1,619 tokens of the part trained on, evenly spread"
        )
        starts = [piece.storage_offset() for piece in measured[:10]]
        assert max(np.diff([0, *sorted(starts), 180])) <= 40  # from one end to the other
        starts = [piece.storage_offset() for piece in measured[10:]]  # there was no time, but one place tells little
        assert max(np.diff([0, *sorted(starts), 1620])) <= 810

    def test_at_a_glance_on_the_same_windows_every_time_from_all_over_it(self, monkeypatch):
        monkeypatch.setattr(evaluation, "GLANCE_TOKENS", 40)
        objective, model = text_objective(), tiny_model(vocab_size=9)
        objective.validation = torch.arange(9).repeat_interleave(24)[:209]
        few = [objective.validation[at : at + 9] for at in (0, 48, 96, 144, 200)]
        expected = np.mean([evaluate_loss(model, window) for window in few])
        assert TextEvaluator(objective, 8).glance(model) == pytest.approx(expected, rel=1e-5)
        for count in (209, 5):  # and all of it, where it is no longer than that, or shorter than a window
            monkeypatch.setattr(evaluation, "GLANCE_TOKENS", 10**6)
            objective.validation = objective.validation[:count]
            expected = evaluate_loss(model, objective.validation)
            assert TextEvaluator(objective, 8).glance(model) == pytest.approx(expected, rel=1e-5)


class TestATaskIsMeasured:
    @pytest.mark.parametrize(("seconds", "answered"), [(math.inf, 983), (0.0, 200)])
    def test_by_examples_it_never_met_and_answers_as_time_allows(self, seconds, answered):
        model, random = model_for(VOWEL), np.random.default_rng(3)
        found = TaskEvaluator(TaskObjective(VOWEL, 8, 3)).measure(model, seconds)
        losses = []
        for examples in (VOWEL.sample(512, seed=1), [VOWEL.draw(random) for _ in range(512)]):
            inputs, targets = task_batch(VOWEL, examples)
            losses.append(token_loss(model(*inputs), targets).item())
        assert [found.validation_loss, found.train_loss] == pytest.approx(losses)
        assert found.accuracy == pytest.approx(exact_matches(model, VOWEL, VOWEL.sample(2000)[:answered]))
        assert found.measured_on == f"512 examples held out, and {answered} written out"

    @pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
    def test_at_a_glance_on_the_first_of_what_is_held_out(self, task, monkeypatch):
        for name, count in {"GLANCE_EXAMPLES": 8, "EXAMPLES": 20, "HELD_OUT": 30}.items():
            monkeypatch.setattr(evaluation, name, count)
        evaluator, model = evaluator_of(TaskObjective(task, 4, 0), task.longest), model_for(task, dropout=0.5).train()
        for count, measured in ((8, evaluator.glance(model)), (20, evaluator.validation_loss(model))):
            inputs, targets = task_batch(task, task.sample(count, seed=1))
            with evaluating(model):
                assert measured == pytest.approx(token_loss(model(*inputs), targets).item(), rel=1e-5)
        assert model.training
        fills = task.architecture == "encoder-only"
        glance = exact_matches(model, task, task.sample(8, seed=1)) if fills else None
        assert evaluator.glance_accuracy(model) == glance
        found = evaluator.measure(model)  # what has no end has no right answers, but for masks
        answers = "and 30 filled in" if fills else "and 30 written out" if task.ends else ""
        assert found.accuracy == (pytest.approx(exact_matches(model, task, task.sample(30))) if answers else None)
        assert found.measured_on == ", ".join(filter(None, ["20 examples held out", answers]))
