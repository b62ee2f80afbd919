"""Tests the page Train during and after a training: pause, stop, result, absent visitors."""

import re
import threading
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest

from pages.ui.session import session_store as store
from pages.ui.session import visitor_models
from pages.ui.session import visitor_training as training
from pages.ui.session.session_store import SessionRecord, session_store
from pages.ui.views import train_progress
from tests import app_driver as app
from tests.app_driver import (
    PAGES,
    checked,
    dismiss_notices,
    go,
    link_of,
    markdown_with,
    named,
    press,
    said,
    start,
    tell_page,
)
from tests.train_page import (
    LONG,
    SMALL,
    captions,
    groups,
    kept_by_tab,
    labels,
    record,
    reloaded,
    train_to_the_end,
    upload_model,
    upload_text,
    wait_for,
)
from tests.training_plans import task_plan, text_plan, until
from transformer import Recording, load_checkpoint
from transformer.api.limits import Share
from transformer.api.model_store import model_store
from transformer.checkpoints.archive import pack_checkpoint, unpack_checkpoint
from transformer.training import evaluation
from transformer.training.trainer import Progress
from transformer.training.training_job import ENDED
from transformer.training.training_queue import TrainingQueue

pytestmark = pytest.mark.usefixtures("training_page")


def begun():
    return press(start("Train", **LONG), "Train")


def found(at, kept):
    """The tab hands over what it kept."""
    return tell_page(at, "headsup_session_token", "found", kept)


HERE, VISITOR = "203.0.113.7", Share("visitor one", "203.0.113.7")
CLASS = [Share(f"strangers {HERE} {number % 8}", HERE) for number in range(60)]


@pytest.mark.parametrize(
    ("share", "under_way", "sentence"),
    [
        (CLASS[0], CLASS, ""),
        (VISITOR, [*CLASS, VISITOR, VISITOR], ""),
        (VISITOR, [VISITOR] * 3, "You have 3 trainings under way"),
        (VISITOR, [*CLASS, *CLASS[:4]], "Too many trainings wait already"),
        (Share("visitor one", "198.51.100.1"), [*CLASS, *CLASS[:4]], ""),
        (Share("visitor one", None), [Share(f"visitor {number}", None) for number in range(199)], ""),
        (Share("visitor one", None), [Share(f"visitor {number}", None) for number in range(200)], "Too many trainings"),
    ],
)
def test_only_so_many_trainings_of_a_visitor_an_address_and_all_are_under_way(monkeypatch, share, under_way, sentence):
    monkeypatch.setattr(training, "visitor_share", lambda: share)
    monkeypatch.setattr(TrainingQueue, "owners", under_way)
    at = begun()
    assert (sentence in said(at)) if sentence else ("Pause" in labels(at)), said(at)


def test_a_running_training_can_be_watched_paused_and_stopped():
    at, text, deadline = begun(), "", time.monotonic() + 60
    said_of_it = markdown_with(at, "3,000 steps, each on")
    assert "Next vowel" in said_of_it and "× 1 head, 16 wide" in said_of_it
    while not re.search(r"\d+ (seconds|minutes?) left at this speed, .*\d s so far", text):
        assert time.monotonic() < deadline, text
        time.sleep(0.1)
        (bar,) = checked(at.run()).get("progress")
        text, job = bar.proto.text, record(at).training.job
        assert bar.proto.value <= 100 * job.progress.step / job.progress.steps + 1
    assert "Resume" in labels(press(at, "Pause"))
    press(at, "Resume")
    assert "Your training continues" in captions(go(at, "Positions"))
    press(go(at, "Train"), "Stop and keep")
    press(wait_for(at, "Train another"), "Train another")
    assert "Train" in labels(at)


@pytest.mark.parametrize(
    ("state", "step", "seconds", "left", "words"),
    [
        ("waiting", 0, 0.0, None, ""),
        ("running", 3, 4.2, None, " · 4 s so far"),
        ("running", 3, 14.2, 31.0, " · 30 seconds left at this speed, 14 s so far"),
        ("running", 9, 75.0, 100.0, " · 2 minutes left at this speed, 1 min 15 s so far"),
        ("paused", 9, 75.0, 100.0, " · 1 min 15 s so far"),
        ("finished", 10, 80.0, 0.0, " · 1 min 20 s"),
    ],
)
def test_its_times(state, step, seconds, left, words):
    job = SimpleNamespace(state=state, progress=Progress(10, step, seconds, left))
    assert train_progress._times(job) == words


def test_a_training_that_has_no_place_yet_is_told_of_and_leaves_no_model_when_it_is_stopped():
    training.queue().limit = 0
    at = begun()
    (progress,) = at.get("progress")
    assert progress.proto.text.startswith("Waiting for a place on the server, place 1 in the queue: step 0")
    at = go(at, "Positions")
    assert "Your training is waiting for the server." in captions(at)
    record(at).training.job.pause()
    assert "Your training is paused at step 0 of 3,000." in captions(checked(at.run()))
    at = go(at, "Train")
    checked(press(at, "Stop and keep").run())
    assert "stopped before its first step, so there is no model" in said(at)
    assert "A sample comes" not in captions(at) and all("losses" not in drawer.label for drawer in at.expander)


