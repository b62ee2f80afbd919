"""Two script runs of one visitor that overlap for a moment, and two visitors who write at once."""

import threading
import time

import numpy as np
import pytest
import torch

from pages.ui.models import library
from pages.ui.models.branches import LOGITS
from pages.ui.models.shown_text import Looked
from pages.ui.models.writer import Writer
from tests.tiny_models import CONTEXT
from tests.writers import (
    FOREVER,
    GREEDY,
    HERE,
    SAMPLING,
    all_ids,
    assert_statistics_equal,
    begin,
    expected,
    ids,
    is_drawn,
    save_models,
    statistics,
    written,
)
from transformer import Averaged, Replaced, Sampling, Scaled, Weighed, Without
from transformer.inference.scheduler import Scheduler, schedulers


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return save_models(tmp_path_factory.mktemp("checkpoints"))


@pytest.fixture(autouse=True)
def models(folder):
    """The tiny models, in every test."""


class Run(threading.Thread):
    """A script run of the visitor's; what it raises is kept."""

    def __init__(self, work):
        super().__init__(daemon=True)
        self.work, self.error = work, None

    def run(self):
        try:
            self.work()
        except BaseException as error:
            self.error = error


def together(*works, seconds=60):
    runs = [Run(work) for work in works]
    for run in runs:
        run.start()
    for run in runs:
        run.join(seconds)
        assert not run.is_alive()
    assert [run.error for run in runs] == [None] * len(runs)


def test_stop_is_heeded_before_the_next_token(monkeypatch):
    writer = begin()
    writer.aim(FOREVER)
    original, in_token, stopped = Writer._take, threading.Event(), threading.Event()

    def step(self, *how):
        original(self, *how)
        if len(self.branch.tokens) == 5:
            in_token.set()
            assert stopped.wait(30)

    monkeypatch.setattr(Writer, "_take", step)
    run = Run(lambda: writer.write(SAMPLING, HERE, FOREVER))
    run.start()
    assert in_token.wait(30)
    started = time.monotonic()
    writer.stop()  # doesn't wait for the other run, which holds the lock
    assert time.monotonic() - started < 1
    stopped.set()
    run.join(30)
    assert not run.is_alive() and run.error is None
    assert all_ids(writer) == expected(writer.prompt, 5)


def test_another_prompt_waits_for_no_more_than_the_token_in_progress():
    writer, at_it = begin(), threading.Event()
    writer.aim(FOREVER)

    def write():
        at_it.set()
        writer.write(SAMPLING, HERE, seconds=20)

    run = Run(write)
    run.start()
    assert at_it.wait(30)
    started = time.monotonic()
    assert not writer.begin("shakespeare", writer.prompt)  # the same one, which needn't wait at all
    assert writer.goal
    assert writer.begin("shakespeare", (1, 2, 3))
    assert time.monotonic() - started < 10
    run.join(10)
    assert not run.is_alive() and run.error is None
    assert writer.tokens == (1, 2, 3) and not writer.branch.tokens


def test_overlapping_turns_write_one_text():
    writer = begin()
    writer.aim(writer.length + 60)

    def turns():
        while writer.goal:
            writer.write(SAMPLING, HERE, seconds=0.005, ahead=8)
            writer.commit(writer.length + 3)

    together(turns, turns, turns)
    assert ids(writer)[:60] == expected(writer.prompt, 60)


