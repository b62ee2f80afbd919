"""Tests the page Train before a training: data, sizes, costs, link."""

import re
from types import SimpleNamespace

import pooch
import pytest
from streamlit.elements.widgets.file_uploader import DeletedFile

from pages.ui import upload_limits
from pages.ui.views import train_choice, train_plan
from pages.ui.views.train_choice import in_words, range_in_words
from tests.app_driver import checked, go, link_of, named, press, said, start
from tests.train_page import SMALL, captions, labels, reloaded, upload_text
from transformer import TASKS, ModelConfig, TrainingConfig, load_corpus
from transformer.data.corpora import SOURCES, text_corpus
from transformer.training.objectives import TaskObjective
from transformer.training.presets import PRESETS

pytestmark = pytest.mark.usefixtures("training_page")
SCENE = b"All the world is a stage. " * 100


def kind(at):
    return named(at.get("button_group"), "Kind").value


def test_the_default_is_one_click_away_and_needs_no_network():
    at = start("Train")
    assert kind(at) == "text" and "will be downloaded" not in captions(at) and "Train" in labels(at)
    found = {metric.label: metric.value for metric in at.metric}
    assert int(found["Parameters"].replace(",", "")) > 10_000 and found["Memory"].endswith(" MB")
    assert re.fullmatch(r"(\d+|up|\d+ seconds) to \d+ (seconds|minutes?)", found["Time, estimated"])
    assert "Training takes longer while the machine is busy" in named(at.metric, "Time, estimated").help


def test_the_manual_that_ships_with_python_is_there_offline():
    at = start("Train", learn="text", corpus="python-manual")
    assert "2 layers × 4 heads, 64 wide, rotary positions, context 32, 500 steps, each on 32 excerpts" in captions(at)
    text = load_corpus("python-manual").text
    assert f"{len(text):,} characters" in captions(at)
    assert any(code.value.endswith(" …") and code.value[:-2] in text for code in at.code), "an excerpt"
    at = start("Train", learn="text", corpus="python-manual", shape="rung", rung="ladder-1-bigram")
    assert int(named(at.metric, "Parameters").value.replace(",", "")) < 20_000
    assert PRESETS["ladder-1-bigram"].summary.partition(". ")[0] in captions(at)


@pytest.mark.parametrize(
    ("text", "most", "excerpt"),
    [
        *(
            ("one two three", 13, "one two three"),
            ("one two three", 12, "one two …"),
            ("one two three", 8, "one two …"),
        ),
        *(("one two\nthree", 7, "one two …"), ("a" * 20, 5, "aaaaa …"), ("title\n\none two", 7, "one two")),
    ],
)
def test_an_excerpt_ends_with_a_word(text, most, excerpt):
    assert train_plan.excerpt(text, most) == excerpt


def test_a_typed_text_is_checked():
    at = start("Train", learn="own", shape="rung", rung="ladder-2-positions")
    found = {"": "at least 1,000 bytes", "too short": "1,000", "é" * 250 + "a" * 499: "999 bytes"}
    found |= {"é" * 250 + "a" * 500: None, "a" * 2000: "repeats one character", "ab" * 520: None}
    for typed, sentence in found.items():
        (box,) = [box for box in at.text_area if box.label != "Prompt"]
        checked(box.set_value(typed).run())
        assert sentence in said(at) if sentence else not said(at)
        assert ("Train" in labels(at)) == (sentence is None)
    at = start("Train", learn="own", shape="dials", context=128)
    (box,) = [box for box in at.text_area if box.label != "Prompt"]
    checked(box.set_value("to be or not to be, " * 55).run())
    assert "too short for a context of 128" in said(at)


def test_an_uploaded_text_stays_until_it_is_removed_wherever_its_visitor_goes_meanwhile():
    def box():
        return next(box for box in at.get("file_uploader") if "A text file" in box.label)

    def is_used():
        assert (": 2,600 characters" in captions(at)) == ("Train" in labels(at))
        return "Train" in labels(at)

    at = upload_text(start("Train", learn="own", shape="dials"), b"too short")
    assert at.error
    checked(box().set_value(None).run())
    assert not at.error and "Upload a file or paste a text" in said(at)
    upload_text(at, SCENE)
    assert is_used() and "Remove it" not in labels(at)
    checked(box().set_value(None).run())
    assert not is_used()
    upload_text(at, SCENE)
    go(go(at, "Positions"), "Train")
    assert box().value is None and is_used()
    at = reloaded(at, start("Train", learn="own", shape="dials"))
    assert is_used()
    press(at, "Remove it")
    assert not is_used() and "Remove it" not in labels(at)


