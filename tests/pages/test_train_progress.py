"""Tests the page Train during and after a training: pause, stop, result, absent visitors."""

import re
import threading
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest

from pages.ui.models import session_store as store
from pages.ui.models import visitor_models
from pages.ui.models import visitor_training as training
from pages.ui.models.session_store import SessionRecord, session_store
from pages.ui.views import train_progress
from tests import app_driver as app
from tests import train_page as page
from tests.app_driver import PAGES, checked, go, link_of, markdown_with, named, press, said, start, tell_page
from tests.train_page import SMALL, captions, groups, labels, record, reloaded, trained, upload_model, wait_for
from tests.training_plans import task_plan, until
from transformer import Recording, load_checkpoint
from transformer.api.model_store import model_store
from transformer.checkpoints.archive import pack_checkpoint, unpack_checkpoint
from transformer.training import evaluation
from transformer.training.training_job import ENDED

pytestmark = pytest.mark.usefixtures("training_page")


def begun(**link):
    return press(start("Train", **(link or page.LONG)), "Train")


class TestRunning:
    """What is shown and can be done until the last step."""

    def test_pause_resume_and_stop(self):
        at = wait_for(begun(), "Pause")
        assert "Resume" in labels(press(at, "Pause"))
        press(at, "Resume")
        assert "Your training continues" in captions(go(at, "Positions"))
        press(go(at, "Train"), "Stop and keep")
        press(wait_for(at, "Train another"), "Train another")
        assert "Train" in labels(at)

    def test_what_is_trained_stays_in_sight_and_the_time_left_is_told_by_its_speed(self):
        at, text, deadline = begun(), "", time.monotonic() + 60
        said_of_it = markdown_with(at, "3,000 steps, each on")
        assert "Next vowel" in said_of_it and "× 1 head, 16 wide" in said_of_it
        while not re.search(r"\d+ (seconds|minutes?) left at this speed, .*\d s so far", text):
            assert time.monotonic() < deadline, text
            time.sleep(0.1)
            (text,) = [bar.proto.text for bar in checked(at.run()).get("progress")]

    def test_its_times(self):
        for state, step, seconds, left, words in (
            ("waiting", 0, 0.0, None, ""),
            ("running", 3, 4.2, None, " · 4 s so far"),
            ("running", 3, 14.2, 31.0, " · 30 seconds left at this speed, 14 s so far"),
            ("running", 9, 75.0, 100.0, " · 2 minutes left at this speed, 1 min 15 s so far"),
            ("paused", 9, 75.0, 100.0, " · 1 min 15 s so far"),
            ("finished", 10, 80.0, 0.0, " · 1 min 20 s"),
        ):
            job = SimpleNamespace(state=state, step=step, seconds=seconds, seconds_left=left)
            assert train_progress._times(job) == words


def test_a_training_that_has_no_place_yet_is_told_of_and_leaves_no_model_when_it_is_stopped():
    training.queue().limit = 0
    at = go(begun(**SMALL), "Positions")
    assert "Your training is waiting for the server." in captions(at)
    record(at).training.job.pause()
    assert "Your training is paused at step 0 of 50." in captions(checked(at.run()))
    at = go(at, "Train")
    checked(press(at, "Stop and keep").run())
    assert "stopped before its first step, so there is no model" in said(at)
    assert "A sample comes" not in captions(at) and all("losses" not in drawer.label for drawer in at.expander)


