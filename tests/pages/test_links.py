"""Tests that a link restores the whole view, and that a broken one says why."""

import pytest
from streamlit.runtime.scriptrunner import RerunData, RerunException

from pages.ui.frame import page as frame_page
from tests import app_driver as app
from tests.app_driver import PAGES, dials, every_page, go, link_of, looked_at, named, press, said, start, text_of, write

pytestmark = pytest.mark.usefixtures("folder")


@pytest.mark.parametrize("page", ["Generate", "Inside"])
def test_a_link_opens_the_same_state_on_every_page(page):
    at = write(start(tokens=12, seed=5, temperature=1.5, prompt="KING:\nAye"))
    text = text_of(at)
    place = {"layer": "1", "head": "1", "step": str(len("KING:\nAye") + 3), "scope": "all"}
    weight = {"stage": "raw", "query": "12", "key": "10", "zoom": "10,15,8,11", "without": "mask,scale"}
    heads = {"order": "spread", "direction": "to", "heads": "one"}
    inside = {"inside": "blocks.1.attn.hook_z", "place": "12", "cell": "3,1,0", "moment": "1.5"}
    inside |= {"folds": "lens,circuits", "candidate": "5", "circuit": "qk,blocks.0.attn,1,3"}
    link = link_of(at) | place | weight | heads | inside | {"length": "20", "position": "7", "dimension": "3"}
    other = start(page, **link)
    assert link_of(other) == link
    assert not said(other)
    for again in PAGES:
        go(other, again)
        assert app.prompt(other) == "KING:\nAye"
        if again == "Generate":
            assert text_of(other) == text and link_of(other)["step"] == str(len("KING:\nAye") + 3)
            assert dials(other).items() >= {"attention": "self", "layer": 1, "head": 1, "seed": 5}.items()
        elif again == "Attention":
            own = dict(layer=1, head=1, query=4, key=2, zoom=dict(top=2, bottom=7, left=0, right=3), derivation=True)
            own |= dict(stage="raw", without=["mask", "scale"], order="spread", direction="to")
            assert looked_at(other) == own  # the model reads the last 13 of 21 tokens
        elif again == "Inside":
            own = dict(open="blocks.1.attn.hook_z", token=4, source=None, head=1, cell=[3, 1, 0], moment=1.5)
            own |= dict(folds=["lens", "circuits"], candidate=5, circuit=["qk", "blocks.0.attn", 1, 3])
            assert looked_at(other) == own
        elif again == "Positions":
            assert named(other.slider, "Length: positions").value == 20
            assert named(other.number_input, "Position").value == 7
            assert named(other.number_input, "Dimension").value == 3
    assert link_of(other) == link


def test_the_link_to_copy_is_the_address():
    at = start("Masks", layer=1, prompt="To be?\n& not=1")
    address = app.link_to_copy(at)
    assert "?model=shakespeare&prompt=To+be%3F%0A%26+not%3D1" in address
    assert address.endswith("&layer=1&head=0")


def test_a_text_is_brought_back_by_the_next_run_if_the_first_is_cut_short_over_it(monkeypatch):
    cut, take_over = [], frame_page._restore_text

    def take_over_at_last(current, name):
        if not cut:
            cut.append(True)
            raise RerunException(RerunData())  # as where something is drawn, if a newer request has come
        take_over(current, name)

    monkeypatch.setattr(frame_page, "_restore_text", take_over_at_last)
    at = start(prompt="To be?", text=" I am")
    assert cut and text_of(at) == " I am"


# Links that can't be followed


ASKS_TOO_MUCH = {
    "model": "hal9000",
    "layer": 99,
    "head": 7,
    "temperature": "abc",
    "step": 10**9,
    "seed": "nan",
    "length": -1,
    "prompt": "é",
    "text": "é",
}


@every_page
def test_a_link_that_asks_for_too_much_is_answered_on_every_page(page):
    at = start(page, **ASKS_TOO_MUCH)
    assert {name for name in ASKS_TOO_MUCH if f"{name} = “" in said(at)} == {"temperature", "step", "seed", "length"}
    assert "There is no model “hal9000” here; Shakespeare is shown." in said(at)
    for what, number in (("layer", 99), ("head", 7)):
        assert f"There is no {what} {number} here; the last one, 1, is shown." in said(at)
    assert "never seen “`é`” (character 1)" in said(at)
    press(at, "Remove what is unknown")
    press(at, "OK")
    assert said(at).startswith("The prompt is empty.")
    app.type_prompt(at, "Hi")
    assert "The link's text was left out: it has characters that this model doesn't know." in said(at)


ASKS_WRONGLY = [
    ({"model": "../../../etc"}, "There is no model “../../../etc” here; Shakespeare is shown."),
    ({"step": 999}, "The text has no predicted token at position 999; the last one is shown."),
    ({"scope": "<b>"}, "scope = “<b>”, but it can be prompt, all."),
    ({"text": "é"}, "The link's text was left out: it has characters that this model doesn't know."),
]


def test_a_link_that_asks_for_too_much_is_answered_with_a_sentence():
    for link, sentence in ASKS_WRONGLY:
        at = start(**link)
        assert sentence in said(at)
        assert named(at.selectbox, "Model").value == "shakespeare"
        assert link_of(start(**link_of(at))) == link_of(at)
        press(at, "OK")
        assert not said(at)


def test_a_link_can_bring_no_picture_from_elsewhere():
    for name in ("temperature", "model", "pace"):
        at = start(**{name: "![x](http://a.b/c.png)\n\n# big"})
        (warning,) = at.warning
        assert "![" not in warning.value and "\n" not in warning.value