def test_a_text_stays_when_the_server_deletes_its_file_until_its_visitor_does(monkeypatch):
    record, state = SimpleNamespace(uploaded_text=None), {}
    monkeypatch.setattr(train_choice, "session_record", lambda: record)
    monkeypatch.setattr(train_choice.st, "session_state", state)
    first, second = (SimpleNamespace(name=name, file_id=name, getvalue=name.encode) for name in ("first", "second"))
    upload_limits._lapsed.append("first")
    # What Streamlit has of a file that is gone is its id, or nothing.
    for uploaded, text in ((first, "first"), (DeletedFile("first"), "first"), (None, "first"), (second, "second")):
        state["text_file"] = uploaded
        train_choice._take_upload()
        assert record.uploaded_text == (text, text.encode())
    state["text_file"] = None
    train_choice._take_upload()
    assert record.uploaded_text is None


def test_a_text_s_examples_are_no_longer_than_the_context():
    for context, longest in ((8, 8), (16, 16), (32, 24)):
        choice = SimpleNamespace(is_task=False, config=SimpleNamespace(context_length=context))
        examples = train_plan.examples(choice, text_corpus(SCENE * 10, "Scene"))
        assert len(examples) == 3 and {len(example) for example in examples} == {longest}


@pytest.mark.parametrize("name", TASKS)
def test_each_task_has_a_text_that_is_watched(name):
    config = ModelConfig(n_layers=1, n_heads=1, d_model=16, **TaskObjective(TASKS[name], 1, 0).shape)
    plan = train_plan.plan_of(train_plan.Choice(name, None, config, TrainingConfig(steps=5), 4))
    read, written = (plan.objective.tokenizer.encode(text) for text in train_plan.PROBES[name])
    watched = [*plan.probe_source, *plan.probe_tokens]
    is_pair, is_encoder = bool(plan.probe_source), config.architecture == "encoder-only"
    start = [*plan.sample_prompt] if is_pair else []
    assert watched == [*read, *start, *(() if is_encoder else written)]
    assert [*plan.sample_prompt] == ([plan.objective.tokenizer.special_id("[start]")] if is_pair else read)


def test_what_would_take_too_long_can_t_be_started():
    large = {"n_layers": 6, "d_model": 192, "n_heads": 8, "steps": 3000}
    at = start("Train", learn="task", task="number-words", shape="dials", **large)
    assert "above the limit" in said(at) and "Train" not in labels(at)


class TestTheTextThatIsSuggested:
    """One that is on this machine and reads well; whatever a visitor or a link chose stays."""

    @pytest.fixture
    def at_hand(self, monkeypatch, tmp_path):
        """Puts a text on this machine, where there is only the manual."""
        monkeypatch.setattr(pooch, "os_cache", lambda name: tmp_path / "cache")
        monkeypatch.setenv("HEADSUP_CORPORA", str(tmp_path))
        monkeypatch.setattr("transformer.data.corpora._read_checked", lambda path, source: path.read_text())
        return lambda name: (tmp_path / SOURCES[name].file_name).write_text(f"{name} " * 4000, encoding="utf-8")

    def test_is_one_that_is_here_unless_another_was_chosen(self, at_hand):
        for suggested in ("python-manual", "martin-fierro", "tiny-shakespeare"):  # the more, the better it reads
            if suggested != "python-manual":
                at_hand(suggested)
            at = start("Train", learn="text")
            assert named(at.selectbox, "Text").value == suggested
            assert "will be downloaded" not in captions(at) and "Train" in labels(at)
            assert link_of(checked(at.run()))["corpus"] == suggested  # so that the link opens the same text elsewhere
        at = start("Train", learn="text", corpus="martin-fierro")
        assert named(at.selectbox, "Text").value == "martin-fierro"
        checked(named(at.selectbox, "Text").select("python-manual").run())
        go(go(at, "Positions"), "Train")
        assert named(at.selectbox, "Text").value == "python-manual"

    def test_is_downloaded_and_a_failure_is_a_sentence(self, at_hand, monkeypatch):
        def fail(**options):
            raise ConnectionError("no network")

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
    ranges |= {(70, 400): "1 to 7 minutes"}
    assert {each: range_in_words(*each) for each in ranges} == ranges


def test_a_link_brings_the_choice():
    at = start("Train", **SMALL)
    assert (named(at.slider, "Layers").value, named(at.slider, "Steps").value) == (1, 50)
    link = link_of(at)
    assert "corpus" not in link, "who learns a task has no text"
    assert all(link[key] == str(SMALL[key]) for key in ("task", "shape", "n_layers", "d_model", "steps"))
    wrong = start("Train", steps=10**9, n_heads=3, learn="magic")
    assert all(word in said(wrong) for word in ("steps", "heads", "learn"))
