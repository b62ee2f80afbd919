"""The page Train without a browser: what can be chosen, what it costs, a training from start to end, and its model."""

import json
import re
import threading
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest
import streamlit as st

from pages.ui.models import own_models
from pages.ui.models import own_training as training
from pages.ui.models import session_store as store
from pages.ui.models.session_store import SessionRecord, session_store
from pages.ui.views import train_plan, train_progress
from pages.ui.views.train_choice import in_words
from tests.app_driver import (
    PAGES,
    checked,
    component,
    go,
    link_of,
    markdown_with,
    named,
    open_drawers,
    press,
    said,
    start,
    tell_page,
)
from tests.plans import task_plan, until
from transformer import load_checkpoint, load_corpus
from transformer.api.store import model_store
from transformer.checkpoints.archive import pack_checkpoint, unpack_checkpoint
from transformer.data.corpora import SOURCES, text_corpus
from transformer.training.worker import ENDED

SMALL = {
    "learn": "task",
    "task": "next-vowel",
    "shape": "dials",
    "n_layers": 1,
    "n_heads": 1,
    "d_model": 16,
    "steps": 50,
}
MANUAL = {"learn": "text", "corpus": "python-manual", "shape": "rung", "rung": "ladder-1-bigram"}


@pytest.fixture(autouse=True)
def page_train(folder):
    yield
    training.queue().close()
    st.cache_resource.clear()


def metrics(at):
    return {metric.label: metric.value for metric in at.metric}


def train_to_the_end(at, seconds=90):
    press(at, "Train")
    deadline = time.monotonic() + seconds
    while not any(button.label == "Train another" for button in at.button):
        assert time.monotonic() < deadline, said(at)
        time.sleep(0.3)
        checked(at.run())
    return checked(at.run())


def test_the_default_is_one_click_away_and_needs_no_network():
    at = start("Train")
    assert named(at.get("button_group"), "Kind").value == "text"
    assert "will be downloaded" not in " ".join(caption.value for caption in at.caption)
    assert int(metrics(at)["Parameters"].replace(",", "")) > 10_000
    assert metrics(at)["Memory"].endswith(" MB")
    assert re.fullmatch(r"\d+ (seconds|minutes?)", metrics(at)["Time, estimated"])
    (estimate,) = [metric for metric in at.metric if metric.label == "Time, estimated"]
    assert "While the machine is busy, training takes longer" in estimate.help
    assert not named(at.button, "Train").disabled


def groups(at):
    """Whose models are listed, of those that don't ship."""
    titles = named(at.selectbox, "Model").options
    return {group for group in ("Yours", "Shared with you") if any(title.startswith(group) for title in titles)}


def test_a_model_is_trained_and_belongs_to_the_visitor():
    at = train_to_the_end(start("Train", **SMALL))
    (name,) = at.session_state["session_record"].models
    assert name.startswith("own-")
    checkpoint = model_store().get(name)
    assert checkpoint.card.training["steps"] == 50
    assert "is among your models now" in " ".join(element.value for element in at.markdown)
    assert groups(at) == {"Yours"}
    press(at, "Look at its attention")
    assert link_of(at)["model"] == name
    assert any(selectbox.label == "Attention" for selectbox in at.selectbox)

    assert not groups(start("Attention"))
    stranger = start("Attention", model="own-" + "0" * 32)
    assert "is no longer kept" in said(stranger)
    assert link_of(stranger)["model"] == "shakespeare"


def test_a_link_gives_an_own_model_away_and_says_so():
    at = start("Generate")
    gives = "Whoever has the link gets your own model."
    assert gives not in [caption.value for caption in at.caption]
    at = train_to_the_end(start("Train", **SMALL))
    (name,) = at.session_state["session_record"].models
    press(at, "Look at its attention")
    assert gives in [caption.value for caption in at.caption]
    other = start("Attention", model=name)
    assert link_of(other)["model"] == name and not other.warning
    assert groups(other) == {"Shared with you"}
    assert not other.session_state["session_record"].models
    go(other, "Train")
    assert not any(button.label.startswith("Remove") for button in other.button)
    go(at, "Train")
    (button,) = [button for button in at.button if button.label.startswith("Remove")]
    checked(button.click().run())
    assert link_of(at)["model"] == "shakespeare" and not at.session_state["session_record"].models
    assert "is no longer kept" in said(checked(other.run()))


