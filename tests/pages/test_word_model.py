"""Tests the pages with a model of whole words."""

from dataclasses import replace

import pytest

from pages.ui.lessons.measure_setup import MeasureError, Setup
from pages.ui.views.train_plan import PROBES
from tests.app_driver import (
    PAGES,
    given,
    go,
    link_of,
    overview,
    prompt,
    run_lines,
    said,
    start,
    step,
    text_of,
    type_prompt,
    use,
)
from tests.tiny_models import save_newcomer, save_reader
from transformer import TASKS


def test_every_page_shows_it_and_a_prompt_may_be_typed_carelessly(tmp_path, monkeypatch):
    reader = save_reader(tmp_path)
    use(monkeypatch, tmp_path)
    at = start(model="reader")
    for page in PAGES:
        at = go(at, page)
        assert prompt(at) == "Mary took the ball. Who has the ball?" and not said(at), page
        if page == "Attention":
            labels = overview(at).metadata["labels"]["text"]
            assert labels == ["Mary", "took", "the", "ball", ".", "Who", "has", "the", "ball", "?"]
    at = type_prompt(go(at, "Generate"), "mary took the BALL .where is mary ?")
    assert not said(at)
    written = text_of(step(at))
    assert written.strip() in {*reader.tokenizer.labels(range(reader.tokenizer.vocab_size)), ""}
    type_prompt(at, "Mary bought the ball! Who has the ball?")
    assert "This model has never seen “bought” (character 6), “!” (character 21)." in said(at).replace("`", "")


def test_words_that_the_vocabulary_lacks_are_shown_as_they_were_typed(tmp_path, monkeypatch):
    save_newcomer(tmp_path)
    use(monkeypatch, tmp_path)
    shown = ["Łukasz", "took", "the", "🏀", ".", "Where", "is", "the", "🏀", "?"]
    at = start(model="newcomer", prompt="Łukasz took the 🏀. Where is the 🏀?")
    for page in PAGES:
        at = go(at, page)
        assert not said(at), page
        if page == "Attention":
            assert overview(at).metadata["labels"]["text"] == shown
            assert run_lines(at, tmp_path)["labelled"]["text"] == shown
        if page == "Inside":
            assert run_lines(at, tmp_path, "record_pass")["recording"].metadata["labels"]["text"] == shown
        if page == "What if":
            other = {"question": "comparison", "other_prompt": "Bo took the 🏀. Where is the 🏀?"}
            own, beside = given(start(page, **link_of(at), **other))["sides"]
            assert [a == b for a, b in zip(own["tokens"], beside["tokens"], strict=True)].count(False) == 1
    assert "This model has never seen “i” (character 17)" in said(type_prompt(at, " ".join("abcdefghi")))


def test_a_lesson_s_texts_share_their_new_words(tmp_path, monkeypatch):
    save_newcomer(tmp_path)
    use(monkeypatch, tmp_path)
    setup = Setup("newcomer", "Zorp took the ball.", "Aliya gave Zorp the ball.")
    beside = replace(setup, prompt="Bo took the ball.", text="", beside=" ".join(setup.tokenizer.new_words))
    assert [setup.token(word) for word in ("zorp", "Aliya")] == [setup.tokens[0], setup.tokens[5]]
    assert [setup.label(token) for token in setup.tokens[5:8]] == ["Aliya", "gave", "Zorp"]
    assert beside.tokens[0] == setup.token("Aliya") + 1
    with pytest.raises(MeasureError, match="“Cy” is no token"):
        setup.token("Cy")


def test_the_text_whose_attention_is_watched_in_training_is_one_with_its_answer():
    (read, written), task = PROBES["stories"], TASKS["stories"]
    assert PROBES.keys() == TASKS.keys()
    tokens = task.tokenizer.encode(f"{read} {written}")
    assert len(tokens) <= task.longest and task.tokenizer.label(tokens[-1]) == "garden"
