"""Tests checkpoints that are replaced, damaged or removed while pages are open."""

import shutil

import pytest
import streamlit as st

from pages.ui.models import library
from tests.app_driver import PAGES, asked, go, show_text, step, visitor
from tests.tiny_models import ALPHABET, save_pair, save_tiny, truncate
from transformer.api import library as shelf


@pytest.fixture
def folder(tmp_path, monkeypatch):
    save_pair(tmp_path)
    monkeypatch.setattr(library, "FOLDER", tmp_path)
    st.cache_resource.clear()
    return tmp_path


def run(at):
    at.run()
    assert not at.exception, [error.message for error in at.exception]
    return at


def opened(page="Generate", **link):
    return run(visitor(page, **link))


def shown(at):
    """The number of layers and of tokens that the page shows the model to have."""
    session = at.session_state["text"].model.checkpoint.model.config
    return session.n_layers, session.vocab_size


def test_what_was_written_by_a_model_that_is_replaced_is_shown_with_it_until_it_is_dropped(folder, monkeypatch):
    at = run(step(opened()))
    save_tiny(folder, "shakespeare", title="Another", seed=5, n_layers=1, alphabet=ALPHABET + "é")
    monkeypatch.setattr(shelf, "LISTED_FOR", 0.0)  # ten seconds later
    for _ in range(2):
        found = asked(run(at), "generate", tokens="1,2", max_new_tokens=1)  # what the tab then says
        assert found.status_code == 409 and "load the page again" in found.json()["error"]
        assert shown(at) == (2, len(ALPHABET))
        assert any("2 layers" in caption.value for caption in at.caption)
        assert "Shakespeare" in str(at.selectbox[0].options)
    text = at.session_state["visitor"].written
    go(at, "Attention")
    go(at, "Generate")
    assert at.session_state["visitor"].written == text and shown(at) == (2, len(ALPHABET))
    show_text(at, [])
    assert shown(run(at)) == (1, len(ALPHABET) + 1)
    assert any("1 layer" in caption.value for caption in at.caption)
    assert "Another" in str(at.selectbox[0].options)


@pytest.mark.parametrize("page", PAGES[1:3])
def test_without_a_text_the_new_one_is_shown_at_once(folder, page):
    at = opened(page)
    save_tiny(folder, "shakespeare", title="Another", seed=5, n_layers=1, alphabet=ALPHABET + "é")
    run(at)
    assert any("1 layer" in caption.value for caption in at.caption)


@pytest.mark.parametrize("page", PAGES[:2])
@pytest.mark.parametrize("change", [lambda f: shutil.rmtree(f / "shakespeare"), lambda f: truncate(f, "shakespeare")])
def test_one_that_has_gone_or_broken_is_a_sentence(folder, page, change, monkeypatch):
    at = opened(page)
    change(folder)
    run(at)  # while the list is still the old one
    said = " ".join(box.value for box in [*at.error, *at.warning, *at.error, *at.warning])
    assert "can't be opened" in said
    monkeypatch.setattr(shelf, "LISTED_FOR", 0.0)
    run(at)
    (model,) = [box for box in at.selectbox if box.label == "Model"]
    assert model.value == "martin-fierro"
