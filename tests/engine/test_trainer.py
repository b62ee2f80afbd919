"""Tests the trainer: validation, saving, resuming, clock, model cards."""

import dataclasses
import json
import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from tests.training_plans import CORPUS, same_weights, task_plan, text_plan
from transformer import ModelCard, TrainingConfig, build_model, evaluate_loss, train
from transformer.training import trainer as training_runner
from transformer.training.evaluation import Measures
from transformer.training.model_card import card_of, machine_in_words
from transformer.training.plan import TrainingPlan
from transformer.training.trainer import Clock, Trainer


def thorough(steps: int = 12, **fields) -> TrainingPlan:
    """A plan as the command line has it, with dropout and averaged weights."""
    plan = text_plan(steps, snapshots=0, is_thorough=True, **{"evaluate_every": 4, **fields})
    return dataclasses.replace(
        plan,
        config=dataclasses.replace(plan.config, dropout=0.2),
        training=dataclasses.replace(plan.training, average_decay=0.5),
    )


class TestThorough:
    def test_it_validates_on_all_that_is_held_out_and_says_when(self):
        plan, told = thorough(10), []
        trainer = Trainer(plan)
        trainer.go(on_step=lambda report, loss: told.append((report.step, loss)))
        assert [step for step, _ in told] == list(range(1, 11))
        assert [step for step, loss in told if loss is not None] == [4, 8, 10]
        assert trainer.progress.validation_losses == [(step, loss) for step, loss in told if loss is not None]
        assert told[-1][1] == evaluate_loss(trainer.run.best_model, plan.objective.validation)
        assert trainer.progress.snapshots == []

    @pytest.mark.parametrize(
        ("losses", "best"),
        [
            ([2.0, 1.0, 3.0], 8),
            ([math.nan, 2.0, 3.0], 8),
            ([2.0, math.nan, 3.0], 4),
            ([math.inf, math.nan, math.nan], 4),
        ],
    )
    def test_the_best_state_is_kept_and_measured_and_no_number_is_never_better(self, monkeypatch, losses, best):
        plan = thorough()
        trainer, sequence = Trainer(plan), iter(losses)
        monkeypatch.setattr(trainer._evaluator, "validation_loss", lambda model: next(sequence))
        states = {}
        trainer.go(on_step=lambda report, _: states.update({report.step: copied(trainer.run.best_model)}))
        checkpoint = trainer.checkpoint()
        card = checkpoint.card
        assert card.training["best_step"] == best and same_weights(checkpoint.model, states[best])
        assert not same_weights(checkpoint.model, states[12])
        for loss, text in ((card.validation_loss, plan.objective.validation), (card.train_loss, plan.objective.train)):
            assert loss == pytest.approx(evaluate_loss(states[best], text), abs=1e-5)


@pytest.mark.parametrize(
    ("is_thorough", "ending", "seconds"),
    [(False, "", 5.0), (False, "Stopped early.", 0.3), (True, "", math.inf), (True, "Stopped early.", math.inf)],
)
def test_how_long_the_last_measurement_may_take(monkeypatch, is_thorough, ending, seconds):
    """Whoever stops a training on a page waits for no more than a moment."""
    trainer, given = Trainer(text_plan(1, is_thorough=is_thorough)), []
    measure = trainer._evaluator.measure
    monkeypatch.setattr(
        trainer._evaluator, "measure", lambda model, seconds, check: given.append(seconds) or measure(model, 0.0, check)
    )
    trainer.go()
    trainer.checkpoint(ending)
    assert given == [seconds]