def test_an_encoder_fills_the_masks_of_its_probe_and_opens_on_the_pages(monkeypatch):
    monkeypatch.setattr(evaluation, "HELD_OUT", 40)  # stories, each of which takes as long as a step
    at = train_to_the_end(start("Train", **SMALL | {"task": "masked-stories"}))
    told = captions(at)
    assert "nats per masked token" in told and "always in `Mary␣took␣the␣ball.␣She␣went␣to␣the␣[mask]." in told
    assert re.search(r"After \*\*50 steps\*\*: validation loss [\d.]+, [\d.]+% of held-out masks filled", told)
    (sample,) = [code.value for code in at.code if code.value.startswith("Mary took the ball.")]
    assert "[mask]" not in sample and sample.endswith("Where is the ball? garden")
    assert "It fills the masks of" in markdown_with(at, "is now one of your models")
    drawn = Recording.from_bytes(app.component(at, "headsup_head_grid").bytes).tensors["overview"]
    assert "Loss by step: training loss from " in app.component(at, "headsup_loss_chart").json
    assert (drawn[0, 0] < 255).all()
    content = pack_checkpoint(record(at).training.job.checkpoint)
    press(at, "Look at its attention")
    assert not said(at) and "[mask]" in app.prompt(at)
    at = upload_model(start("Train"), "encoder.zip", content)
    assert not said(at) and len(record(at).models) == 1


def test_a_model_belongs_to_who_trained_it_and_is_shown_in_tables_and_kept_as_one_file():
    at = train_to_the_end(start("Train", **SMALL))
    (name,) = record(at).models
    checkpoint = model_store().get(name)
    assert name.startswith("own-") and checkpoint.card.training["steps"] == 50
    assert markdown_with(at, "is now one of your models") and "Generate with it" in labels(at)
    assert groups(at) == {"Yours"}

    losses, weights = (table.value for table in app.open_drawers(at).dataframe)
    batch_losses = losses["training loss (nats)"].dropna()
    assert losses["step"].iloc[-1] == SMALL["steps"] and batch_losses.iloc[-1] < batch_losses.iloc[0]
    assert set(weights["attention"]) == {"encoder", "decoder", "cross"}
    sums = weights.groupby(["attention", "layer", "head", "query"])["weight"].sum()
    assert sums.to_numpy() == pytest.approx(1.0, abs=5e-3)
    checked(named(at.select_slider, "Step").set_value(1).run())
    assert "After **1 step**: validation loss" in captions(at) and "After 1 step, always continuing" in captions(at)

    stranger = start("Train")
    assert record(stranger).training.job is None and not record(stranger).models and not groups(stranger)
    assert kept_by_tab(at)["value"] and kept_by_tab(stranger)["value"] == ""
    packed = pack_checkpoint(checkpoint)
    upload_model(stranger, "model.headsup.zip", packed)
    (same,) = record(stranger).models
    assert link_of(stranger)["model"] == same and model_store().get(same).card.title == checkpoint.card.title
    ours, theirs = checkpoint.model.state_dict(), unpack_checkpoint(packed).model.state_dict()
    assert all(ours[key].equal(theirs[key]) for key in ours)
    upload_model(stranger, "holiday.zip", b"PK\x03\x04 nothing")
    assert "holiday.zip can't be opened" in said(stranger) and len(record(stranger).models) == 1


def test_a_model_is_given_away_by_its_link_and_gone_when_it_is_removed():
    at = train_to_the_end(start("Train", changes="without~mask~", **SMALL))
    (name,) = record(at).models
    press(at, "Look at its attention")
    assert link_of(at)["model"] == name and "changes" not in link_of(at) and app.told_of(at)["own"] == [name]
    stranger = start("Attention", model="own-" + "0" * 32)
    assert "was deleted a day after its last use" in said(stranger) and link_of(stranger)["model"] == "shakespeare"
    assert not groups(stranger)
    other = start("Attention", model=name)
    assert link_of(other)["model"] == name and not other.warning
    assert groups(other) == {"Shared with you"} and not record(other).models
    assert not any(label.startswith("Remove") for label in labels(go(other, "Train")))
    session_store.clear()  # the server forgets its visitors
    again = found(start("Masks"), kept_by_tab(at)["value"])
    assert list(record(again).models) == [name] and groups(again) == {"Yours"}
    (remove,) = [label for label in labels(go(at, "Train")) if label.startswith("Remove")]
    press(at, remove)
    assert link_of(at)["model"] == "shakespeare" and not record(at).models
    assert link_of(at)["changes"] == "without~mask~"  # which were put away with it
    other.query_params.update(link_of(other))  # where a tab keeps them
    assert "was deleted a day after its last use" in said(checked(other.run()))


