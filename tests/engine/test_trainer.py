"""Tests the trainer: validation, saving, resuming, clock, model cards."""

import dataclasses
import json
import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from tests.training_plans import CORPUS, same, same_weights, state, text_plan
from transformer import ModelCard, evaluate_loss
from transformer.training import trainer as training_runner
from transformer.training.evaluation import Measures
from transformer.training.model_card import card_of, machine_in_words
from transformer.training.plan import TrainingPlan
from transformer.training.trainer import Clock, Trainer


def thorough(steps: int = 12) -> TrainingPlan:
    """A plan as the command line has it, with dropout and averaged weights."""
    plan = text_plan(steps, snapshots=0, is_thorough=True, evaluate_every=4)
    config = dataclasses.replace(plan.config, dropout=0.2)
    training = dataclasses.replace(plan.training, average_decay=0.5)
    return dataclasses.replace(plan, config=config, training=training)


@pytest.fixture
def now(monkeypatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(training_runner, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    return now


@pytest.mark.parametrize(
    ("losses", "best"),
    [
        ([2.0, 1.0, 3.0], 8),
        ([math.nan, 2.0, 3.0], 8),
        *(([2.0, math.nan, 3.0], 4), ([math.inf, math.nan, math.nan], 4)),
    ],
)
def test_a_thorough_training_keeps_and_measures_its_best_state_and_no_number_is_never_better(monkeypatch, losses, best):
    plan = thorough(10)
    trainer, sequence, states, told = Trainer(plan), iter(losses), {}, []
    monkeypatch.setattr(trainer._evaluator, "validation_loss", lambda model: next(sequence))

    def on_step(report, loss):
        states[report.step] = state(trainer.run.best_model)
        told.extend([] if loss is None else [(report.step, loss)])

    trainer.go(on_step=on_step)
    assert list(states) == [*range(1, 11)] and str(told) == str([*zip((4, 8, 10), losses, strict=True)])
    assert trainer.progress.validation_losses == told and trainer.progress.snapshots == []
    checkpoint = trainer.checkpoint()
    card, model = checkpoint.card, checkpoint.model
    assert card.training["best_step"] == best
    assert same(state(model), states[best]) and not same(state(model), states[10])
    for loss, text in ((card.validation_loss, plan.objective.validation), (card.train_loss, plan.objective.train)):
        assert loss == pytest.approx(evaluate_loss(model, text), abs=1e-5)


@pytest.mark.parametrize(
    ("is_thorough", "ending", "seconds"),
    [(False, "", 5.0), (False, "Stopped early.", 0.3), (True, "", math.inf), (True, "Stopped early.", math.inf)],
)
def test_how_long_the_last_measurement_may_take_which_is_no_training(monkeypatch, now, is_thorough, ending, seconds):
    """Whoever stops a training on a page waits for no more than a moment."""
    trainer, given = Trainer(text_plan(4, is_thorough=is_thorough)), []
    measure = trainer._evaluator.measure

    def measured(model, seconds, check):
        given.append(seconds)
        now[0] += 99
        return measure(model, 0.0, check)

    monkeypatch.setattr(trainer._evaluator, "measure", measured)
    trainer.go(on_step=lambda *_: now.__setitem__(0, now[0] + 1.0))
    assert trainer.checkpoint(ending).card.training["seconds"] == 4.0
    assert given == [seconds]


@pytest.mark.parametrize("first_is_best", [False, True])
def test_a_training_that_was_interrupted_ends_as_if_it_had_not_been(tmp_path, now, monkeypatch, first_is_best):
    """Weights, dropout, best state, and all that its card says but the seconds; and what has ended isn't trained on."""
    losses = iter([1.0, 2.0, 3.0, 1.0, 2.0, 3.0])

    def trainer(name: str) -> Trainer:
        made = Trainer(thorough(), state=tmp_path / name)
        if first_is_best:
            monkeypatch.setattr(made._evaluator, "validation_loss", lambda model: next(losses))
        return made

    whole, seen = trainer("whole"), []
    whole.go(on_step=lambda report, _: seen.append(report.loss))
    expected = whole.checkpoint()
    if not first_is_best:
        validation = evaluate_loss(whole.run.best_model, whole.plan.objective.validation)  # all that is held out
        assert whole.progress.validation_losses[-1] == (12, validation)
    assert expected.card.training["last_batches_loss"] == pytest.approx(np.mean(seen), abs=1e-5)

    def step(report, _, stop_at=0):
        now[0] += 10.0
        if report.step == stop_at:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        trainer("state").go(on_step=lambda report, loss: step(report, loss, stop_at=6))
    torch.rand(5)  # whatever else draws random numbers meanwhile
    now[0] += 1000
    resumed, steps = trainer("state"), []
    resumed.resume()
    assert resumed.progress.step == 4
    resumed.go(on_step=lambda report, loss: step(report, loss) or steps.append(report.step))
    assert steps == list(range(5, 13))
    again = trainer("state")
    again.resume()
    again.go(on_step=lambda *_: pytest.fail("there is no step to take"))
    for found, seconds in ((resumed.checkpoint(), 30 + 80), (again.checkpoint(), 30 + 70)):
        # A step is counted after its state is written.
        assert same_weights(found.model, expected.model)
        assert found.card.training == expected.card.training | {"seconds": seconds}
        assert dataclasses.replace(found.card, training={}) == dataclasses.replace(expected.card, training={})
    with pytest.raises(ValueError, match="no file of its state"):
        Trainer(thorough()).resume()


class TestCards:
    MEASURES = Measures(1.23456789, 2.0, 0.5, "all of it")

    def card(self, measures: Measures = MEASURES, plan: TrainingPlan | None = None, **fields) -> ModelCard:
        facts = {"parameters": 7, "best_step": 3, "last_losses": [1.0, 2.0], "seconds": 12.3456}
        return card_of(plan or text_plan(), measures, **facts | fields, device=torch.device("cpu"))

    def test_what_it_says(self):
        plan = text_plan(command="python -m transformer train mine", group="Texts")
        card = self.card(plan=plan, ending="Stopped early.", processes=2)
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
            "machine": f"2 processes, each on {machine_in_words(torch.device('cpu'))}",
            "measured_on": "all of it",
        }
        assert "command" not in self.card().training  # none trains a visitor's model again

    @pytest.mark.parametrize(
        ("planned", "taken", "title"),
        [
            *(("Mine, 3,000 steps", 428, "Mine, 428 steps"), ("Mine, 3,000 steps", 1, "Mine, 1 step")),
            *((title, 428, title) for title in ("Mine, 40 steps", "3,000 steps, a novel")),
        ],
    )
    def test_its_title_counts_the_steps_that_were_taken(self, planned, taken, title):
        assert self.card(plan=text_plan(3000, title=planned), best_step=taken).title == title

    @pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf, 1e30])
    def test_it_holds_no_number_that_is_none(self, wrong):
        card = self.card(Measures(wrong, wrong, wrong, ""), last_losses=[1.0, wrong])
        assert (card.train_loss, card.validation_loss, card.accuracy) == (None, None, None)
        assert card.training["last_batches_loss"] is None
        assert ModelCard.from_dict(json.loads(json.dumps(dataclasses.asdict(card), allow_nan=False))) == card

    @pytest.mark.parametrize(("factor", "message"), [(1e30, "nothing finite"), (math.nan, "no longer finite")])
    def test_a_model_that_computes_nothing_finite_is_not_kept(self, factor, message):
        trainer = Trainer(text_plan(2))
        trainer.go()
        for weight in trainer.run.model.parameters():
            weight.data.mul_(factor)
        with pytest.raises(ValueError, match=message):
            trainer.checkpoint()

    def test_the_machine(self, monkeypatch):
        for threads, words in ((1, "one CPU core"), (4, "4 CPU cores")):
            monkeypatch.setattr(torch, "get_num_threads", lambda threads=threads: threads)
            assert machine_in_words(torch.device("cpu")) == words
        monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: f"Graphics card {device.index}")
        assert machine_in_words(torch.device("cuda", 0)) == "Graphics card 0"


