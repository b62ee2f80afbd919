"""The page Train without a browser: what can be chosen, what it costs, a training from start to end, and its model."""

import re
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest
import streamlit as st

from pages.ui.models import own_models
from pages.ui.models import own_training as training
from pages.ui.views import train_choice, train_progress
from pages.ui.views.train_choice import in_words
from tests.app_driver import (
    PAGES,
    checked,
    go,
    link_of,
    markdown_with,
    named,
    open_drawers,
    press,
    said,
    start,
)
from transformer import load_checkpoint, load_corpus
from transformer.checkpoints.archive import pack_checkpoint, unpack_checkpoint
from transformer.data.corpora import SOURCES, text_corpus
from transformer.training.worker import ENDED

SMALL = {"learn": "task", "task": "next-vowel", "shape": "dials", "n_layers": 1, "n_heads": 1, "d_model": 16,
         "steps": 50}  # fmt: skip
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
    assert named(at.selectbox, "Task").value == "induction"
    assert int(metrics(at)["Parameters"].replace(",", "")) > 10_000
    assert metrics(at)["Memory"].endswith(" MB")
    assert re.fullmatch(r"\d+ (seconds|minutes?)", metrics(at)["Time, estimated"])
    (estimate,) = [metric for metric in at.metric if metric.label == "Time, estimated"]
    assert "While the machine is busy, training takes longer" in estimate.help
    assert not named(at.button, "Train").disabled


def test_a_model_is_trained_and_belongs_to_the_visitor():
    at = train_to_the_end(start("Train", **SMALL))
    (name,) = at.session_state["belongings"].models
    assert name.startswith("own-")
    checkpoint = at.session_state["belongings"].models[name]
    assert checkpoint.card.training["steps"] == 50
    assert "is among your models now" in " ".join(element.value for element in at.markdown)
    groups = named(at.sidebar.pills, "Models").options
    assert "Yours" in groups
    press(at, "Look at its attention")
    assert link_of(at)["model"] == name
    assert any(selectbox.label == "Attention" for selectbox in at.selectbox)

    stranger = start("Attention", model=name)
    assert "stays private" in said(stranger)
    assert link_of(stranger)["model"] == "shakespeare"


def test_its_losses_and_its_attention_are_there_as_tables():
    at = train_to_the_end(start("Train", **SMALL))
    losses, weights = (table.value for table in open_drawers(at).dataframe)
    assert losses["step"].iloc[-1] == SMALL["steps"]
    training_losses = losses["training loss (nats)"].dropna()
    assert training_losses.iloc[-1] < training_losses.iloc[0]
    assert set(weights["attention"]) == {"encoder", "decoder", "cross"}
    sums = weights.groupby(["attention", "layer", "head", "query"])["weight"].sum()
    assert sums.to_numpy() == pytest.approx(1.0, abs=5e-3)
    checked(named(at.select_slider, "Step").set_value(1).run())
    assert markdown_with(at, "After **1 step**: training loss")
    assert any(each.value.startswith("After 1 step, always continuing") for each in at.caption)


def test_it_is_kept_as_one_file_and_comes_back():
    at = train_to_the_end(start("Train", **SMALL))
    (checkpoint,) = at.session_state["belongings"].models.values()
    packed = pack_checkpoint(checkpoint)
    other = start("Train")
    uploader = next(box for box in other.get("file_uploader") if "Upload a model" in box.label)
    checked(uploader.upload("model.headsup.zip", packed, "application/zip").run())
    (name,) = other.session_state["belongings"].models
    assert link_of(other)["model"] == name
    again = other.session_state["belongings"].models[name]
    assert again.card.title == checkpoint.card.title
    ours, theirs = checkpoint.model.state_dict(), unpack_checkpoint(packed).model.state_dict()
    assert all(ours[key].equal(theirs[key]) for key in ours)


