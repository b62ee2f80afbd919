"""Tests background trainings and their queue."""

import dataclasses
import gc
import math
import weakref
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from tests.training_plans import Gated, ended, same_weights, task_plan, text_plan, trained_alone, until
from transformer import TrainingConfig, build_model
from transformer.data.corpora import text_corpus
from transformer.training import evaluation, execution, training_job
from transformer.training import trainer as training_runner
from transformer.training.objectives import TextObjective
from transformer.training.training_queue import TrainingQueue


def test_it_learns_and_is_watched_and_what_comes_out_is_what_training_alone_gives(queues, monkeypatch):
    """Looking at it on the way, resting and measuring leave no trace."""
    threads = []
    monkeypatch.setattr(torch, "set_num_threads", threads.append)
    job = ended(queues().train(text_plan(50)))
    assert (job.state, job.progress.step, job.progress.steps, job.problem, job.reason) == ("finished", 50, 50, None, "")
    assert (job.progress.seconds_left, threads) == (
        0,
        [1],
    ) and job.progress.tokens_per_second >= 0 < job.progress.seconds
    for losses in (job.progress.batch_losses, job.progress.validation_losses):
        assert losses[0][1] > 2 > 1 > losses[-1][1]
    model = job.checkpoint.model
    assert same_weights(model, trained_alone(text_plan(50)))
    assert not model.training and all(weight.dtype == torch.float32 for weight in model.parameters())

    steps = [snapshot.step for snapshot in job.progress.snapshots]
    assert steps[:5] == [0, 1, 2, 4, 8] and steps[-1] == 50
    first, last = job.progress.snapshots[0], job.progress.snapshots[-1]
    assert first.validation_loss > 1 > last.validation_loss == job.progress.validation_losses[-1][1]
    assert len(last.sample) == 12 and last.sample != first.sample
    for snapshot in job.progress.snapshots:
        patterns = snapshot.patterns["self"]
        assert (list(snapshot.patterns), patterns.shape, patterns.dtype) == (["self"], (2, 2, 8, 8), np.float16)
        np.testing.assert_allclose(patterns.astype(float).sum(-1), 1, atol=4e-3)
    assert np.abs(last.patterns["self"] - first.patterns["self"]).max() > 0.1

    result = job.checkpoint
    for too_late in (job.pause, job.resume, job.stop):
        too_late()
    assert (job.state, job.checkpoint) == ("finished", result)
    job.close()
    assert (job.state, job.checkpoint) == ("finished", None)


def test_the_curves_are_bounded_and_lose_no_batch(queues, monkeypatch):
    plan = text_plan(50, evaluate_every=1, snapshots=2)
    losses = [loss for _, loss in ended(queues().train(plan)).progress.batch_losses]
    monkeypatch.setattr(training_runner, "MOST_POINTS", 20)
    monkeypatch.setattr(training_runner, "MOST_VALIDATIONS", 10)
    job = ended(queues().train(plan))
    assert [step for step, _ in job.progress.batch_losses] == [*range(3, 50, 3), 50]
    means = [np.mean(losses[at : at + 3]) for at in range(0, 50, 3)]
    assert len(losses) == 50 and [loss for _, loss in job.progress.batch_losses] == pytest.approx(means)
    assert [step for step, _ in job.progress.validation_losses] == list(range(0, 51, 5))


STEPS, SECONDS = 5, 0.02
NINE_TENTHS = STEPS * SECONDS * 9


@pytest.mark.parametrize(
    ("busy_until", "least", "most"),
    [
        (0.0, STEPS * training_job.REST, STEPS * training_job.REST),
        (math.inf, NINE_TENTHS, NINE_TENTHS + STEPS * 2 * training_job.GLANCE_EVERY),
        (0.05, 0.05, 0.06 + STEPS * training_job.REST),
    ],
)
def test_visitors_who_wait_have_nine_tenths_of_the_time(queues, monkeypatch, busy_until, least, most):
    """By a clock on which only sleeping, and a step, take time."""
    stepped, slept, plan = [], [0.0], text_plan(STEPS, snapshots=0)
    draw = plan.objective.batches
    clock = SimpleNamespace(
        perf_counter=lambda: sum(stepped) + sum(slept), monotonic=lambda: sum(stepped) + sum(slept), sleep=slept.append
    )
    monkeypatch.setattr(training_job, "time", clock)
    monkeypatch.setattr(plan.objective, "batches", lambda step: stepped.append(SECONDS) or draw(step))
    job = ended(queues(is_busy=lambda: sum(slept) < busy_until).train(plan))
    assert (job.state, job.progress.step) == ("finished", STEPS) and least - 1e-9 <= sum(slept) <= most + 1e-9