class TestResuming:
    def test_a_training_that_was_interrupted_ends_as_if_it_had_not_been(self, tmp_path, monkeypatch):
        """Weights, dropout, best state, and all that its card says but the seconds."""
        whole = Trainer(thorough(), state=tmp_path / "whole")
        whole.go()
        expected = whole.checkpoint()

        def interrupt(report, _):
            if report.step == 6:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            Trainer(thorough(), state=tmp_path / "state").go(on_step=interrupt)
        torch.rand(5)  # whatever else draws random numbers meanwhile
        resumed, steps = Trainer(thorough(), state=tmp_path / "state"), []
        resumed.resume()
        assert resumed.progress.step == 4
        resumed.go(on_step=lambda report, _: steps.append(report.step))
        found = resumed.checkpoint()
        assert steps == list(range(5, 13))
        assert same_weights(found.model, expected.model)
        training = found.card.training | {"seconds": None}
        assert training == expected.card.training | {"seconds": None}
        assert dataclasses.replace(found.card, training={}) == dataclasses.replace(expected.card, training={})

    def test_seconds_and_the_last_losses_are_those_of_all_parts_together(self, tmp_path, monkeypatch):
        now, losses = [0.0], []
        monkeypatch.setattr(training_runner, "time", SimpleNamespace(perf_counter=lambda: now[0]))

        def note(report, _):
            now[0] += 10.0
            losses.append(report.loss)
            return report

        def interrupt(report, _):
            note(report, _)
            if report.step == 9:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            Trainer(thorough(), state=tmp_path / "state").go(on_step=interrupt)
        now[0] += 1000
        del losses[8:]  # the state is that of step 8
        resumed = Trainer(thorough(), state=tmp_path / "state")
        resumed.resume()
        resumed.go(on_step=note)
        training = resumed.checkpoint().card.training
        assert training["seconds"] == 70 + 40  # the eighth step had not been counted when the state was written
        assert training["last_batches_loss"] == pytest.approx(np.mean(losses), abs=1e-5)
        assert len(losses) == 12

    def test_the_best_of_an_earlier_part_is_not_forgotten(self, tmp_path, monkeypatch):
        def trainer(*losses: float) -> Trainer:
            made, following = Trainer(thorough(), state=tmp_path / "state"), iter(losses)
            monkeypatch.setattr(made._evaluator, "validation_loss", lambda model: next(following))
            return made

        trainer(1.0).go(may_go_on=iter([True, True, True, True, False]).__next__)
        resumed = trainer(2.0, 3.0)
        resumed.resume()
        resumed.go()
        assert resumed.checkpoint().card.training["best_step"] == 4

    def test_a_state_that_says_no_more_than_the_weights_will_do(self, tmp_path):
        plan = thorough()
        model = build_model(plan.config, seed=plan.training.seed)
        train(model, plan.objective.batches, plan.training, lambda report: report.step < 4).save(tmp_path / "state")
        trainer = Trainer(plan, state=tmp_path / "state")
        trainer.resume()
        trainer.go()
        assert trainer.checkpoint().card.training["best_step"] in (8, 12)

    def test_what_had_ended_is_not_trained_again(self, tmp_path):
        first = Trainer(thorough(), state=tmp_path / "state")
        first.go()
        again = Trainer(thorough(), state=tmp_path / "state")
        again.resume()
        again.go(on_step=lambda *_: pytest.fail("there is no step to take"))
        assert same_weights(again.checkpoint().model, first.checkpoint().model)


class TestCards:
    MEASURES = Measures(1.23456789, 2.0, 0.5, "all of it")

    def card(self, measures: Measures = MEASURES, plan: TrainingPlan | None = None, **fields):
        facts = {
            "parameters": 7,
            "best_step": 3,
            "last_losses": [1.0, 2.0],
            "seconds": 12.3456,
            "device": torch.device("cpu"),
            **fields,
        }
        return card_of(plan or text_plan(), measures, **facts)

    def test_what_it_says(self):
        plan = text_plan(command="python -m transformer train mine", group="Texts")
        card = self.card(plan=plan, ending="Stopped early.")
        assert (card.title, card.summary, card.group) == ("Mine", "Goes up and down. Stopped early.", "Texts")
        assert (card.parameters, card.train_loss, card.validation_loss, card.accuracy) == (7, 1.23457, 2.0, 0.5)
        assert card.corpus["sha256"] == CORPUS.sha256
        assert card.training == {
            **dataclasses.asdict(plan.training),
            "command": "python -m transformer train mine",
            "betas": [0.9, 0.99],
            "batch": 8,
            "best_step": 3,
            "last_batches_loss": 1.5,
            "seconds": 12.3,
            "machine": machine_in_words(torch.device("cpu")),
            "measured_on": "all of it",
        }
        assert json.loads(json.dumps(dataclasses.asdict(card))) == dataclasses.asdict(card)

    @pytest.mark.parametrize(
        ("planned", "taken", "title"),
        [
            ("Mine, 3,000 steps", 428, "Mine, 428 steps"),
            ("Mine, 3,000 steps", 1, "Mine, 1 step"),
            ("Mine, 3,000 steps", 3000, "Mine, 3,000 steps"),
            ("Mine, 40 steps", 428, "Mine, 40 steps"),
            ("3,000 steps, a novel", 428, "3,000 steps, a novel"),
        ],
    )
    def test_its_title_counts_the_steps_that_were_taken(self, planned, taken, title):
        plan = text_plan(3000, title=planned)
        card = self.card(plan=plan, best_step=taken)
        assert card.title == title and "command" not in card.training  # none trains a visitor's model again

    @pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf, 1e30])
    def test_it_holds_no_number_that_is_none(self, wrong):
        card = self.card(Measures(wrong, wrong, wrong, ""), last_losses=[1.0, wrong])
        assert (card.train_loss, card.validation_loss, card.accuracy) == (None, None, None)
        assert card.training["last_batches_loss"] is None
        assert ModelCard.from_dict(json.loads(json.dumps(dataclasses.asdict(card), allow_nan=False))) == card

    def test_a_model_that_computes_nothing_finite_is_not_kept(self):
        trainer = Trainer(dataclasses.replace(text_plan(5), training=TrainingConfig(steps=5)))
        trainer.go()
        with torch.no_grad():
            for weight in trainer.run.model.parameters():
                weight.mul_(1e30)  # finite, but the loss is not
        with pytest.raises(ValueError, match="computes nothing finite"):
            trainer.checkpoint()

    def test_weights_that_are_none_are_not_kept(self):
        trainer = Trainer(text_plan(2))
        trainer.go()
        next(iter(trainer.run.model.parameters())).data[0, 0] = math.nan
        with pytest.raises(ValueError, match="no longer finite"):
            trainer.checkpoint()

    @pytest.mark.parametrize(("threads", "words"), [(1, "one CPU core"), (4, "4 CPU cores")])
    def test_the_machine(self, monkeypatch, threads, words):
        monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
        assert machine_in_words(torch.device("cpu")) == words
        monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: f"Graphics card {device.index}")
        assert machine_in_words(torch.device("cuda", 0)) == "Graphics card 0"


