"""Tests links and the session: what a link contains, going back, and long texts."""

import json
import time
from urllib.parse import urlencode

import pytest

from pages.ui.frame import state
from pages.ui.frame.url_parameters import LONGEST_QUERY
from pages.ui.markdown import JOINER
from tests import app_driver as app
from tests.app_driver import checked, come_back, given, link_of, look_at, looked_at, prompt, said, start, type_prompt
from tests.tiny_models import save_pair, save_tiny, save_translator
from transformer import Tokenizer, save_checkpoint

pytestmark = pytest.mark.usefixtures("folder")
LONG = "abcdefghijklmnopqrstuvwxyz" * 3


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    folder = tmp_path_factory.mktemp("checkpoints")
    save_pair(folder, context_length=80)
    save_translator(folder)
    return folder


def captions(at):
    return " ".join(element.value for element in [*at.caption, *at.main.caption])


# What changes a picture is in the link


ATTENTION = dict(layer="1", head="1", stage="raw", without="scale", zoom="60,78,0,9")
ATTENTION |= dict(order="spread", direction="to")
CHANGES = [
    ("Attention", lambda at: look_at(at, **ATTENTION), ATTENTION),
    ("Masks", lambda at: at.slider[0].set_value(40), {"masks_shown": "40"}),
    ("Masks", lambda at: at.slider[1].set_value(70), {"positions_shown": "70"}),
    ("Positions", lambda at: at.multiselect[0].set_value([3, 9]), {"waves": "3,9"}),
    ("Positions", lambda at: at.multiselect[0].set_value([]), {"waves": ""}),
]


def drawn_masks(at):
    return [proto.json for proto in app.components(at, "headsup_masks")]


@pytest.mark.parametrize(("page", "change", "added"), CHANGES)
def test_what_changes_a_picture_is_in_the_link_and_only_then(page, change, added):
    at = app.open_folds(start(page, prompt=LONG))
    before = link_of(at)
    checked(change(at).run())
    assert link_of(at) == before | added
    other = app.open_folds(start(page, **link_of(at)))
    assert link_of(other) == link_of(at) and not said(other).replace(said(at), "")
    for one, same in zip(at.get("plotly_chart"), other.get("plotly_chart"), strict=True):
        assert one.proto.spec == same.proto.spec
    assert drawn_masks(at) == drawn_masks(other)
    if page == "Attention":
        assert given(at)["request"] == given(other)["request"]
        assert looked_at(at) == looked_at(other)


def test_a_link_of_before_still_opens():
    """The page once drew the end of a text, or all layers, on demand."""
    at = start("Attention", prompt=LONG, shown=60, source_shown="x", all_layers="true", layer=1, query=70)
    assert not said(at) and looked_at(at)["query"] == 70
    assert link_of(at) == {"model": "shakespeare", "prompt": LONG, "layer": "1", "head": "0", "query": "70"}
    assert app.overview(at).metadata["queries"] == len(LONG)


# Back and forward


def test_going_back_brings_the_page_as_it_was():
    at = app.write(start(tokens=5, prompt="To be"))
    generate, text = link_of(at), app.text_of(at)
    app.go(at, "Attention")
    checked(look_at(at, head=1, query=3).run())
    attention = link_of(at)
    app.go(at, "Generate")
    type_prompt(at, "KING:")
    assert app.text_of(at) == ""
    come_back(at, "Attention", attention)
    assert link_of(at) == attention and (looked_at(at)["head"], looked_at(at)["query"]) == (1, 3)
    come_back(at, "Generate", generate)
    assert prompt(at) == "To be" and app.text_of(at) == text
    assert given(at)["written"] == generate["written"] and len(app.ids_of(at)) == 5
    assert link_of(checked(at.run())) == generate  # and it isn't read again
    type_prompt(at, "Hello")  # in a moment in which the address is still that of before
    assert prompt(at) == "Hello" and link_of(at)["prompt"] == "Hello"


def test_going_back_within_a_page_brings_what_it_was():
    at = start("Masks", model="shakespeare", prompt="To be", filler=5)
    before = link_of(at)
    app.go(at, "Positions")
    checked(come_back(at, "Masks", before | {"filler": "2"}))
    checked(come_back(at, "Masks", before | {"filler": "7", "prompt": "KING:"}))
    assert link_of(at)["filler"] == "7" and prompt(at) == "KING:"


def test_a_text_that_a_link_has_no_room_for_stays_when_its_visitor_goes_back():
    at = start(prompt="é" * 4000)
    short = link_of(at)
    assert "prompt" not in short
    app.go(at, "Masks")
    come_back(at, "Generate", short)
    assert prompt(at) == "é" * 4000
    come_back(at, "Generate", {"model": "shakespeare", "prompt": "To be"})
    assert prompt(at) == "To be"
    come_back(at, "Masks", {})  # a page that was left before its address was written
    assert prompt(at) == "To be"


def test_what_a_tab_showed_before_its_session_was_lost_comes_back():
    at = start("Masks")
    assert '"is_new_session": true' in app.component(at, "headsup_address_bar").json
    assert '"is_new_session": false' in app.component(checked(at.run()), "headsup_address_bar").json
    app.tell(
        at, "headsup_address_bar", "restored", {"query": "model=shakespeare&prompt=KING%3A&filler=5", "others": {}}
    )
    assert prompt(at) == "KING:" and link_of(at)["filler"] == "5"
    at = start("Masks", prompt="é" * 4000, seed=7)  # for which the address has no room
    kept = json.loads(app.component(at, "headsup_address_bar").json)["overflow"]
    assert kept == {"prompt": "é" * 4000}
    other = start("Masks", **link_of(at))
    assert prompt(other) != "é" * 4000
    app.tell(other, "headsup_address_bar", "restored", {"query": urlencode(link_of(at)), "others": kept})
    assert prompt(other) == "é" * 4000 and link_of(other) == link_of(at)


