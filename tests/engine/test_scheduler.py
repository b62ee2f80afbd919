"""Tests the scheduler: concurrent texts are each the same as alone."""

import asyncio
import gc
import subprocess
import sys
import threading
import time
import weakref

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.test_batched_decoding import asked_of, check_steps
from tests.helpers import any_configs, tiny_encoder_decoder, tiny_model
from tests.training_plans import until
from transformer import MeanAblate, Sampling
from transformer.inference import scheduler as module
from transformer.inference.generation import DecodeState
from transformer.inference.scheduler import Scheduler, schedulers

PATIENCE = 120
"""Seconds after which something that should have happened hasn't."""


def read_all(requests):
    """What each of them yields, or its error: some to a thread of their own and some to a coroutine."""

    async def read(request):
        return [step async for step in request]

    async def gather():
        reading = [
            read(each) if number % 2 else asyncio.to_thread(lambda each=each: list(each))
            for number, each in enumerate(requests)
        ]
        return await asyncio.wait_for(asyncio.gather(*reading, return_exceptions=True), PATIENCE)

    return asyncio.run(gather())


@pytest.fixture
def model():
    found = tiny_model()
    yield found
    schedulers.of(found).close()


@pytest.fixture
def scheduler(model):
    return schedulers.of(model)


class TestEachText:
    @settings(max_examples=10)
    @given(any_configs(context_length=8), st.integers(2, 7), st.integers(0, 14), st.integers(1, 5))
    def test_is_what_is_written_alone_whatever_else_is_in_the_batch(self, config, many, tokens, buffer):
        """Of every configuration, past the context too, with changes and recording, and of readers who fall behind."""
        model = tiny_model(config)
        scheduler = Scheduler(model)
        asked = [asked_of(model, number) for number in range(many)]
        for number, (_, more) in enumerate(asked):
            more["names_filter"] = [name for name in model.hook_names() if name.endswith("hook_z")][: number % 3]
        submitted = [
            scheduler.submit(DecodeState(model, prompt, **more), max_new_tokens=tokens + number, buffer=buffer)
            for number, (prompt, more) in enumerate(asked)
        ]
        for number, ((prompt, more), steps) in enumerate(zip(asked, read_all(submitted), strict=True)):
            assert len(steps) == tokens + number
            check_steps(steps, model, prompt, more)
        assert scheduler.texts == 0
        scheduler.close()

    def test_of_an_encoder_decoder_can_go_on_later(self):
        """The state is the caller's again, keys and values included."""
        model = tiny_encoder_decoder()
        asked = [{"source": [number + 1] * 3, "sampling": Sampling(seed=number)} for number in (0, 1)]
        states = [DecodeState(model, [1], **each) for each in asked]
        written = read_all([schedulers.of(model).submit(state, max_new_tokens=5) for state in states])
        for state, each, steps in zip(states, asked, written, strict=True):
            assert state.cached == 5
            check_steps([*steps, *(state.step() for _ in range(9))], model, [1], each)
        schedulers.of(model).close()

    def test_is_refused_while_it_is_being_written_and_of_another_model(self, model, scheduler):
        state = DecodeState(model, [1])
        request = scheduler.submit(state)
        with pytest.raises(ValueError, match="being written already"):
            scheduler.submit(state)
        with pytest.raises(ValueError, match="another model"):
            scheduler.submit(DecodeState(tiny_model(seed=1), [1]))
        request.cancel()
        request.wait()
        assert len(list(scheduler.submit(state, max_new_tokens=2))) == 2
        assert list(scheduler.submit(state, max_new_tokens=0)) == []


class TestCancelling:
    def test_ends_it_after_the_token_in_progress(self, model, scheduler):
        steps, at_it, cancelled = [], threading.Event(), threading.Event()

        def take(step):
            steps.append(step)
            at_it.set()
            return cancelled.wait(PATIENCE)

        request = scheduler.submit(DecodeState(model, [1]), on_step=take)
        assert at_it.wait(PATIENCE)
        request.cancel()  # doesn't wait for it
        cancelled.set()
        request.wait()
        assert len(steps) == 1 and scheduler.texts == 0

    def test_is_what_a_reader_does_who_leaves(self, model, scheduler):
        """A coroutine that is cancelled, too. And one that rests is woken."""

        async def take(arrived):
            async for _ in scheduler.submit(DecodeState(model, [1])):
                arrived.set()

        async def leave():
            arrived = asyncio.Event()
            reader = asyncio.create_task(take(arrived))
            await asyncio.wait_for(arrived.wait(), PATIENCE)
            reader.cancel()
            await asyncio.wait([reader])

        asyncio.run(leave())
        for _ in scheduler.submit(DecodeState(model, [1])):
            break
        until(lambda: scheduler.texts == 0)
        request = scheduler.submit(DecodeState(model, [1]), buffer=3)
        until(lambda: len(request.state.tokens) == 4)
        request.cancel()
        request.wait()
        assert len(request.state.tokens) == 4