def test_whatever_overlaps_leaves_a_text_that_could_have_been_written():
    """A turn beside stop, clear, pick, and another prompt: each token is what its number leads to."""
    writer = begin()
    prompts = [tuple(library.tokenizer("shakespeare").encode(text)) for text in ("ROMEO:\n", "A", "KING: " * 5)]
    done = threading.Event()

    def turns():
        while not done.is_set():
            writer.write(SAMPLING, HERE, seconds=0.01)
            writer.prepare(SAMPLING)
            writer.commit(writer.branch.end - 1)

    def disturb():
        generator = np.random.default_rng(0)
        try:
            for _ in range(120):
                match generator.integers(6):
                    case 0:
                        writer.stop()
                    case 1:
                        writer.clear()
                    case 2:
                        writer.begin("shakespeare", prompts[generator.integers(3)])
                    case 3:
                        writer.pick(len(writer.prompt) + len(writer.written) // 2, int(generator.integers(60)))
                    case 4:
                        writer.undo()
                writer.aim(writer.length + 40)
                time.sleep(0.002)
        finally:
            done.set()

    together(turns, turns, disturb)
    writer.stop()
    for token in writer.branch.tokens:
        assert token.picked or is_drawn(token, torch.tensor(token.computed[LOGITS]), SAMPLING)
    again = Writer()
    again.begin(writer.model, writer.prompt)
    again.restore(tuple(ids(writer)))
    assert_statistics_equal(statistics(again), statistics(writer))


@pytest.fixture
def passes():
    """How many texts had a part in each pass of the model, while this is in use."""
    sizes = []
    unembed = library.model("shakespeare").model.unembed
    handle = unembed.register_forward_hook(lambda module, inputs, output: sizes.append(len(output)))
    yield sizes
    handle.remove()


def begun_when_all_are_there(monkeypatch, many):
    """Let the first token that is shared wait for so many visitors."""
    original, begun = Scheduler._of_this_round, []

    def of_this_round(self, active):
        deadline = time.monotonic() + 30
        while not begun and self.texts < many and time.monotonic() < deadline:
            time.sleep(0.001)
        begun.append(self.texts)
        return original(self, active)

    monkeypatch.setattr(Scheduler, "_of_this_round", of_this_round)


def test_visitors_share_passes_and_write_what_each_writes_alone(passes, monkeypatch):
    """Prompts of every length, dials and layers of their own; some are far past the context before others are done."""
    writers = [begin("ROMEO:\n"[: 1 + number % 7]) for number in range(8)]
    dials = [Sampling(temperature=0.9, seed=number) if number % 4 else GREEDY for number in range(8)]
    begun_when_all_are_there(monkeypatch, 8)

    def write(number):
        for part in range(3):
            written(writers[number], 3 + number, dials[number], Looked("self", (number + part) % 2))

    together(*(lambda number=number: write(number) for number in range(8)))
    assert max(passes) == 8
    for number, writer in enumerate(writers):
        assert ids(writer) == expected(writer.prompt, 9 + 3 * number, dials[number])
        again = Writer()
        again.begin(writer.model, writer.prompt)
        again.restore(tuple(ids(writer)))
        assert_statistics_equal(statistics(again), statistics(writer))
        for looked in (Looked("self", 0), Looked("self", 1)):
            places = len(writer.prompt), min(writer.length, CONTEXT)
            kept = writer.rows(looked, *places, only_kept=True)
            for place, row in again.rows(looked, *places).items():
                np.testing.assert_allclose(kept.get(place, row), row, atol=1e-5)
    assert not schedulers.texts


def test_what_fails_for_one_visitor_fails_for_nobody_else(passes, monkeypatch):
    writers = [begin() for _ in range(6)]
    begun_when_all_are_there(monkeypatch, 6)
    original = Writer._take

    def take(self, *how):
        original(self, *how)
        if self in writers[:3] and len(self.branch.tokens) == 4 + writers.index(self):
            raise ZeroDivisionError

    monkeypatch.setattr(Writer, "_take", take)

    def write(writer):
        if writer in writers[:3]:
            with pytest.raises(ZeroDivisionError):
                written(writer, 30)
        else:
            written(writer, 30)

    together(*(lambda writer=writer: write(writer) for writer in writers))
    assert max(passes) == 6
    for writer in writers[3:]:
        assert ids(writer) == expected(writer.prompt, 30)
    for writer in writers[:3]:  # and can be tried again
        monkeypatch.setattr(Writer, "_take", original)
        assert all_ids(written(writer, 12))[:12] == expected(writer.prompt, 12)


CHANGED = (
    (),
    (Scaled("blocks.0.attn.hook_z", 0), Scaled("blocks.1.hook_mlp_out", None, 9)),
    (Averaged("blocks.0.hook_attn_out"), Without("mask")),
    (Replaced("blocks.1.hook_resid_pre", tokens=(1, 2, 3)), Weighed("blocks.0.attn.hook_pattern", 1, 8, 2, 0.7)),
)


def test_visitors_write_as_if_alone_whatever_each_has_changed():
    """One model, four visitors, the same prompt, each with changes of their own: nobody's reach another."""
    writers = [begin(interventions=changed) for changed in CHANGED]
    together(*(lambda writer=writer: [written(writer, 5) for _ in range(6)] for writer in writers))
    texts = [ids(writer) for writer in writers]
    assert texts == [expected(writers[0].prompt, 30, interventions=changed) for changed in CHANGED]
    assert len(set(map(tuple, texts))) == len(CHANGED)


@pytest.mark.parametrize("changed", CHANGED[1:], ids=["a head", "looking ahead", "a weight"])
def test_a_changed_model_tells_of_a_text_what_writing_it_told(changed):
    """Scored anew, past the context too, a text's statistics, candidates and rows are those of the changed model."""
    writer = written(begin(interventions=changed), 20)
    again = begin(interventions=changed)
    again.restore(tuple(ids(writer)), SAMPLING)
    assert_statistics_equal(statistics(again), statistics(writer))
    places = range(len(writer.prompt), writer.length)
    np.testing.assert_allclose(again.logits(places), writer.logits(places), atol=1e-4)
    for place, row in again.rows(HERE, places[-2], places[-1]).items():
        np.testing.assert_allclose(row, writer.rows(HERE, place, place)[place], atol=1e-5)


def test_each_changed_model_has_its_own_texts_and_none_is_lost():
    writer = written(begin(), 8)
    prompt, first = writer.prompt, ids(writer)
    head, mask = CHANGED[1], (Without("mask"),)
    for turn in range(12):  # a dial that is turned: texts that were only carried along push none off the shelf
        writer.begin("shakespeare", prompt, interventions=(Scaled("blocks.0.attn.hook_z", 0, factor=turn / 8),))
        assert ids(writer) == first
    writer.begin("shakespeare", prompt, interventions=head)
    written(writer, 4)
    changed = ids(writer)
    assert changed == first + expected(prompt + tuple(first), 4, interventions=head)
    writer.begin("shakespeare", prompt, interventions=mask)
    assert ids(writer) == changed
    writer.begin("shakespeare", prompt)
    assert ids(writer) == first
    written(writer, 4)
    assert ids(writer) == expected(prompt, 12)
    writer.begin("shakespeare", prompt, interventions=head)
    assert ids(writer) == changed