def test_it_can_be_stopped_and_paused_meanwhile(queues, monkeypatch):
    monkeypatch.setattr(training_job, "LEAST_SHARE", 1e-9)
    job = queues(is_busy=lambda: True).train(text_plan(5, snapshots=0))
    until(lambda: job.progress.step == 1)
    job.pause()
    job.stop()
    assert ended(job).progress.step == 1


@pytest.mark.parametrize("name", ["next-vowel", "sort-letters", "induction"])
def test_what_has_right_answers_is_measured_by_them(queues, monkeypatch, name):
    for few in ("EXAMPLES", "HELD_OUT"):
        monkeypatch.setattr(evaluation, few, 40)
    job = ended(queues().train(task_plan(name, **{"n_encoder_layers": 1} if name == "next-vowel" else {})))
    card, last = job.checkpoint.card, job.progress.snapshots[-1]
    assert job.state == "finished" and "examples held out" in card.training["measured_on"]
    assert (card.accuracy is None) == (name == "induction") and 0 <= (card.accuracy or 0) <= 1
    assert card.start_token_id == job.checkpoint.tokenizer.special_id("[start]")
    assert card.train_loss > 0 and card.validation_loss > 0 and isinstance(last.sample, str)
    if name == "next-vowel":
        shapes = {kind: found.shape for kind, found in last.patterns.items()}
        assert shapes == {"encoder": (1, 2, 3, 3), "decoder": (2, 2, 2, 2), "cross": (2, 2, 2, 3)}
        for found in last.patterns.values():
            np.testing.assert_allclose(found.astype(float).sum(-1), 1, atol=4e-3)


class TestObeying:
    def test_pausing_pauses_and_going_on_is_as_if_nothing_had_been(self, queues, monkeypatch):
        now, waited, queue, objective = [0.0], [], queues(), Gated()
        wait = queue.wait_for_turn

        def wait_long(job):
            waited.append(job)
            wait(job)
            now[0] += 1000

        monkeypatch.setattr(training_runner.time, "perf_counter", lambda: now[0])
        monkeypatch.setattr(queue, "wait_for_turn", wait_long)
        plan = text_plan(9, objective=objective, snapshots=0)
        job = queue.train(plan)
        objective.allow(2)
        until(lambda: objective.asked == 2)
        job.pause()
        objective.allow()
        until(lambda: waited == [job, job])  # for its turn, and in the pause
        assert (job.state, job.progress.step) == ("paused", 3)  # with the step in progress
        job.resume()
        assert job.state == "running" and ended(job).state == "finished"
        assert now == [2000.0] and job.checkpoint.card.training["seconds"] == 0  # pauses don't count
        assert same_weights(job.checkpoint.model, trained_alone(plan))

    def test_stopping_keeps_the_model_as_it_is(self, queues):
        objective = Gated()
        plan = text_plan(100, objective=objective)
        job = queues().train(plan)
        objective.allow(7)
        until(lambda: objective.asked == 7)
        job.stop("It was stopped for a reason.")
        job.stop("Another comes too late.")
        objective.allow(1)  # the step in progress
        ended(job)  # else it waited for the next
        assert (job.state, job.progress.step, job.problem) == ("stopped", 8, None)
        assert job.reason == "It was stopped for a reason."
        assert (
            job.progress.snapshots[-1].step
            == job.progress.batch_losses[-1][0]
            == job.checkpoint.card.training["best_step"]
            == 8
        )
        objective.allow()
        assert same_weights(job.checkpoint.model, trained_alone(plan, 8))
        assert job.checkpoint.card.summary == "Goes up and down. Stopped early, after 8 of 100 steps."

    def test_closing_ends_it_and_forgets_everything(self, queues, monkeypatch):
        models = []

        def build(*args, **kwargs):
            model = build_model(*args, **kwargs)
            models.append(weakref.ref(model))
            return model

        monkeypatch.setattr(training_runner, "build_model", build)
        job = queues().train(text_plan(10**6))
        until(lambda: job.progress.step >= 3)
        job.close()
        assert job.state == "stopped" and job.join(30)
        assert (job.checkpoint, job.progress.snapshots, job.progress.batch_losses, job.progress.validation_losses) == (
            None,
            [],
            [],
            [],
        )
        gc.collect()
        assert models[0]() is None

    def test_closing_while_the_model_is_measured(self, queues, monkeypatch):
        monkeypatch.setattr(training_runner, "MEASURING_SECONDS", 1e9)
        monkeypatch.setattr(evaluation, "GLANCE_TOKENS", 8)
        corpus = text_corpus("abcdefgh hgfedcba " * 50_000, "Long")
        job = queues().train(text_plan(3, objective=TextObjective(corpus, 8, 8, 0)))
        until(lambda: job.finishing)
        job.close()
        assert job.join(30)
        assert (job.state, job.checkpoint, job.finishing) == ("stopped", None, False)