def test_its_losses_and_its_attention_are_there_as_tables():
    at = train_to_the_end(start("Train", **SMALL))
    losses, weights = (table.value for table in open_drawers(at).dataframe)
    assert losses["step"].iloc[-1] == SMALL["steps"]
    batch_losses = losses["batch loss (nats)"].dropna()
    assert batch_losses.iloc[-1] < batch_losses.iloc[0]
    assert set(weights["attention"]) == {"encoder", "decoder", "cross"}
    sums = weights.groupby(["attention", "layer", "head", "query"])["weight"].sum()
    assert sums.to_numpy() == pytest.approx(1.0, abs=5e-3)
    checked(named(at.select_slider, "Step").set_value(1).run())
    assert any(each.value.startswith("After **1 step**: batch loss") for each in at.caption)
    assert any(each.value.startswith("After 1 step, always continuing") for each in at.caption)


def test_it_is_kept_as_one_file_and_comes_back():
    at = train_to_the_end(start("Train", **SMALL))
    (checkpoint,) = map(model_store().get, at.session_state["session_record"].models)
    packed = pack_checkpoint(checkpoint)
    other = start("Train")
    uploader = next(box for box in other.get("file_uploader") if "Upload a model" in box.label)
    checked(uploader.upload("model.headsup.zip", packed, "application/zip").run())
    (name,) = other.session_state["session_record"].models
    assert link_of(other)["model"] == name
    again = model_store().get(name)
    assert again.card.title == checkpoint.card.title
    ours, theirs = checkpoint.model.state_dict(), unpack_checkpoint(packed).model.state_dict()
    assert all(ours[key].equal(theirs[key]) for key in ours)


class TestNoRoom:
    """One model more than a visitor can have."""

    @pytest.fixture
    def at(self, tiny, monkeypatch):
        monkeypatch.setattr(own_models, "MOST", 2)
        ours = load_checkpoint(tiny / "shakespeare")
        self.files = [pack_checkpoint(replace(ours, card=replace(ours.card, title=f"Model {i}"))) for i in range(3)]
        at = start("Train", **SMALL)
        for i in range(2):
            self.upload(at, i)
        return at

    def upload(self, at, i):
        uploader = next(box for box in at.get("file_uploader") if "Upload a model" in box.label)
        return checked(uploader.upload(f"{i}.zip", self.files[i], "application/zip").run())

    def titles(self, at):
        return [entry.card.title for entry in at.session_state["session_record"].models.values()]

    def test_is_not_uploaded_until_one_is_removed(self, at):
        self.upload(at, 2)
        assert "Remove one under “Your models as files” first." in said(at)
        assert self.titles(at) == ["Model 0", "Model 1"]
        press(at, "Remove Model 0")
        checked(at.run())
        assert self.titles(at) == ["Model 1", "Model 2"]
        self.upload(at, 1)  # which is there
        assert self.titles(at) == ["Model 1", "Model 2"]

    def test_is_trained_but_not_lost(self, at):
        assert "what is trained can only be downloaded" in said(at)
        press(at, "Train")
        deadline = time.monotonic() + 60
        while not any(button.label == "Discard the model and train another" for button in at.button):
            assert time.monotonic() < deadline
            time.sleep(0.3)
            checked(at.run())
        assert "isn't among your models yet" in said(at) and len(self.titles(at)) == 2
        assert any(each.proto.label == "Download it" for each in at.get("download_button"))
        press(at, "Remove Model 0")
        assert self.titles(at)[0] == "Model 1" and self.titles(at)[1].endswith("50 steps")
        assert any(button.label == "Train another" for button in at.button)


def test_a_file_that_is_no_model_is_refused_with_a_sentence():
    at = start("Train")
    uploader = next(box for box in at.get("file_uploader") if "Upload a model" in box.label)
    checked(uploader.upload("holiday.zip", b"PK\x03\x04 nothing", "application/zip").run())
    assert "holiday.zip can't be opened" in said(at)
    assert not at.session_state["session_record"].models


