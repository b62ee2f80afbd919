"""Tests what every page does: first view, choices kept between pages, unusable models."""

import shutil

import numpy as np
import pytest
from safetensors.torch import save_file

from pages.ui.models import library
from tests import app_driver as app
from tests.app_driver import checked, choose, every_page, go, looked_at, prompt, said, start, step, text_of, use
from tests.helpers import MODERN
from tests.tiny_models import EXAMPLES, save_tiny, truncate

pytestmark = pytest.mark.usefixtures("folder")


def shows_something(at, page):
    """Whether what the page is about has been computed, of the whole prompt."""
    length = len(at.session_state["session"].text.tokens) if page in ("Attention", "Inside") else 0
    if page == "Generate":
        ahead = app.writing(at).tensors
        return len(ahead["drawn"]) == 1 and np.isfinite(ahead["logits"]).all() and 0 < ahead["probability"][0] < 1
    if page == "Attention":
        about = app.overview(at).metadata
        labels = about["labels"]["text"]
        return len(labels) == about["queries"] == about["keys"] == length and len(app.parts(at).tensors) > 0
    if page == "Inside":
        return len(app.outline(at).tensors["next"]) == length and looked_at(at)["open"] == ""
    if page == "What if":
        found = app.shown(at)["about"]
        return found["hasParts"] and len(found["side"]["tokens"]) == len(at.session_state["session"].text.tokens)
    if page == "Masks":
        return app.given(at)["shown"] == min(len(at.session_state["session"].text.tokens), 32)
    return len(app.given(at)["text"]["read"]) == len(at.session_state["session"].text.tokens)


@every_page
def test_the_first_look_has_a_model_a_prompt_and_something_computed_also_of_shipped_models(page, monkeypatch):
    at = start(page)
    assert app.told_of(at)["page"]["title"] == page
    assert prompt(at) == EXAMPLES[0] and not said(at) and shows_something(at, page)
    assert app.link_of(at) == {"model": "shakespeare"}
    use(monkeypatch, app.ROOT / "checkpoints")
    at = start(page, model="martin-fierro")
    assert prompt(at) == library.usable()["martin-fierro"].card.examples[0]
    assert not said(at) and shows_something(at, page)


MODELS = {
    "learned": {"positions": "learned", "n_layers": 1},
    "no layers": {"positions": "sinusoidal", "n_layers": 0},
    "few parts": {"positions": "none", "n_layers": 1, "n_heads": 4, "norm": "none", "residual": False, "d_ff": 0},
    **{kind: {"n_heads": 4, **MODERN[kind], "pad_token_id": None} for kind in ("all at once", "alibi")},
}


@pytest.mark.parametrize("kind", MODELS)
def test_every_page_can_show_every_kind_of_model(kind, tmp_path, monkeypatch):
    save_tiny(tmp_path, "shakespeare", **MODELS[kind])
    use(monkeypatch, tmp_path)
    has_layers = MODELS[kind].get("n_layers") != 0
    for page in app.PAGES:
        at = start(page, layer=0)
        missing = "has no attention" in said(at) or "has no layers" in said(at)
        missing |= page == "What if" and not app.shown(at)["about"]["hasParts"]
        assert missing == (not has_layers and page in ("Attention", "Masks", "What if"))
        assert missing or shows_something(at, page)
        if page == "Generate":
            assert len(text_of(step(at))) >= 1
            assert bool(app.given(at)["modules"].get("self")) == has_layers == (app.dials(at)["attention"] == "self")


# What belongs to the visitor survives a change of page


def test_another_model_brings_its_own_prompt_to_every_page():
    at = app.write(start(tokens=5, layer=1, head=1))
    choose(at, "Model", "martin-fierro")
    for page in ("Attention", "Positions", "Inside", "Generate"):
        assert prompt(at) == "Aquí me pongo"
        assert app.link_of(at) == {"model": "martin-fierro", "tokens": "5"}
        go(at, page)
    assert not said(at)


