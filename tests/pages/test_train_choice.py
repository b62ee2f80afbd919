"""Tests the page Train before a training: data, sizes, costs, link."""

import re
from types import SimpleNamespace

import pooch
import pytest

from pages.ui.views import train_plan
from pages.ui.views.train_choice import in_words, range_in_words
from tests.app_driver import checked, go, link_of, named, press, said, start
from tests.train_page import SMALL, captions, labels, reloaded, upload_text
from transformer import load_corpus
from transformer.data.corpora import SOURCES, text_corpus

pytestmark = pytest.mark.usefixtures("training_page")
SCENE = b"All the world is a stage. " * 100


def metrics(at):
    return {metric.label: metric.value for metric in at.metric}


def kind(at):
    return named(at.get("button_group"), "Kind").value


def own_text(at):
    return next(box for box in at.text_area if box.label != "Prompt")


def test_the_default_is_one_click_away_and_needs_no_network():
    at = start("Train")
    assert kind(at) == "text" and "will be downloaded" not in captions(at) and "Train" in labels(at)
    found = metrics(at)
    assert int(found["Parameters"].replace(",", "")) > 10_000 and found["Memory"].endswith(" MB")
    assert re.fullmatch(r"(\d+|up|\d+ seconds) to \d+ (seconds|minutes?)", found["Time, estimated"])
    assert "Training takes longer while the machine is busy" in named(at.metric, "Time, estimated").help


def test_the_manual_that_ships_with_python_is_there_offline():
    at = start("Train", learn="text", corpus="python-manual")
    assert "2 layers × 4 heads, 64 wide, rotary positions, context 32, 500 steps, each on 32 excerpts" in captions(at)
    text = load_corpus("python-manual").text
    shown = [code.value for code in at.code]
    assert any(each.endswith(" …") and each[:-2] in text for each in shown), "an excerpt"
    at = start("Train", learn="text", corpus="python-manual", shape="rung", rung="ladder-1-bigram")
    assert f"{len(text):,} characters" in captions(at)
    assert int(metrics(at)["Parameters"].replace(",", "")) < 20_000


def test_an_excerpt_ends_with_a_word():
    assert train_plan.excerpt("one two three", 13) == "one two three"
    assert train_plan.excerpt("one two three", 12) == train_plan.excerpt("one two three", 8) == "one two …"
    assert train_plan.excerpt("one two\nthree", 7) == "one two …"
    assert train_plan.excerpt("a" * 20, 5) == "aaaaa …"


def test_an_own_text_is_checked():
    at = start("Train", learn="own", shape="rung", rung="ladder-2-positions")
    assert "at least 1,000 bytes" in said(at)
    found = {"too short": "1,000", "é" * 250 + "a" * 499: "999 bytes"}  # a sign may have several
    found |= {"é" * 250 + "a" * 500: None, "a" * 2000: "repeats one character", "ab" * 520: None}
    for typed, sentence in found.items():
        checked(own_text(at).set_value(typed).run())
        assert sentence in said(at) if sentence else not said(at)
        assert ("Train" in labels(at)) == (sentence is None)
        assert own_text(at).value == typed


def test_a_text_too_short_for_the_context_says_so():
    at = start("Train", learn="own", shape="dials", context=128)
    checked(own_text(at).set_value("to be or not to be, " * 55).run())
    assert "too short for a context of 128" in said(at)


class TestAnUploadedText:
    """It stays until it is removed, wherever its visitor goes meanwhile."""

    def upload(self, content=SCENE):
        return upload_text(start("Train", learn="own", shape="dials"), content)

    def box(self, at):
        return next(box for box in at.get("file_uploader") if "A text file" in box.label)

    def is_used(self, at):
        in_use = ": 2,600 characters" in captions(at)
        assert in_use == ("Train" in labels(at))
        return in_use

    def test_is_forgotten_when_its_file_is_removed_and_takes_its_error_along(self):
        at = self.upload()
        assert self.is_used(at)
        checked(self.box(at).set_value(None).run())
        assert not self.is_used(at) and "Upload a file or paste a text" in said(at)
        at = upload_text(at, b"too short")
        assert at.error
        checked(self.box(at).set_value(None).run())
        assert not at.error

    def test_stays_when_the_page_is_left_and_can_then_be_removed(self):
        at = self.upload()
        assert "Remove it" not in labels(at)
        at = go(go(at, "Positions"), "Train")
        assert self.box(at).value is None and self.is_used(at)
        press(at, "Remove it")
        assert not self.is_used(at) and "Remove it" not in labels(at)

    def test_is_found_again_after_a_reload(self):
        at = reloaded(self.upload(), start("Train", learn="own", shape="dials"))
        assert self.is_used(at) and "Remove it" in labels(at)


