"""Tests what every page does: first view, choices kept between pages, unusable models."""

import shutil

import numpy as np
import pytest

from pages.ui.models import library
from tests.app_driver import (
    ROOT,
    checked,
    choose,
    dials,
    every_page,
    given,
    go,
    link_of,
    look_at,
    looked_at,
    named,
    outline,
    overview,
    parts,
    prompt,
    said,
    start,
    step,
    text_of,
    turn,
    type_prompt,
    use,
    write,
    writing,
)
from tests.tiny_models import EXAMPLES, save_tiny, truncate
from transformer import save_checkpoint

pytestmark = pytest.mark.usefixtures("folder")

FIRST_HEAD = {"layer": "0", "head": "0"}
"""In the link from the start, so that it shows the same whatever a card says later."""


def instruments(at):
    names = ("headsup_attention", "headsup_inside")
    return [c for c in at.get("bidi_component") if c.proto.component_name in names]


def suggested(at):
    return [button for button in at.main.button if button.label.startswith("Ablate ")]


# The first look


PICTURES = {"Masks": "headsup_masks", "Positions": "headsup_matrix"}


def components(at):
    return {component.proto.component_name for component in at.get("bidi_component")}


@every_page
def test_the_shipped_models_work(page, monkeypatch):
    use(monkeypatch, ROOT / "checkpoints")
    at = start(page)
    model = at.selectbox[0]
    assert model.value == "shakespeare" and "Martín Fierro" in model.options
    assert prompt(at) == library.usable()["shakespeare"].card.examples[0]
    assert not said(at)
    if page == "Generate":
        assert len(text_of(step(at))) >= 1
    elif page == "Attention":
        assert overview(at).tensors["overview"].size and parts(at).tensors
    elif page == "Inside":
        assert outline(at).tensors["next"].size
    elif page == "What if":
        assert len(suggested(at)) == 3
    else:
        assert PICTURES[page] in components(at)
    choose(at, "Model", "martin-fierro")
    assert prompt(at) == library.usable()["martin-fierro"].card.examples[0]
    assert not said(at)


@every_page
def test_the_first_look_has_a_model_a_prompt_and_something_computed(page):
    at = start(page)
    assert at.title[0].value == page
    assert named(at.selectbox, "Model").value == "shakespeare"
    assert prompt(at) == EXAMPLES[0]
    assert not said(at)
    if page == "Generate":
        ahead = writing(at).tensors
        assert len(ahead["drawn"]) == 1 and np.isfinite(ahead["logits"]).all() and 0 < ahead["probability"][0] < 1
    elif page == "Attention":
        about = overview(at).metadata
        assert about["labels"]["text"] and about["queries"] == about["keys"] == len(EXAMPLES[0]) and parts(at).tensors
    elif page == "Inside":
        assert len(outline(at).tensors["next"]) == len(EXAMPLES[0]) and looked_at(at)["open"] == ""
    elif page == "What if":
        assert len(suggested(at)) == 3
    else:
        assert PICTURES[page] in components(at)
    assert link_of(at) == {"model": "shakespeare", "prompt": EXAMPLES[0], **FIRST_HEAD}


# What belongs to the visitor survives a change of page


def test_another_model_brings_its_own_prompt_to_every_page():
    at = write(start(tokens=5, layer=1, head=1))
    choose(at, "Model", "martin-fierro")
    for page in ("Attention", "Positions", "Inside", "Generate"):
        assert prompt(at) == "Aquí me pongo"
        assert link_of(at) == {"model": "martin-fierro", "prompt": "Aquí me pongo", "tokens": "5", **FIRST_HEAD}
        go(at, page)
        assert named(at.selectbox, "Model").value == "martin-fierro"
    assert not said(at)


def test_choices_survive_a_change_of_page():
    at = start()
    turned = {"seed": 42, "temperature": 1.25, "top_k": 7, "tokens": 9, "layer": 1, "head": 1}
    checked(turn(at, **turned).run())
    type_prompt(at, "KING:\nI am")
    write(at)
    text = text_of(at)
    go(at, "Attention")
    assert (looked_at(at)["layer"], looked_at(at)["head"]) == (1, 1)
    checked(named(at.get("button_group"), "Text").set_value("all").run())
    checked(look_at(at, head=0, stage="raw").run())
    go(at, "Positions")
    assert prompt(at) == "KING:\nI am"
    named(at.slider, "Length: positions").set_value(20)
    checked(named(at.slider, "Width: d_model").set_value(8).run())
    go(at, "Train")  # which has no use for the prompt
    assert "Prompt" not in {box.label for box in at.text_area} and link_of(at)["prompt"] == "KING:\nI am"
    go(at, "Generate")
    assert prompt(at) == "KING:\nI am" and text_of(at) == text
    assert dials(at).items() >= {**turned, "head": 0}.items()
    go(at, "Attention")
    assert named(at.get("button_group"), "Text").value == "all" and looked_at(at)["stage"] == "raw"
    go(at, "Positions")
    assert named(at.slider, "Length: positions").value == 20
    assert named(at.slider, "Width: d_model").value == 8
    assert not said(at)


