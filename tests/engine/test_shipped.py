"""Tests the shipped checkpoints: they load, are small, and do what their cards say."""

import functools
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from pages.ui.computations.activations import greedy_answer
from pages.ui.models.library import OpenModel
from tests.saved_checkpoints import FILES
from transformer import (
    MEASURES,
    TASKS,
    Checkpoint,
    attention_modules,
    deviations,
    direct_logit_attribution,
    list_checkpoints,
    load_checkpoint,
    trace_pass,
)
from transformer.api.outlines import overview
from transformer.data.tasks import Induction
from transformer.training.evaluation import exact_matches, measure_induction, measure_reading
from transformer.training.presets import PRESETS, RUNGS

ROOT = Path(__file__).resolve().parents[2]
ENTRIES = {entry.name: entry for entry in list_checkpoints(ROOT / "checkpoints")}
LARGE = {"shakespeare", "martin-fierro", "austen"}
"""Models of whole books may take eight million bytes; all others take two."""
OF_TASKS = [name for name, entry in ENTRIES.items() if entry.card and entry.card.task in TASKS]

every_checkpoint = pytest.mark.parametrize("name", ENTRIES)


@functools.cache
def loaded(name: str) -> Checkpoint:
    return load_checkpoint(ENTRIES[name].path)


@every_checkpoint
def test_it_is_small_and_its_card_says_what_it_is_and_how_to_train_it_again(name):
    entry, preset = ENTRIES[name], PRESETS[name]
    files = [*entry.path.iterdir()]
    assert entry.problem is None and sorted(file.name for file in files) == sorted(FILES)
    size = sum(file.stat().st_size for file in files)
    assert size <= 8_000_000 and (size > 2_000_000) == (name in LARGE)
    card = entry.card
    assert (card.title, card.summary, card.group) == (preset.title, preset.summary, preset.group)
    assert tuple(card.examples) == preset.examples
    assert card.training["command"] == f"python -m transformer train {name}"
    for each in ("steps", "seed"):
        assert card.training[each] == getattr(preset.training, each)
    assert card.parameters == loaded(name).model.parameter_count()
    assert 0 <= card.validation_loss < 0.75 * math.log(entry.config.vocab_size)
    for field, value in preset.shape.items():
        assert getattr(entry.config, field) == value, field


@every_checkpoint
def test_it_reads_its_examples_and_every_tensor_is_what_the_equations_say(name):
    checkpoint, card = loaded(name), ENTRIES[name].card
    texts = [checkpoint.tokenizer.encode(example) for example in card.examples]
    assert texts and all(0 < len(tokens) <= checkpoint.model.config.context_length for tokens in texts)
    translates = checkpoint.model.config.architecture == "encoder-decoder"
    found = trace_pass(checkpoint.model, *(([card.start_token_id], texts[0]) if translates else (texts[0],)))
    for each in deviations(found):
        assert each.largest <= 1e-5 * each.magnitude, each
    likeliest = found.tensors["logits"].argmax(-1)
    parts = direct_logit_attribution(found, likeliest.tolist()).values.sum(0)
    torch.testing.assert_close(parts, found.tensors["logits"].amax(-1).double(), atol=1e-4, rtol=0)


@pytest.mark.parametrize("which", RUNGS)
def test_the_table_of_a_ladder_says_what_its_cards_say(which):
    written = (ROOT / "docs" / "models.md").read_text(encoding="utf-8").lower()
    for card in (ENTRIES[preset.name].card for preset in RUNGS[which] if preset.name in ENTRIES):
        losses = f"{card.training['last_batches_loss']:.3f} | {card.validation_loss:.3f}"
        assert f"| {card.title} | {card.parameters:,} | {losses} |".lower() in written, card.title


@every_checkpoint
def test_it_opens_on_the_head_that_is_surest_where_to_look(name):
    """On its first example, in a translator with its own answer; two models on the head that they are there for.

    A head that chiefly looks at the token before is passed over: there is nothing in it to be found.
    """
    checkpoint, card, config = loaded(name), ENTRIES[name].card, ENTRIES[name].config
    modules = attention_modules(config)
    if not modules:
        assert card.opening is None
        return
    tokens, source, kind = tuple(checkpoint.tokenizer.encode(card.examples[0])), (), [*modules][-1]
    if card.task == "stories":
        reads = measure_reading(checkpoint.model, TASKS["stories"], questions=200)
        best = (reads.layer, reads.head)
    elif not config.is_causal:  # the head that from the mask looks most at one word behind it
        _, cache = checkpoint.model.run_with_cache(torch.tensor([tokens]))
        mask = checkpoint.predicted_position(tokens)
        patterns = torch.stack([cache[f"{module}.hook_pattern"][0, :, mask] for module in modules["self"]])
        best = divmod(int(patterns[..., mask + 1 :].amax(-1).argmax()), config.n_heads)
    else:
        if kind == "cross":
            tokens, source = (card.start_token_id,), tokens
            tokens += greedy_answer(checkpoint, tokens, source)
        found = overview(OpenModel(name, name, checkpoint), tokens, source, kind).tensors["measures"]
        names = [measure.name for measure in MEASURES]
        previous, induction, spread = (found[..., names.index(each)] for each in ("previous", "induction", "spread"))
        sure = induction if name == "induction" else -np.where(previous >= 0.5, 1, spread)
        best = divmod(int(sure.argmax()), config.n_heads)
    assert card.opening == {"layer": best[0], "head": best[1], "attention": kind}


@pytest.mark.parametrize("name", OF_TASKS)
def test_it_does_its_task_on_what_its_training_never_met(name):
    checkpoint, card, config = loaded(name), ENTRIES[name].card, ENTRIES[name].config
    task, model = TASKS[card.task], checkpoint.model
    for example in card.examples:
        assert task.problem(example) is None
        assert checkpoint.tokenizer.encode(example) == task.tokenizer.encode(example)
    assert checkpoint.tokenizer.vocab_size == task.tokenizer.vocab_size == config.vocab_size
    special = task.tokenizer.special_id
    assert card.start_token_id == (special("[start]") if config.is_causal else None)
    assert card.mask_token_id == (None if config.is_causal else special("[mask]"))
    assert card.end_token_id == (special("[end]") if task.ends else None)
    assert (config.pad_token_id, config.architecture) == (special("[pad]"), task.architecture)
    if isinstance(task, Induction):
        found = measure_induction(model, task, sequences=40)
        assert found.second_loss < 0.5 < 3 < found.first_loss
        assert found.best_score > 0.5
    else:
        assert exact_matches(model, task, task.sample(100)) >= 0.98
        assert card.accuracy >= 0.99
