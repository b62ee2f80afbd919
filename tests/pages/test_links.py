"""Tests that a link restores the whole view, that going back does, and that a broken or long link says why."""

import json
from urllib.parse import urlencode

import pytest
from streamlit.runtime.scriptrunner import RerunData, RerunException

from pages.ui.frame import state
from pages.ui.host.page_state import LONGEST_ADDRESS
from pages.ui.markdown import JOINER
from tests import app_driver as app
from tests.app_driver import (
    PAGES,
    checked,
    come_back,
    dials,
    every_page,
    given,
    go,
    ids_of,
    link_of,
    look_at,
    looked_at,
    named,
    press,
    prompt,
    said,
    start,
    tell,
    text_of,
    type_prompt,
    write,
)
from tests.tiny_models import save_pair, save_tiny, save_translator, written
from transformer import Tokenizer, save_checkpoint

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
    assert link_of(other) == link
    assert not said(other)
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
        elif again == "Positions":
            assert named(other.slider, "Length: positions").value == 20
            assert named(other.number_input, "Position").value == 7
            assert named(other.number_input, "Dimension").value == 3
    assert link_of(other) == link


def test_what_changes_a_picture_is_in_the_link_and_only_then():
    for page, change, added in (
        ("Attention", lambda at: look_at(at, layer="1", zoom="60,78,0,9"), {"layer": "1", "zoom": "60,78,0,9"}),
        ("Masks", lambda at: at.slider[0].set_value(40), {"masks_shown": "40"}),
        ("Masks", lambda at: at.slider[1].set_value(70), {"positions_shown": "70"}),
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


def test_the_link_to_copy_is_the_address_and_says_what_it_has_no_room_for():
    def lost(at):
        said_of_it = " ".join(element.value for element in at.caption)
        return said_of_it.partition("Too long for the link: ")[2].partition(".")[0]

    at = start("Masks", layer=1, prompt="To be?\n& not=1")
    address = app.link_to_copy(at)
    assert "?model=shakespeare&prompt=To+be%3F%0A%26+not%3D1" in address
    assert address.endswith("&layer=1&head=0") and not lost(at)
    at = go(at, "Generate")
    type_prompt(at, "," * 4000)
    assert lost(at) == "the prompt"
    assert len(app.link_to_copy(at)) < LONGEST_ADDRESS + 100
    type_prompt(at, "," * 2_440)
    assert not lost(at)
    write(at)
    assert lost(at) == "what was written", "as soon as it outgrows it"


def test_a_text_is_brought_back_by_the_next_run_if_the_first_is_cut_short_over_it(monkeypatch):
    cut, confirm = [], state.confirm_restored_text

    def confirm_at_last():
        if not cut:
            cut.append(True)
            raise RerunException(RerunData())  # as where something is drawn, if a newer request has come
        confirm()

    monkeypatch.setattr(state, "confirm_restored_text", confirm_at_last)
    at = start(prompt="To be?", written=written(" I am"))
    assert cut and text_of(at) == " I am"


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


def test_a_text_that_a_link_has_no_room_for_stays_when_its_visitor_goes_back():
    at = start(prompt="é" * 4000)
    short = link_of(at)
    assert "prompt" not in short
    go(at, "Masks")
    come_back(at, "Generate", short)
    assert prompt(at) == "é" * 4000
    come_back(at, "Generate", {"model": "shakespeare", "prompt": "To be"})
    assert prompt(at) == "To be"
    come_back(at, "Masks", {})  # a page that was left before its address was written
    assert prompt(at) == "To be"


# What a tab holds when its session doesn't


def told(at):
    """What the address bar's component is told."""
    return json.loads(app.component(at, "headsup_address_bar").json)


def test_what_a_tab_showed_before_its_session_was_lost_comes_back():
    at = start("Masks")
    assert told(at)["is_new_session"] and not told(checked(at.run()))["is_new_session"]
    tell(at, "headsup_address_bar", "restored", {"query": "model=shakespeare&prompt=KING%3A&filler=5", "others": {}})
    assert prompt(at) == "KING:" and link_of(at)["filler"] == "5"
    at = start("Masks", prompt="é" * 4000, seed=7)  # for which the address has no room
    kept = told(at)["overflow"]
    assert kept == {"prompt": "é" * 4000}
    other = start("Masks", **link_of(at))
    assert prompt(other) != "é" * 4000
    tell(other, "headsup_address_bar", "restored", {"query": urlencode(link_of(at)), "others": kept})
    assert prompt(other) == "é" * 4000 and link_of(other) == link_of(at)


def run_as_opened(at, link):
    """A run in a tab that was opened by a link: Streamlit tells that link, whatever the address bar holds since."""
    at.query_params = dict(link)
    return checked(at.run())


def test_what_is_looked_at_in_a_tab_that_was_opened_by_a_link_is_told_by_the_tab():
    link = {"model": "shakespeare", "prompt": "To be", "layer": "0", "head": "1"}
    at = start("Attention", **link)
    at.query_params = dict(link)
    tell(at, "headsup_address_bar", "selection", {"layer": "1", "head": "0", "order": "spread", "zoom": "x"})
    seen = at.session_state["visitor"]
    assert (seen.layer, seen.head, seen.order, seen.zoom) == (1, 0, "spread", None)
    run_as_opened(at, link)
    assert (seen.layer, seen.head, seen.order) == (1, 0, "spread")
    seen.layer = 0  # by a button, say
    for _ in range(2):
        run_as_opened(at, link)
        assert (seen.layer, seen.head) == (0, 0)
    assert told(at)["known_selection"] == {"layer": "0", "head": "0", "order": "spread"}


STRANGE = [
    ("restored", None),
    ("restored", "model=x"),
    ("restored", {"query": 1, "others": {}}),
    ("restored", {"query": "", "others": {"prompt": 5}}),
    ("restored", {"query": "x" * 200_000, "others": {}}),
    ("restored", {"query": "&".join("a" * 200), "others": {}}),
    ("restored", {"query": "", "others": {str(number): "" for number in range(200)}}),
    *(("selection", value) for value in (None, "layer=1", {"layer": 1}, {"layer": "x" * 200_000}, {"layer": "many"})),
    *(("selection", value) for value in ({"model": "hal9000"}, {"prompt": "another"})),
]


def test_what_a_tab_can_t_have_shown_changes_nothing():
    for event, value in STRANGE:
        at = start("Masks", prompt="To be")
        before = link_of(at)
        tell(at, "headsup_address_bar", event, value)
        assert prompt(at) == "To be", value
        assert event == "restored" or link_of(checked(at.run())) == before, value


def test_a_page_knows_the_address_that_its_tab_was_opened_with_whatever_it_has_written_since():
    link = {"model": "shakespeare", "prompt": "To be", "filler": "5"}
    at = start("Masks", **link)
    for number in range(state.MAX_KNOWN_ADDRESSES + 5):
        at.session_state["visitor"].prompt = f"To be {number}"
        run_as_opened(at, link)
    assert prompt(at) == f"To be {state.MAX_KNOWN_ADDRESSES + 4}"
    assert len(at.session_state["known_addresses"]) == state.MAX_KNOWN_ADDRESSES


# Links that can't be followed, and texts that can't be shown as they are


ASKS_TOO_MUCH = {
    **{"model": "hal9000", "layer": 99, "head": 7, "temperature": "abc", "step": 10**9, "seed": "nan", "length": -1},
    **{"prompt": "é", "written": "9999"},
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
    type_prompt(at, "Hi")
    assert "The link's text was left out: it has tokens that this model doesn't know." in said(at)


def test_what_a_link_can_t_have_is_answered_with_a_sentence_until_it_is_read():
    at = start(model="../../../etc", step=999, scope="<b>")
    assert "There is no model “../../../etc” here; Shakespeare is shown." in said(at)
    assert "The text has no predicted token at position 999; the last one is shown." in said(at)
    assert "scope = “<b>”, but it can be prompt, all." in said(at)
    assert named(at.selectbox, "Model").value == "shakespeare"
    assert link_of(start(**link_of(at))) == link_of(at)
    press(at, "OK")
    assert not said(at)


@pytest.mark.parametrize(
    "value", ["http://a.b/c", "www.a.bc", "me@a.bc", ":material/info:", "![x](http://a.b/c.png)\n\n# big"]
)
def test_no_address_or_picture_in_a_notice_is_left_whole(value):
    at = start(seed=value, model=value, pace=value, prompt="To be")
    (warning,) = at.warning
    assert value not in warning.value and "![" not in warning.value and JOINER in warning.value
    assert value.partition("\n")[0] in said(at) and "\n\n#" not in warning.value


def test_a_command_in_a_card_can_be_copied(tmp_path, monkeypatch):
    checkpoint = save_tiny(tmp_path, "shakespeare")
    checkpoint.card.training["command"] = "python -m transformer train shakespeare --steps 10 `![x](http://a.b/c.png)`"
    save_checkpoint(tmp_path / "shakespeare", checkpoint)
    app.use(monkeypatch, tmp_path)
    (card,) = [element.value for element in start().markdown if "Train it again" in element.value]
    assert "`` python -m transformer train shakespeare --steps 10 `![x](http://a.b/c.png)` ``" in card


def test_texts_are_bounded_and_what_can_t_be_read_is_taken_out_when_that_is_asked_for(monkeypatch):
    calls, taken_out = [], Tokenizer.without_unknown
    monkeypatch.setattr(Tokenizer, "without_unknown", lambda *given: calls.append(1) or taken_out(*given))
    at = app.open_folds(start("Masks"))
    assert sorted(box.proto.max_chars for box in at.text_area) == [4_000, 5_000]
    assert type_prompt(at, "中" * 9_000) and prompt(at) == "中" * 5_000
    assert "This model has never seen" in said(at) and not calls
    press(at, "Remove what is unknown")
    assert calls == [1] and prompt(at) == ""
