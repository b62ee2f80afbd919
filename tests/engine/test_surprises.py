"""Tests surprising facts about the shipped models, on more texts than the lessons use, which test their own claims."""

import os
import string
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from tests.browser.servers import ROOT
from transformer import (
    TASKS,
    Scale,
    Without,
    direct_logit_attribution,
    evaluate_loss,
    load_checkpoint,
    load_corpus,
    trace_pass,
)
from transformer.data.batches import task_batch
from transformer.data.corpora import FOLDER_VARIABLE, SOURCES
from transformer.inference.interventions import hooks_of

LADDER = {"1-bigram": 2.484, "2-positions": 2.486, "3-average": 2.814, "4-attention": 2.354}
CORPUS = Path(os.environ.get(FOLDER_VARIABLE, "")) / SOURCES["tiny-shakespeare"].file_name
needs_corpus = pytest.mark.skipif(not CORPUS.is_file(), reason=f"{FOLDER_VARIABLE} names no folder with {CORPUS.name}")


def shipped(name):
    return load_checkpoint(ROOT / "checkpoints" / name)


@pytest.fixture(scope="module")
def shakespeare():
    return shipped("shakespeare")


@pytest.fixture(scope="module")
def held_out():
    return load_corpus("tiny-shakespeare").split()[1]


@pytest.fixture(autouse=True)
def without_gradients():
    with torch.no_grad():
        yield


def loss(model, windows, *interventions):
    logits = model.run_with_hooks(windows[:, :-1], fwd_hooks=hooks_of(interventions, model))
    return float(F.cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten()))


@needs_corpus
def test_shakespeare_can_do_without_its_scale_but_not_without_its_mask_or_its_positions(shakespeare, held_out):
    """Heads without positions do more harm than no heads at all. Of the parts, the first feed-forward layer and one
    head matter most, the layers in the middle hardly. On twelve windows of its context that it was never trained on."""
    model, windows = shakespeare.model, torch.tensor(shakespeare.tokenizer.encode(held_out[: 12 * 257])).view(12, 257)
    plain = loss(model, windows)
    found = [plain, *(loss(model, windows, Without(rule)) for rule in ("scale", "mask", "positions"))]
    assert found == pytest.approx([1.25, 1.34, 3.17, 4.56], abs=0.006)
    assert found[-1] > np.log(65) > found[2]  # worse than guessing blindly: 4.17
    assert loss(model, windows, *(Scale(f"blocks.{layer}.hook_attn_out") for layer in range(6))) < found[-1] - 0.5
    parts = [Scale(f"blocks.{layer}.hook_mlp_out") for layer in range(6)]
    parts += [Scale("blocks.1.attn.hook_z", head) for head in (5, 3)]
    rises = [loss(model, windows, part) - plain for part in parts]
    assert rises[:1] + rises[5:] == pytest.approx([1.15, 0.09, 0.22, 0.0], abs=0.006)
    assert max(np.abs(rises[1:5])) < 0.05


def test_induction_has_three_heads_that_look_at_the_same_letter_and_repeats_nothing_without_one_below():
    """On the second halves of 60 texts of twice 20 letters; of 40 of them, what each head adds to the right logit."""
    model, task = shipped("induction").model, TASKS["induction"]
    batch = task_batch(task, [task.repeated(np.random.default_rng(seed), 20) for seed in range(60)])
    found, pushes = [], []
    for taken in ((), (Scale("blocks.0.attn.hook_z", 0),)):
        logits = model.run_with_hooks(*batch.inputs, fwd_hooks=hooks_of(taken, model))
        found.append(float(F.cross_entropy(logits.mT, batch.targets, reduction="none")[:, 20:].mean()))
    assert found == pytest.approx([0.03, 3.64], abs=0.08)
    for tokens, targets in zip(batch.inputs[0][:40], batch.targets, strict=False):
        parts = direct_logit_attribution(trace_pass(model, tokens.tolist()), targets.clamp(min=0).tolist())
        rows = [parts.names.index(f"blocks.1.attn.hook_result[{head}]") for head in range(4)]
        pushes.append(parts.values[rows][:, 21:38].mean(1))
    pushes = torch.stack(pushes).mean(0)
    assert pushes[:3].min() > 2 and pushes[3] < 1


def test_the_difference_of_two_letters_leads_to_a_capital_only_if_the_letters_of_the_sum_are_left_out(shakespeare):
    """On all 650 ordered pairs of letters."""
    table, letters = shakespeare.model.embed.weight, string.ascii_lowercase
    small, capital = (torch.tensor(shakespeare.tokenizer.encode(each)) for each in (letters, letters.upper()))
    one, other = (~torch.eye(26, dtype=torch.bool)).nonzero().T
    sums = table[capital[one]] - table[small[one]] + table[small[other]]
    alike = F.normalize(sums, dim=-1) @ F.normalize(table, dim=-1).T
    assert float((alike.argmax(-1) == capital[other]).float().mean()) < 0.01
    for each in (capital[one], small[one], small[other]):
        alike[torch.arange(len(alike)), each] = -1
    assert float((alike.argmax(-1) == capital[other]).float().mean()) == pytest.approx(0.67, abs=0.02)


@needs_corpus
class TestLadder:
    def test_positions_alone_lower_no_loss_not_even_on_the_text_they_are_learned_from(self):
        """On all of the training text, in windows of eight letters."""
        pairs, placed = (shipped(f"ladder-{name}") for name in list(LADDER)[:2])
        tokens = pairs.tokenizer.encode(load_corpus("tiny-shakespeare").split()[0])
        found = [evaluate_loss(each.model, tokens) for each in (pairs, placed)]
        table = placed.model.pos_embed.weight
        table.copy_(table.mean(0, keepdim=True).expand_as(table))
        found.append(evaluate_loss(placed.model, tokens))
        assert found == pytest.approx([found[0]] * 3, abs=0.002) and found[0] < min(found[1:])

    def test_without_attention_only_a_residual_stream_still_has_the_letter(self, held_out):
        """On all of the held-out text."""
        found = []
        for name in ("6-heads", "7-residuals"):
            checkpoint = shipped(f"ladder-{name}")
            tokens = torch.tensor(checkpoint.tokenizer.encode(held_out[: len(held_out) // 9 * 9])).view(-1, 9)
            found += [loss(checkpoint.model, tokens, *taken) for taken in ((), (Scale("blocks.0.hook_attn_out"),))]
        assert found == pytest.approx([2.08, 4.79, 2.05, 3.06], abs=0.006)
        assert found[1] > np.log(65) > found[3]

    def test_the_cards_say_what_is_measured(self, held_out):
        for name, expected in LADDER.items():
            checkpoint = shipped(f"ladder-{name}")
            measured = evaluate_loss(checkpoint.model, checkpoint.tokenizer.encode(held_out))
            assert measured == pytest.approx(expected, abs=0.0006)
            assert measured == pytest.approx(checkpoint.card.validation_loss, abs=2e-5)
