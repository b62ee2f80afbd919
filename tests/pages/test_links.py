"""Tests that a link restores the whole view, that going back does, and that a broken or long link says why."""

import json

import pytest

from tests import app_driver as app
from tests.app_driver import (
    PAGES,
    checked,
    come_back,
    dials,
    dismiss_notices,
    every_page,
    given,
    go,
    ids_of,
    link_of,
    look_at,
    looked_at,
    prompt,
    said,
    start,
    text_of,
    type_prompt,
    write,
)
from tests.tiny_models import save_pair, save_tiny, save_translator

pytestmark = pytest.mark.usefixtures("folder")
LONG = "abcdefghijklmnopqrstuvwxyz" * 3


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    folder = tmp_path_factory.mktemp("checkpoints")
    save_pair(folder, context_length=80)
    save_translator(folder)
    return folder


# A link has all that is seen


@pytest.mark.parametrize("page", ["Generate", "Inside"])
def test_a_link_opens_the_same_state_on_every_page(page, tmp_path, monkeypatch):
    save_tiny(tmp_path, "shakespeare")
    app.use(monkeypatch, tmp_path)
    at = write(start(tokens=12, seed=5, temperature=1.5, prompt="KING:\nAye"))
    text = text_of(at)
    place = {"layer": "1", "head": "1", "step": str(len("KING:\nAye") + 3), "scope": "all"}
    weight = {"stage": "raw", "query": "12", "key": "10", "zoom": "10,15,8,11", "without": "mask,scale"}
    heads = {"order": "spread", "direction": "to", "heads": "one"}
    inside = {"inside": "blocks.1.attn.hook_z", "place": "12", "cell": "3,1,0", "moment": "1.5"}
    inside |= {"folds": "lens,circuits", "candidate": "5", "circuit": "qk,blocks.0.attn,1,3"}
    link = link_of(at) | place | weight | heads | inside | {"length": "20", "position": "7", "dimension": "3"}
    other = start(page, **link)
    assert link_of(other) == link and "link" not in said(other)
    for again in PAGES:
        go(other, again)
        assert prompt(other) == "KING:\nAye"
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
    assert link_of(other) == link


def test_what_changes_a_picture_is_in_the_link_and_only_then():
    for page, change, added in (
        ("Attention", lambda at: look_at(at, layer="1", zoom="60,78,0,9"), {"layer": "1", "zoom": "60,78,0,9"}),
        ("Masks", lambda at: at.slider[0].set_value(70), {"positions_shown": "70"}),
        ("Positions", lambda at: at.multiselect[0].set_value([]), {"waves": ""}),
    ):
        at = app.open_folds(start(page, prompt=LONG))
        before = link_of(at)
        checked(change(at).run())
        assert link_of(at) == before | added
        other = app.open_folds(start(page, **link_of(at)))
        assert link_of(other) == link_of(at) and not said(other).replace(said(at), "")
        for drawn in (
            lambda at: [chart.proto.spec for chart in at.get("plotly_chart")],
            lambda at: [proto.json for proto in app.components(at, "headsup_masks")],
        ):
            assert drawn(at) == drawn(other)


# Back and forward


def test_going_back_brings_the_page_as_it_was():
    at = write(start(tokens=5, prompt="To be"))
    generate, text = link_of(at), text_of(at)
    go(at, "Attention")
    checked(look_at(at, head=1, query=3).run())
    attention = link_of(at)
    go(at, "Generate")
    type_prompt(at, "KING:")
    assert text_of(at) == ""
    come_back(at, "Attention", attention)
    assert link_of(at) == attention and (looked_at(at)["head"], looked_at(at)["query"]) == (1, 3)
    come_back(at, "Generate", generate)
    assert prompt(at) == "To be" and text_of(at) == text
    assert given(at)["written"] == generate["written"] and len(ids_of(at)) == 5
    assert link_of(checked(at.run())) == generate  # and it isn't read again
    type_prompt(at, "Hello")  # in a moment in which the address is still that of before
    assert prompt(at) == "Hello" and link_of(at)["prompt"] == "Hello"
    come_back(at, "Masks", {"model": "shakespeare", "filler": "7", "prompt": "KING:"})
    assert link_of(at)["filler"] == "7" and prompt(at) == "KING:"


# What a tab can't have sent


STRANGE = [
    *(None, "", 5, [], {}, {"sent": 1}),
    *({"values": values} for values in (None, [], "model=x", {"layer": 1}, {"x" * 41: "1"}, {"layer": "x" * 200_001})),
    {"values": {f"name {number}": "" for number in range(201)}},
    *({"values": {}, name: value} for name, value in (("sent", "x"), ("agreed", 5), ("session", None), ("obeyed", []))),
]


def test_what_a_tab_can_t_have_sent_changes_nothing():
    at = start("Masks", prompt="To be", filler=7)
    before = app.told_of(at)
    usual = {"sent": 9, "agreed": None, "session": before["session"], "obeyed": 0}
    for message in STRANGE:
        states = at._tree.get_widget_states()
        state = states.widgets.add()
        of_shell = app.component(at, app.SHELL).id
        state.id, state.json_value = (
            of_shell,
            json.dumps({"page_state": {**usual, **message} if isinstance(message, dict) else message}),
        )
        at._run(states)
        assert not at.exception and app.told_of(at) == before, message


# Links that can't be followed, and texts that can't be shown as they are


ASKS_TOO_MUCH = {
    **{"model": "hal9000", "layer": 99, "head": 7, "temperature": "abc", "step": 10**9, "seed": "nan", "length": -1},
    **{"scope": "<b>", "written": "9999"},
}


@every_page
def test_a_link_that_asks_for_too_much_is_answered_on_every_page(page):
    at = start(page, **ASKS_TOO_MUCH)
    unreadable = {name for name in ASKS_TOO_MUCH if f"{name} = “" in said(at)}
    assert unreadable == {"temperature", "step", "seed", "length", "scope"}
    assert "scope = “<b>”, but it can be prompt, all." in said(at)
    for sentence in (
        "There is no model “hal9000” here; Shakespeare is shown.",
        "There is no layer 99 here; the last one, 1, is shown.",
        "There is no head 7 here; the last one, 1, is shown.",
        "The link's text was left out: it has tokens that this model doesn't know.",
    ):
        assert said(at).count(sentence) == 1
    dismiss_notices(at)
    assert "The link has" not in said(at)
