"""Tests every page with a model of whole words."""

import pytest

from pages.ui.views.train_plan import PROBES
from tests.app_driver import every_page, overview, prompt, said, start, step, text_of, type_prompt, use
from tests.tiny_models import save_reader
from transformer import TASKS


@pytest.fixture(autouse=True)
def reader(tmp_path, monkeypatch):
    checkpoint = save_reader(tmp_path)
    use(monkeypatch, tmp_path)
    return checkpoint


@every_page
def test_it_is_shown_on_every_page(page):
    at = start(page, model="reader")
    assert prompt(at) == "Mary took the ball. Who has the ball?"
    assert not said(at)
    if page == "Attention":
        labels = overview(at).metadata["labels"]["text"]
        assert labels == ["Mary", "took", "the", "ball", ".", "Who", "has", "the", "ball", "?"]


def test_a_prompt_may_be_typed_carelessly_and_what_is_written_follows_with_a_space(reader):
    at = start(model="reader")
    type_prompt(at, "mary took the BALL .where is mary ?")
    assert not said(at)
    written = text_of(step(at))
    assert written.strip() in {*reader.tokenizer.labels(range(reader.tokenizer.vocab_size)), ""}


def test_a_word_that_it_has_never_seen_is_named():
    at = start(model="reader")
    type_prompt(at, "Mary bought the ball! Who has the ball?")
    assert "This model has never seen “bought” (character 6), “!” (character 21)." in said(at).replace("`", "")


def test_the_text_whose_attention_is_watched_in_training_is_one_with_its_answer():
    (read, written), task = PROBES["stories"], TASKS["stories"]
    assert PROBES.keys() == TASKS.keys()
    tokens = task.tokenizer.encode(f"{read} {written}")
    assert len(tokens) <= task.longest and task.tokenizer.label(tokens[-1]) == "garden"