class TestItsModel:
    """What came out, on every page and as a file."""

    def test_an_encoder_fills_the_masks_of_its_probe_and_opens_on_the_pages(self, monkeypatch):
        monkeypatch.setattr(evaluation, "HELD_OUT", 200)  # stories, each of which takes as long as a step
        at = page.train_to_the_end(start("Train", **SMALL | {"task": "masked-stories"}))
        told = captions(at)
        assert "nats per masked token" in told and "always in `Mary␣took␣the␣ball.␣She␣went␣to␣the␣[mask]." in told
        assert re.search(r"After \*\*50 steps\*\*: validation loss [\d.]+, [\d.]+% of held-out masks filled", told)
        (sample,) = [code.value for code in at.code if code.value.startswith("Mary took the ball.")]
        assert "[mask]" not in sample and sample.endswith("Where is the ball? garden")
        assert "It fills the masks of" in markdown_with(at, "is now one of your models")
        drawn = Recording.from_bytes(app.component(at, "headsup_head_grid").bytes).tensors["overview"]
        assert (drawn[0, 0] < 255).all()
        content = pack_checkpoint(record(at).training.job.result)
        press(at, "Look at its attention")
        assert not said(at) and "[mask]" in app.prompt(at)
        at = upload_model(start("Train"), "encoder.zip", content)
        assert not said(at) and len(record(at).models) == 1

    def test_belongs_to_the_visitor(self):
        at = trained()
        (name,) = record(at).models
        assert name.startswith("own-") and model_store().get(name).card.training["steps"] == 50
        assert markdown_with(at, "is now one of your models") and "Generate with it" in labels(at)
        assert groups(at) == {"Yours"}
        stranger = start("Train")
        assert record(stranger).training.job is None and not record(stranger).models and not groups(stranger)
        assert page.kept_by_tab(at)["value"] and page.kept_by_tab(stranger)["value"] == ""
        gives = "The link also gives access to your model."
        assert gives not in captions(start("Generate"))
        press(at, "Look at its attention")
        assert link_of(at)["model"] == name and named(at.selectbox, "Attention") and gives in captions(at)
        stranger = start("Attention", model="own-" + "0" * 32)
        assert "was deleted a day after its last use" in said(stranger) and link_of(stranger)["model"] == "shakespeare"
        assert not groups(stranger)

        other = start("Attention", model=name)  # given away by a link
        assert link_of(other)["model"] == name and not other.warning
        assert groups(other) == {"Shared with you"} and not record(other).models
        assert not any(label.startswith("Remove") for label in labels(go(other, "Train")))
        session_store.clear()  # the server forgets its visitors
        again = tell_page(start("Masks"), "headsup_session_token", "found", page.kept_by_tab(at)["value"])
        assert list(record(again).models) == [name] and groups(again) == {"Yours"}
        (remove,) = [label for label in labels(go(at, "Train")) if label.startswith("Remove")]
        press(at, remove)
        assert link_of(at)["model"] == "shakespeare" and not record(at).models
        assert "was deleted a day after its last use" in said(checked(other.run()))

    def test_has_its_losses_and_its_attention_as_tables_and_is_kept_as_one_file(self):
        at = trained()
        (checkpoint,) = map(model_store().get, record(at).models)
        losses, weights = (table.value for table in app.open_drawers(at).dataframe)
        batch_losses = losses["training loss (nats)"].dropna()
        assert losses["step"].iloc[-1] == SMALL["steps"] and batch_losses.iloc[-1] < batch_losses.iloc[0]
        assert set(weights["attention"]) == {"encoder", "decoder", "cross"}
        sums = weights.groupby(["attention", "layer", "head", "query"])["weight"].sum()
        assert sums.to_numpy() == pytest.approx(1.0, abs=5e-3)
        checked(named(at.select_slider, "Step").set_value(1).run())
        assert "After **1 step**: validation loss" in captions(at) and "After 1 step, always continuing" in captions(at)

        packed = pack_checkpoint(checkpoint)
        other = upload_model(start("Train"), "model.headsup.zip", packed)
        (name,) = record(other).models
        assert link_of(other)["model"] == name and model_store().get(name).card.title == checkpoint.card.title
        ours, theirs = checkpoint.model.state_dict(), unpack_checkpoint(packed).model.state_dict()
        assert all(ours[key].equal(theirs[key]) for key in ours)
        other = upload_model(other, "holiday.zip", b"PK\x03\x04 nothing")
        assert "holiday.zip can't be opened" in said(other) and len(record(other).models) == 1

    def test_can_be_downloaded_whatever_its_text_s_file_is_called(self):
        at = page.upload_text(
            start("Train", **SMALL | {"learn": "own"}), b"All the world is a stage. " * 100, "long " * 100
        )
        (checkpoint,) = map(model_store().get, record(page.train_to_the_end(at)).models)
        assert unpack_checkpoint(pack_checkpoint(checkpoint)).card.title == checkpoint.card.title


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
        shown = [element.value for element in (*at.markdown, *at.caption, *at.header, *at.success)]
        assert any("example" in text for text in shown)
        assert not any(picture in re.sub("`.*`", "", text) for text in shown)