def test_a_model_that_was_dropped_as_the_oldest_can_be_uploaded_again(tiny, monkeypatch):
    monkeypatch.setattr(own_models, "MOST", 2)
    ours = load_checkpoint(tiny / "shakespeare")
    files = [pack_checkpoint(replace(ours, card=replace(ours.card, title=f"Model {i}"))) for i in range(3)]
    at = start("Train")

    def upload(i):
        uploader = next(box for box in at.get("file_uploader") if "Upload a model" in box.label)
        checked(uploader.upload(f"{i}.zip", files[i], "application/zip").run())
        assert at.session_state["belongings"].models[link_of(at)["model"]].card.title == f"Model {i}"

    for i in (0, 1, 2, 0, 0, 2):
        upload(i)
        checked(at.run())
        assert len(at.session_state["belongings"].models) <= 2


def test_a_file_that_is_no_model_is_refused_with_a_sentence():
    at = start("Train")
    uploader = next(box for box in at.get("file_uploader") if "Upload a model" in box.label)
    checked(uploader.upload("holiday.zip", b"PK\x03\x04 nothing", "application/zip").run())
    assert "holiday.zip can't be opened" in said(at)
    assert not at.session_state["belongings"].models


def test_what_the_card_of_a_file_says_is_text(tiny):
    """A picture in a title would be fetched from wherever it is; and a foreign card may hold anything."""
    picture = "![x](http://example.org/x.png)"
    ours = load_checkpoint(tiny / "shakespeare")
    card = replace(ours.card, title=picture, summary=picture, language=picture,
                   training={"seconds": picture, "machine": picture, "command": picture, "best_step": picture},
                   corpus={"title": picture, "licence": picture})  # fmt: skip
    at = start("Train")
    uploader = next(box for box in at.get("file_uploader") if "Upload a model" in box.label)
    foreign = pack_checkpoint(replace(ours, card=card))
    checked(uploader.upload(f"{picture}.zip", foreign, "application/zip").run())
    for page in (*PAGES, "Train"):
        at = go(at, page)
        shown = [*at.markdown, *at.caption, *at.header, *at.success, *at.sidebar.caption, *at.sidebar.markdown]
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
    assert "Your training continues" in " ".join(caption.value for caption in at.sidebar.caption)
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
        return " ".join(caption.value for caption in go(at, "Positions").sidebar.caption)

    def test_is_told_on_other_pages(self, at):
        assert "Your training waits for a place on the server." in self.told(at)

    def test_is_told_to_be_paused(self, at):
        at.session_state["belongings"].training.job.pause()
        assert "Your training is paused at step 0 of 50." in self.told(at)

    def test_leaves_no_model_when_it_is_stopped(self, at):
        press(at, "Stop")
        checked(at.run())
        assert "stopped before its first step, so there is no model" in said(at)
        assert not any("A sample comes" in caption.value for caption in at.caption)
        assert all("losses" not in drawer.label for drawer in at.expander)


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [("too short", "1,000"), ("a" * 2000, "repeats one character"), ("ab" * 520, None)],
)
def test_an_own_text_is_checked(typed, sentence):
    at = start("Train", learn="own", shape="rung", rung="ladder-2-positions")
    checked(at.main.text_area[0].set_value(typed).run())
    if sentence:
        assert sentence in said(at)
        assert named(at.button, "Train").disabled
    else:
        assert not named(at.button, "Train").disabled
    assert at.main.text_area[0].value == typed


def test_how_long_an_own_text_must_be_is_said_in_the_unit_that_is_checked():
    at = start("Train", learn="own")
    assert "at least 1,000 bytes" in said(at)
    checked(at.main.text_area[0].set_value("é" * 250 + "a" * 499).run())
    assert "999 bytes" in said(at)
    checked(at.main.text_area[0].set_value("é" * 250 + "a" * 500).run())
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

    def test_is_found_again_after_a_reload(self, monkeypatch):
        key = self.upload().session_state["belongings"].key
        monkeypatch.setattr("pages.ui.models.belongings.key_before_reload", lambda: key)
        at = start("Train", learn="own", shape="dials")
        assert self.is_used(at)
        assert named(at.button, "Remove it")