# Models that can't be used


@every_page
def test_a_damaged_model_beside_good_ones_is_reported_and_the_rest_works(page, tiny, tmp_path, monkeypatch):
    folder = tmp_path / "checkpoints"
    shutil.copytree(tiny, folder)
    shutil.copytree(tiny / "shakespeare", folder / "broken")
    truncate(folder, "broken")
    (folder / "empty").mkdir()
    use(monkeypatch, folder)
    at = start(page)
    assert "broken: model.safetensors is damaged" in said(at)
    assert "empty: model.safetensors" in said(at) and "missing" in said(at)
    assert named(at.selectbox, "Model").options == ["Shakespeare", "Martín Fierro"]
    choose(at, "Model", "martin-fierro")
    assert prompt(at) == "Aquí me pongo"
    assert "There is no model “broken” here" in said(start(page, model="broken"))


@every_page
def test_a_damaged_default_model_gives_way_to_another(page, tiny, tmp_path, monkeypatch):
    folder = tmp_path / "checkpoints"
    shutil.copytree(tiny, folder)
    truncate(folder, "shakespeare")
    use(monkeypatch, folder)
    at = start(page)
    assert named(at.selectbox, "Model").value == "martin-fierro"
    assert prompt(at) == "Aquí me pongo"
    assert "There is no model “shakespeare” here; Martín Fierro is shown." in said(at)


@every_page
def test_weights_that_turn_out_to_be_no_numbers_are_reported_and_another_model_can_be_picked(
    page, tiny, tmp_path, monkeypatch
):
    folder = tmp_path / "checkpoints"
    shutil.copytree(tiny, folder)
    checkpoint = save_tiny(folder, "shakespeare", title="Shakespeare")
    checkpoint.model.unembed.weight.data[0, 0] = float("nan")
    save_checkpoint(folder / "shakespeare", checkpoint)
    use(monkeypatch, folder)
    at = start(page)
    assert "This model can't be opened." in said(at) and "Pick another one." in said(at)
    choose(at, "Model", "martin-fierro")
    assert prompt(at) == "Aquí me pongo" and not said(at)


@every_page
@pytest.mark.parametrize("exists", [True, False])
def test_without_any_model_there_is_a_sentence(page, exists, tmp_path, monkeypatch):
    folder = tmp_path / "checkpoints"
    if exists:
        folder.mkdir()
    use(monkeypatch, folder)
    at = start(page)
    assert "There is no model: checkpoints/ holds no usable checkpoint." in said(at)
    assert "python -m transformer train" in said(at)
    assert not at.get("plotly_chart") and not instruments(at)


@every_page
@pytest.mark.parametrize(("positions", "n_layers"), [("learned", 1), ("none", 1), ("sinusoidal", 0), ("rotary", 0)])
def test_every_kind_of_model_can_be_shown(page, positions, n_layers, tmp_path, monkeypatch):
    save_tiny(tmp_path, "shakespeare", positions=positions, n_layers=n_layers)
    use(monkeypatch, tmp_path)
    at = start(page, layer=0)
    if page == "Generate":
        assert len(text_of(step(at))) == 1
        assert bool(given(at)["modules"].get("self")) == (n_layers > 0) == (dials(at)["attention"] == "self")
    if page == "Attention":
        assert ("has no layers" in said(at)) == (n_layers == 0) == (not instruments(at))
    if page == "Inside":
        assert not said(at) and instruments(at)
    if page == "What if":
        assert ("has no layers" in said(at)) == (n_layers == 0) == (not suggested(at))


def test_a_model_without_examples_starts_with_an_empty_prompt(tmp_path, monkeypatch):
    save_tiny(tmp_path, "shakespeare", examples=[])
    use(monkeypatch, tmp_path)
    at = start()
    assert prompt(at) == "" and "The prompt is empty." in said(at)
    type_prompt(at, "Hi")
    assert len(text_of(step(at))) == 1