class TestClock:
    def test_the_time_left_is_that_of_the_last_while(self, now):
        """Ten steps in a second, then five in one: of the last five seconds, pauses and looks aside."""
        clock = Clock(before=500.0)  # in an earlier part, which says nothing of the speed

        def steps(numbers: range, seconds: float) -> None:
            for step in numbers:
                now[0] += seconds
                clock.step_done(step, 30)

        with clock.running():
            now[0] += 3  # for a look before the first step, which says nothing of the steps
            clock.count_from(800)
            assert (clock.tokens_per_second, clock.seconds_left(1800)) == (0, None)
            steps(range(801, 901), 0.1)
            assert clock.tokens_per_second == pytest.approx(300)
            assert clock.seconds_left(1800) == pytest.approx(90)
            now[0] += 0.5  # a long step brings the end no nearer, but time goes by
            assert clock.seconds_left(1800) == pytest.approx(89.5)
            now[0] -= 0.5
            with clock.stopped():
                now[0] += 1000
            steps(range(901, 903), 0.2)
            assert 160 < clock.tokens_per_second < 290  # of the last second, six tenths were fast, and four were slow
            steps(range(903, 1001), 0.2)
            with clock.aside():
                now[0] += 7
            assert clock.tokens_per_second == pytest.approx(150)
            assert clock.seconds_left(1800) == pytest.approx(160)
            assert clock.seconds == pytest.approx(540)
            assert clock.seconds_left(1000) == 0
        now[0] += 50
        assert clock.seconds == pytest.approx(540)

    def test_a_trainer_tells_the_time_as_it_goes(self, now):
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
