"""Tests evaluation: losses, accuracy, induction; the model stays unchanged."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from tests.helpers import tiny_config, tiny_model
from tests.training_plans import model_for
from transformer import TASKS, Corpus, ModelConfig, build_model, evaluate_loss, induction_score
from transformer.data.batches import IGNORED, task_batch
from transformer.data.corpora import CorpusSource
from transformer.data.tasks import Example, Task
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
SPECIAL = ("[pad]", "[start]", "[end]")
TEXT = [0, 1, 2, 3, 4, 5, 4, 3, 2, 1] * 20
CORPUS = Corpus(CorpusSource("small", "A small text", "none", "public domain", 0.9), "abcdefgh hgfedcba " * 100)
every_task = pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)


class TestModes:
    @pytest.mark.parametrize("is_training", [True, False])
    def test_inside_dropout_rests_and_afterwards_all_is_as_it_was_even_after_an_error(self, is_training):
        model = build_model(tiny_config(dropout=0.5), seed=0).train(is_training)
        with pytest.raises(KeyError), evaluating(model):
            assert not any(module.training for module in model.modules())
            assert not torch.is_grad_enabled()
            raise KeyError
        assert all(module.training == is_training for module in model.modules())
        assert torch.is_grad_enabled()

    @pytest.mark.parametrize(
        "measure",
        [
            lambda model: evaluate_loss(model, TEXT),
            lambda model: exact_matches(model, VOWEL, [Example("abc", "e")]),
            lambda model: measure_induction(model, INDUCTION, 2),
            lambda model: measure_reading(model, STORIES, 2),
            lambda model: TaskEvaluator(TaskObjective(VOWEL, 1, 0)).glance(model),
            lambda model: TaskEvaluator(TaskObjective(VOWEL, 1, 0)).validation_loss(model),
            lambda model: TextEvaluator(TextObjective(CORPUS, 8, 4, 0), 8).glance(model),
        ],
    )
    def test_a_measurement_that_fails_leaves_a_model_that_goes_on_learning(self, measure):
        class Failing(nn.Module):
            is_hooked = False

            def __init__(self) -> None:
                super().__init__()
                self.weight = nn.Parameter(torch.zeros(1))
                self.config = tiny_config(architecture="encoder-decoder")

            def forward(self, *inputs, **more):
                raise RuntimeError("out of memory")

            run_with_cache = forward

        model = Failing().train()
        with pytest.raises(RuntimeError, match="out of memory"):
            measure(model)
        assert model.training


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
        expected = total / (length - 1)
        for batch in (1, 2, 32):
            assert evaluate_loss(model, text, batch) == pytest.approx(expected, rel=1e-5)
        assert evaluate_loss(model, torch.tensor(text)) == pytest.approx(expected, rel=1e-5)

    @pytest.mark.parametrize("text", [[], [3]])
    def test_a_text_without_a_next_token_is_refused(self, text):
        with pytest.raises(ValueError, match="at least two tokens"):
            evaluate_loss(tiny_model(), text)

    def test_targets_that_are_ignored_count_for_nothing(self):
        logits = torch.randn(2, 3, 5, generator=torch.Generator().manual_seed(0))
        targets = torch.tensor([[1, 2, IGNORED], [IGNORED, IGNORED, 4]])
        expected = F.cross_entropy(logits[[0, 0, 1], [0, 1, 2]], torch.tensor([1, 2, 4]))
        torch.testing.assert_close(token_loss(logits, targets), expected)


class Oracle(nn.Module):
    """Stands in for a model: it knows the answers, and writes them token by token from what it was given so far."""

    is_hooked = False

    def __init__(self, task: Task, answers: dict[str, str | None]) -> None:
        super().__init__()
        self.task, self.was_training = task, []
        self.answers = {tuple(task.tokenizer.encode(source)): answer for source, answer in answers.items()}
        self.config = ModelConfig(**TaskObjective(task, 1, 0).shape, n_layers=1, n_heads=1, d_model=2)
        self.weight = nn.Parameter(torch.zeros(1))

    def forward(self, *inputs: Tensor, past) -> Tensor:
        self.was_training.append(self.training)
        past.extend(inputs[-1])
        following = [self.next_token(row, past.tokens[i].tolist()) for i, row in enumerate(inputs[0].tolist())]
        return F.one_hot(torch.tensor(following), self.config.vocab_size)[:, None].float()

    def next_token(self, source: list[int], so_far: list[int]) -> int:
        tokenizer = self.task.tokenizer
        pad, start, end = map(tokenizer.special_id, SPECIAL)
        if self.task.architecture == "encoder-decoder":
            read, written = source, so_far[1:]
            assert so_far[0] == start
        else:
            length = so_far.index(tokenizer.encode("?" if self.task is STORIES else "=")[0]) + 1
            read, written = so_far[:length], so_far[length:]
        answer = self.answers[tuple(read)]
        writes = [] if answer is None else [*tokenizer.encode(answer), end]
        return writes[len(written)] if len(written) < len(writes) else pad


TAUGHT = [VOWEL, NUMBERS, SORT, STORIES]
every_taught_task = pytest.mark.parametrize("task", TAUGHT, ids=lambda task: task.name)


class TestAccuracy:
    @every_taught_task
    def test_a_perfect_model_is_right_every_time(self, task):
        examples = [*task.sample(60), *([Example("zyxwvutsrq=", "qrstuvwxyz")] if task is SORT else [])]
        oracle = Oracle(task, {example.source: example.target for example in examples})
        assert translations(oracle, task, examples) == [example.target for example in examples]
        assert exact_matches(oracle, task, examples) == exact_matches(oracle, task, iter(examples)) == 1.0
        assert not any(oracle.was_training) and oracle.training

    @every_taught_task
    def test_another_answer_and_one_without_end_are_wrong(self, task):
        examples = task.sample(60)
        answers = {example.source: example.target for example in examples}
        wrong = {"next-vowel": "b", "number-words": "cero", "sort-letters": "zz", "stories": "map"}[task.name]
        answers |= {examples[3].source: wrong, examples[10].source: "", examples[-1].source: None}
        written = translations(Oracle(task, answers), task, examples)
        assert (written[3], written[10], written[-1]) == (wrong, "", None)
        assert exact_matches(Oracle(task, answers), task, examples) == pytest.approx(57 / 60)


class TestInduction:
    def pattern(self, period: int, pos: int, offset: int) -> Tensor:
        """(pos, pos): all weight of every query from `period` on at the key `offset` before it."""
        pattern = torch.eye(pos)
        for query in range(period, pos):
            pattern[query] = F.one_hot(torch.tensor(query - offset), pos)
        return pattern

    @pytest.mark.parametrize(("period", "pos"), [(6, 12), (6, 11), (6, 20), (2, 3), (32, 63)])
    def test_the_score_is_one_for_a_perfect_head_and_nothing_for_any_other(self, period, pos):
        offsets = [period - 1, period, max(period - 2, 0), 0]
        heads = torch.stack([self.pattern(period, pos, offset) for offset in offsets])
        expected = [float(offset == period - 1) for offset in offsets]
        assert induction_score(heads.expand(3, -1, -1, -1), period).tolist() == expected

    def test_it_is_the_mean_over_texts_and_queries_of_the_second_stretch_on(self):
        pattern = torch.zeros(2, 1, 6, 6)  # a period of 3: the queries 3, 4 and 5 look at the keys 1, 2 and 3
        pattern[0, 0, 3, 1], pattern[0, 0, 4, 2], pattern[1, 0, 5, 3] = 0.5, 0.7, 0.9
        pattern[:, :, :3] = 1.0  # the first stretch doesn't count
        assert induction_score(pattern, 3).tolist() == pytest.approx([2.1 / 6])

    def test_each_loss_belongs_to_one_of_both_stretches(self):
        model, random = model_for(INDUCTION), np.random.default_rng(0)
        found = measure_induction(model, INDUCTION, 3)
        batch = task_batch(INDUCTION, [INDUCTION.repeated(random, found.period) for _ in range(3)])
        count, before = batch.targets.shape[1], found.period - 1
        with torch.no_grad():
            loss = F.cross_entropy(model(*batch.inputs).mT, batch.targets).item()
        assert before * found.first_loss + (count - before) * found.second_loss == pytest.approx(count * loss)


class TestMeasuring:
    @pytest.mark.parametrize("length", [1000, 1003, 1008, 1009])
    def test_with_enough_time_it_is_the_whole_text(self, monkeypatch, length):
        monkeypatch.setattr(evaluation, "GLANCE_TOKENS", 32)
        objective = TextObjective(CORPUS, 8, 4, 0)
        objective.train, objective.validation = objective.train[:length], objective.train[:997]
        model = tiny_model(vocab_size=objective.tokenizer.vocab_size)
        assert evaluator_of(objective, 8).validation_loss(model) == evaluate_loss(model, objective.validation)
        found = TextEvaluator(objective, 8).measure(model, 1e9, lambda: None)
        assert found.validation_loss == pytest.approx(evaluate_loss(model, objective.validation), rel=1e-5)
        assert found.train_loss == pytest.approx(evaluate_loss(model, objective.train), rel=1e-5)
        assert found.measured_on == "all of the part held out, and on all of the part trained on"

    def test_without_it_a_part_is_named_and_evenly_spread(self, monkeypatch):
        monkeypatch.setattr(evaluation, "GLANCE_TOKENS", 8)
        objective = TextObjective(CORPUS, 8, 4, 0)
        measured = []

        def loss(model, piece, batch):
            measured.append(piece)
            return 1.0

        monkeypatch.setattr(evaluation, "evaluate_loss", loss)
        clock = iter(range(10_000))
        monkeypatch.setattr(evaluation.time, "monotonic", lambda: next(clock))
        found = TextEvaluator(objective, 8).measure(None, 9.5, lambda: None)
        assert found.measured_on == (
            "80 of 179 tokens of the part held out, evenly spread, and on "
            "32 of 1,619 tokens of the part trained on, evenly spread"
        )
        starts = [piece.storage_offset() - len(objective.train) for piece in measured[:10]]
        assert max(np.diff([0, *sorted(starts), 180])) <= 40  # from one end to the other
        starts = [piece.storage_offset() for piece in measured[10:]]  # there was no time, but one place tells little
        assert max(np.diff([0, *sorted(starts), 1620])) <= 810

    def test_a_glance_is_of_the_same_windows_every_time_from_all_over_the_text(self, monkeypatch):
        monkeypatch.setattr(evaluation, "GLANCE_TOKENS", 40)
        objective = TextObjective(CORPUS, 8, 4, 0)
        objective.validation = torch.arange(9).repeat_interleave(24)[:209]
        windows = TextEvaluator(objective, 8)._windows
        assert windows.tolist() == [objective.validation[at : at + 9].tolist() for at in (0, 48, 96, 144, 200)]
        model = tiny_model(vocab_size=9)
        monkeypatch.setattr(evaluation, "GLANCE_TOKENS", 10**6)
        whole = TextEvaluator(objective, 8)
        assert whole.glance(model) == pytest.approx(evaluate_loss(model, objective.validation), rel=1e-5)
        objective.validation = objective.validation[:5]  # shorter than a window
        assert TextEvaluator(objective, 8).glance(model) == pytest.approx(evaluate_loss(model, objective.validation))

    @pytest.mark.parametrize(("seconds", "answered"), [(math.inf, 983), (0.0, 200)])
    def test_a_task_is_measured_by_examples_it_never_met_and_answers_as_time_allows(self, seconds, answered):
        model = model_for(VOWEL)
        found = TaskEvaluator(TaskObjective(VOWEL, 8, 3)).measure(model, seconds)
        random = np.random.default_rng(3)
        losses = []
        for examples in (VOWEL.sample(512, seed=1), [VOWEL.draw(random) for _ in range(512)]):
            inputs, targets = task_batch(VOWEL, examples)
            losses.append(token_loss(model(*inputs), targets).item())
        assert [found.validation_loss, found.train_loss] == pytest.approx(losses)
        assert found.accuracy == pytest.approx(exact_matches(model, VOWEL, VOWEL.sample(2000)[:answered]))
        assert found.measured_on == f"512 examples held out, and {answered} written out"

    @every_task
    def test_a_glance_at_a_task_is_on_the_first_of_what_is_held_out(self, task, monkeypatch):
        for name, count in {"GLANCE_EXAMPLES": 8, "EXAMPLES": 20, "HELD_OUT": 30}.items():
            monkeypatch.setattr(evaluation, name, count)
        evaluator, model = evaluator_of(TaskObjective(task, 4, 0), task.longest), model_for(task, dropout=0.5).train()
        for count, measured in ((8, evaluator.glance(model)), (20, evaluator.validation_loss(model))):
            inputs, targets = task_batch(task, task.sample(count, seed=1))
            with evaluating(model):
                assert measured == pytest.approx(token_loss(model(*inputs), targets).item(), rel=1e-5)
        assert model.training
        if not task.ends:  # what has no end has no right answers, but for masks
            found, fills = evaluator.measure(model), task.architecture == "encoder-only"
            assert found.accuracy == (exact_matches(model, task, task.sample(30)) if fills else None)
            glance = exact_matches(model, task, task.sample(8, seed=1)) if fills else None
            assert evaluator.glance_accuracy(model) == glance
            assert found.measured_on == f"20 examples held out{', and 30 filled in' if fills else ''}"

    def test_right_answers_are_counted_lot_by_lot(self, monkeypatch):
        monkeypatch.setattr(evaluation, "ANSWERED_AT_ONCE", 7)
        monkeypatch.setattr(evaluation, "HELD_OUT", 30)
        examples = VOWEL.sample(30)
        answers = {example.source: example.target for example in VOWEL.parts[1]}
        answers |= {example.source: "-" for example in examples[:20:3]}
        evaluator = TaskEvaluator(TaskObjective(VOWEL, 8, 0))
        accuracy, answered = evaluator._answer(Oracle(VOWEL, answers), math.inf, lambda: None)
        assert (accuracy, answered) == (pytest.approx(23 / 30), 30)

    @given(st.integers(1, 9))
    @settings(max_examples=5)
    def test_it_can_be_broken_off(self, after):
        calls = []

        def check():
            calls.append(None)
            if len(calls) == after:
                raise KeyError("enough")

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(evaluation, "GLANCE_TOKENS", 8)
            objective = TextObjective(CORPUS, 8, 4, 0)
            with pytest.raises(KeyError):
                TextEvaluator(objective, 8).measure(tiny_model(vocab_size=9), 1e9, check)
        assert len(calls) == after