def test_choices_survive_a_change_of_page():
    at = start()
    turned = {"seed": 42, "temperature": 1.25, "top_k": 7, "tokens": 9, "layer": 1, "head": 1}
    checked(app.turn(at, **turned).run())
    app.type_prompt(at, "KING:\nI am")
    text = text_of(app.write(at))
    go(at, "Attention")
    assert (looked_at(at)["layer"], looked_at(at)["head"]) == (1, 1)
    checked(app.look_at(at, head=0, stage="raw", scope="all").run())
    go(at, "Positions")
    assert prompt(at) == "KING:\nI am"
    checked(app.look_at(at, length=20, width=8).run())
    go(at, "Train")  # which has no use for the prompt
    assert not app.told_of(at)["uses_model"] and app.link_of(at)["prompt"] == "KING:\nI am"
    go(at, "Generate")
    assert prompt(at) == "KING:\nI am" and text_of(at) == text
    assert app.dials(at).items() >= {**turned, "head": 0}.items()
    go(at, "Attention")
    assert len(app.overview(at).metadata["labels"]["text"]) > len(prompt(at)) and looked_at(at)["stage"] == "raw"
    go(at, "Positions")
    assert app.link_of(at).items() >= {"length": "20", "width": "8"}.items()
    assert not said(at)


# Models that can't be used


@pytest.fixture
def damaged(tiny, tmp_path, monkeypatch):
    """A copy of the models, to be damaged, in which the app looks for them."""
    folder = tmp_path / "checkpoints"
    shutil.copytree(tiny, folder)
    use(monkeypatch, folder)
    return folder


def test_a_damaged_model_beside_good_ones_is_reported_and_the_rest_works(damaged):
    shutil.copytree(damaged / "shakespeare", damaged / "broken")
    truncate(damaged, "broken")
    (damaged / "empty").mkdir()
    at = start()
    assert "broken: model.safetensors is damaged" in said(at)
    assert "empty: model.safetensors" in said(at) and "missing" in said(at)
    assert [entry["title"] for entry in app.told_of(at)["catalogue"]] == ["Shakespeare", "Martín Fierro"]
    choose(at, "Model", "martin-fierro")
    assert prompt(at) == "Aquí me pongo"
    assert "There is no model “broken” here" in said(start(model="broken"))


def test_a_damaged_default_model_gives_way_to_another(damaged):
    truncate(damaged, "shakespeare")
    at = start("Attention")
    assert app.link_of(at)["model"] == "martin-fierro" and prompt(at) == "Aquí me pongo"
    assert "There is no model “shakespeare” here; Martín Fierro is shown." in said(at)


@pytest.mark.parametrize("page", ["Generate", "Masks", "Positions", "Inside"])
def test_weights_that_turn_out_to_be_no_numbers_are_reported_and_another_model_can_be_picked(page, damaged):
    checkpoint = save_tiny(damaged, "shakespeare", title="Shakespeare")
    weights = {name: weight.detach() for name, weight in checkpoint.model.state_dict().items()}
    weights["unembed.weight"][0, 0] = float("nan")
    save_file(weights, damaged / "shakespeare" / "model.safetensors")
    at = start(page)
    assert "The model can't be opened: " in said(at)
    choose(at, "Model", "martin-fierro")
    assert prompt(at) == "Aquí me pongo" and not said(at)


@every_page
def test_without_any_model_there_is_a_sentence(page, tmp_path, monkeypatch):
    folder = tmp_path / "checkpoints"
    if page in ("Generate", "Masks"):
        folder.mkdir()
    use(monkeypatch, folder)
    at = start(page)
    assert "There is no model: checkpoints/ holds no usable checkpoint." in said(at)
    assert "python -m transformer train" in said(at)
    assert not at.get("plotly_chart")


def test_a_model_without_examples_starts_with_an_empty_prompt(tmp_path, monkeypatch):
    save_tiny(tmp_path, "shakespeare", examples=[])
    use(monkeypatch, tmp_path)
    at = start()
    assert prompt(at) == "" and "The prompt is empty." in said(at)
    app.type_prompt(at, "Hi")
    assert len(text_of(step(at))) == 1