@pytest.mark.parametrize(("context", "longest"), [(8, 8), (16, 16), (32, 24)])
def test_a_text_s_examples_are_no_longer_than_the_context(context, longest):
    choice = SimpleNamespace(is_task=False, config=SimpleNamespace(context_length=context))
    examples = train_choice._examples(choice, text_corpus("All the world is a stage. " * 1000, "Scene"))
    assert len(examples) == 3 and {len(example) for example in examples} == {longest}


def test_a_text_too_short_for_the_context_says_so():
    at = start("Train", learn="own", shape="dials", context=128)
    checked(at.main.text_area[0].set_value("to be or not to be, " * 55).run())
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
        assert "corpus" not in link_of(start("Train"))


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.2, "5 seconds"), (12, "10 seconds"), (57, "55 seconds"), (58, "1 minute"), (89, "1 minute"), (95, "2 minutes")],
)
def test_a_time_that_is_estimated_is_rounded(seconds, words):
    assert in_words(seconds) == words


@pytest.mark.parametrize(
    ("state", "step", "seconds", "left", "words"),
    [
        ("waiting", 0, 0.0, None, ""), ("running", 3, 4.2, None, " · 4 s so far"),
        ("running", 3, 14.2, 31.0, " · about 30 seconds left, 14 s so far"),
        ("running", 9, 75.0, 100.0, " · about 2 minutes left, 1 min 15 s so far"),
        ("paused", 9, 75.0, 100.0, " · 1 min 15 s so far"), ("finished", 10, 80.0, 0.0, " · 1 min 20 s"),
    ],
)  # fmt: skip
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
    at.session_state["belongings"].training.job.close()


def test_a_link_brings_the_choice():
    at = start("Train", **SMALL)
    assert (named(at.slider, "Layers").value, named(at.slider, "Steps").value) == (1, 50)
    link = link_of(at)
    assert all(link[key] == str(SMALL[key]) for key in ("task", "shape", "n_layers", "d_model", "steps"))
    wrong = start("Train", steps=10**9, n_heads=3, learn="magic")
    assert all(word in said(wrong) for word in ("steps", "heads", "learn"))


class TestLeaving:
    """A training ends when its visitor has gone, and not when their connection only fails for a moment."""

    @pytest.fixture
    def job(self, monkeypatch):
        monkeypatch.setattr(training, "ABSENCE", 1.0)
        at = start("Train", **SMALL | {"steps": 3000})
        press(at, "Train")
        job = at.session_state["belongings"].training.job
        yield job
        job.close()
        assert job.join(20)

    def test_a_closed_tab_ends_it_within_seconds(self, job):
        began = time.monotonic()
        training.stop_when_left(job, is_here=lambda: False)
        assert job.state == "stopped"
        assert 1.0 <= time.monotonic() - began < 8
        assert job.join(20)
        assert job.result is not None or not job.step  # for a visitor who comes back in time

    def test_a_connection_that_comes_back_ends_nothing(self, job):
        connected = iter([True, False] * 8)  # away for a moment, again and again

        def is_here():
            here = next(connected, None)
            if here is None:
                assert job.state not in ENDED
                job.close()
            return bool(here)

        training.stop_when_left(job, is_here)
        assert job.state == "stopped"

    def test_nobody_watches_a_training_that_has_ended(self, job):
        job.stop()
        training.stop_when_left(job, is_here=lambda: True)
        assert job.state in ENDED


def test_a_file_with_an_endless_name_gives_a_model_that_can_be_taken_along():
    at = start("Train", **SMALL | {"learn": "own"})
    box = next(box for box in at.get("file_uploader") if "A text file" in box.label)
    checked(box.upload(f"{'long ' * 100}.txt", b"All the world is a stage. " * 100, "text/plain").run())
    (checkpoint,) = train_to_the_end(at).session_state["belongings"].models.values()
    assert unpack_checkpoint(pack_checkpoint(checkpoint)).card.title == checkpoint.card.title
