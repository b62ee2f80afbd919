"""A visitor's text: written in turns, stopped between two tokens, safe where two script runs overlap."""

import shutil
import threading
import time

import numpy as np
import pytest
import streamlit as st

from pages.ui.models import activations, library
from pages.ui.models.writer import Writer
from tests.tiny_models import CONTEXT, save_pair, save_tiny
from transformer import CheckpointError, Sampling, generate

SAMPLING = Sampling(temperature=0.9, seed=7)
FOREVER = 10**6


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("checkpoints")
    save_pair(folder)
    save_tiny(folder, "no-layers", n_layers=0)
    return folder


@pytest.fixture(autouse=True)
def models(folder, monkeypatch):
    monkeypatch.setattr(library, "FOLDER", folder)
    st.cache_data.clear()
    st.cache_resource.clear()


def begin(prompt="ROMEO:\n", model="shakespeare"):
    writer = Writer()
    assert writer.begin(model, tuple(library.tokenizer(model).encode(prompt)))
    return writer


def written(writer, tokens, sampling=SAMPLING):
    """Write so many tokens at once."""
    writer.start(tokens)
    writer.write(sampling, FOREVER)
    return writer


def expected(prompt, tokens, sampling=SAMPLING, model="shakespeare"):
    """What the engine writes after these tokens."""
    steps = generate(library.model(model).model, prompt, max_new_tokens=tokens, sampling=sampling, names_filter=())
    return [step.token_id for step in steps]


def ids(writer):
    return [token.id for token in writer.written]


def statistics(writer):
    return [(token.id, token.rank, token.probability, token.entropy) for token in writer.written]


def assert_statistics_equal(found, wanted):
    assert [row[:2] for row in found] == [row[:2] for row in wanted]
    assert np.allclose([row[2:] for row in found], [row[2:] for row in wanted], atol=1e-5)


# Writing


@pytest.mark.parametrize("tokens", [1, CONTEXT - 7, 3 * CONTEXT])
def test_it_writes_what_the_engine_writes(tokens):
    writer = written(begin(), tokens)
    assert ids(writer) == expected(writer.prompt, tokens)
    assert writer.tokens == writer.prompt + tuple(ids(writer))
    assert not writer.live


def test_turns_steps_and_one_go_write_the_same():
    at_once = written(begin(), 30)
    in_turns = begin()
    in_turns.start(30)
    turns = 0
    while in_turns.live:
        in_turns.write(SAMPLING, seconds=1e-6)
        turns += 1
    stepwise = begin()
    for _ in range(30):
        stepwise.write_one(SAMPLING)
    assert statistics(in_turns) == statistics(at_once) == statistics(stepwise)
    assert turns >= 30


def test_a_second_run_goes_on_from_the_first():
    writer = written(written(begin(), 10), 5)
    assert ids(writer) == expected(writer.prompt, 15)


def test_other_dials_count_from_the_next_token():
    writer = written(begin(), 6)
    greedy = Sampling(temperature=0)
    written(writer, 6, greedy)
    assert ids(writer)[6:] == expected(writer.prompt + tuple(ids(writer)[:6]), 6, greedy)


@pytest.mark.parametrize("model", ["shakespeare", "martin-fierro", "no-layers"])
def test_the_newest_logits_and_rows_are_those_of_the_token_before(model):
    writer = begin(model=model)
    for _ in range(CONTEXT + 4):  # before and after the window slides
        writer.write_one(SAMPLING)
        logits, rows = writer.newest
        again, rows_again = activations.next_token(model, writer.tokens[:-1])
        assert np.allclose(logits, again, atol=1e-4)
        assert rows.keys() == rows_again.keys() == ({"self"} if model != "no-layers" else set())
        assert all(np.allclose(rows[kind], rows_again[kind], atol=1e-5) for kind in rows)


