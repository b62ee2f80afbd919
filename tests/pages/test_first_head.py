"""Tests which head a page shows first: the link's, or the one in the model's card."""

import dataclasses

import pytest

from tests import app_driver as app
from tests.app_driver import checked, choose, dials, link_of, look_at, looked_at, named, said, start
from tests.tiny_models import save_tiny, save_translator
from transformer import save_checkpoint


@pytest.fixture(autouse=True)
def models(tmp_path, monkeypatch):
    """Cards that open on a head, on one the model doesn't have, on one of another attention; cards that say nothing."""
    save_tiny(tmp_path, "silent")
    save_translator(tmp_path, "translator", n_layers=2)
    openings = {
        "shakespeare": (save_tiny(tmp_path, "shakespeare"), {"layer": 1, "head": 1, "attention": "self"}),
        "small": (save_tiny(tmp_path, "small", n_layers=1), {"layer": 7, "head": 1, "attention": "self"}),
        "narrow": (save_tiny(tmp_path, "narrow"), {"layer": 1, "head": 2, "attention": "self"}),
        "plain": (save_tiny(tmp_path, "plain", n_layers=0), {"layer": 1, "head": 1, "attention": "self"}),
        "crossing": (save_translator(tmp_path, "crossing", n_layers=2), {"layer": 0, "head": 1, "attention": "cross"}),
        "reading": (save_translator(tmp_path, "reading"), {"layer": 1, "head": 1, "attention": "encoder"}),
    }
    for name, (checkpoint, opening) in openings.items():
        card = dataclasses.replace(checkpoint.card, title=name, opening=opening)
        save_checkpoint(tmp_path / name, dataclasses.replace(checkpoint, card=card))
    app.use(monkeypatch, tmp_path)


def shown(at):
    """The layer and head that a page shows: on Generate by its dials, on Attention in the instrument."""
    if at.title[0].value == "Attention":
        return looked_at(at)["layer"], looked_at(at)["head"]
    return dials(at)["layer"], dials(at)["head"]


def linked(at):
    return link_of(at)["layer"], link_of(at)["head"]


@pytest.mark.parametrize("page", ["Generate", "Attention"])
def test_a_page_opens_on_what_the_card_says(page):
    said_by_cards = {"shakespeare": (1, 1), "small": (0, 1), "narrow": (1, 0), "silent": (0, 0)}
    said_by_cards |= {"translator": (1, 0), "reading": (0, 0), "crossing": (0, 1)}
    for model, expected in said_by_cards.items():
        at = start(page, model=model)
        assert shown(at) == expected and linked(at) == tuple(map(str, expected))
        assert not said(at)
        if page == "Generate":
            assert tuple(app.given(at)["opening"].values()) == expected
        else:  # what it starts from comes with the first look
            layer, head = expected
            found = {(name.split("blocks.")[1].partition(".")[0], name[-2:]) for name in app.parts(at).tensors}
            assert found == {(str(layer), f"{head}]")}


def test_a_link_that_names_a_head_is_followed():
    """What a link leaves out was 0 when it was made, if it names the other."""
    for link, expected in (({"layer": 0, "head": 0}, (0, 0)), ({"layer": 1}, (1, 0)), ({"head": 1}, (0, 1))):
        at = start("Attention", **link)
        assert shown(at) == expected and not said(at)
        assert shown(app.go(at, "Generate")) == expected


def test_another_model_opens_on_its_own_head():
    at = start("Attention")
    checked(look_at(at, head=0).run())
    assert shown(at) == (1, 0)
    choose(at, "Model", "small")
    assert shown(at) == (0, 1)
    choose(at, "Model", "crossing")
    assert shown(at) == (0, 1)
    choose(at, "Model", "translator")
    assert shown(at) == (1, 0) and not said(at)


def test_the_encoder_opens_on_the_head_its_card_names():
    assert shown(start("Attention", model="reading", attention="encoder")) == (1, 1)


def test_a_model_without_attention_has_no_head_to_open_on():
    at = start(model="plain")
    assert not {"layer", "head"} & link_of(at).keys()
    choose(at, "Model", "shakespeare")
    assert shown(at) == (1, 1)
    assert named(at.selectbox, "Model").value == "shakespeare"
