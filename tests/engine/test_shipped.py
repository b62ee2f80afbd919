"""Tests the shipped checkpoints: they load, are small, and do what their cards say."""

import functools
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
import torch

from pages.ui.models.activations import greedy_answer
from pages.ui.models.library import OpenModel
from tests.saved_checkpoints import FILES
from transformer import (
    MEASURES,
    TASKS,
    CheckpointEntry,
    attention_modules,
    deviations,
    direct_logit_attribution,
    list_checkpoints,
    trace_pass,
)
from transformer import load_checkpoint as load
from transformer.api.outlines import overview
from transformer.data.stories import NAMES, PLACES, THINGS
from transformer.data.tasks import Example, Induction
from transformer.training.evaluation import exact_matches, measure_induction, measure_reading
from transformer.training.presets import PRESETS, RUNGS

ENTRIES = list_checkpoints(Path(__file__).resolve().parents[2] / "checkpoints")
load_checkpoint = functools.cache(load)
LARGE = {"shakespeare": 8_000_000, "martin-fierro": 8_000_000}
"""Bytes that models of whole books may take; all others take two million."""

every_checkpoint = pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
every_task_model = pytest.mark.parametrize(
    "entry", [entry for entry in ENTRIES if entry.card and entry.card.task in TASKS], ids=lambda entry: entry.name
)


def size(entry: CheckpointEntry) -> int:
    return sum(file.stat().st_size for file in entry.path.iterdir())


@every_checkpoint
def test_it_is_small_loads_and_reads_its_examples(entry):
    assert {"shakespeare", "martin-fierro"} <= {each.name for each in ENTRIES}
    assert entry.problem is None and size(entry) <= LARGE.get(entry.name, 2_000_000)
    assert sorted(file.name for file in entry.path.iterdir()) == sorted(FILES)
    checkpoint = load_checkpoint(entry.path)
    config = checkpoint.model.config
    assert checkpoint.card.examples
    for example in checkpoint.card.examples:
        tokens = checkpoint.tokenizer.encode(example)
        assert 0 < len(tokens) <= config.context_length
        text = [torch.tensor([tokens])]
        if config.architecture == "encoder-decoder":
            text.append(torch.tensor([[checkpoint.card.start_token_id]]))
        assert checkpoint.model(*text).isfinite().all()


@pytest.mark.parametrize("which", RUNGS)
def test_the_table_of_a_ladder_says_what_its_cards_say(which):
    written = (Path(__file__).resolve().parents[2] / ".github" / "models.md").read_text(encoding="utf-8").lower()
    cards = {entry.name: entry.card for entry in ENTRIES}
    for card in (cards[preset.name] for preset in RUNGS[which] if preset.name in cards):
        losses = f"{card.training['last_batches_loss']:.3f} | {card.validation_loss:.3f}"
        assert f"| {card.title} | {card.parameters:,} | {losses} |".lower() in written, card.title


@every_checkpoint
def test_its_card_says_what_it_is_and_how_to_train_it_again(entry):
    card = entry.card
    preset = PRESETS[entry.name]
    assert (card.title, card.summary, card.group) == (preset.title, preset.summary, preset.group)
    assert tuple(card.examples) == preset.examples
    assert card.training["command"] == f"python -m transformer train {entry.name}"
    assert card.training["steps"] == preset.training.steps
    assert card.training["seed"] == preset.training.seed
    assert card.parameters == load_checkpoint(entry.path).model.parameter_count()
    assert 0 <= card.validation_loss < 4
    for field, value in preset.shape.items():
        assert getattr(entry.config, field) == value, field


@every_checkpoint
def test_it_opens_on_the_head_that_is_surest_where_to_look(entry):
    """On its first example, in a translator with its own answer; two models on the head that they are there for.

    A head that chiefly looks at the token before is passed over: there is nothing in it to be found.
    """
    checkpoint, card = load_checkpoint(entry.path), entry.card
    kinds = list(attention_modules(entry.config))
    if not kinds:
        assert card.opening is None
        return
    if card.task == "stories":
        reads = measure_reading(checkpoint.model, TASKS["stories"], questions=200)
        assert card.opening == {"layer": reads.layer, "head": reads.head, "attention": "self"}
        return
    tokens, source = tuple(checkpoint.tokenizer.encode(card.examples[0])), ()
    if not entry.config.is_causal:  # the head that from the mask looks most at one word behind it
        _, cache = checkpoint.model.run_with_cache(torch.tensor([tokens]))
        mask = checkpoint.predicted_position(tokens)
        behind = torch.stack(
            [
                cache[f"{module}.hook_pattern"][0, :, mask, mask + 1 :].amax(-1)
                for module in attention_modules(entry.config)["self"]
            ]
        )
        layer, head = divmod(int(behind.argmax()), entry.config.n_heads)
        assert card.opening == {"layer": layer, "head": head, "attention": "self"}
        return
    if kinds[-1] == "cross":
        tokens, source = (card.start_token_id,), tokens
        tokens += greedy_answer(checkpoint, tokens, source)
    found = overview(OpenModel(entry.name, entry.name, checkpoint), tokens, source, kinds[-1]).tensors["measures"]
    names = [measure.name for measure in MEASURES]
    previous, by_induction, by_spread = (found[..., names.index(name)] for name in ("previous", "induction", "spread"))
    by_spread = np.where(previous >= 0.5, 1, by_spread)
    best = by_induction.argmax() if entry.name == "induction" else by_spread.argmin()
    layer, head = divmod(int(best), entry.config.n_heads)
    assert card.opening == {"layer": layer, "head": head, "attention": kinds[-1]}


