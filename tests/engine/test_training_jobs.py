"""Tests background trainings."""

import dataclasses
import gc
import time
import weakref
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from tests.training_plans import CORPUS, Gated, ended, same_weights, task_plan, text_plan, trained_alone, until
from transformer import TrainingConfig, build_model, train
from transformer.data.corpora import text_corpus
from transformer.training import evaluation, execution
from transformer.training import trainer as training_runner
from transformer.training import training_job as training_worker
from transformer.training.objectives import TextObjective
from transformer.training.training_job import TrainingJob
from transformer.training.training_queue import TrainingQueue


@pytest.fixture(scope="module")
def finished() -> TrainingJob:
    """A training that ran to its end, for tests that only look at it."""
    return ended(TrainingQueue(1).submit(text_plan(50)))


class TestOneTraining:
    def test_it_learns(self, finished):
        assert (finished.state, finished.step, finished.problem) == ("finished", 50, None)
        assert finished.batch_losses[0][1] > 2 > 1 > finished.batch_losses[-1][1]
        assert finished.validation_losses[0][1] > 2 > 1 > finished.validation_losses[-1][1]
        assert finished.tokens_per_second >= 0
        assert finished.seconds_left == 0

    def test_what_comes_out_is_what_training_alone_gives(self, finished):
        """Looking at it on the way, resting and measuring leave no trace."""
        assert same_weights(finished.result.model, trained_alone(text_plan(50)))
        assert not finished.result.model.training
        assert all(weight.dtype == torch.float32 for weight in finished.result.model.parameters())

    def test_snapshots_show_attention_form(self, finished):
        steps = [snapshot.step for snapshot in finished.snapshots]
        assert steps[:5] == [0, 1, 2, 4, 8] and steps[-1] == 50
        first, last = finished.snapshots[0], finished.snapshots[-1]
        assert first.validation_loss > 1 > last.validation_loss == finished.validation_losses[-1][1]
        assert len(last.sample) == 12 and last.sample != first.sample
        for snapshot in finished.snapshots:
            assert list(snapshot.patterns) == ["self"]
            assert snapshot.patterns["self"].shape == (2, 2, 8, 8)
            assert snapshot.patterns["self"].dtype == np.float16
            np.testing.assert_allclose(snapshot.patterns["self"].astype(float).sum(-1), 1, atol=4e-3)
        assert np.abs(last.patterns["self"] - first.patterns["self"]).max() > 0.1

    def test_the_curves_are_bounded_and_lose_no_batch(self, queues, monkeypatch):
        monkeypatch.setattr(training_runner, "MOST_POINTS", 20)
        monkeypatch.setattr(training_runner, "MOST_VALIDATIONS", 10)
        plan = text_plan(50, evaluate_every=1, snapshots=2)
        losses = []
        model = build_model(plan.config, seed=0)
        train(model, plan.objective.batches, plan.training, lambda report: losses.append(report.loss))
        job = ended(queues().submit(plan))
        assert [step for step, _ in job.batch_losses] == [*range(3, 50, 3), 50]
        means = [np.mean(losses[at : at + 3]) for at in range(0, 50, 3)]
        assert [loss for _, loss in job.batch_losses] == pytest.approx(means)
        assert [step for step, _ in job.validation_losses] == list(range(0, 51, 5))

    def test_it_takes_one_core_and_lets_visitors_go_first(self, queues, monkeypatch):
        threads, rests = [], []
        monkeypatch.setattr(torch, "set_num_threads", threads.append)
        monkeypatch.setattr(training_worker, "REST_EVERY", 0.0)
        clock = SimpleNamespace(perf_counter=time.perf_counter, monotonic=time.monotonic, sleep=rests.append)
        monkeypatch.setattr(training_worker, "time", clock)
        ended(queues().submit(text_plan(5, snapshots=2)))
        assert threads == [1]
        assert rests == [training_worker.REST] * 5


class FakeClock:
    """A clock on which only sleeping, and a step that a test times, take time."""

    def __init__(self) -> None:
        self.now, self.slept = 100.0, 0.0

    def perf_counter(self) -> float:
        return self.now

    monotonic = perf_counter

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.slept += seconds