def test_a_text_s_examples_are_no_longer_than_the_context():
    for context, longest in ((8, 8), (16, 16), (32, 24)):
        choice = SimpleNamespace(is_task=False, config=SimpleNamespace(context_length=context))
        examples = train_plan.examples(choice, text_corpus(SCENE * 10, "Scene"))
        assert len(examples) == 3 and {len(example) for example in examples} == {longest}


def test_what_would_take_too_long_can_t_be_started():
    large = {"n_layers": 6, "d_model": 192, "n_heads": 8, "steps": 3000}
    at = start("Train", learn="task", task="number-words", shape="dials", **large)
    assert "above the limit" in said(at) and "Train" not in labels(at)


class TestTheTextThatIsSuggested:
    """One that is on this machine and reads well; whatever a visitor or a link chose stays."""

    @pytest.fixture
    def at_hand(self, monkeypatch, tmp_path):
        """Says which texts are on this machine, besides the manual."""

        def only(*names):
            for name in names:
                (tmp_path / SOURCES[name].file_name).write_text(f"{name} " * 4000, encoding="utf-8")
            monkeypatch.setattr(pooch, "os_cache", lambda name: tmp_path / "cache")
            monkeypatch.setenv("HEADSUP_CORPORA", str(tmp_path))
            monkeypatch.setattr("transformer.data.corpora._read_checked", lambda path, source: path.read_text())

        return only

    def test_is_one_that_is_here(self, at_hand):
        for suggested in (
            "python-manual",
            "martin-fierro",
            "tiny-shakespeare",
        ):  # the more there is, the better it reads
            at_hand(*{suggested} - {"python-manual"})
            at = start("Train", learn="text")
            assert named(at.selectbox, "Text").value == suggested
            assert "will be downloaded" not in captions(at) and "Train" in labels(at)
            assert link_of(at)["corpus"] == suggested  # so that the link opens the same text elsewhere

    def test_a_link_or_a_choice_stays(self, at_hand):
        at_hand("tiny-shakespeare")
        at = start("Train", learn="text", corpus="martin-fierro")
        assert named(at.selectbox, "Text").value == "martin-fierro"
        checked(named(at.selectbox, "Text").select("python-manual").run())
        at = go(go(at, "Positions"), "Train")
        assert named(at.selectbox, "Text").value == "python-manual"

    def test_is_downloaded_and_a_failure_is_a_sentence(self, at_hand, monkeypatch):
        def fail(**options):
            raise ConnectionError("no network")

        at_hand()
        monkeypatch.setattr(pooch, "retrieve", fail)
        at = start("Train", learn="text", corpus="tiny-shakespeare", shape="rung", rung="ladder-1-bigram")
        assert "will be downloaded" in captions(at)
        press(at, "Train")
        assert SOURCES["tiny-shakespeare"].title in said(at) and "could not be downloaded" in said(at)
        assert "Train" in labels(at)


def test_a_time_that_is_estimated_is_rounded():
    told = {0.2: "5 seconds", 12: "10 seconds", 57: "55 seconds", 58: "1 minute", 89: "1 minute", 95: "2 minutes"}
    assert {seconds: in_words(seconds) for seconds in told} == told
    ranges = {(1, 5): "up to 5 seconds", (5, 31): "5 to 30 seconds", (29, 130): "30 seconds to 2 minutes"}
    assert {each: range_in_words(*each) for each in (*ranges, (70, 400))} == ranges | {(70, 400): "1 to 7 minutes"}


def test_a_link_brings_the_choice():
    at = start("Train", **SMALL)
    assert (named(at.slider, "Layers").value, named(at.slider, "Steps").value) == (1, 50)
    link = link_of(at)
    assert "corpus" not in link, "who learns a task has no text"
    assert all(link[key] == str(SMALL[key]) for key in ("task", "shape", "n_layers", "d_model", "steps"))
    wrong = start("Train", steps=10**9, n_heads=3, learn="magic")
    assert all(word in said(wrong) for word in ("steps", "heads", "learn"))


@pytest.mark.parametrize(
    ("link", "learn"),
    [
        ({"steps": 300, "shape": "dials"}, "task"),
        ({"task": "sort-letters"}, "task"),
        ({"snapshot": 250}, "task"),
        ({"learn": "text", "shape": "dials"}, "text"),
        ({}, "text"),
    ],
    ids=str,
)
def test_an_old_link_that_left_out_the_task_opens_on_it_and_a_new_one_says_what_it_learns_from(link, learn):
    at = start("Train", **link)
    assert kind(at) == link_of(at)["learn"] == learn
    again = start("Train", **link_of(at))
    assert kind(again) == learn and not said(again)