def test_it_keeps_the_pace():
    writer = begin()
    writer.start(100)
    started = time.monotonic()
    writer.write(SAMPLING, seconds=0.05, pace=2.0)
    assert len(ids(writer)) == 1  # the first comes at once
    while time.monotonic() - started < 1.2:
        writer.write(SAMPLING, seconds=0.01, pace=2.0)
        assert len(ids(writer)) <= 1 + 2.0 * (time.monotonic() - started)
        time.sleep(0.01)
    assert len(ids(writer)) >= 2
    assert writer.live


def test_a_turn_ends_in_time():
    writer = begin()
    writer.start(FOREVER)
    started = time.monotonic()
    writer.write(SAMPLING, seconds=0.2)
    assert time.monotonic() - started < 2
    assert writer.live and 0 < len(ids(writer)) < FOREVER


# Clear, pick, another prompt


def test_clear_keeps_the_prompt():
    writer = written(begin(), 8)
    prompt, first = writer.prompt, ids(writer)
    writer.clear()
    assert writer.tokens == writer.prompt == prompt
    assert not writer.live and writer.newest is None
    assert ids(written(writer, 8)) == first


def test_clear_ends_a_run():
    writer = begin()
    writer.start(50)
    writer.clear()
    writer.write(SAMPLING, FOREVER)
    assert not writer.written


def test_the_same_prompt_again_keeps_the_text():
    writer = written(begin(), 8)
    assert not writer.begin(writer.model, writer.prompt)
    assert len(writer.written) == 8


@pytest.mark.parametrize(("model", "prompt"), [("shakespeare", "JULIET:"), ("martin-fierro", "ROMEO:\n")])
def test_another_prompt_or_model_drops_the_text(model, prompt):
    writer = written(begin(), 8)
    tokens = tuple(library.tokenizer(model).encode(prompt))
    assert writer.begin(model, tokens)
    assert writer.tokens == tokens
    assert ids(written(writer, 5)) == expected(tokens, 5, model=model)


@pytest.mark.parametrize("index", [0, 4, 7, 8])
def test_a_picked_token_replaces_one_and_drops_what_followed(index):
    writer = written(begin(), 8)
    before = statistics(writer)
    other = (ids(writer)[min(index, 7)] + 1) % 60
    writer.pick(len(writer.prompt) + index, other)
    assert statistics(writer)[:index] == before[:index]
    assert len(writer.written) == index + 1
    assert writer.written[-1].id == other and writer.written[-1].picked
    assert not writer.live
    written(writer, 5)
    assert ids(writer)[index + 1 :] == expected(writer.tokens[:-5], 5)


def test_a_picked_token_has_the_model_s_own_odds():
    writer = written(begin(), 6)
    same = statistics(writer)[3]
    writer.pick(len(writer.prompt) + 3, same[0])
    assert_statistics_equal(statistics(writer)[3:], [same])


# A text from a link


@pytest.mark.parametrize("tokens", [1, 6, 3 * CONTEXT])
@pytest.mark.parametrize("prompt", ["R", "ROMEO:\n", "KING: " * 6])
def test_a_restored_text_has_the_statistics_of_the_written_one(prompt, tokens):
    one = written(begin(prompt), tokens)
    other = begin(prompt)
    other.restore(tuple(ids(one)))
    assert_statistics_equal(statistics(other), statistics(one))
    assert not other.live
    assert ids(written(other, 5)) == ids(written(one, 5))


def test_restoring_nothing_is_nothing():
    writer = begin()
    writer.restore(())
    assert writer.tokens == writer.prompt


# A model that is replaced


def test_a_replaced_model_does_not_change_a_text_half_way(tmp_path, monkeypatch):
    monkeypatch.setattr(library, "FOLDER", tmp_path)
    old = save_tiny(tmp_path, "model", seed=1)
    writer = written(begin(model="model"), 5)
    save_tiny(tmp_path, "model", seed=2, n_layers=3, alphabet="ROME:\n")  # another shape, and other tokens
    written(writer, 5)
    writer.stop()
    written(writer, CONTEXT, Sampling(temperature=0.5, seed=3))
    steps = generate(old.model, writer.prompt, max_new_tokens=10, sampling=SAMPLING, names_filter=())
    assert ids(writer)[:10] == [step.token_id for step in steps]
    after = writer.prompt + tuple(ids(writer)[:10])
    steps = generate(old.model, after, max_new_tokens=CONTEXT, sampling=Sampling(temperature=0.5, seed=3))
    assert ids(writer)[10:] == [step.token_id for step in steps]
    picked = 40  # only the old one knows it
    writer.pick(len(writer.prompt), picked)
    assert ids(writer) == [picked]
    assert writer.begin("model", (1, 2))
    assert len(library.model("model").model.blocks) == len(writer.opened.checkpoint.model.blocks) == 3