def test_what_the_card_of_a_file_says_is_text(tiny):
    """A picture in a title would be fetched from wherever it is; and a foreign card may hold anything."""
    picture = "![x](http://example.org/x.png)"
    ours = load_checkpoint(tiny / "shakespeare")
    card = replace(
        ours.card,
        title=picture,
        summary=picture,
        language=picture,
        training={"seconds": picture, "machine": picture, "command": picture, "best_step": picture},
        corpus={"title": picture, "licence": picture},
    )
    at = start("Train")
    uploader = next(box for box in at.get("file_uploader") if "Upload a model" in box.label)
    foreign = pack_checkpoint(replace(ours, card=card))
    checked(uploader.upload(f"{picture}.zip", foreign, "application/zip").run())
    for page in (*PAGES, "Train"):
        at = go(at, page)
        shown = [*at.markdown, *at.caption, *at.header, *at.success, *at.caption, *at.markdown]
        assert any("example" in element.value for element in shown)
        for element in shown:
            assert picture not in re.sub("`.*`", "", element.value)


def test_what_is_suggested_is_said_before_it_starts():
    at = start("Train", learn="text", corpus="python-manual")
    said_of_it = " ".join(caption.value for caption in at.caption)
    assert "2 layers × 4 heads, 64 wide, rotary positions, context 32, 500 steps of 32 windows" in said_of_it


def test_pause_resume_and_stop():
    at = start("Train", **{**SMALL, "steps": 3000})
    press(at, "Train")
    deadline = time.monotonic() + 60
    while not any(button.label == "Pause" and not button.disabled for button in at.button):
        assert time.monotonic() < deadline
        time.sleep(0.2)
        checked(at.run())
    press(at, "Pause")
    assert any(button.label == "Resume" for button in at.button)
    press(at, "Resume")
    at = go(at, "Positions")
    assert "Your training continues" in " ".join(caption.value for caption in at.caption)
    at = go(at, "Train")
    press(at, "Stop")
    deadline = time.monotonic() + 60
    while not any(button.label == "Train another" for button in at.button):
        assert time.monotonic() < deadline
        time.sleep(0.2)
        checked(at.run())
    press(at, "Train another")
    assert not named(at.button, "Train").disabled


class TestWaiting:
    """A training that has no place yet."""

    @pytest.fixture
    def at(self):
        training.queue().limit = 0
        at = start("Train", **SMALL)
        return press(at, "Train")

    def told(self, at):
        return " ".join(caption.value for caption in go(at, "Positions").caption)

    def test_is_told_on_other_pages(self, at):
        assert "Your training is waiting for the server." in self.told(at)

    def test_is_told_to_be_paused(self, at):
        at.session_state["session_record"].training.job.pause()
        assert "Your training is paused at step 0 of 50." in self.told(at)

    def test_leaves_no_model_when_it_is_stopped(self, at):
        press(at, "Stop")
        checked(at.run())
        assert "stopped before its first step, so there is no model" in said(at)
        assert not any("A sample comes" in caption.value for caption in at.caption)
        assert all("losses" not in drawer.label for drawer in at.expander)


def own_text(at):
    return next(box for box in at.text_area if box.label != "Prompt")


@pytest.mark.parametrize(
    ("typed", "sentence"), [("too short", "1,000"), ("a" * 2000, "repeats one character"), ("ab" * 520, None)]
)
def test_an_own_text_is_checked(typed, sentence):
    at = start("Train", learn="own", shape="rung", rung="ladder-2-positions")
    checked(own_text(at).set_value(typed).run())
    if sentence:
        assert sentence in said(at)
        assert named(at.button, "Train").disabled
    else:
        assert not named(at.button, "Train").disabled
    assert own_text(at).value == typed


def test_how_long_an_own_text_must_be_is_said_in_the_unit_that_is_checked():
    at = start("Train", learn="own")
    assert "at least 1,000 bytes" in said(at)
    checked(own_text(at).set_value("é" * 250 + "a" * 499).run())
    assert "999 bytes" in said(at)
    checked(own_text(at).set_value("é" * 250 + "a" * 500).run())
    assert "bytes" not in said(at)