class TestYielding:
    """While visitors wait for answers, a training leaves them most of the time, but goes on."""

    STEPS, SECONDS = 5, 0.02

    def train(self, queues, monkeypatch, is_busy) -> FakeClock:
        """Take a few steps of 20 ms by a fake clock, which is returned."""
        clock, plan = FakeClock(), text_plan(self.STEPS, snapshots=0)
        monkeypatch.setattr(training_worker, "time", clock)
        draw = plan.objective.batches

        def batches(step: int):
            clock.now += self.SECONDS
            return draw(step)

        monkeypatch.setattr(plan.objective, "batches", batches)
        job = ended(queues(is_busy=lambda: is_busy(clock)).submit(plan))
        assert (job.state, job.step) == ("finished", self.STEPS)
        return clock

    def test_it_takes_a_tenth_of_the_time_while_somebody_waits(self, queues, monkeypatch):
        clock = self.train(queues, monkeypatch, lambda clock: True)
        given = self.STEPS * self.SECONDS * 9
        assert given <= clock.slept + 1e-9 and clock.slept < given + self.STEPS * 2 * training_worker.GLANCE_EVERY

    def test_it_goes_on_as_soon_as_nobody_waits(self, queues, monkeypatch):
        clock = self.train(queues, monkeypatch, lambda clock: clock.slept < 0.05)
        assert clock.slept < 0.06 + self.STEPS * training_worker.REST

    def test_it_can_be_stopped_and_paused_meanwhile(self, queues, monkeypatch):
        monkeypatch.setattr(training_worker, "LEAST_SHARE", 1e-9)
        queue = queues(is_busy=lambda: True)
        paused = queue.submit(text_plan(5, snapshots=0))
        until(lambda: paused.step == 1)
        paused.pause()
        paused.stop()
        assert ended(paused).step == 1


class TestTasks:
    @pytest.fixture(autouse=True)
    def few(self, monkeypatch):
        """Of the examples that are held out."""
        for name in ("EXAMPLES", "HELD_OUT"):
            monkeypatch.setattr(evaluation, name, 40)

    @pytest.mark.parametrize("name", ["next-vowel", "sort-letters", "induction"])
    def test_what_has_right_answers_is_measured_by_them(self, queues, name):
        job = ended(queues().submit(task_plan(name)))
        card = job.result.card
        assert job.state == "finished"
        assert (card.accuracy is None) == (name == "induction")
        assert card.accuracy is None or 0 <= card.accuracy <= 1
        assert card.start_token_id == job.result.tokenizer.special_id("[start]")
        assert "examples held out" in card.training["measured_on"]
        assert card.train_loss > 0 and card.validation_loss > 0

    def test_all_attentions_of_an_encoder_decoder_are_photographed(self, queues):
        job = ended(queues().submit(task_plan("next-vowel", n_encoder_layers=1)))
        shapes = {kind: found.shape for kind, found in job.snapshots[-1].patterns.items()}
        assert shapes == {"encoder": (1, 2, 3, 3), "decoder": (2, 2, 2, 2), "cross": (2, 2, 2, 3)}
        for found in job.snapshots[-1].patterns.values():
            np.testing.assert_allclose(found.astype(float).sum(-1), 1, atol=4e-3)
        assert isinstance(job.snapshots[-1].sample, str)