class TestFailing:
    @pytest.mark.parametrize("average_decay", [0.0, 0.5])
    def test_a_loss_that_is_no_number_keeps_the_last_good_model(self, queues, monkeypatch, average_decay):
        plan = text_plan(50)
        plan = dataclasses.replace(plan, training=dataclasses.replace(plan.training, average_decay=average_decay))
        expected = trained_alone(plan, 5)
        original, calls = execution.token_loss, []

        def token_loss(logits, targets, reduction="mean"):
            loss = original(logits, targets, reduction)
            calls.append(logits.requires_grad)
            return loss * float("nan") if sum(calls) == 6 else loss

        monkeypatch.setattr(execution, "token_loss", token_loss)
        job = ended(queues().train(plan))
        assert (job.state, job.progress.step) == ("failed", 5)
        assert job.problem == (
            "The loss became nan at step 6; a lower learning rate may help. "
            "The model is kept as it was before that step."
        )
        assert same_weights(job.checkpoint.model, expected)
        assert job.checkpoint.card.summary.endswith("Broke off, after 5 of 50 steps.")

    def test_a_learning_rate_beyond_all_bounds_and_a_model_that_can_not_be_measured(self, queues, caplog, monkeypatch):
        plan = text_plan(50)
        job = ended(queues().train(dataclasses.replace(plan, training=TrainingConfig(steps=50, learning_rate=1e18))))
        assert job.state == "failed" and job.problem.startswith("The ") and job.checkpoint is None
        monkeypatch.setattr(training_runner, "card_of", lambda *args, **kwargs: 1 / 0)
        job = ended(queues().train(text_plan(3)))
        assert (job.state, job.checkpoint) == ("failed", None) and "ZeroDivisionError" in caplog.text
        assert job.problem == "The training ended. Its model could not be kept."

    @pytest.mark.parametrize("fails_at", [0, 4])
    def test_any_other_error_is_logged_and_said(self, queues, caplog, fails_at):
        queue, objective = queues(), Gated()
        objective.fails_at = fails_at
        job, after = queue.train(text_plan(9, objective=objective)), queue.train(text_plan(2))
        objective.allow()
        assert (ended(job).state, job.progress.step, job.checkpoint is None) == ("failed", fails_at, fails_at == 0)
        assert job.problem.startswith("The training broke off because of an error")
        assert "no such batch" not in job.problem and "no such batch" in caplog.text
        assert ended(after).state == "finished"


RUN, REST, END = "running", "paused", "stopped"