class TestAnUploadedText:
    """It stays until it is removed, wherever its visitor goes meanwhile."""

    SCENE = b"All the world is a stage. " * 100

    def upload(self, content=SCENE):
        at = start("Train", learn="own", shape="dials")
        checked(self.box(at).upload("scene.txt", content, "text/plain").run())
        return at

    def box(self, at):
        return next(box for box in at.get("file_uploader") if "A text file" in box.label)

    def is_used(self, at):
        in_use = any(": 2,600 characters" in caption.value for caption in at.caption)
        assert in_use != named(at.button, "Train").disabled
        return in_use

    def test_is_forgotten_when_its_file_is_removed(self):
        at = self.upload()
        assert self.is_used(at)
        checked(self.box(at).set_value(None).run())
        assert not self.is_used(at)
        assert "Upload a file or paste a text" in said(at)

    def test_takes_its_error_along(self):
        at = self.upload(b"too short")
        assert at.error
        checked(self.box(at).set_value(None).run())
        assert not at.error

    def test_stays_when_the_page_is_left_and_can_then_be_removed(self):
        at = self.upload()
        assert not any(button.label == "Remove it" for button in at.button)
        at = go(go(at, "Positions"), "Train")
        assert self.box(at).value is None
        assert self.is_used(at)
        press(at, "Remove it")
        assert not self.is_used(at)
        assert not any(button.label == "Remove it" for button in at.button)

    def test_is_found_again_after_a_reload(self):
        at = reloaded(self.upload(), start("Train", learn="own", shape="dials"))
        assert self.is_used(at)
        assert named(at.button, "Remove it")


@pytest.mark.parametrize(("context", "longest"), [(8, 8), (16, 16), (32, 24)])
def test_a_text_s_examples_are_no_longer_than_the_context(context, longest):
    choice = SimpleNamespace(is_task=False, config=SimpleNamespace(context_length=context))
    examples = train_plan.examples(choice, text_corpus("All the world is a stage. " * 1000, "Scene"))
    assert len(examples) == 3 and {len(example) for example in examples} == {longest}


def test_a_text_too_short_for_the_context_says_so():
    at = start("Train", learn="own", shape="dials", context=128)
    checked(own_text(at).set_value("to be or not to be, " * 55).run())
    assert "too short for a context of 128" in said(at)


def test_what_would_take_too_long_can_t_be_started():
    large = {"n_layers": 6, "d_model": 192, "n_heads": 8, "steps": 3000}
    at = start("Train", learn="task", task="number-words", shape="dials", **large)
    assert "more than one visitor's share" in said(at)
    assert named(at.button, "Train").disabled


def test_the_manual_that_ships_with_python_is_there_offline():
    at = start("Train", **MANUAL)
    assert f"{len(load_corpus('python-manual').text):,} characters" in " ".join(c.value for c in at.caption)
    assert int(metrics(at)["Parameters"].replace(",", "")) < 20_000


def test_a_download_that_fails_is_a_sentence(monkeypatch, tmp_path):
    import pooch

    monkeypatch.setattr(pooch, "os_cache", lambda name: tmp_path)

    def fail(**options):
        raise ConnectionError("no network")

    monkeypatch.setattr(pooch, "retrieve", fail)
    monkeypatch.delenv("HEADSUP_CORPORA", raising=False)
    at = start("Train", learn="text", corpus="tiny-shakespeare", shape="rung", rung="ladder-1-bigram")
    assert "will be downloaded" in " ".join(caption.value for caption in at.caption)
    press(at, "Train")
    assert SOURCES["tiny-shakespeare"].title in said(at)
    assert "could not be downloaded" in said(at)
    assert not named(at.button, "Train").disabled


class TestTheTextThatIsSuggested:
    """One that is on this machine and reads well; whatever a visitor or a link chose stays."""

    @pytest.fixture
    def at_hand(self, monkeypatch, tmp_path):
        """Says which texts are on this machine, besides the manual."""
        import pooch

        def only(*names):
            for name in names:
                (tmp_path / SOURCES[name].file_name).write_text(f"{name} " * 4000, encoding="utf-8")
            monkeypatch.setattr(pooch, "os_cache", lambda name: tmp_path / "cache")
            monkeypatch.setenv("HEADSUP_CORPORA", str(tmp_path))
            monkeypatch.setattr("transformer.data.corpora._read_checked", lambda path, source: path.read_text())

        return only

    @pytest.mark.parametrize(
        ("there", "suggested"),
        [
            ((), "python-manual"),
            (("martin-fierro",), "martin-fierro"),
            (("tiny-shakespeare", "martin-fierro"), "tiny-shakespeare"),
        ],
    )
    def test_is_one_that_is_here(self, at_hand, there, suggested):
        at_hand(*there)
        at = start("Train", learn="text")
        assert named(at.selectbox, "Text").value == suggested
        assert "will be downloaded" not in " ".join(caption.value for caption in at.caption)
        assert not named(at.button, "Train").disabled
        assert link_of(at)["corpus"] == suggested  # so that the link opens the same text elsewhere

    def test_a_link_or_a_choice_stays(self, at_hand):
        at_hand("tiny-shakespeare")
        at = start("Train", learn="text", corpus="martin-fierro")
        assert named(at.selectbox, "Text").value == "martin-fierro"
        checked(named(at.selectbox, "Text").select("python-manual").run())
        at = go(go(at, "Positions"), "Train")
        assert named(at.selectbox, "Text").value == "python-manual"

    def test_who_learns_a_task_has_no_text_in_the_link(self):
        assert "corpus" not in link_of(start("Train", learn="task"))


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.2, "5 seconds"), (12, "10 seconds"), (57, "55 seconds"), (58, "1 minute"), (89, "1 minute"), (95, "2 minutes")],
)
def test_a_time_that_is_estimated_is_rounded(seconds, words):
    assert in_words(seconds) == words


