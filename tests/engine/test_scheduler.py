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

from tests.engine.test_batched_decoding import GREEDY, check_steps
from tests.helpers import any_configs, tiny_encoder_decoder, tiny_model
from tests.training_plans import until
from transformer import MeanAblate, Sampling, Scale, generate
from transformer.inference import scheduler as module
from transformer.inference.generation import DecodeState
from transformer.inference.scheduler import Scheduler, schedulers


def asked_of(model, number):
    """What is asked for one of several texts: prompt, source, sampling, changes, recorded points."""
    config = model.config
    prompt = [(3 * i + number) % config.vocab_size for i in range(1 + 5 * number % 13)]
    asked = {"sampling": GREEDY if number % 4 == 3 else Sampling(0.8, top_k=8, seed=number)}
    if config.architecture == "encoder-decoder":
        asked["source"] = [(2 * i + number) % config.vocab_size for i in range(1 + 3 * number % config.context_length)]
    points = [name for name in model.hook_names() if name.endswith("hook_z") and not name.startswith("encoder.")]
    if points and number % 3 == 1:
        asked["interventions"] = (MeanAblate(points[0]) if number % 2 else Scale(points[0], 0),)
    if points and number % 3 == 2:
        asked["names_filter"] = points[-1]
    return prompt, asked


PATIENCE = 120
"""Seconds after which something that should have happened hasn't."""


def check(model, prompt, asked, steps):
    check_steps(steps, generate(model, prompt, max_new_tokens=len(steps), **asked), asked["sampling"])


