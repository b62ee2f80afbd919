"""What the shipped models hold that one wouldn't have guessed, to the digits that are told of it.

The text is the beginning of what *Shakespeare* was never trained on: twelve windows of its context and a token more.
"""

import os
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from tests.browser.servers import ROOT
from transformer import (
    TASKS,
    Sampling,
    Scaled,
    Without,
    evaluate_loss,
    generate,
    load_checkpoint,
    load_corpus,
    logit_lens,
    whole_pass,
)
from transformer.data.batches import task_batch
from transformer.data.corpora import FOLDER_VARIABLE, SOURCES
from transformer.inference.interventions import hooks_of

LADDER = {"1-bigram": 2.484, "2-positions": 2.486, "3-average": 2.814, "4-attention": 2.354}
CORPUS = Path(os.environ.get(FOLDER_VARIABLE, "")) / SOURCES["tiny-shakespeare"].file_name
needs_corpus = pytest.mark.skipif(not CORPUS.is_file(), reason=f"{FOLDER_VARIABLE} names no folder with {CORPUS.name}")


@pytest.fixture(scope="module")
def shakespeare():
    return load_checkpoint(ROOT / "checkpoints" / "shakespeare")


@pytest.fixture(scope="module")
def held_out():
    return load_corpus("tiny-shakespeare").split()[1]


@pytest.fixture(scope="module")
def windows(shakespeare, held_out):
    """(12, 257)."""
    return torch.tensor(shakespeare.tokenizer.encode(held_out[: 12 * 257])).view(12, 257)


@pytest.fixture(scope="module")
def plain(shakespeare, windows):
    return loss(shakespeare.model, windows)


@torch.no_grad()
def loss(model, windows, *interventions):
    logits = model.run_with_hooks(windows[:, :-1], fwd_hooks=hooks_of(interventions, model))
    return float(F.cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten()))


@torch.no_grad()
def patterns(model, windows, *interventions):
    """(layer, batch, head, query, key)."""
    _, cache = model.run_with_cache(
        windows[:, :-1],
        names_filter=lambda name: name.endswith("hook_pattern"),
        fwd_hooks=hooks_of(interventions, model),
    )
    return torch.stack(list(cache.values()))


@needs_corpus
class TestShakespeare:
    def test_it_can_do_without_its_scale_but_not_without_its_mask_or_its_positions(self, shakespeare, windows, plain):
        found = [plain, *(loss(shakespeare.model, windows, Without(rule)) for rule in ("scale", "mask", "positions"))]
        assert found == pytest.approx([1.25, 1.34, 3.17, 4.56], abs=0.006)
        assert found[-1] > np.log(65) > found[2]  # worse than guessing blindly: 4.17

    def test_its_first_feed_forward_layer_and_one_head_matter_most(self, shakespeare, windows, plain):
        parts = [
            Scaled("blocks.0.hook_mlp_out"),
            Scaled("blocks.1.attn.hook_z", 5),
            Scaled("blocks.1.attn.hook_z", 3),
            Scaled("blocks.5.hook_mlp_out"),
        ]
        rises = [loss(shakespeare.model, windows, part) - plain for part in parts]
        assert rises == pytest.approx([1.15, 0.22, 0.0, 0.09], abs=0.006)

    def test_without_the_scale_each_token_looks_at_nearly_one_alone_and_none_looks_at_the_first(
        self, shakespeare, windows
    ):
        few = windows[:2]
        plain, sharp = (patterns(shakespeare.model, few, *each) for each in ((), (Without("scale"),)))
        for found, low, high in ((plain, 0.26, 0.49), (sharp, 0.81, 0.90)):
            by_layer = found.amax(-1).mean((1, 2, 3))
            assert low - 0.04 < float(by_layer.min()) < float(by_layer.max()) < high + 0.04
        assert float(plain[:, :, :, 64:, 0].mean((1, 3)).max()) < 0.01

    def test_each_height_says_it_better_than_the_one_below(self, shakespeare, windows):
        losses = []
        for window in windows[:6]:
            lens = logit_lens(
                whole_pass(
                    shakespeare.model, window[:-1].tolist(), names=lambda name: "resid" in name or "hook_embed" in name
                )
            ).logits
            losses.append([float(F.cross_entropy(logits, window[1:])) for logits in lens])
        assert np.mean(losses, 0) == pytest.approx([3.63, 2.79, 2.45, 2.20, 1.86, 1.47, 1.25], abs=0.08)


def test_without_one_head_induction_repeats_nothing():
    model, task, random = load_checkpoint(ROOT / "checkpoints" / "induction").model, TASKS["induction"], 20
    batch = task_batch(task, [task.repeated(np.random.default_rng(seed), random) for seed in range(60)])
    found = []
    for taken in ((), (Scaled("blocks.0.attn.hook_z", 0),)):
        with torch.no_grad():
            logits = model.run_with_hooks(*batch.inputs, fwd_hooks=hooks_of(taken, model))
        found.append(float(F.cross_entropy(logits.mT, batch.targets, reduction="none")[:, random:].mean()))
    assert found == pytest.approx([0.03, 3.64], abs=0.08)


def test_the_translator_s_staircase_is_there_and_isn_t_needed():
    checkpoint = load_checkpoint(ROOT / "checkpoints" / "number-words-en-es")
    model, tokenizer, card = checkpoint.model, checkpoint.tokenizer, checkpoint.card
    source = tokenizer.encode("three hundred and sixty-five thousand two hundred and forty-eight")
    written = [
        [
            step.token_id
            for step in generate(
                model,
                [card.start_token_id],
                source=source,
                max_new_tokens=11,
                sampling=Sampling(temperature=0),
                stop_tokens=[card.end_token_id],
                interventions=each,
            )
        ]
        for each in ((), (Scaled("decoder.blocks.1.cross_attn.hook_z", 0),))
    ]
    assert written[0] == written[1]
    assert tokenizer.decode(written[0][:1]) == "trescientos"
    point = "decoder.blocks.1.cross_attn.hook_pattern"
    with torch.no_grad():
        _, cache = model.run_with_cache(
            torch.tensor([source]), torch.tensor([[card.start_token_id]]), names_filter=point
        )
    assert float(cache[point][0, 0, 0, 0]) == pytest.approx(1.0, abs=0.005)  # where it chooses trescientos: three


class TestLadder:
    def test_an_average_is_worse_than_nothing_and_attention_better(self):
        found = [load_checkpoint(ROOT / "checkpoints" / f"ladder-{name}").card.validation_loss for name in LADDER]
        assert found == pytest.approx(list(LADDER.values()), abs=0.0006)

    @needs_corpus
    def test_the_cards_say_what_is_measured(self, held_out):
        for name, expected in LADDER.items():
            checkpoint = load_checkpoint(ROOT / "checkpoints" / f"ladder-{name}")
            measured = evaluate_loss(checkpoint.model, checkpoint.tokenizer.encode(held_out))
            assert measured == pytest.approx(expected, abs=0.0006)
            assert measured == pytest.approx(checkpoint.card.validation_loss, abs=2e-5)

    @needs_corpus
    def test_the_same_is_seen_on_a_page_of_it(self, held_out):
        found = []
        for name in LADDER:
            checkpoint = load_checkpoint(ROOT / "checkpoints" / f"ladder-{name}")
            found.append(evaluate_loss(checkpoint.model, checkpoint.tokenizer.encode(held_out[: 12 * 257])))
        assert found[3] < min(found[:2]) < max(found[:2]) < found[2]
        assert found == pytest.approx(list(LADDER.values()), abs=0.1)