class TestClock:
    @pytest.fixture
    def now(self, monkeypatch) -> list[float]:
        now = [100.0]
        monkeypatch.setattr(training_runner, "time", SimpleNamespace(perf_counter=lambda: now[0]))
        return now

    def test_the_time_left_is_that_of_the_last_while(self, now):
        """Ten steps in a second, then five in one: of the last five seconds, pauses and looks aside."""
        clock = Clock()
        with clock.running():
            now[0] += 3  # for a look before the first step, which says nothing of the steps
            clock.count_from(0)
            assert (clock.tokens_per_second, clock.seconds_left(1000)) == (0, None)
            for step in range(1, 101):
                now[0] += 0.1
                clock.step_done(step, 30)
            assert clock.tokens_per_second == pytest.approx(300)
            assert clock.seconds_left(1000) == pytest.approx(90)
            now[0] += 0.5  # a long step brings the end no nearer, but time goes by
            assert clock.seconds_left(1000) == pytest.approx(89.5)
            now[0] -= 0.5
            with clock.stopped():
                now[0] += 1000
            for step in range(101, 201):
                now[0] += 0.2
                clock.step_done(step, 30)
                if step == 102:  # of the last second, six tenths were fast, and four were slow
                    assert 160 < clock.tokens_per_second < 290
            assert clock.tokens_per_second == pytest.approx(150)
            with clock.aside():
                now[0] += 7
            assert clock.tokens_per_second == pytest.approx(150)
            assert clock.seconds_left(1000) == pytest.approx(160)
            assert clock.seconds == pytest.approx(40)
            assert clock.seconds_left(200) == 0
        now[0] += 50
        assert clock.seconds == pytest.approx(40)

    def test_after_a_resumption_the_speed_is_that_of_the_new_steps(self, now):
        clock = Clock(before=500.0)
        with clock.running():
            clock.count_from(800)
            for step in range(801, 811):
                now[0] += 1.0
                clock.step_done(step, 30)
        assert clock.seconds == pytest.approx(510)
        assert clock.seconds_left(1000) == pytest.approx(190)

    def test_a_runner_tells_the_time_as_it_goes(self, now):
        with pytest.raises(KeyError), (broken := Clock()).running():
            now[0] += 1
            raise KeyError
        now[0] += 10
        assert broken.seconds == pytest.approx(1)
        trainer, told = Trainer(text_plan(4, snapshots=0)), []

        def on_step(report, _):
            now[0] += 2.0
            told.append((trainer.progress.seconds, trainer.progress.seconds_left))

        trainer.go(on_step=on_step)
        assert told == [(0.0, None), (2.0, 6.0), (4.0, 4.0), (6.0, 2.0)]
        assert (trainer.progress.seconds, trainer.progress.seconds_left) == (8.0, 0.0)

    def test_measuring_at_the_end_is_no_training(self, now, monkeypatch):
        trainer = Trainer(task_plan("next-vowel"))
        trainer.go(on_step=lambda *_: now.__setitem__(0, now[0] + 1.0))
        measure = trainer._evaluator.measure
        monkeypatch.setattr(
            trainer._evaluator, "measure", lambda *args: now.__setitem__(0, now[0] + 99) or measure(*args)
        )
        assert trainer.checkpoint().card.training["seconds"] == 6.0


def copied(model: torch.nn.Module) -> torch.nn.Module:
    """The same model, which no longer changes."""
    copy = build_model(model.config, seed=0).eval()
    copy.load_state_dict(model.state_dict())
    return copy
