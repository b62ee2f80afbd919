"""Tests the training objectives: their batches and descriptions."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from tests.training_plans import model_for
from transformer import TASKS, Batch, Corpus, ModelConfig, TextBatches, build_model
from transformer.data.batches import IGNORED, task_batch
from transformer.data.corpora import CorpusSource
from transformer.data.tasks import Example, Task
from transformer.training.evaluation import token_loss
from transformer.training.objectives import TaskObjective, TextObjective

VOWEL, NUMBERS, SORT, INDUCTION, STORIES, _ = TASKS.values()
SPECIAL = ("[pad]", "[start]", "[end]")
every_task = pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)


def labels(task: Task, ids: Tensor) -> list[list[str]]:
    """What a batch says, `–` where nothing is asked for."""
    return [["–" if token == IGNORED else task.tokenizer.label(token) for token in row] for row in ids.tolist()]


class TestTextBatches:
    @given(st.integers(0, 50), st.integers(1, 9), st.integers(1, 5), st.integers(0, 3))
    def test_targets_are_the_inputs_one_token_later(self, step, context, batch, seed):
        text = np.arange(100, 112)
        inputs, targets = TextBatches(text.tolist(), context, batch, seed)(step)
        assert inputs[0].shape == targets.shape == (batch, context)
        assert torch.equal(inputs[0] + 1, targets)
        assert inputs[0].min() >= 100
        assert targets.max() <= 111

    def test_every_window_is_drawn_sooner_or_later_and_a_step_decides_which(self):
        draw = TextBatches(list(range(12)), 8, 4)
        starts = {int(start) for step in range(40) for start in draw(step).inputs[0][:, 0]}
        assert starts == {0, 1, 2, 3}
        assert torch.equal(draw(7).targets, TextBatches(list(range(12)), 8, 4)(7).targets)
        assert not all(torch.equal(draw(7).targets, draw(step).targets) for step in range(5))
        long = list(range(1000))
        assert not torch.equal(TextBatches(long, 8, 4, seed=1)(6).targets, TextBatches(long, 8, 4, seed=2)(5).targets)

    def test_a_text_that_is_too_short_is_refused_with_what_it_needs(self):
        with pytest.raises(ValueError, match="8 tokens, too few for a context of 8; it needs at least 9"):
            TextBatches(list(range(8)), 8, 4)
        TextBatches(list(range(9)), 8, 4)(0)


class TestTaskBatches:
    def test_what_is_read_is_asked_for_as_well_if_it_is_told(self):
        examples = [
            Example("Who has the ball?", "Mary", predicts_source=predicts_source) for predicts_source in (True, False)
        ]
        (read,), asked = task_batch(STORIES, examples)
        assert labels(STORIES, read) == 2 * [["Who", "has", "the", "ball", "?", "Mary"]]
        told, answered = labels(STORIES, asked)
        assert told == ["has", "the", "ball", "?", "Mary", "[end]"]
        assert answered == ["–", "–", "–", "–", "Mary", "[end]"]

    def test_what_comes_further_follows_in_the_same_row_without_an_end_to_read(self):
        example = Example(
            "Who is Mary?", "Tom", (Example("Mary went.", "Max", predicts_source=True), Example("Who?", "Tom"))
        )
        (read,), asked = task_batch(STORIES, [example])
        (first,), (second,) = labels(STORIES, read), labels(STORIES, asked)
        assert " ".join(first) == "Who is Mary ? Tom Mary went . Max Who ? Tom"
        assert " ".join(second) == "– – – Tom [end] went . Max [end] – Tom [end]"
        (read,), asked = task_batch(SORT, [Example("ba=", "ab", (Example("c=", "c"),))])
        assert labels(SORT, read) == [["b", "a", "=", "a", "b", "c", "=", "c"]]
        assert labels(SORT, asked) == [["–", "–", "a", "b", "[end]", "–", "c", "[end]"]]

    @pytest.mark.parametrize(
        ("task", "examples", "read", "asked"),
        [
            (VOWEL, [Example("abc", "e")], [["a b c"], ["[start] e"]], ["e [end]"]),
            (SORT, [Example("ca=", "ac")], [["c a = a c"]], ["– – a c [end]"]),
            (INDUCTION, [Example("x", "yxy")], [["x y x"]], ["y x y"]),
            (
                SORT,
                [Example("ba=", "ab"), Example("c=", "c")],
                [["b a = a b", "c = c [pad] [pad]"]],
                ["– – a b [end]", "– c [end] – –"],
            ),
            (
                NUMBERS,
                [Example("thirty-one", "treinta y uno"), Example("two", "dos")],
                [["thirty one", "two [pad]"], ["[start] treinta y uno", "[start] dos [pad] [pad]"]],
                ["treinta y uno [end]", "dos [end] – –"],
            ),
        ],
    )
    def test_what_is_read_and_asked_for(self, task, examples, read, asked):
        """A decoder alone from the end of the source on; where lengths are filled up, nothing."""
        batch = task_batch(task, examples)
        assert [[" ".join(row) for row in labels(task, part)] for part in batch.inputs] == read
        assert [" ".join(row) for row in labels(task, batch.targets)] == asked

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
            is_encoder = task.architecture == "encoder-only"  # of a held-out story one word is masked
            assert asked == (1 if is_encoder else len(task.tokenizer.encode(example.target)) + task.ends)
            total += token_loss(model(*inputs), targets).item() * asked
            count += asked
        inputs, targets = task_batch(task, examples)
        assert token_loss(model(*inputs), targets).item() == pytest.approx(total / count, abs=1e-5)


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
        assert not same(of(1, 6), of(2, 5))  # two trainings that lie one seed apart share no batch
        assert len(of(1, 5).targets) == 8

    @every_task
    def test_its_batches_fit_the_model_that_it_asks_for_and_its_card_has_what_writing_needs(self, task):
        objective = TaskObjective(task, 4, 0)
        model = build_model(ModelConfig(n_layers=1, n_heads=2, d_model=8, **objective.shape), seed=0)
        inputs, targets = objective.batches(0)
        assert model.config.pad_token_id == objective.tokenizer.special_id("[pad]")
        assert model(*inputs).shape == (*targets.shape, objective.tokenizer.vocab_size)
        card = objective.card()
        assert card["task"] == task.name
        if task.architecture == "encoder-only":
            assert task.tokenizer.label(card["mask_token_id"]) == "[mask]" and "end_token_id" not in card
            return
        assert task.tokenizer.label(card["start_token_id"]) == "[start]"
        assert card["end_token_id"] == objective.end_token_id
        assert card["end_token_id"] == (task.tokenizer.special_id("[end]") if task.ends else None)


class TestTextObjective:
    CORPUS = Corpus(CorpusSource("small", "A small text", "none", "public domain", 0.75), "abcdefg fedcb" * 40)

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

    def test_its_card_says_which_text_and_how_it_is_split(self):
        objective = TextObjective(self.CORPUS, 8, 4, seed=3)
        assert (objective.shape, objective.batch, objective.end_token_id) == ({"vocab_size": 8}, 4, None)
        card = objective.card()
        assert card["task"] == "next character"
        assert card["corpus"] == {
            "name": "small",
            "title": "A small text",
            "licence": "public domain",
            "train_fraction": 0.75,
            "sha256": self.CORPUS.sha256,
        }
