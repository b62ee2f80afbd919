"""Tests surprising facts about the shipped models, on more texts than the lessons use.

Unless a test says how much it measures on, the text is the beginning of what *Shakespeare* was never trained on: twelve
windows of its context and a token more, 3,072 predictions.
"""

import copy
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
    Sampling,
    Scale,
    Without,
    direct_logit_attribution,
    evaluate_loss,
    generate,
    load_checkpoint,
    load_corpus,
    logit_lens,
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


@pytest.fixture(scope="module")
def windows(shakespeare, held_out):
    """(12, 257)."""
    return torch.tensor(shakespeare.tokenizer.encode(held_out[: 12 * 257])).view(12, 257)


@pytest.fixture(autouse=True)
def without_gradients():
    with torch.no_grad():
        yield


def loss(model, windows, *interventions):
    logits = model.run_with_hooks(windows[:, :-1], fwd_hooks=hooks_of(interventions, model))
    return float(F.cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten()))


def recorded(model, windows, end, *interventions):
    """(layer, batch, …): what the points of each layer with this ending have."""
    hooks, asked = hooks_of(interventions, model), {"names_filter": lambda name: name.endswith(end)}
    return torch.stack([*model.run_with_cache(windows[:, :-1], **asked, fwd_hooks=hooks)[1].values()])


@needs_corpus
class TestShakespeare:
    def test_what_it_can_do_without(self, shakespeare, windows):
        """Its scale, but not its mask or its positions: heads without these do more harm than no heads at all. Its
        first feed-forward layer and one head matter most, the layers in the middle hardly."""
        model = shakespeare.model
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

    def test_without_the_norms_division_the_lower_layers_read_too_short_vectors_and_the_upper_ones_too_long(
        self, shakespeare, windows
    ):
        plain, undivided = (
            recorded(shakespeare.model, windows[:4], "ln1.hook_out", *taken).norm(dim=-1).mean((1, 2))
            for taken in ((), (Without("norm"),))
        )
        assert (undivided < plain).tolist() == [True, True, True, True, False, False]

    def test_without_its_mask_it_predicts_nearly_as_well_if_nothing_comes_after(self, shakespeare, windows):
        """On 254 predictions, each from what comes before it."""
        texts, found = windows[:2, :128], []
        for taken in ((), (Without("mask"),)):
            hooks = hooks_of(taken, shakespeare.model)
            last = [shakespeare.model.run_with_hooks(texts[:, :end], fwd_hooks=hooks)[:, -1] for end in range(1, 128)]
            found.append(float(F.cross_entropy(torch.stack(last, 1).flatten(0, 1), texts[:, 1:].flatten())))
        assert found[0] < found[1] < found[0] + 0.06

    def test_it_hardly_needs_more_than_sixteen_letters(self, shakespeare, windows):
        """On the last 64 letters of each window, from so many letters before each; at last from all of the window."""
        found = []
        for context in (1, 4, 16):
            seen = windows[:, -64 - context :].unfold(1, context + 1, 1).flatten(0, 1)
            found.append(float(F.cross_entropy(shakespeare.model(seen[:, :-1])[:, -1], seen[:, -1])))
        logits = shakespeare.model(windows[:, :-1])[:, -64:]
        found.append(float(F.cross_entropy(logits.flatten(0, 1), windows[:, -64:].flatten())))
        assert found == pytest.approx([2.57, 1.60, 1.31, 1.27], abs=0.1) and found[2] < found[3] + 0.1

    def test_practice_on_one_line_makes_it_worse_on_others(self, shakespeare, windows):
        """Five lines of 28 letters, twenty steps of gradient descent each; then on two windows."""
        plain = loss(shakespeare.model, windows[:2])
        for line in windows[5:10, :29]:
            model = copy.deepcopy(shakespeare.model).requires_grad_()
            descent = torch.optim.SGD(model.parameters(), lr=0.1)
            for _ in range(20):
                descent.zero_grad()
                with torch.enable_grad():
                    F.cross_entropy(model(line[None, :-1])[0], line[1:]).backward()
                descent.step()
            assert loss(model, line[None]) < 0.1 and loss(model, windows[:2]) > plain + 0.05

    def test_without_the_scale_each_token_looks_at_nearly_one_alone_and_none_looks_at_the_first(
        self, shakespeare, windows
    ):
        plain, sharp = (
            recorded(shakespeare.model, windows[:2], "hook_pattern", *taken) for taken in ((), (Without("scale"),))
        )
        for found, low, high in ((plain, 0.26, 0.49), (sharp, 0.81, 0.90)):
            by_layer = found.amax(-1).mean((1, 2, 3))
            assert low - 0.04 < float(by_layer.min()) < float(by_layer.max()) < high + 0.04
        assert float(plain[:, :, :, 64:, 0].mean((1, 3)).max()) < 0.01

    def test_each_layer_s_logit_lens_is_better_than_the_one_below(self, shakespeare, windows):
        losses, of_the_stream = [], lambda name: "resid" in name or "hook_embed" in name
        for window in windows[:6]:
            lens = logit_lens(trace_pass(shakespeare.model, window[:-1].tolist(), names=of_the_stream)).logits
            losses.append([float(F.cross_entropy(logits, window[1:])) for logits in lens])
        assert np.mean(losses, 0) == pytest.approx([3.63, 2.79, 2.45, 2.20, 1.86, 1.47, 1.25], abs=0.08)


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


def test_the_translator_s_staircase_is_there_and_isn_t_needed():
    checkpoint = shipped("number-words-en-es")
    model, card, point = checkpoint.model, checkpoint.card, "decoder.blocks.1.cross_attn.hook_"
    source = checkpoint.tokenizer.encode("three hundred and sixty-five thousand two hundred and forty-eight")
    asked = {"source": source, "max_new_tokens": 11, "sampling": Sampling(temperature=0)}
    asked |= {"stop_tokens": [card.end_token_id], "names_filter": f"{point}pattern"}
    steps, others = (
        [*generate(model, [card.start_token_id], **asked, interventions=taken)]
        for taken in ((), [Scale(f"{point}z", 0)])
    )
    assert [step.token_id for step in steps] == [step.token_id for step in others]
    assert checkpoint.tokenizer.decode([steps[0].token_id]) == "trescientos"
    chosen = float(steps[0].cache[f"{point}pattern"][0, 0, 0, 0])
    assert chosen == pytest.approx(1.0, abs=0.005)  # where it chooses trescientos: three


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