class TestNoRoom:
    """One model more than a visitor can have."""

    @pytest.fixture
    def at(self, tiny, monkeypatch):
        monkeypatch.setattr(visitor_models, "MAX_MODELS", 2)
        ours = load_checkpoint(tiny / "shakespeare")
        self.files = [pack_checkpoint(replace(ours, card=replace(ours.card, title=f"Model {i}"))) for i in range(3)]
        at = start("Train", **SMALL)
        for i in range(2):
            self.upload(at, i)
        return at

    def upload(self, at, i):
        return upload_model(at, f"{i}.zip", self.files[i])

    def titles(self, at):
        return [entry.card.title for entry in record(at).models.values()]

    def test_is_not_uploaded_until_one_is_removed(self, at):
        self.upload(at, 2)
        assert "Remove one under “Your models as files” first." in said(at)
        assert self.titles(at) == ["Model 0", "Model 1"]
        checked(press(at, "Remove Model 0").run())
        assert self.titles(at) == ["Model 1", "Model 2"]
        self.upload(at, 1)  # which is there
        assert self.titles(at) == ["Model 1", "Model 2"]

    def test_is_trained_but_not_lost(self, at):
        assert "the trained model can only be downloaded" in said(at)
        wait_for(press(at, "Train"), "Discard the model and train another")
        assert "isn't among your models yet" in said(at) and len(self.titles(at)) == 2
        assert any(each.proto.label == "Download it" for each in at.get("download_button"))
        press(at, "Remove Model 0")
        assert self.titles(at)[0] == "Model 1" and self.titles(at)[1].endswith("50 steps")
        assert "Train another" in labels(at)


class TestComingBack:
    """What a visitor has made is found by the tab that made it, and by no other."""

    def test_a_training_goes_on_and_is_found(self):
        at = begun()
        job = record(at).training.job
        again = reloaded(at, start("Train"))
        assert record(again).training.job is job and job.state not in ENDED
        press(again, "Stop and keep")
        assert job.join(30)
        assert len(record(checked(again.run())).models) == 1

    def test_one_that_has_died_with_its_server_says_so_once(self):
        at = begun()
        kept, job = page.kept_by_tab(at)["value"], record(at).training.job
        session_store.clear()  # another server, which knows nothing of it
        for name in ("Train", "Masks"):
            again = tell_page(start(name), "headsup_session_token", "found", kept)
            assert said(again).count("Your training has ended: its server stopped") == 1
            assert "start the training again" not in said(press(again, "OK")) and "OK" not in labels(again)
        job.stop()
        assert job.join(30)
        checked(at.run())
        kept = page.kept_by_tab(checked(at.run()))["value"]
        session_store.clear()
        again = tell_page(start("Train"), "headsup_session_token", "found", kept)
        assert not said(again) and len(record(again).models) == 1, "its model was kept"

    def test_what_a_browser_makes_up_is_nothing(self):
        for kept in ("", " ", "a" * 32, "../ own-1", "a training", "own-" + "0" * 32, "x" * 3000, 3, None, ["a"]):
            at = tell_page(start("Train"), "headsup_session_token", "found", kept)
            assert record(at).is_empty and not at.warning, kept


class TestLeaving:
    """A training goes on without a connection; it ends, saying why, when its visitor has gone."""

    @pytest.fixture
    def job(self, monkeypatch):
        monkeypatch.setattr(training, "POLL_INTERVAL", 0.05)
        job = record(begun()).training.job
        yield job
        job.close()
        assert job.join(20)

    def away(self, seconds, ended=False):
        record = SessionRecord(connection_ended=ended)
        record.seen_at -= seconds
        return record

    def watched(self, job, away):
        watch = threading.Thread(target=training.watch_over, args=(job, away, training.queue()), daemon=True)
        watch.start()
        return watch

    def test_who_does_not_come_back_in_ten_minutes_finds_the_model_and_why(self, job):
        training.watch_over(job, self.away(601), training.queue())
        assert job.state == "stopped" and job.join(20)
        assert job.reason == "The training was stopped because you had been away for 10 minutes."
        assert job.result is not None or not job.step

    def test_who_comes_back_later_is_told_why_it_ended_and_has_the_model(self):
        at = begun()
        until(lambda: record(at).training.job.step >= 1)
        record(at).seen_at -= store.GONE_AFTER + 1
        training.watch_over(record(at).training.job, record(at), training.queue())
        again = reloaded(at, start("Train"))
        assert "The training was stopped because you had been away for 10 minutes." in said(again)
        assert len(record(again).models) == 1

    def test_who_is_away_for_less_ends_nothing(self, job):
        watch = self.watched(job, self.away(590, ended=True))
        watch.join(0.5)
        assert watch.is_alive() and job.state not in ENDED
        job.stop()
        watch.join(20)
        assert not watch.is_alive() and job.reason == ""

    def test_who_is_away_lets_another_go_first_and_goes_on_after(self, job):
        until(lambda: job.state == "running")
        training.queue().limit = 1
        other = training.queue().submit(task_plan("next-vowel"))
        watch = self.watched(job, self.away(store.AWAY_AFTER_DISCONNECT + 1, ended=True))
        until(lambda: other.state in ENDED)
        assert other.state == "finished" and job.state not in ENDED
        until(lambda: job.state == "running")
        job.stop()
        watch.join(20)
