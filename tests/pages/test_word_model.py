"""Tests the pages with a model of whole words."""

from pages.ui.views.train_plan import PROBES
from tests.app_driver import PAGES, go, overview, prompt, said, start, step, text_of, type_prompt, use
from tests.tiny_models import save_reader
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


def test_the_text_whose_attention_is_watched_in_training_is_one_with_its_answer():
    (read, written), task = PROBES["stories"], TASKS["stories"]
    assert PROBES.keys() == TASKS.keys()
    tokens = task.tokenizer.encode(f"{read} {written}")
    assert len(tokens) <= task.longest and task.tokenizer.label(tokens[-1]) == "garden"
