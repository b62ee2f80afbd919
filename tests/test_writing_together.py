"""Two script runs of one visitor that overlap for a moment, and two visitors who write at once."""

import threading
import time

import numpy as np
import pytest
import torch

from pages.ui.models import library
from pages.ui.models.branches import LOGITS
from pages.ui.models.turns import Turns
from pages.ui.models.writer import Writer
from tests.writers import (
    FOREVER,
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
from transformer import Sampling


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
    original, in_token, stopped = Writer._one_step, threading.Event(), threading.Event()

    def step(self, *how):
        original(self, *how)
        if len(self.branch.tokens) == 5:
            in_token.set()
            assert stopped.wait(30)

    monkeypatch.setattr(Writer, "_one_step", step)
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


def test_two_visitors_write_as_if_alone():
    one, other = begin("ROMEO:\n"), begin("KING: ")
    together(lambda: written(one, 40), lambda: written(other, 40, Sampling(seed=3)))
    assert ids(one) == expected(one.prompt, 40)
    assert ids(other) == expected(other.prompt, 40, Sampling(seed=3))


# Turns


def test_turns_are_taken_one_at_a_time_in_the_order_of_those_who_wait():
    turns, order, inside = Turns(), [], []

    def take(name, times):
        for _ in range(times):
            with turns:
                inside.append(name)
                assert inside == [name]
                time.sleep(0.002)
                order.append(inside.pop())

    together(*(lambda name=name: take(name, 20) for name in "abc"))
    middle = order[10:-10]  # where all three are at it
    assert sorted(order) == sorted("abc" * 20)
    assert all(set(middle[i : i + 3]) == set("abc") for i in range(0, len(middle) - 3))


def test_a_turn_that_fails_is_over():
    turns = Turns()
    with pytest.raises(ZeroDivisionError), turns:
        1 / 0  # noqa: B018
    with turns:
        pass
