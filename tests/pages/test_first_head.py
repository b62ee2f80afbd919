"""Tests which head a page shows first: the link's, or the one in the model's card."""

import dataclasses

import pytest

from tests import app_driver as app
from tests.app_driver import checked, choose, dials, link_of, look_at, looked_at, said, start
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
    found = looked_at(at) if at.session_state["page"] == "Attention" else dials(at)
    return found["layer"], found["head"]


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ({}, (1, 1)),
        ({"model": "small"}, (0, 1)),
        ({"model": "narrow"}, (1, 0)),
        ({"model": "silent"}, (0, 0)),
        ({"model": "translator"}, (1, 0)),
        ({"model": "reading"}, (0, 0)),
        ({"model": "reading", "attention": "encoder"}, (1, 1)),
        ({"model": "crossing"}, (0, 1)),
        ({"layer": 0, "head": 0}, (0, 0)),
        ({"layer": 1}, (1, 0)),  # the card's head is one of its layer
        ({"head": 1}, (0, 1)),
    ],
    ids=str,
)
def test_a_page_opens_on_what_the_link_or_the_card_says(link, expected):
    at = start("Attention", **link)
    assert shown(at) == expected and "There is no" not in said(at)
    # what it starts from comes with the first look
    found = {(name.split("blocks.")[1].partition(".")[0], name[-2:]) for name in app.parts(at).tensors}
    assert found == {(str(expected[0]), f"{expected[1]}]")}
    if "attention" not in link:
        at = app.go(at, "Generate")
        assert shown(at) == expected


def test_another_model_opens_on_its_own_head():
    at = start("Attention")
    checked(look_at(at, layer=1, head=0).run())
    assert shown(at) == (1, 0)
    for model, expected in (("small", (0, 1)), ("crossing", (0, 1)), ("translator", (1, 0))):
        choose(at, "Model", model)
        assert shown(at) == expected and "There is no" not in said(at)
    at = start(model="plain")
    assert not {"layer", "head"} & link_of(at).keys()
    choose(at, "Model", "shakespeare")
    assert shown(at) == (1, 1)