def read_all(requests):
    """What each of them yields, one thread a request."""
    found = [None] * len(requests)

    def read(number):
        try:
            found[number] = list(requests[number])
        except Exception as error:
            found[number] = error

    threads = [threading.Thread(target=read, args=(number,), daemon=True) for number in range(len(requests))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive()
    return found


@pytest.fixture
def model():
    found = tiny_model()
    yield found
    schedulers.of(found).close()


class TestEachText:
    @settings(max_examples=10)
    @given(any_configs(context_length=8), st.integers(2, 6), st.integers(0, 14), st.integers(1, 5))
    def test_is_what_is_written_alone_whatever_else_is_in_the_batch(self, config, many, tokens, buffer):
        """Of every configuration, past the context too, with changes and recording, and of readers who fall behind."""
        model = tiny_model(config)
        scheduler = Scheduler(model)
        asked = [asked_of(model, number) for number in range(many)]
        requests = [
            scheduler.submit(DecodeState(model, prompt, **more), max_new_tokens=tokens + number, buffer=buffer)
            for number, (prompt, more) in enumerate(asked)
        ]
        written = read_all(requests)
        scheduler.close()
        for number, ((prompt, more), steps) in enumerate(zip(asked, written, strict=True)):
            assert len(steps) == tokens + number
            check(model, prompt, more, steps)
        assert scheduler.texts == 0

    def test_ends_with_a_stop_token_which_is_still_reported(self, model):
        tokens = [step.token_id for step in generate(model, [1], max_new_tokens=20, sampling=Sampling(seed=3))]
        state = DecodeState(model, [1], sampling=Sampling(seed=3))
        written = schedulers.of(model).submit(state, stop_tokens=(tokens[4],))
        assert [step.token_id for step in written] == tokens[: tokens.index(tokens[4]) + 1]

    def test_of_an_encoder_decoder_can_go_on_later(self):
        """The state is the caller's again, keys and values included."""
        model = tiny_encoder_decoder()
        states = [DecodeState(model, [1], source=[number + 1] * 3, sampling=Sampling(seed=number)) for number in (0, 1)]
        steps = read_all([schedulers.of(model).submit(state, max_new_tokens=5) for state in states])
        for number, state in enumerate(states):
            assert state.cached == 5
            steps[number] += [state.step() for _ in range(9)]
            check(model, [1], {"source": [number + 1] * 3, "sampling": Sampling(seed=number)}, steps[number])
        schedulers.of(model).close()

    def test_may_be_handed_over_on_the_schedulers_thread(self, model):
        steps, threads = [], set()

        def take(step):
            steps.append(step)
            threads.add(threading.current_thread())
            return len(steps) < 12

        state = DecodeState(model, [1, 2, 3], sampling=Sampling(seed=5))
        schedulers.of(model).submit(state, on_step=take).wait()
        check(model, [1, 2, 3], {"sampling": Sampling(seed=5)}, steps)
        assert len(steps) == 12 and len(state.tokens) == 15 and threading.current_thread() not in threads

    def test_is_refused_while_it_is_being_written_and_of_another_model(self, model):
        scheduler, state = schedulers.of(model), DecodeState(model, [1])
        request = scheduler.submit(state)
        with pytest.raises(ValueError, match="being written already"):
            scheduler.submit(state)
        with pytest.raises(ValueError, match="another model"):
            scheduler.submit(DecodeState(tiny_model(seed=1), [1]))
        request.cancel()
        request.wait()
        assert len(list(scheduler.submit(state, max_new_tokens=2))) == 2


class TestCancelling:
    def test_ends_it_after_the_token_in_progress(self, model):
        scheduler, at_it, cancelled = schedulers.of(model), threading.Event(), threading.Event()
        steps = []

        def take(step):
            steps.append(step)
            at_it.set()
            assert cancelled.wait(PATIENCE)
            return True

        request = scheduler.submit(DecodeState(model, [1]), on_step=take)
        assert at_it.wait(PATIENCE)
        request.cancel()  # doesn't wait for it
        cancelled.set()
        request.wait()
        assert len(steps) == 1 and scheduler.texts == 0

    def test_is_what_a_reader_does_who_leaves_and_wakes_one_that_rests(self, model):
        scheduler = schedulers.of(model)
        for _ in scheduler.submit(DecodeState(model, [1])):
            break
        until(lambda: scheduler.texts == 0)
        request = scheduler.submit(DecodeState(model, [1]), buffer=3)
        until(lambda: len(request.state.tokens) == 4)
        request.cancel()
        request.wait()
        assert len(request.state.tokens) == 4


class TestErrors:
    def test_reach_the_request_whose_they_are_alone(self, model):
        scheduler = schedulers.of(model)
        asked = [asked_of(model, number) for number in range(4)]
        states = [DecodeState(model, prompt, **more) for prompt, more in asked]
        states[1].tokens[-1] = model.config.vocab_size  # which the embedding doesn't know
        written = read_all([scheduler.submit(state, max_new_tokens=20) for state in states])
        assert isinstance(written[1], ValueError)
        for number in (0, 2, 3):
            assert len(written[number]) == 20
            check(model, *asked[number], written[number])

    def test_come_after_what_was_written_before(self, model):
        def fail(tensor, hook):
            if tensor.shape[1] == 4:
                raise ZeroDivisionError

        request = schedulers.of(model).submit(DecodeState(model, [1, 2], fwd_hooks=[("hook_embed", fail)]))
        until(lambda: schedulers.of(model).texts == 0)
        running = iter(request)
        assert [next(running).position, next(running).position] == [2, 3]
        with pytest.raises(ZeroDivisionError):
            next(running)
        with pytest.raises(ZeroDivisionError):
            request.wait()

    def test_of_who_is_handed_a_step_are_raised_where_it_is_waited_for(self, model):
        scheduler, other = schedulers.of(model), []
        beside = scheduler.submit(DecodeState(model, [2]), on_step=lambda step: other.append(step) or len(other) < 40)
        request = scheduler.submit(DecodeState(model, [1]), on_step=lambda step: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            request.wait()
        beside.wait()
        assert len(other) == 40

    def test_of_the_scheduler_itself_leave_nobody_waiting(self, model, monkeypatch):
        def fail(*_):
            raise MemoryError

        scheduler = schedulers.of(model)
        monkeypatch.setattr(Scheduler, "_next_batch", fail)
        with pytest.raises(MemoryError):
            list(scheduler.submit(DecodeState(model, [1])))
        monkeypatch.undo()
        assert len(list(scheduler.submit(DecodeState(model, [1]), max_new_tokens=3))) == 3


class TestBackpressure:
    def test_who_is_far_behind_rests_and_holds_up_nobody(self, model):
        scheduler = schedulers.of(model)
        slow = scheduler.submit(DecodeState(model, [1], sampling=Sampling(seed=1)), max_new_tokens=40, buffer=6)
        until(lambda: len(slow.state.tokens) == 7)
        quick = list(scheduler.submit(DecodeState(model, [2], sampling=Sampling(seed=2)), max_new_tokens=30))
        assert len(quick) == 30 and len(slow.state.tokens) == 7
        running = iter(slow)
        steps = [next(running), next(running)]
        time.sleep(0.05)
        assert len(slow.state.tokens) == 7  # it goes on when half of what is ahead has been taken
        steps.append(next(running))
        until(lambda: len(slow.state.tokens) == 10)
        steps += running
        check(model, [1], {"sampling": Sampling(seed=1)}, steps)
        assert len(steps) == 40


def batches_of(scheduler, monkeypatch):
    """The texts of each batch, as they come."""
    batches, original = [], Scheduler._next_batch

    def next_batch(self, active):
        found = original(self, active)
        if self is scheduler:
            batches.append([request.state for request in found])
        return found

    monkeypatch.setattr(Scheduler, "_next_batch", next_batch)
    return batches


class TestFairness:
    @pytest.fixture
    def rounds(self, model, monkeypatch):
        """Gives the rounds of these requests, of which each reads at most one window of 8 tokens."""
        monkeypatch.setattr(module, "PREFILL_TOKENS", 8)
        begin, original, scheduler = threading.Event(), Scheduler._active, schedulers.of(model)

        def active(scheduler):
            assert begin.wait(PATIENCE)
            return original(scheduler)

        monkeypatch.setattr(Scheduler, "_active", active)
        batches = batches_of(scheduler, monkeypatch)

        def run(states, *counts):
            requests = [
                scheduler.submit(state, max_new_tokens=count) for state, count in zip(states, counts, strict=True)
            ]
            begin.set()
            for request in requests:
                request.wait()
            return batches

        return run

    def test_prompts_are_spread_and_whoever_is_written_gets_a_token_each_round(self, model, rounds):
        written, prompts = DecodeState(model, [1]), [DecodeState(model, [2] * 7) for _ in range(4)]
        assert rounds([written, *prompts], 5, 1, 1, 1, 1)[:4] == [[written, state] for state in prompts]

    def test_short_prompts_share_a_round(self, model, rounds):
        states = [DecodeState(model, [2] * length) for length in (3, 3, 2, 4)]
        assert rounds(states, 1, 1, 1, 1) == [states[:3], states[3:]]

    def test_those_that_need_a_whole_pass_each_time_take_turns(self, model, rounds):
        changed = (MeanAblate("blocks.0.attn.hook_z"),)
        states = [DecodeState(model, [number] * 7, interventions=changed) for number in range(3)]
        assert rounds(states, 4, 4, 4) == [[state] for state in states * 4]


class TestCoroutines:
    def test_many_streams_need_no_threads_of_their_own(self, model):
        scheduler, threads = schedulers.of(model), []

        async def read(number):
            prompt, more = asked_of(model, number)
            steps = []
            async for step in scheduler.submit(DecodeState(model, prompt, **more), max_new_tokens=9, buffer=4):
                steps.append(step)
                threads.append(threading.active_count())
                if number % 2:
                    await asyncio.sleep(0.001)
            check(model, prompt, more, steps)
            return len(steps)

        async def read_all():
            return await asyncio.wait_for(asyncio.gather(*map(read, range(16))), PATIENCE)

        before = threading.active_count()
        assert asyncio.run(read_all()) == [9] * 16
        assert max(threads) <= before + 1

    def test_one_that_is_cancelled_ends_the_computing(self, model):
        scheduler, arrived = schedulers.of(model), []

        async def read():
            async for step in scheduler.submit(DecodeState(model, [1])):
                arrived.append(step)

        async def leave():
            reader = asyncio.create_task(read())
            while len(arrived) < 3:
                await asyncio.sleep(0.001)
            reader.cancel()
            await asyncio.wait([reader])

        asyncio.run(leave())
        until(lambda: scheduler.texts == 0)

    def test_errors_reach_it(self, model):
        state = DecodeState(model, [1])
        state.tokens[-1] = model.config.vocab_size

        async def read():
            async for _ in schedulers.of(model).submit(state):
                pass

        with pytest.raises(ValueError, match="Token ids must lie"):
            asyncio.run(read())


class TestThreads:
    def test_one_a_model_that_ends_when_it_is_idle_and_starts_again(self, model, monkeypatch):
        monkeypatch.setattr(module, "IDLE_SECONDS", 0.05)
        scheduler = schedulers.of(model)
        assert schedulers.of(model) is scheduler and schedulers.of(tiny_model(seed=1)) is not scheduler

        def running():
            return [thread for thread in threading.enumerate() if thread is scheduler._thread]

        assert not running()
        read_all([scheduler.submit(DecodeState(model, [1]), max_new_tokens=5) for _ in range(3)])
        until(lambda: scheduler._thread is None)
        assert len(list(scheduler.submit(DecodeState(model, [1]), max_new_tokens=5))) == 5
        assert len(running()) <= 1

    def test_how_many_texts_are_written_is_known(self, model):
        before = schedulers.texts
        requests = [schedulers.of(model).submit(DecodeState(model, [1])) for _ in range(3)]
        assert schedulers.texts == before + 3 and schedulers.of(model).texts == 3
        for request in requests:
            request.cancel()
            request.wait()
        assert schedulers.texts == before

    def test_nobody_waits_for_a_text_that_is_ahead_of_its_reader(self, model):
        request = schedulers.of(model).submit(DecodeState(model, [1]), buffer=4)
        assert schedulers.texts_due in (0, 1)
        until(lambda: schedulers.texts_due == 0)
        assert schedulers.texts == 1
        steps = iter(request)
        for _ in range(2):
            next(steps)
        until(lambda: schedulers.texts_due == 0 and len(request._steps) == 4)  # it was written on
        request.cancel()
        request.wait()

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
            "job = TrainingQueue(1).submit(text_plan(10**6))\n"
            "until(lambda: job.step > 3)\n"
            "next(iter(requests[0]))\n"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=250, check=False)
        assert (done.returncode, done.stderr) == (0, "")
