"""Objectives: what a batch holds, what measures a model, and the presets that learn them."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.helpers import tiny_config, tiny_model
from transformer import (
    TASKS,
    ActivationCache,
    Batch,
    Corpus,
    ModelConfig,
    TextBatches,
    build_model,
    evaluate_loss,
    induction_score,
)
from transformer.data.batches import IGNORED, task_batch
from transformer.data.corpora import CorpusSource
from transformer.data.tasks import Example, Task
from transformer.training.evaluation import exact_matches, measure_induction, token_loss, translations
from transformer.training.objectives import TaskObjective, TextObjective

VOWEL, NUMBERS, SORT, INDUCTION = TASKS.values()
SPECIAL = ("[pad]", "[start]", "[end]")
every_task = pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)


def labels(task: Task, ids: Tensor) -> list[list[str]]:
    """What a batch says, `–` where nothing is asked for."""
    return [
        ["–" if token == IGNORED else task.tokenizer.label(token) for token in row] for row in ids.tolist()
    ]


def model_for(task: Task, **fields) -> nn.Module:
    shape = TaskObjective(task, 1, 0).shape
    return tiny_model(tiny_config(**{**shape, "n_layers": 1, **fields}))


class TestBatches:
    def test_an_encoder_decoder_reads_the_source_and_is_asked_for_the_target(self):
        batch = task_batch(VOWEL, [Example("abc", "e")])
        assert [labels(VOWEL, part) for part in batch.inputs] == [[["a", "b", "c"]], [["[start]", "e"]]]
        assert labels(VOWEL, batch.targets) == [["e", "[end]"]]

    def test_a_decoder_alone_is_asked_from_the_end_of_the_source_on(self):
        (read,), asked = task_batch(SORT, [Example("ca=", "ac")])
        assert labels(SORT, read) == [["c", "a", "=", "a", "c"]]
        assert labels(SORT, asked) == [["–", "–", "a", "c", "[end]"]]

    def test_a_task_without_an_end_asks_for_none(self):
        (read,), asked = task_batch(INDUCTION, [Example("x", "yxy")])
        assert labels(INDUCTION, read) == [["x", "y", "x"]]
        assert labels(INDUCTION, asked) == [["y", "x", "y"]]

    def test_unequal_lengths_are_filled_up_and_nothing_is_asked_for_there(self):
        (read,), asked = task_batch(SORT, [Example("ba=", "ab"), Example("c=", "c")])
        assert labels(SORT, read) == [["b", "a", "=", "a", "b"], ["c", "=", "c", "[pad]", "[pad]"]]
        assert labels(SORT, asked) == [["–", "–", "a", "b", "[end]"], ["–", "c", "[end]", "–", "–"]]
        numbers = [Example("thirty-one", "treinta y uno"), Example("two", "dos")]
        (source, target), asked = task_batch(NUMBERS, numbers)
        assert labels(NUMBERS, source) == [["thirty", "one"], ["two", "[pad]"]]
        assert labels(NUMBERS, target) == [
            ["[start]", "treinta", "y", "uno"],
            ["[start]", "dos", "[pad]", "[pad]"],
        ]
        assert labels(NUMBERS, asked) == [["treinta", "y", "uno", "[end]"], ["dos", "[end]", "–", "–"]]

    @every_task
    def test_the_loss_of_a_batch_is_that_of_its_examples_token_by_token(self, task):
        """Padding neither counts nor changes what counts."""
        model = model_for(task)
        random = np.random.default_rng(0)
        examples = [task.draw(random) for _ in range(6)]
        total, count = 0.0, 0
        for example in examples:
            inputs, targets = task_batch(task, [example])
            asked = int((targets != IGNORED).sum())
            assert asked == len(task.tokenizer.encode(example.target)) + task.ends
            total += token_loss(model(*inputs), targets).item() * asked
            count += asked
        inputs, targets = task_batch(task, examples)
        assert token_loss(model(*inputs), targets).item() == pytest.approx(total / count, abs=1e-5)


class Oracle(nn.Module):
    """Stands in for a model: it knows the answers, and writes them token by token from what it was given so far."""

    def __init__(self, task: Task, answers: dict[str, str | None]) -> None:
        super().__init__()
        self.task, self.was_training = task, []
        self.answers = {tuple(task.tokenizer.encode(source)): answer for source, answer in answers.items()}
        self.config = ModelConfig(**TaskObjective(task, 1, 0).shape, n_layers=1, n_heads=1, d_model=2)
        self.weight = nn.Parameter(torch.zeros(1))

    def forward(self, *inputs: Tensor, past) -> Tensor:
        self.was_training.append(self.training)
        past.tokens = past.with_tokens(inputs[-1])
        following = [
            self.next_token(row, past.tokens[i].tolist()) for i, row in enumerate(inputs[0].tolist())
        ]
        return F.one_hot(torch.tensor(following), self.config.vocab_size)[:, None].float()

    def next_token(self, source: list[int], so_far: list[int]) -> int:
        tokenizer = self.task.tokenizer
        pad, start, end = map(tokenizer.special_id, SPECIAL)
        if self.task.architecture == "encoder-decoder":
            read, written = source, so_far[1:]
            assert so_far[0] == start
        else:
            length = so_far.index(tokenizer.encode("=")[0]) + 1
            read, written = so_far[:length], so_far[length:]
        answer = self.answers[tuple(read)]
        writes = [pad] * 99 if answer is None else [*tokenizer.encode(answer), end, *[pad] * 99]
        return writes[len(written)]


TAUGHT = [VOWEL, NUMBERS, SORT]
every_taught_task = pytest.mark.parametrize("task", TAUGHT, ids=lambda task: task.name)


class TestAccuracy:
    @every_taught_task
    def test_a_perfect_model_is_right_every_time(self, task):
        examples = task.sample(60)
        oracle = Oracle(task, {example.source: example.target for example in examples})
        assert translations(oracle, task, examples) == [example.target for example in examples]
        assert exact_matches(oracle, task, examples) == 1.0
        assert exact_matches(oracle, task, iter(examples)) == 1.0

    @every_taught_task
    def test_another_answer_and_one_without_end_are_wrong(self, task):
        examples = task.sample(60)
        answers = {example.source: example.target for example in examples}
        wrong = {"next-vowel": "b", "number-words": "cero", "sort-letters": "zz"}[task.name]
        answers |= {examples[3].source: wrong, examples[10].source: "", examples[-1].source: None}
        written = translations(Oracle(task, answers), task, examples)
        assert (written[3], written[10], written[-1]) == (wrong, "", None)
        assert exact_matches(Oracle(task, answers), task, examples) == pytest.approx(57 / 60)

    def test_the_longest_answer_there_is_can_be_given(self):
        longest = Example("zyxwvutsrq=", "qrstuvwxyz")
        assert exact_matches(Oracle(SORT, {longest.source: longest.target}), SORT, [longest]) == 1.0

    def test_dropout_rests_while_a_model_is_measured_and_goes_on_after_it(self):
        oracle = Oracle(VOWEL, {"abc": "e"}).train()
        exact_matches(oracle, VOWEL, [Example("abc", "e")])
        assert not any(oracle.was_training)
        assert oracle.training


class TestTaskObjective:
    @every_task
    def test_a_step_decides_its_batch(self, task):
        def of(seed: int, step: int) -> Batch:
            return TaskObjective(task, 8, seed).batches(step)

        def same(first: Batch, second: Batch) -> bool:
            pairs = zip((*first.inputs, first.targets), (*second.inputs, second.targets), strict=True)
            return all(torch.equal(one, other) for one, other in pairs)

        assert same(of(1, 5), of(1, 5))
        assert not same(of(1, 5), of(1, 6))
        assert not same(of(1, 5), of(2, 5))
        assert len(of(1, 5).targets) == 8

    @every_task
    def test_its_batches_fit_the_model_that_it_asks_for(self, task):
        objective = TaskObjective(task, 4, 0)
        model = build_model(ModelConfig(n_layers=1, n_heads=2, d_model=8, **objective.shape), seed=0)
        inputs, targets = objective.batches(0)
        assert model.config.pad_token_id == objective.tokenizer.special_id("[pad]")
        assert model(*inputs).shape == (*targets.shape, objective.tokenizer.vocab_size)

    @every_task
    def test_it_measures_by_what_is_held_out(self, task):
        objective, model = TaskObjective(task, 4, 0), model_for(task, dropout=0.5).train()
        inputs, targets = task_batch(task, task.sample(512, seed=1))
        measured = objective.validation_loss(model)
        assert model.training
        with torch.no_grad():
            expected = token_loss(model.eval()(*inputs), targets).item()
        assert measured == pytest.approx(expected, rel=1e-5)
        assert objective.validation_loss(model) == measured

    def test_its_scores(self):
        objective = TaskObjective(VOWEL, 4, 0)
        model = model_for(VOWEL)
        scores = objective.scores(model)
        assert scores.validation_loss == objective.validation_loss(model)
        assert scores.accuracy == exact_matches(model, VOWEL, VOWEL.sample(2000)) < 0.6
        assert scores.train_loss == pytest.approx(scores.validation_loss, rel=0.1)
        assert TaskObjective(INDUCTION, 4, 0).scores(model_for(INDUCTION)).accuracy is None

    @every_task
    def test_its_card_has_what_writing_needs(self, task):
        card = TaskObjective(task, 4, 0).card()
        assert card["task"] == task.name
        assert task.tokenizer.label(card["start_token_id"]) == "[start]"
        assert card["end_token_id"] == (task.tokenizer.special_id("[end]") if task.ends else None)


class TestTextObjective:
    CORPUS = Corpus(
        CorpusSource("small", "A small text", "none", "public domain", 0.75), "abcdefg fedcb" * 40
    )

    def test_its_batches_are_windows_of_the_part_to_train_on(self):
        objective = TextObjective(self.CORPUS, 8, 4, seed=3)
        train, validation = self.CORPUS.split()
        assert objective.tokenizer.decode(objective.train.tolist()) == train
        assert objective.tokenizer.decode(objective.validation.tolist()) == validation
        expected = TextBatches(objective.tokenizer.encode(train), 8, 4, 3)
        for step in (0, 7):
            assert torch.equal(objective.batches(step).inputs[0], expected(step).inputs[0])
            assert torch.equal(objective.batches(step).targets, expected(step).targets)
        assert not torch.equal(objective.batches(0).targets, objective.batches(1).targets)

    def test_it_measures_by_the_rest(self):
        objective = TextObjective(self.CORPUS, 8, 4, seed=3)
        model = tiny_model(vocab_size=objective.tokenizer.vocab_size)
        assert objective.shape == {"vocab_size": 8}
        scores = objective.scores(model)
        assert scores.validation_loss == evaluate_loss(model, objective.validation)
        assert scores.train_loss == evaluate_loss(model, objective.train[:130])
        assert scores.accuracy is None
        assert objective.card()["corpus"]["sha256"] == self.CORPUS.sha256


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

    def test_an_untrained_model_knows_nothing_the_second_time_either(self):
        model = build_model(
            ModelConfig(
                n_layers=2, n_heads=2, d_model=32, positions="rotary", **TaskObjective(INDUCTION, 1, 0).shape
            ),
            seed=0,
        )
        found = measure_induction(model, INDUCTION, sequences=40)
        assert (found.sequences, found.period) == (40, 32)
        assert found.first_loss == pytest.approx(math.log(72), abs=0.3)
        assert found.second_loss == pytest.approx(math.log(72), abs=0.3)
        assert 0 < found.best_score < 0.1

    def test_a_perfect_model_is_found_with_its_head(self):
        outer = self

        class Perfect(nn.Module):
            """Goes on, from the end of the first stretch, as the text went before; head 1 of block 2 looks there."""

            def run_with_cache(self, tokens: Tensor, names_filter) -> tuple[Tensor, ActivationCache]:
                logits = torch.zeros(*tokens.shape, 72)
                logits[:, 31:] = 100.0 * F.one_hot(tokens[:, :32], 72)
                patterns = torch.stack([outer.pattern(32, 63, 0)] * 3).expand(len(tokens), -1, -1, -1)
                cache = {f"blocks.{layer}.attn.hook_pattern": patterns.clone() for layer in range(3)}
                cache["blocks.2.attn.hook_pattern"][:, 1] = outer.pattern(32, 63, 31)
                assert all(names_filter(name) for name in cache)
                assert not names_filter("blocks.0.attn.hook_z")
                return logits, ActivationCache(cache)

        found = measure_induction(Perfect(), INDUCTION, sequences=5)
        assert (found.layer, found.head, found.best_score) == (2, 1, 1.0)
        assert found.first_loss == pytest.approx(math.log(72))
        assert found.second_loss == pytest.approx(0.0, abs=1e-6)