@every_task_model
def test_a_task_reads_the_examples_and_its_tokens_are_the_models(entry):
    task = TASKS[entry.card.task]
    checkpoint = load_checkpoint(entry.path)
    for example in entry.card.examples:
        assert task.problem(example) is None
        assert checkpoint.tokenizer.encode(example) == task.tokenizer.encode(example)
    assert checkpoint.tokenizer.vocab_size == task.tokenizer.vocab_size == entry.config.vocab_size
    if entry.config.is_causal:
        assert entry.card.start_token_id == task.tokenizer.special_id("[start]")
        assert entry.card.mask_token_id is None
    else:
        assert entry.card.start_token_id is None
        assert entry.card.mask_token_id == task.tokenizer.special_id("[mask]")
    assert entry.card.end_token_id == (task.tokenizer.special_id("[end]") if task.ends else None)
    assert entry.config.pad_token_id == task.tokenizer.special_id("[pad]")
    assert entry.config.architecture == task.architecture


@every_task_model
def test_it_does_its_task_on_what_its_training_never_met(entry):
    task = TASKS[entry.card.task]
    model = load_checkpoint(entry.path).model
    if isinstance(task, Induction):
        found = measure_induction(model, task, sequences=40)
        assert found.second_loss < 0.5 < 3 < found.first_loss
        assert found.best_score > 0.5
    else:
        assert exact_matches(model, task, task.sample(100)) >= 0.98
        assert entry.card.accuracy >= 0.99


def test_the_model_that_reads_looks_from_the_question_to_the_word_that_answers_it():
    """On 200 held-out questions; `python -m transformer evaluate stories` measures 1,000."""
    checkpoint = load_checkpoint(next(entry.path for entry in ENTRIES if entry.name == "stories"))
    found = measure_reading(checkpoint.model, TASKS["stories"], questions=200)
    assert found.accuracy >= 0.98
    assert found.weight >= 0.5


@pytest.mark.parametrize(
    ("fact", "question", "is_of_the_fact"),
    [
        ("{who} took the {what} .", "Who has the {what} ?", "{who}"),
        ("{who} took the {what} .", "What does {who} have ?", "{what}"),
        ("{who} went to the {where} .", "Where is {who} ?", "{where}"),
    ],
)
def test_of_two_people_the_model_that_reads_tells_who_is_meant_whoever_came_last(fact, question, is_of_the_fact):
    """The simplest stories that have a choice: no habit of place, neither the first nor the last, answers them all."""
    model = load_checkpoint(next(entry.path for entry in ENTRIES if entry.name == "stories")).model
    people = [
        {"who": who, "what": what, "where": where} for who, what, where in zip(NAMES, THINGS, PLACES, strict=False)
    ]
    asked = []
    for told in permutations(people, 2):
        story = " ".join(fact.format(**each) for each in told)
        for each in told:
            asked.append(Example(f"{story} {question.format(**each)}", is_of_the_fact.format(**each)))
    assert exact_matches(model, TASKS["stories"], asked) >= 0.99


@every_checkpoint
def test_every_tensor_of_its_pass_is_what_the_equations_say(entry):
    checkpoint = load_checkpoint(entry.path)
    tokens = checkpoint.tokenizer.encode(checkpoint.card.examples[0])
    translates = checkpoint.model.config.architecture == "encoder-decoder"
    found = trace_pass(checkpoint.model, *(([checkpoint.card.start_token_id], tokens) if translates else (tokens,)))
    for each in deviations(found):
        assert each.largest <= 1e-5 * each.magnitude, each
    likeliest = found.tensors["logits"].argmax(-1)
    parts = direct_logit_attribution(found, likeliest.tolist()).values.sum(0)
    torch.testing.assert_close(parts, found.tensors["logits"].amax(-1).double(), atol=1e-4, rtol=0)