def test_what_the_card_of_a_file_says_is_text(tiny):
    """A picture in a title would be fetched from wherever it is; and a foreign card may hold anything."""
    picture = "![x](http://example.org/x.png)"
    ours = load_checkpoint(tiny / "shakespeare")
    how = {"seconds": picture, "machine": picture, "command": picture, "best_step": picture}
    texts = {"title": picture, "summary": picture, "language": picture}
    card = replace(ours.card, **texts, training=how, corpus={"title": picture, "licence": picture})
    at = upload_model(start("Train"), f"{picture}.zip", pack_checkpoint(replace(ours, card=card)))
    for each in (*PAGES, "Train"):
        at = go(at, each)
        shown = [element.value for element in (*at.markdown, *at.caption, *at.header, *at.success)] + labels(at)
        assert any("example" in text for text in shown) or each != "Train"
        assert not any(picture in re.sub("`.*`", "", text) for text in shown)


def test_one_model_more_than_a_visitor_can_have(tiny, monkeypatch):
    """It is uploaded once another is removed; and trained, from a text with whatever name, without being lost."""
    monkeypatch.setattr(visitor_models, "MAX_MODELS", 2)
    ours = load_checkpoint(tiny / "shakespeare")
    files = [pack_checkpoint(replace(ours, card=replace(ours.card, title=f"Model {i}"))) for i in range(3)]

    def titles():
        return [entry.card.title for entry in record(at).models.values()]

    at = upload_text(start("Train", **SMALL | {"learn": "own"}), b"All the world is a stage. " * 100, "long " * 100)
    for i in range(3):
        upload_model(at, f"{i}.zip", files[i])
    assert "Remove one under “Your models as files” first." in said(at)
    assert titles() == ["Model 0", "Model 1"]
    checked(press(at, "Remove Model 0").run())
    assert titles() == ["Model 1", "Model 2"]
    upload_model(at, "1.zip", files[1])  # which is there
    assert titles() == ["Model 1", "Model 2"] and "the trained model can only be downloaded" in said(at)

    wait_for(press(at, "Train"), "Discard the model and train another")
    assert "isn't among your models yet" in said(at) and len(titles()) == 2
    assert any(each.proto.label == "Download it" for each in at.get("download_button"))
    press(at, "Remove Model 1")
    assert titles()[0] == "Model 2" and titles()[1].endswith("50 steps") and "Train another" in labels(at)
    *_, name = record(at).models
    trained = model_store().get(name)
    assert unpack_checkpoint(pack_checkpoint(trained)).card.title == trained.card.title


class TestComingBack:
    """What a visitor has made is found by the tab that made it, and by no other."""

    def test_a_training_goes_on_and_is_found_and_says_why_it_was_stopped_meanwhile(self):
        at = begun()
        job = record(at).training.job
        until(lambda: job.progress.step >= 1)
        again = reloaded(at, start("Train"))
        assert record(again).training.job is job and job.state not in ENDED
        record(again).seen_at -= store.GONE_AFTER + 1
        training.watch_over(job, record(again), training.queue())
        last = reloaded(again, start("Train"))
        assert "The training was stopped because you had been away for 10 minutes." in said(last)
        assert len(record(last).models) == 1

    def test_one_that_has_died_with_its_server_says_so_once(self):
        at = begun()
        kept, job = kept_by_tab(at)["value"], record(at).training.job
        session_store.clear()  # another server, which knows nothing of it
        for name in ("Train", "Masks"):
            again = found(start(name), kept)
            assert said(again).count("Your training has ended: its server stopped") == 1
            assert "start the training again" not in said(dismiss_notices(again))
        job.stop()
        assert job.join(30)
        checked(at.run())
        kept = kept_by_tab(checked(at.run()))["value"]
        session_store.clear()
        again = found(start("Train"), kept)
        assert not said(again) and len(record(again).models) == 1, "its model was kept"

    def test_what_a_browser_makes_up_is_nothing(self):
        for kept in ("", "a" * 32, "../ own-1", "a training", "own-" + "0" * 32, "x" * 3000, 3, ["a"]):
            at = found(start("Train"), kept)
            assert record(at).is_empty and not at.warning, kept


class TestLeaving:
    """A training goes on without a connection; it ends, saying why, when its visitor has gone."""

    @pytest.fixture
    def job(self, monkeypatch):
        monkeypatch.setattr(training, "POLL_INTERVAL", 0.05)
        training.queue().limit = 1
        return training.queue().train(text_plan(10**6))

    def watched(self, job, seconds):
        record = SessionRecord(connection_ended=True)
        record.seen_at -= seconds
        watch = threading.Thread(target=training.watch_over, args=(job, record, training.queue()), daemon=True)
        watch.start()
        return watch

    def test_who_does_not_come_back_in_ten_minutes_finds_the_model_and_why(self, job):
        until(lambda: job.progress.step)
        self.watched(job, 601).join(20)
        assert job.join(20) and job.state == "stopped" and job.checkpoint is not None
        assert job.reason == "The training was stopped because you had been away for 10 minutes."

    def test_who_is_away_for_less_ends_nothing_but_lets_another_go_first(self, job):
        other = training.queue().train(task_plan("next-vowel"))
        watch = self.watched(job, 590)
        until(lambda: other.state in ENDED)
        assert other.state == "finished" and job.state not in ENDED
        until(lambda: job.state == "running")
        assert watch.is_alive()
        job.stop()
        watch.join(20)
        assert not watch.is_alive() and job.reason == ""