@pytest.mark.parametrize(
    ("state", "step", "seconds", "left", "words"),
    [
        ("waiting", 0, 0.0, None, ""),
        ("running", 3, 4.2, None, " · 4 s so far"),
        ("running", 3, 14.2, 31.0, " · about 30 seconds left, 14 s so far"),
        ("running", 9, 75.0, 100.0, " · about 2 minutes left, 1 min 15 s so far"),
        ("paused", 9, 75.0, 100.0, " · 1 min 15 s so far"),
        ("finished", 10, 80.0, 0.0, " · 1 min 20 s"),
    ],
)
def test_the_times_of_a_training(state, step, seconds, left, words):
    job = SimpleNamespace(state=state, step=step, seconds=seconds, seconds_left=left)
    assert train_progress._times(job) == words


def test_while_it_runs_the_time_left_is_told_by_its_speed():
    at = start("Train", **SMALL | {"steps": 3000})
    press(at, "Train")
    deadline, text = time.monotonic() + 60, ""
    while not re.search(r"about \d+ (seconds|minutes?) left, .*\d s so far", text):
        assert time.monotonic() < deadline, text
        time.sleep(0.3)
        checked(at.run())
        (text,) = [bar.proto.text for bar in at.get("progress")]
    at.session_state["session_record"].training.job.close()


def test_a_link_brings_the_choice():
    at = start("Train", **SMALL)
    assert (named(at.slider, "Layers").value, named(at.slider, "Steps").value) == (1, 50)
    link = link_of(at)
    assert all(link[key] == str(SMALL[key]) for key in ("task", "shape", "n_layers", "d_model", "steps"))
    wrong = start("Train", steps=10**9, n_heads=3, learn="magic")
    assert all(word in said(wrong) for word in ("steps", "heads", "learn"))


def kept_by_tab(at):
    """What the tab has of its visitor's record."""
    return json.loads(component(at, "headsup_session_token").json)


def reloaded(before, at):
    """A new session of the tab that showed `before`: it hands over what it kept."""
    kept = kept_by_tab(before)["value"]
    assert not kept_by_tab(at)["heard"] and kept_by_tab(at)["value"] != kept
    at = tell_page(at, "headsup_session_token", "found", kept)
    assert kept_by_tab(at)["heard"] and kept_by_tab(at)["value"].split()[0] == kept.split()[0]
    return at


def reloaded_after_restart(before, at):
    """A new session of the tab on a server that knows no record: the models are taken up by their tokens."""
    return tell_page(at, "headsup_session_token", "found", kept_by_tab(before)["value"])


class TestComingBack:
    """What a visitor has made is found by the tab that made it, and by no other."""

    def test_a_training_goes_on_and_is_found(self):
        at = press(start("Train", **SMALL | {"steps": 3000}), "Train")
        job = at.session_state["session_record"].training.job
        again = reloaded(at, start("Train"))
        assert again.session_state["session_record"].training.job is job and job.state not in ENDED
        press(again, "Stop")
        assert job.join(30)
        checked(again.run())
        assert len(again.session_state["session_record"].models) == 1

    def test_the_models_are_found_even_when_the_server_has_forgotten_its_visitors(self):
        at = train_to_the_end(start("Train", **SMALL))
        (name,) = at.session_state["session_record"].models
        session_store.clear()
        again = reloaded_after_restart(at, start("Masks"))
        assert list(again.session_state["session_record"].models) == [name]
        assert groups(again) == {"Yours"}

    @pytest.mark.parametrize("kept", ["", " ", "a" * 32, "../ own-1", "own-" + "0" * 32, "x" * 3000, 3, None, ["a"]])
    def test_what_a_browser_makes_up_is_nothing(self, kept):
        at = tell_page(start("Train"), "headsup_session_token", "found", kept)
        assert at.session_state["session_record"].is_empty and not at.warning

    def test_two_visitors_never_see_each_other_s(self):
        one, other = train_to_the_end(start("Train", **SMALL)), start("Train")
        assert other.session_state["session_record"].training.job is None
        assert not other.session_state["session_record"].models
        assert kept_by_tab(one)["value"] and kept_by_tab(other)["value"] == ""
        assert not groups(other)