def test_what_a_tab_can_t_have_shown_changes_nothing():
    for value in (
        None,
        "model=x",
        {"query": 1, "others": {}},
        {"query": "", "others": {"prompt": 5}},
        {"query": "x" * 200_000, "others": {}},
        {"query": "&".join("a" * 200), "others": {}},
        {"query": "", "others": {str(number): "" for number in range(200)}},
    ):
        at = start("Masks", prompt="To be")
        app.tell(at, "headsup_address_bar", "restored", value)
        assert prompt(at) == "To be", value


# A link that would be too long


def test_what_is_left_out_of_a_link_is_said():
    at = start()
    assert "Too long for the link" not in captions(at)
    type_prompt(at, "," * 4000)
    assert "Too long for the link: the prompt. It is lost" in captions(at)
    assert len(app.link_to_copy(at)) < LONGEST_QUERY + 100
    type_prompt(at, "," * 2_480)
    assert "Too long for the link" not in captions(at)
    app.write(at)
    assert "Too long for the link: what was written." in captions(at), "as soon as it outgrows it"


def test_boxes_hold_no_more_than_a_session_can_bear():
    at = app.open_folds(start("Masks"))
    assert sorted(box.proto.max_chars for box in at.text_area) == [4_000, 5_000]
    assert type_prompt(at, "a" * 9_000) and len(prompt(at)) == 5_000


# Texts of links and files


@pytest.mark.parametrize("value", ["http://a.b/c", "www.a.bc", "me@a.bc", ":material/info:", "![x](http://a.b/c.png)"])
def test_no_address_in_a_notice_is_left_whole(value):
    at = start(seed=value, model=value, prompt="To be")
    (warning,) = at.warning
    assert value not in warning.value and JOINER in warning.value
    assert value in said(at)


def test_a_command_in_a_card_can_be_copied(tmp_path, monkeypatch):
    checkpoint = save_tiny(tmp_path, "shakespeare")
    checkpoint.card.training["command"] = "python -m transformer train shakespeare --steps 10 `![x](http://a.b/c.png)`"
    save_checkpoint(tmp_path / "shakespeare", checkpoint)
    app.use(monkeypatch, tmp_path)
    (card,) = [element.value for element in start().markdown if "Train it again" in element.value]
    assert "`` python -m transformer train shakespeare --steps 10 `![x](http://a.b/c.png)` ``" in card


def test_what_can_t_be_read_is_taken_out_when_that_is_asked_for(monkeypatch):
    calls, taken_out = [], Tokenizer.without_unknown
    monkeypatch.setattr(Tokenizer, "without_unknown", lambda *given: calls.append(1) or taken_out(*given))
    began = time.perf_counter()
    at = type_prompt(start(), "中" * 5_000)
    assert time.perf_counter() - began < 20
    assert "This model has never seen" in said(at) and not calls
    app.press(at, "Remove what is unknown")
    assert calls == [1] and prompt(at) == ""


# What a tab looks at, where a run isn't told


def run_as_opened(at, link):
    """A run in a tab that was opened by a link: Streamlit tells that link, whatever the address bar holds since."""
    at.query_params = dict(link)
    return checked(at.run())


def test_what_is_looked_at_in_a_tab_that_was_opened_by_a_link_is_told_by_the_tab():
    link = {"model": "shakespeare", "prompt": "To be", "layer": "0", "head": "1"}
    at = start("Attention", **link)
    at.query_params = dict(link)
    app.tell(at, "headsup_address_bar", "selection", {"layer": "1", "head": "0", "order": "spread", "zoom": "x"})
    seen = at.session_state["visitor"]
    assert (seen.layer, seen.head, seen.order, seen.zoom) == (1, 0, "spread", None)
    run_as_opened(at, link)
    assert (seen.layer, seen.head, seen.order) == (1, 0, "spread")
    seen.layer = 0  # by a button, say
    for _ in range(2):
        run_as_opened(at, link)
        assert (seen.layer, seen.head) == (0, 0)
    assert json.loads(app.component(at, "headsup_address_bar").json)["known_selection"] == {
        "layer": "0",
        "head": "0",
        "order": "spread",
    }


def test_what_a_tab_can_t_look_at_changes_nothing():
    at = start("Masks", prompt="To be")
    before = link_of(at)
    strange = {"layer": 1}, {"layer": "x" * 200_000}, {"model": "hal9000"}, {"prompt": "another"}, {"layer": "many"}
    for value in (None, "layer=1", *strange):
        app.tell(at, "headsup_address_bar", "selection", value)
        assert link_of(checked(at.run())) == before, value


def test_a_page_knows_the_address_that_its_tab_was_opened_with_whatever_it_has_written_since():
    link = {"model": "shakespeare", "prompt": "To be", "filler": "5"}
    at = start("Masks", **link)
    for number in range(state.MAX_KNOWN_ADDRESSES + 5):
        at.session_state["visitor"].prompt = f"To be {number}"
        run_as_opened(at, link)
    assert prompt(at) == f"To be {state.MAX_KNOWN_ADDRESSES + 4}"
    assert len(at.session_state["known_addresses"]) == state.MAX_KNOWN_ADDRESSES
