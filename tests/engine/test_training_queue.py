"""Tests the queue of trainings."""

import dataclasses
import functools
import threading
import time

import numpy as np
import pytest

from tests.training_plans import CORPUS, Gated, ended, same_weights, text_plan, trained_alone, until
from transformer.training.objectives import TextObjective
from transformer.training.training_queue import TrainingQueue

bare_plan = functools.partial(text_plan, snapshots=0)


class TestQueue:
    def test_one_at_a_time_in_the_order_they_came(self, queues):
        queue, objective = queues(1), Gated()
        jobs = [queue.submit(bare_plan(3, objective=objective))] + [queue.submit(bare_plan(3)) for _ in range(3)]
        assert [job.state for job in jobs] == ["running", "waiting", "waiting", "waiting"]
        assert [queue.position(job) for job in jobs] == [None, 1, 2, 3]
        order = []
        watcher = threading.Thread(target=lambda: [order.append(jobs.index(ended(job))) for job in jobs])
        watcher.start()
        objective.allow()
        watcher.join(60)
        assert order == [0, 1, 2, 3]
        assert all(queue.position(job) is None for job in jobs)

    def test_a_server_that_ends_stops_all_and_keeps_what_they_have(self, queues):
        queue, objective = queues(1), Gated()
        first, second = queue.submit(bare_plan(50, objective=objective)), queue.submit(bare_plan(3))
        objective.allow(2)
        until(lambda: first.step == 2)
        assert queue.counts == (1, 1)
        queue.stop("It ends.")
        objective.allow()
        third = queue.submit(bare_plan(3))
        assert [ended(job).state for job in (first, second, third)] == ["stopped"] * 3
        assert first.result is not None and first.reason == third.reason == "It ends." and queue.counts == (0, 0)

    @pytest.mark.parametrize("order", ["stop", "close"])
    def test_whoever_gives_up_waiting_is_gone_at_once(self, queues, order):
        queue, objective = queues(1), Gated()
        first = queue.submit(bare_plan(3, objective=objective))
        second, third = queue.submit(bare_plan(3)), queue.submit(bare_plan(3))
        getattr(second, order)()
        assert (second.state, second.result, queue.position(third)) == ("stopped", None, 1)
        assert second.join(30)
        objective.allow()
        assert ended(first).state == ended(third).state == "finished"
        assert second.step == 0

    def test_a_pause_in_the_queue_gives_up_the_place_there(self, queues):
        queue, objective = queues(1), Gated()
        queue.submit(bare_plan(3, objective=objective))
        second, third = queue.submit(bare_plan(3)), queue.submit(bare_plan(3))
        second.pause()
        assert (second.state, queue.position(second), queue.position(third)) == ("paused", None, 1)
        second.resume()
        assert (second.state, queue.position(third), queue.position(second)) == ("waiting", 1, 2)
        objective.allow()
        assert ended(second).state == ended(third).state == "finished"

    def test_a_short_pause_keeps_its_place(self, queues):
        queue, objective = queues(1, patience=1000), Gated()
        first = queue.submit(bare_plan(9, objective=objective))
        objective.allow(1)
        until(lambda: first.step == 1)
        first.pause()
        second = queue.submit(bare_plan(3))
        time.sleep(0.1)
        assert (first.state, second.state) == ("paused", "waiting")
        first.resume()
        assert first.state == "running"
        objective.allow()
        assert ended(first).state == ended(second).state == "finished"

    @pytest.mark.parametrize("somebody_waits_before", [True, False])
    def test_a_long_pause_gives_its_place_to_whoever_waits(self, queues, somebody_waits_before):
        queue, own, objective = queues(1, patience=0.1), Gated(), Gated()
        plan = bare_plan(9, objective=own)
        first = queue.submit(plan)
        own.allow(1)
        until(lambda: first.step == 1)
        if somebody_waits_before:
            second = queue.submit(bare_plan(3, objective=objective))
            assert second.state == "waiting"
            first.pause()
            own.allow(1)  # the step in progress
        else:
            own.allow(1)
            first.pause()
            time.sleep(0.2)
            second = queue.submit(bare_plan(3, objective=objective))
        until(lambda: second.state == "running")
        assert first.state == "paused"
        third = queue.submit(bare_plan(3))
        first.resume()
        assert (first.state, queue.position(third), queue.position(first)) == ("waiting", 1, 2)
        for gate in (own, objective):
            gate.allow()
        assert [ended(job).state for job in (second, third, first)] == ["finished"] * 3
        assert same_weights(first.result.model, trained_alone(plan))

    def test_who_steps_back_goes_on_in_turn_as_if_nothing_had_been(self, queues):
        queue, objective = queues(1), Gated()
        job = queue.submit(bare_plan(9, objective=objective))
        queue.step_back(job)
        assert job.state == "running"  # nobody waits
        objective.allow(2)
        until(lambda: objective.asked == 2)
        other = queue.submit(bare_plan(3))
        queue.step_back(job)
        assert (job.state, other.state, queue.position(job)) == ("waiting", "running", 1)
        objective.allow()
        assert ended(other).state == "finished"
        assert ended(job).state == "finished"
        alone = bare_plan(9, objective=TextObjective(CORPUS, 8, 4, 0))
        assert same_weights(job.result.model, trained_alone(alone))

    def test_trainings_side_by_side_do_not_disturb_each_other(self, queues):
        """Two at a time, with dropout, of which each draws its own."""
        plans = [bare_plan(12, seed=seed) for seed in (1, 2)]
        plans = [dataclasses.replace(plan, config=dataclasses.replace(plan.config, dropout=0.3)) for plan in plans]
        queue = queues(2)
        jobs = [queue.submit(plan) for plan in plans]
        third = queue.submit(bare_plan(3))
        assert [job.state for job in (*jobs, third)] == ["running", "running", "waiting"]
        for job, plan in zip(jobs, plans, strict=True):
            assert same_weights(ended(job).result.model, trained_alone(plan))
        assert ended(third).state == "finished"
        assert not same_weights(*(job.result.model for job in jobs))

    def test_many_visitors_who_change_their_minds(self, queues):
        """Whatever they press and when, all come to an end, and there are never more than two at a time."""
        queue, random = queues(2, patience=0.01), np.random.default_rng(0)
        jobs = [queue.submit(bare_plan(30, seed=seed)) for seed in range(8)]
        for _ in range(40):
            job = jobs[random.integers(8)]
            getattr(job, ["pause", "resume", "resume", "stop", "close"][random.integers(5)])()
            with queue.changed:
                assert sum(job.state == "running" for job in jobs) <= 2
            time.sleep(0.005)
        for job in jobs:
            job.resume()
        assert {ended(job).state for job in jobs} <= {"finished", "stopped"}

    def test_the_environment_says_how_many(self, monkeypatch):
        for given, limit in (("3", 3), (" 1 ", 1), ("64", 64)):
            monkeypatch.setenv("HEADSUP_TRAININGS", given)
            assert TrainingQueue().limit == limit
        for given in ("0", "-1", "two", "1.5", "65", "²", "9" * 5000):
            monkeypatch.setenv("HEADSUP_TRAININGS", given)
            with pytest.raises(ValueError, match=r"HEADSUP_TRAININGS is .* a whole number from 1 to 64"):
                TrainingQueue()

    def test_without_it_one_core_is_left_to_answer_visitors(self, monkeypatch):
        monkeypatch.delenv("HEADSUP_TRAININGS", raising=False)
        monkeypatch.setattr("os.sched_getaffinity", lambda process: set(range(4)), raising=False)
        assert TrainingQueue().limit == 3
        monkeypatch.setattr("os.sched_getaffinity", lambda process: {0}, raising=False)
        assert TrainingQueue().limit == 1