@pytest.mark.parametrize(
    ("limit", "patience", "orders", "states"),
    [
        *((1, 1000, "", [RUN, 1, 2, 3]), (2, 1000, "", [RUN, RUN, 1, 2])),
        *((1, 1000, f"{end} 1", [RUN, END, 1, 2]) for end in ("stop", "close")),
        *((1, 1000, "close 0", [END, RUN, 1, 2]), (2, 1000, "close 0, close 1, close 3", [END, END, RUN, END])),
        *((1, 1000, "pause 1", [RUN, REST, 1, 2]), (1, 1000, "pause 1, resume 1", [RUN, 3, 1, 2])),
        *((1, 1000, "pause 0", [REST, 1, 2, 3]), (1, 1000, "pause 0, resume 0", [RUN, 1, 2, 3])),
        *((1, patience, "pause 0", [REST, RUN, 1, 2]) for patience in (0.0, 0.05)),
        (1, 0.0, "pause 0, submit 4", [REST, RUN, 1, 2, 3]),
        (1, 0.0, "pause 0, submit 4, resume 0", [4, RUN, 1, 2, 3]),
        (1, 0.0, "pause 0, stop 0, resume 0", [END, RUN, 1, 2]),
        (1, 0.0, "close 1, close 2, close 3, pause 0, resume 0", [RUN, END, END, END]),
        *((1, 1000, "step_back 0", [3, RUN, 1, 2]), (2, 1000, "step_back 1", [RUN, 2, RUN, 1])),
        *((1, 1000, "step_back 1", [RUN, 1, 2, 3]), (4, 1000, "step_back 0", [RUN] * 4)),
        (1, 1000, "pause 0, step_back 0", [REST, 1, 2, 3]),
    ],
    ids=str,
)
def test_a_queue_gives_places_in_turn_and_all_come_to_their_end(queues, limit, patience, orders, states):
    """states: of each training in the order in which they were submitted, or its position among those that wait."""
    queue, jobs, objectives = queues(limit, patience=patience), [], []

    def submit() -> None:
        objectives.append(Gated())
        jobs.append(queue.train(text_plan(3, objective=objectives[-1], snapshots=0)))

    def found() -> list:
        return [queue.position(job) or job.state for job in jobs]

    for _ in range(4):
        submit()
    until(lambda: sum(objective.asked == 0 for objective in objectives) == limit)  # as many as may have begun
    for order, number in (order.split() for order in orders.split(", ") if order):
        if order == "submit":
            submit()
        elif order == "step_back":
            queue.step_back(jobs[int(number)])
        else:
            getattr(jobs[int(number)], order)()
    if patience < 1:  # what is paused is seen to be so after its step, and gives up its place when its time is over
        objectives[0].allow(1)
        until(lambda: found() == states)
    assert found() == states
    waiting = [state for state in states if isinstance(state, int)]
    assert queue.counts == (min(limit, sum(state in (RUN, REST) for state in states)), len(waiting))
    for job, objective in zip(jobs, objectives, strict=True):
        objective.allow()
        job.resume()
    expected = trained_alone(text_plan(3, objective=objectives[0]))
    for job, state in zip(jobs, states, strict=True):
        assert ended(job).state == (END if state == END else "finished")
        assert state == END or same_weights(job.checkpoint.model, expected)
    assert queue.counts == (0, 0)


def test_a_server_that_ends_stops_all_and_keeps_what_they_have(queues):
    queue, objective = queues(1), Gated()
    first, second = queue.train(text_plan(50, objective=objective)), queue.train(text_plan(3))
    objective.allow(2)
    until(lambda: first.progress.step == 2)
    second.pause()  # and so leaves the queue
    assert queue.counts == (1, 0) and queue.unfinished == 2
    queue.stop("It ends.")
    objective.allow()
    third = queue.train(text_plan(3))
    assert [ended(job).state for job in (first, second, third)] == ["stopped"] * 3
    assert first.checkpoint is not None and first.reason == third.reason == "It ends." and queue.counts == (0, 0)
    assert queue.unfinished == 0


def test_trainings_side_by_side_do_not_disturb_each_other(queues):
    """With dropout, of which each draws its own."""
    plans = [text_plan(12, seed=seed, snapshots=0) for seed in (1, 2)]
    plans = [dataclasses.replace(plan, config=dataclasses.replace(plan.config, dropout=0.3)) for plan in plans]
    queue = queues(2)
    jobs = [queue.train(plan) for plan in plans]
    for job, plan in zip(jobs, plans, strict=True):
        assert same_weights(ended(job).checkpoint.model, trained_alone(plan))
    assert not same_weights(*(job.checkpoint.model for job in jobs))


def test_the_environment_says_how_many_or_one_core_is_left_to_answer_visitors(monkeypatch):
    for given, limit in (("3", 3), (" 1 ", 1), ("64", 64)):
        monkeypatch.setenv("HEADSUP_TRAININGS", given)
        assert TrainingQueue().limit == limit
    for given in ("0", "-1", "two", "1.5", "65", "²", "9" * 5000):
        monkeypatch.setenv("HEADSUP_TRAININGS", given)
        with pytest.raises(ValueError, match=r"HEADSUP_TRAININGS is .* a whole number from 1 to 64"):
            TrainingQueue()
    monkeypatch.delenv("HEADSUP_TRAININGS")
    for cores, limit in ((4, 3), (1, 1)):
        monkeypatch.setattr("os.sched_getaffinity", lambda process, cores=cores: set(range(cores)), raising=False)
        assert TrainingQueue().limit == limit