class TestObeying:
    def test_pausing_pauses_and_resuming_goes_on_as_if_nothing_had_been(self, queues):
        objective = Gated()
        job = queues().submit(text_plan(9, objective=objective, snapshots=0))
        objective.allow(2)
        until(lambda: objective.asked == 2)
        job.pause()
        objective.allow()
        until(lambda: job.step == 3)  # the step in progress
        time.sleep(0.1)
        assert (job.state, job.step) == ("paused", 3)
        job.resume()
        assert job.state == "running"
        assert ended(job).state == "finished"
        alone = text_plan(9, objective=TextObjective(CORPUS, 8, 4, 0))
        assert same_weights(job.result.model, trained_alone(alone))

    def test_pauses_do_not_count_as_training(self, queues, monkeypatch):
        now, queue, objective = [0.0], queues(), Gated()
        wait, waited = queue.wait_for_turn, []

        def wait_long(job):
            waited.append(job)
            wait(job)
            now[0] += 1000

        monkeypatch.setattr(training_runner, "time", SimpleNamespace(perf_counter=lambda: now[0]))
        monkeypatch.setattr(queue, "wait_for_turn", wait_long)
        job = queue.submit(text_plan(4, objective=objective))
        objective.allow(2)
        until(lambda: objective.asked == 2)
        job.pause()
        objective.allow()
        until(lambda: waited == [job, job])  # for its turn, and in the pause
        job.resume()
        ended(job)
        assert (job.step, now) == (4, [2000.0]) and job.result.card.training["seconds"] == 0

    def test_stopping_keeps_the_model_as_it_is(self, queues):
        objective = Gated()
        job = queues().submit(text_plan(100, objective=objective))
        objective.allow(7)
        until(lambda: objective.asked == 7)
        job.stop()
        objective.allow(1)  # the step in progress
        ended(job)  # else it waited for the next
        assert (job.state, job.step, job.problem) == ("stopped", 8, None)
        assert job.snapshots[-1].step == job.batch_losses[-1][0] == 8
        alone = text_plan(100, objective=TextObjective(CORPUS, 8, 4, 0))
        assert same_weights(job.result.model, trained_alone(alone, 8))
        assert job.result.card.summary == "Goes up and down. Stopped early, after 8 of 100 steps."
        assert job.result.card.training["best_step"] == 8

    def test_stopping_while_paused_and_saying_why(self, queues):
        job = queues().submit(text_plan(10**6))
        assert job.reason == ""
        until(lambda: job.step >= 2)
        job.pause()
        job.stop("It was stopped for a reason.")
        job.stop("Another comes too late.")
        job.resume()  # too late
        assert ended(job).state == "stopped"
        assert job.result is not None and job.reason == "It was stopped for a reason."

    def test_closing_ends_it_and_forgets_everything(self, queues, monkeypatch):
        models = []

        def build(*args, **kwargs):
            model = build_model(*args, **kwargs)
            models.append(weakref.ref(model))
            return model

        monkeypatch.setattr(training_runner, "build_model", build)
        queue = queues()
        job = queue.submit(text_plan(10**6))
        other = queue.submit(text_plan(5))
        until(lambda: job.step >= 3)
        job.close()
        assert job.state == "stopped"
        assert other.state == "running"  # at once
        assert job.join(30)
        assert (job.result, job.snapshots, job.batch_losses, job.validation_losses) == (None, [], [], [])
        gc.collect()
        assert models[0]() is None
        assert ended(other).state == "finished"

    def test_closing_while_the_model_is_measured(self, queues, monkeypatch):
        monkeypatch.setattr(training_runner, "MEASURING_SECONDS", 1e9)
        monkeypatch.setattr("transformer.training.evaluation.GLANCE_TOKENS", 8)
        corpus = text_corpus("abcdefgh hgfedcba " * 50_000, "Long")
        job = queues().submit(text_plan(3, objective=TextObjective(corpus, 8, 8, 0)))
        until(lambda: job.finishing)
        job.close()
        assert job.join(30)
        assert (job.state, job.result, job.finishing) == ("stopped", None, False)

    def test_orders_that_come_too_late_change_nothing(self, queues):
        job = ended(queues().submit(text_plan(3)))
        result = job.result
        for order in (job.pause, job.resume, job.stop):
            order()
        assert (job.state, job.result) == ("finished", result)
        job.close()
        assert (job.state, job.result) == ("finished", None)


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
        job = ended(queues().submit(plan))
        assert (job.state, job.step) == ("failed", 5)
        assert job.problem == (
            "The loss became nan at step 6; a lower learning rate may help. "
            "The model is kept as it was before that step."
        )
        assert same_weights(job.result.model, expected)
        assert job.result.card.summary.endswith("Broke off, after 5 of 50 steps.")

    def test_a_learning_rate_beyond_all_bounds_and_a_model_that_can_not_be_measured(self, queues, caplog, monkeypatch):
        plan = text_plan(50)
        job = ended(queues().submit(dataclasses.replace(plan, training=TrainingConfig(steps=50, learning_rate=1e18))))
        assert job.state == "failed" and job.problem.startswith("The ") and job.result is None
        monkeypatch.setattr(training_runner, "card_of", lambda *args, **kwargs: 1 / 0)
        job = ended(queues().submit(text_plan(3)))
        assert (job.state, job.result) == ("failed", None)
        assert job.problem == "The training ended. Its model could not be kept."
        assert "ZeroDivisionError" in caplog.text

    @pytest.mark.parametrize("fails_at", [0, 4])
    def test_any_other_error_is_logged_and_said(self, queues, caplog, fails_at):
        queue, objective = queues(1), Gated()
        objective.fails_at = fails_at
        job = queue.submit(text_plan(9, objective=objective))
        after = queue.submit(text_plan(2))
        objective.allow()
        ended(job)
        assert (job.state, job.step) == ("failed", fails_at)
        assert job.problem.startswith("The training broke off because of an error")
        assert "no such batch" not in job.problem
        assert "no such batch" in caplog.text
        assert (job.result is None) == (fails_at == 0)
        assert ended(after).state == "finished"