def test_a_model_that_has_gone_writes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(library, "FOLDER", tmp_path)
    save_tiny(tmp_path, "model", seed=1)
    writer = written(begin(model="model"), 5)
    shutil.rmtree(tmp_path / "model")
    assert len(ids(written(writer, 5))) == 10 and not writer.finished
    with pytest.raises(CheckpointError, match="no checkpoint folder 'model'"):
        writer.begin("model", (1,))


def test_past_the_context_it_keeps_nothing_of_the_last_pass():
    """Nothing is cached there, so that the recorded window would be all it holds on to."""
    writer = written(begin(), CONTEXT + 5)
    assert writer._steps is None
    logits, rows = writer.newest
    assert logits.base is None and rows["self"].base is None
    assert ids(written(writer, 5)) == expected(writer.prompt, CONTEXT + 10)


# Two script runs at once


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
    writer.start(FOREVER)
    original, in_token, stopped = Writer._one_step, threading.Event(), threading.Event()

    def step(self, sampling):
        original(self, sampling)
        if len(self.written) == 5:
            in_token.set()
            assert stopped.wait(30)

    monkeypatch.setattr(Writer, "_one_step", step)
    run = Run(lambda: writer.write(SAMPLING, FOREVER))
    run.start()
    assert in_token.wait(30)
    started = time.monotonic()
    writer.stop()  # doesn't wait for the other run, which holds the lock
    assert time.monotonic() - started < 1
    stopped.set()
    run.join(30)
    assert not run.is_alive() and run.error is None
    assert len(writer.written) == 5
    assert ids(writer) == expected(writer.prompt, 5)


def test_overlapping_turns_write_one_text():
    writer = begin()
    writer.start(60)

    def turns():
        while writer.live:
            writer.write(SAMPLING, seconds=0.005)

    together(turns, turns, turns)
    assert ids(writer) == expected(writer.prompt, 60)


def test_overlapping_steps_write_one_text():
    writer = begin()

    def steps():
        for _ in range(10):
            writer.write_one(SAMPLING)

    together(steps, steps, steps)
    assert ids(writer) == expected(writer.prompt, 30)


def test_whatever_overlaps_leaves_a_text_that_could_have_been_written():
    """A turn beside stop, clear, pick, and another prompt: each token is followed by what the engine would say."""
    writer = begin()
    prompts = [tuple(library.tokenizer("shakespeare").encode(text)) for text in ("ROMEO:\n", "A", "KING: " * 5)]
    done = threading.Event()

    def turns():
        while not done.is_set():
            writer.write(SAMPLING, seconds=0.01)

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
                        writer.write_one(SAMPLING)
                writer.start(40)
                time.sleep(0.002)
        finally:
            done.set()

    together(turns, turns, disturb)
    writer.stop()
    for index, token in enumerate(writer.written):
        if not token.picked:
            before = writer.prompt + tuple(ids(writer)[:index])
            assert [token.id] == expected(before, 1), index
    again = Writer()
    again.begin(writer.model, writer.prompt)
    again.restore(tuple(ids(writer)))
    assert_statistics_equal(statistics(again), statistics(writer))


def test_two_visitors_write_as_if_alone():
    one, other = begin("ROMEO:\n"), begin("KING: ")
    one.start(40), other.start(40)
    together(lambda: one.write(SAMPLING, FOREVER), lambda: other.write(Sampling(seed=3), FOREVER))
    assert ids(one) == expected(one.prompt, 40)
    assert ids(other) == expected(other.prompt, 40, Sampling(seed=3))