class TestLeaving:
    """A training goes on without a connection; it ends, saying why, when its visitor has gone."""

    @pytest.fixture
    def job(self, monkeypatch):
        monkeypatch.setattr(training, "LOOK_EVERY", 0.05)
        at = start("Train", **SMALL | {"steps": 3000})
        press(at, "Train")
        job = at.session_state["session_record"].training.job
        yield job
        job.close()
        assert job.join(20)

    def away(self, seconds, ended=False):
        record = SessionRecord(connection_ended=ended)
        record.seen_at -= seconds
        return record

    def test_who_does_not_come_back_in_ten_minutes_finds_the_model_and_why(self, job):
        training.watch_over(job, self.away(601), training.queue())
        assert job.state == "stopped"
        assert job.join(20)
        assert job.reason == "It was stopped because you had been away for 10 minutes."
        assert job.result is not None or not job.step

    def test_who_comes_back_later_is_told_why_it_ended_and_has_the_model(self):
        at = press(start("Train", **SMALL | {"steps": 3000}), "Train")
        record = at.session_state["session_record"]
        until(lambda: record.training.job.step >= 1)
        record.seen_at -= store.GONE_AFTER + 1
        training.watch_over(record.training.job, record, training.queue())
        again = reloaded(at, start("Train"))
        assert "It was stopped because you had been away for 10 minutes." in said(again)
        assert len(again.session_state["session_record"].models) == 1

    def test_who_is_away_for_less_ends_nothing(self, job):
        watch = threading.Thread(target=training.watch_over, args=(job, self.away(590, ended=True), training.queue()))
        watch.start()
        watch.join(0.5)
        assert watch.is_alive() and job.state not in ENDED
        job.stop()
        watch.join(20)
        assert not watch.is_alive() and job.reason == ""

    def test_who_is_away_lets_another_go_first_and_goes_on_after(self, job):
        until(lambda: job.state == "running")
        training.queue().limit = 1
        other = training.queue().submit(task_plan("next-vowel"))
        away = self.away(store.LEFT_AFTER + 1, ended=True)
        watch = threading.Thread(target=training.watch_over, args=(job, away, training.queue()), daemon=True)
        watch.start()
        until(lambda: other.state in ENDED)
        assert other.state == "finished" and job.state not in ENDED
        until(lambda: job.state == "running")
        job.stop()
        watch.join(20)


def test_a_file_with_an_endless_name_gives_a_model_that_can_be_taken_along():
    at = start("Train", **SMALL | {"learn": "own"})
    box = next(box for box in at.get("file_uploader") if "A text file" in box.label)
    checked(box.upload(f"{'long ' * 100}.txt", b"All the world is a stage. " * 100, "text/plain").run())
    (checkpoint,) = map(model_store().get, train_to_the_end(at).session_state["session_record"].models)
    assert unpack_checkpoint(pack_checkpoint(checkpoint)).card.title == checkpoint.card.title


@pytest.mark.parametrize(
    ("link", "kind"),
    [
        ({"steps": 300, "shape": "dials"}, "task"),
        ({"task": "sort-letters"}, "task"),
        ({"snapshot": 250}, "task"),
        ({"learn": "text", "shape": "dials"}, "text"),
        ({}, "text"),
    ],
    ids=str,
)
def test_an_old_link_that_left_out_the_task_opens_on_it_and_a_new_one_says_what_it_learns_from(link, kind):
    at = start("Train", **link)
    assert named(at.get("button_group"), "Kind").value == kind
    assert link_of(at)["learn"] == kind
    again = start("Train", **link_of(at))
    assert named(again.get("button_group"), "Kind").value == kind and not said(again)


def test_what_is_trained_stays_in_sight_while_it_runs():
    at = press(start("Train", **SMALL | {"steps": 3000}), "Train")
    said_of_it = markdown_with(at, "3,000 steps of")
    assert "Next vowel" in said_of_it and "× 1 head, 16 wide" in said_of_it
    press(at, "Stop")
