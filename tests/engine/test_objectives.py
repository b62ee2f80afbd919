"""Tests the training objectives: their batches and descriptions."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.training_plans import model_for
from transformer import TASKS, Batch, Corpus, TextBatches
from transformer.data.batches import IGNORED, task_batch
from transformer.data.corpora import CorpusSource
from transformer.data.tasks import Example
from transformer.training.evaluation import token_loss
from transformer.training.objectives import Objective, TaskObjective, TextObjective

VOWEL, NUMBERS, SORT, INDUCTION, STORIES, MASKED_STORIES = TASKS.values()
CORPUS = Corpus(CorpusSource("small", "A small text", "none", "public domain", 0.75), "abcdefg fedcb" * 40)


@given(st.integers(0, 50), st.integers(1, 9), st.integers(1, 5), st.integers(0, 3))
def test_targets_are_the_inputs_one_token_later(step, context, batch, seed):
    (read,), targets = TextBatches([*range(100, 112)], context, batch, seed)(step)
    assert read.shape == targets.shape == (batch, context)
    assert torch.equal(read + 1, targets) and read.min() >= 100 and targets.max() <= 111


def test_every_window_is_drawn_sooner_or_later_and_a_text_must_have_one():
    draw = TextBatches([*range(12)], 8, 4)
    assert {int(start) for step in range(40) for start in draw(step).inputs[0][:, 0]} == {0, 1, 2, 3}
    TextBatches([*range(9)], 8, 4)(0)
    with pytest.raises(ValueError, match="8 tokens, too few for a context of 8; it needs at least 9"):
        TextBatches([*range(8)], 8, 4)


FURTHER = Example("Who is Mary?", "Tom", (Example("Mary went.", "Max", predicts_source=True), Example("Who?", "Tom")))


@pytest.mark.parametrize(
    ("task", "examples", "read", "asked"),
    [
        (VOWEL, [Example("abc", "e")], [["a b c"], ["[start] e"]], ["e [end]"]),
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
        (
            STORIES,
            [Example("Who is Tom?", "Mary", predicts_source=predicts_source) for predicts_source in (True, False)],
            [["Who is Tom ? Mary"] * 2],
            ["is Tom ? Mary [end]", "– – – Mary [end]"],
        ),
        (  # what comes further follows in the same row, without an end to read
            *(STORIES, [FURTHER], [["Who is Mary ? Tom Mary went . Max Who ? Tom"]]),
            ["– – – Tom [end] went . Max [end] – Tom [end]"],
        ),
        (SORT, [Example("ba=", "ab", (Example("c=", "c"),))], [["b a = a b c = c"]], ["– – a b [end] – c [end]"]),
        (MASKED_STORIES, [Example("[mask] went.", "Mary went.")], [["[mask] went ."]], ["Mary – –"]),
    ],
)
def test_what_is_read_and_asked_for(task, examples, read, asked):
    """A decoder alone from the end of the source on; where lengths are filled up, nothing."""
    batch = task_batch(task, examples)
    found = [
        [" ".join("–" if token == IGNORED else task.tokenizer.label(token) for token in row) for row in part.tolist()]
        for part in (*batch.inputs, batch.targets)
    ]
    assert found == [*read, asked]


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_the_loss_of_a_batch_is_that_of_its_examples_token_by_token(task):
    """Padding neither counts nor changes what counts."""
    model, random = model_for(task), np.random.default_rng(0)
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


def objective(name: str, seed: int) -> Objective:
    return TaskObjective(TASKS[name], 8, seed) if name in TASKS else TextObjective(CORPUS, 8, 8, seed)


@pytest.mark.parametrize("name", ["text", *TASKS])
def test_a_step_decides_its_batch(name):
    def of(seed: int, step: int) -> Batch:
        return objective(name, seed).batches(step)

    def same(first: Batch, second: Batch) -> bool:
        pairs = zip((*first.inputs, first.targets), (*second.inputs, second.targets), strict=True)
        return all(torch.equal(one, other) for one, other in pairs)

    assert same(of(1, 5), of(1, 5))
    assert not same(of(1, 5), of(1, 6))
    assert not same(of(1, 5), of(2, 5))
    assert not same(of(1, 6), of(2, 5))  # two trainings that lie one seed apart share no batch
    assert len(of(1, 5).targets) == objective(name, 1).batch == 8


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_a_task_s_batches_fit_the_model_that_it_asks_for_and_its_card_has_what_writing_needs(task):
    asked = TaskObjective(task, 4, 0)
    model, (inputs, targets), special = model_for(task), asked.batches(0), task.tokenizer.special_id
    assert asked.shape.items() <= model.config.to_dict().items()
    assert model.config.pad_token_id == special("[pad]")
    assert model(*inputs).shape == (*targets.shape, asked.tokenizer.vocab_size)
    assert asked.end_token_id == (special("[end]") if task.ends else None)
    ids = {"start_token_id": special("[start]"), "end_token_id": asked.end_token_id}
    ids = {"mask_token_id": special("[mask]")} if task.architecture == "encoder-only" else ids
    corpus = {"name": task.name, "title": task.title, "licence": "generated"}
    assert asked.card() == {"language": task.language, "task": task.name, "corpus": corpus, **ids}


def test_a_text_s_batches_are_of_the_part_to_train_on_and_its_card_says_how_it_is_split():
    asked = TextObjective(CORPUS, 8, 4, seed=3)
    train, validation = CORPUS.split()
    assert asked.tokenizer.decode(asked.train.tolist()) == train
    assert asked.tokenizer.decode(asked.validation.tolist()) == validation
    assert torch.equal(asked.batches(7).targets, TextBatches(asked.tokenizer.encode(train), 8, 4, 3)(7).targets)
    assert (asked.shape, asked.end_token_id) == ({"vocab_size": 8}, None)
    about = {"name": "small", "title": "A small text", "licence": "public domain", "train_fraction": 0.75}
    about |= {"sha256": CORPUS.sha256}
    assert asked.card() == {"language": "none", "task": "next character", "corpus": about}