class TestErrors:
    def test_reach_the_request_whose_they_are_alone_after_what_was_written_before(self, model, scheduler):
        def fail(tensor, hook):
            if tensor.shape[1] == 4:
                raise ZeroDivisionError

        failing, of_a_coroutine = (
            scheduler.submit(DecodeState(model, [1, 2], fwd_hooks=[("hook_embed", fail)])) for _ in range(2)
        )
        told = scheduler.submit(DecodeState(model, [1]), on_step=lambda step: 1 / 0)
        asked = [asked_of(model, number) for number in (0, 3)]
        one, other = (scheduler.submit(DecodeState(model, each, **more), max_new_tokens=20) for each, more in asked)
        *written, error = read_all([one, other, told, of_a_coroutine])
        assert isinstance(error, ZeroDivisionError)
        for (prompt, more), steps in zip(asked, written, strict=False):
            assert len(steps) == 20
            check_steps(steps, model, prompt, more)
        running = iter(failing)
        assert [next(running).position, next(running).position] == [2, 3]
        for wait in (lambda: next(running), failing.wait, told.wait):
            with pytest.raises(ZeroDivisionError):
                wait()

    def test_of_the_scheduler_itself_leave_nobody_waiting(self, model, scheduler, monkeypatch):
        def fail(*_):
            raise MemoryError

        monkeypatch.setattr(Scheduler, "_next_batch", fail)
        with pytest.raises(MemoryError):
            list(scheduler.submit(DecodeState(model, [1])))
        monkeypatch.undo()
        assert len(list(scheduler.submit(DecodeState(model, [1]), max_new_tokens=3))) == 3


def test_who_is_far_behind_rests_and_holds_up_nobody_and_nobody_waits_for_it(model, scheduler):
    before = schedulers.texts
    slow = scheduler.submit(DecodeState(model, [1], sampling=Sampling(seed=1)), max_new_tokens=40, buffer=6)
    assert schedulers.texts == before + 1
    until(lambda: len(slow.state.tokens) == 7 and schedulers.texts_due == 0)
    quick = list(scheduler.submit(DecodeState(model, [2], sampling=Sampling(seed=2)), max_new_tokens=30))
    assert len(quick) == 30 and len(slow.state.tokens) == 7
    running = iter(slow)
    steps = [next(running), next(running)]
    time.sleep(0.05)
    assert len(slow.state.tokens) == 7  # it goes on when half of what is ahead has been taken
    steps.append(next(running))
    until(lambda: len(slow.state.tokens) == 10 and schedulers.texts_due == 0)
    steps += running
    check_steps(steps, model, [1], {"sampling": Sampling(seed=1)})
    assert len(steps) == 40 and schedulers.texts == before


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        # Prompts are spread, and whoever is written gets a token each round.
        ([([1], (), 5), *[([2] * 7, (), 1)] * 4], [[0, 1], [0, 2], [0, 3], [0, 4]]),
        # Short prompts share a round.
        ([([2] * length, (), 1) for length in (3, 3, 2, 4)], [[0, 1, 2], [3]]),
        # Those that need a whole pass each time take turns.
        ([([number] * 7, (MeanAblate("blocks.0.attn.hook_z"),), 4) for number in range(3)], [[0], [1], [2]] * 4),
    ],
)
def test_rounds_are_fair(model, scheduler, monkeypatch, texts, expected):
    """Each reads at most one window of 8 tokens."""
    monkeypatch.setattr(module, "PREFILL_TOKENS", 8)
    begin, active, next_batch, rounds = threading.Event(), Scheduler._active, Scheduler._next_batch, []

    def note(scheduler, active):
        batch = next_batch(scheduler, active)
        rounds.append([states.index(request.state) for request in batch])
        return batch

    monkeypatch.setattr(Scheduler, "_active", lambda scheduler: begin.wait(PATIENCE) and active(scheduler))
    monkeypatch.setattr(Scheduler, "_next_batch", note)
    states = [DecodeState(model, prompt, interventions=changed) for prompt, changed, _ in texts]
    requests = [
        scheduler.submit(state, max_new_tokens=count) for state, (_, _, count) in zip(states, texts, strict=True)
    ]
    begin.set()
    for request in requests:
        request.wait()
    assert [sorted(batch) for batch in rounds][: len(expected)] == expected


class TestThreads:
    def test_there_is_one_a_model_that_ends_when_it_is_idle_and_starts_again(self, model, scheduler, monkeypatch):
        monkeypatch.setattr(module, "IDLE_SECONDS", 0.05)
        assert schedulers.of(model) is scheduler and schedulers.of(tiny_model(seed=1)) is not scheduler
        read_all([scheduler.submit(DecodeState(model, [1]), max_new_tokens=5) for _ in range(3)])
        until(lambda: scheduler._thread is None)
        assert len(list(scheduler.submit(DecodeState(model, [1]), max_new_tokens=5))) == 5

    def test_a_model_that_is_let_go_is_held_by_nobody(self):
        model = tiny_model()
        assert len(list(schedulers.of(model).submit(DecodeState(model, [1]), max_new_tokens=3))) == 3
        gone = weakref.ref(model)
        del model
        until(lambda: gc.collect() is not None and gone() is None)  # its thread, which is idle, needn't have ended

    def test_a_process_may_end_while_texts_are_written_and_a_training_runs(self):
        code = (
            "from tests.helpers import tiny_model\n"
            "from tests.training_plans import text_plan, until\n"
            "from transformer.inference.generation import DecodeState\n"
            "from transformer.inference.scheduler import schedulers\n"
            "from transformer.training.training_queue import TrainingQueue\n"
            "model = tiny_model()\n"
            "requests = [schedulers.of(model).submit(DecodeState(model, [1]), buffer=10**9) for _ in range(5)]\n"
            "job = TrainingQueue(1).train(text_plan(10**6))\n"
            "until(lambda: job.progress.step > 3)\n"
            "next(iter(requests[0]))\n"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=250, check=False)
        assert (done.returncode, done.stderr) == (0, "")
