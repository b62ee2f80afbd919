"""Tests the page Attention: what it asks of the API, and that its selection is kept."""

from urllib.parse import urlencode

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import given as given_any
from hypothesis import strategies as st

from pages.ui.components.instruments import request_of
from pages.ui.models import activations, library
from tests import app_driver as app
from tests.app_driver import asked, checked, given, go, link_of, look_at, looked_at, overview, parts, start
from tests.frontend_calls import Looked, frontend
from tests.tiny_models import save_encoder, save_tiny
from transformer.api.browser_models import OFF, VARIABLE
from transformer.model.masks import causal_mask, full_mask

pytestmark = pytest.mark.usefixtures("folder")

OPEN = dict(layer=0, head=0, query=None, key=None, stage="weights", zoom=None, without=[], order="")
OPEN |= dict(direction="from", derivation=False)
"""What is looked at until something else is."""
PROMPT = "To be, or not"


def joined(tokens):
    """As a question to the API names them."""
    return ",".join(map(str, tokens))


# What it shows


def test_it_says_what_the_tokens_are_called_and_what_a_row_is():
    at = start("Attention", prompt=PROMPT)
    assert looked_at(at) == OPEN, "nothing is chosen until something is"
    assert not {"query", "key", "zoom", "stage", "order"} & link_of(at).keys()
    about = overview(at).metadata
    assert about["labels"] == {"text": list("To␣be,␣or␣not"), "source": []}
    assert about["offsets"] == {"queries": 0, "keys": 0} and about["next"] is None
    assert (about["queries"], about["keys"], about["title"]) == (13, 13, "shakespeare")
    assert (about["causal"], about["uniform"], about["kind"]) == (True, False, "self")
    assert not given(at)["sends_selection"]
    opened = library.opened("shakespeare")
    assert given(at)["request"] == request_of(opened, app.ids(PROMPT), (), (), 0)
    assert given(app.open_drawers(at))["sends_selection"], "a page is run by a look only while it says something of it"


def test_a_small_model_is_left_to_the_browser_once_it_has_been_shown(monkeypatch):
    ahead = []
    monkeypatch.setattr(activations, "compute_ahead", lambda compute, model, *_: ahead.append(model.name))
    at = start("Attention", prompt=PROMPT)
    assert given(at)["in_browser"] and ahead == ["shakespeare"]
    at = app.type_prompt(at, "To be")
    assert ahead == ["shakespeare"], "its browser computes it by now"
    monkeypatch.setenv(VARIABLE, OFF)
    at = app.type_prompt(at, PROMPT)
    assert not given(at)["in_browser"] and len(ahead) == 2


def test_of_an_encoder_the_mask_is_looked_at_first(tmp_path, monkeypatch):
    checkpoint = save_encoder(tmp_path / "checkpoints", attention_windows=(3, 0))
    app.use(monkeypatch, tmp_path / "checkpoints")
    at = start("Attention", model="encoder", prompt="To [mask]e [mask]")
    about = overview(at).metadata
    assert (about["causal"], about["predicted_position"], about["queries"]) == (False, 3, 7)
    assert "Text" not in [control.label for control in at.get("button_group")], "nothing is written"
    monkeypatch.chdir(tmp_path)
    (code,) = [block.value for block in app.open_drawers(at).code if "load_checkpoint" in block.value]
    names = {}
    exec(code, names)
    assert "query=3)" in code and names["text"] == checkpoint.tokenizer.encode("To [mask]e [mask]")


@pytest.mark.parametrize("window", [0, 1, 3])
@pytest.mark.parametrize("causal", [True, False])
def test_the_browser_hides_what_the_model_s_mask_hides(causal, window):
    seen = (causal_mask if causal else full_mask)(5, 5, window=window).flatten().tolist()
    found = frontend("arithmetic.js", "maskedScores", [1] * 25, 5, causal, *([window] if window else []))
    assert [score == 1 for score in found] == seen


def test_the_text_that_was_written_can_be_looked_at():
    at = go(app.write(start(tokens=5, prompt="To be")), "Attention")
    assert given(at)["request"]["tokens"] == joined(app.ids("To be"))
    checked(app.named(at.get("button_group"), "Text").set_value("all").run())
    assert given(at)["request"]["tokens"] == joined(app.ids("To be" + app.text_of(at)))


def test_of_a_text_longer_than_the_context_the_end_is_read(long):
    at = start("Attention", prompt=long, query=97, key=30, zoom="90,100,20,40")
    about = overview(at).metadata
    assert about["offsets"] == {"queries": 20, "keys": 20} and (about["queries"], about["keys"]) == (80, 80)
    assert "".join(about["labels"]["text"]) == long[-80:]
    assert looked_at(at) == OPEN | {
        "query": 77,
        "key": 10,
        "zoom": dict(top=70, bottom=80, left=0, right=20),
        "derivation": True,
    }
    assert (given(at)["request"]["tokens"], given(at)["request"]["begin"]) == (joined(app.ids(long[-80:])), 20)
    clicked = {**looked_at(at), "query": 1, "key": 0, "zoom": dict(top=1, bottom=3, left=0, right=5)}
    linked = frontend("attention/view_params.js", "paramsFrom", clicked, about["offsets"])
    assert {"query": 21, "key": 20, "zoom": "21,23,20,25"}.items() <= linked.items()


def test_what_the_text_does_not_have_is_forgotten(long):
    for link, missing in (
        ({"query": 19, "key": 5}, ("query", "key")),
        ({"query": 100, "zoom": "10,30,20,40"}, ("query", "zoom")),
        ({"query": 10**6, "key": 50, "zoom": "90,100,20,101"}, ("query", "zoom")),
    ):
        at = start("Attention", prompt=long, **link)
        assert [looked_at(at)[name] for name in missing] == [None] * len(missing)
        assert not at.warning


def test_another_text_forgets_its_part_but_not_how_it_is_looked_at():
    at = start("Attention", prompt=PROMPT, zoom="2,5,0,4", stage="raw", order="first", without="mask")
    assert looked_at(at)["zoom"] == dict(top=2, bottom=5, left=0, right=4)
    app.type_prompt(at, "To be, or no")
    assert looked_at(at) == OPEN | {"stage": "raw", "order": "first", "without": ["mask"], "derivation": True}


# What is looked at


LINKED = dict(layer="1", head="1", query="7", key="2", stage="masked", zoom="2,9,1,5", without="mask,scale")
LINKED |= dict(order="previous", direction="to", derivation="open")
SAID = LINKED | dict(layer=1, head=1, query=7, key=2, zoom=dict(top=2, bottom=9, left=1, right=5))
SAID |= dict(without=["mask", "scale"], derivation=True)


def test_what_is_looked_at_is_in_the_link_and_nothing_is_asked_anew_for_it():
    at = start("Attention", prompt=PROMPT)
    before = given(at)
    look_at(at, **LINKED)
    assert looked_at(at) == SAID
    checked(at.run())
    assert given(at) == before
    other = start("Attention", **link_of(at))
    assert looked_at(other) == SAID and link_of(other) == link_of(at) and not app.said(other)
    assert given(other)["request"] == before["request"]


def test_a_link_to_a_score_or_a_cell_opens_how_it_comes_about_until_it_is_closed():
    for link, is_open in (
        ({"query": 5}, False),
        ({"stage": "scaled"}, True),
        ({"without": "mask"}, True),
        ({"query": 5, "key": 2}, True),
        ({"derivation": "open"}, True),
        ({"query": 5, "key": 2, "stage": "raw", "derivation": "closed"}, False),
    ):
        at = start("Attention", prompt=PROMPT, **link)
        assert looked_at(at)["derivation"] is is_open
        linked = frontend("attention/view_params.js", "paramsFrom", looked_at(at), overview(at).metadata["offsets"])
        texts = {name: str(value) for name, value in linked.items() if value not in (None, "")}
        assert looked_at(start("Attention", prompt=PROMPT, **texts)) == looked_at(at)


def test_another_version_of_the_model_is_not_asked_in_the_place_of_the_one_on_screen(tmp_path, monkeypatch):
    versions = {
        given(start("Attention", model=model))["request"]["version"] for model in ("shakespeare", "martin-fierro")
    }
    at = start("Attention", prompt="To be")
    assert len(versions) == 2 and given(at)["request"]["version"] in versions
    save_tiny(tmp_path, "shakespeare", seed=9)
    app.use(monkeypatch, tmp_path)
    response = asked(at, "overview")
    assert response.status_code == 409 and "load the page again" in response.json()["error"]
    assert given(start("Attention"))["request"]["version"] not in versions


def test_what_is_looked_at_stays_while_other_pages_are_open():
    at = look_at(start("Attention", prompt=PROMPT), head=1, query=3)
    for page in ("Masks", "Inside", "Attention"):  # by their links; no page has been run since the click
        go(at, page)
        assert link_of(at).items() >= {"head": "1", "query": "3"}.items()
    assert looked_at(at) == OPEN | {"head": 1, "query": 3}
    checked(look_at(at, layer=1).run())
    go(at, "Generate")  # whose dials follow
    assert (app.dials(at)["layer"], app.dials(at)["head"]) == (1, 1)
    app.turn(at, head=0)
    go(at, "Attention")
    assert looked_at(at)["head"] == 0 and link_of(at)["head"] == "0"


def test_what_a_button_decides_counts_more_than_the_address_it_was_pressed_at():
    at = look_at(start(prompt="To be", tokens=4), layer=1, query=2)
    look_at(
        at, **frontend("generation/view_params.js", "toLogit", 5, 1, 5, 32)
    )  # of Generate, to what speaks for a token
    assert app.wish(at, "navigate", {"page": "Inside"}).title[0].value == "Inside"
    assert link_of(at).items() >= {"inside": "logits", "place": "4", "cell": "4,1", "layer": "1", "query": "2"}.items()


def test_visitors_look_at_what_they_choose_and_share_what_is_computed():
    one, other = (start("Attention", prompt=PROMPT) for _ in range(2))
    assert given(one) == given(other)
    before = link_of(other)
    look_at(one, layer=1, head=1, query=3)
    for at in (one, other):
        checked(at.run())
    assert looked_at(one) == OPEN | {"layer": 1, "head": 1, "query": 3}
    assert looked_at(other) == OPEN and link_of(other) == before


ANYTHING = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
NAMES = st.sampled_from(["page", "attention", "scope", "add", "remove", "model"])
REPORTS = st.recursive(ANYTHING, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=6))


@pytest.mark.parametrize("page", ["Attention", "Inside"])
def test_no_report_is_too_strange(page):
    at = start(page, prompt="To be")

    @settings(max_examples=5)
    @given_any(REPORTS, st.sampled_from(["change", "navigate", "look"]))
    def tell(told, event):
        app.wish(at, event, told)
        assert not app.said(at) and at.title[0].value == page

    tell()


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given_any(
    link=st.dictionaries(
        st.sampled_from([*LINKED, "inside", "place", "cell"]),
        st.text("0129,-.ab%", max_size=8) | st.sampled_from([*LINKED.values()]),
    )
)
def test_no_address_is_too_strange(link, folder):
    """What it says that can't be looked at, both the page and the browser read as nothing."""
    at = start("Attention", **{"model": "shakespeare", "prompt": "To be", **link})
    as_written = frontend(
        "attention/view_params.js", "selectionFrom", Looked(urlencode(link_of(at))), given(at), overview(at).metadata
    )
    assert looked_at(at) == as_written
    assert link_of(start("Attention", **link_of(at))) == link_of(at)
    current = at.session_state["visitor"]
    for name in ("layer", "head", "stage", "direction", "order"):
        assert as_written[name] == getattr(current, name)


@pytest.mark.parametrize(
    ("model", "changes"), [("shakespeare", "scale~blocks.0.attn.hook_z~0~5~0.0!without~scale~"), ("martin-fierro", "")]
)
def test_the_lines_of_python_compute_what_is_shown(folder, model, changes):
    at = look_at(start("Attention", model=model, changes=changes), layer=1, head=1)
    at.run()
    (code,) = [block.value for block in app.open_drawers(at).code if "load_checkpoint" in block.value]
    names = {}
    exec(code.replace("checkpoints/", f"{folder}/"), names)
    recorded, metadata = names["recording"], looked_at(at)
    assert (metadata["layer"], metadata["head"]) == (1, 1)
    outline = overview(at)
    module = outline.metadata["modules"][1]
    weights = recorded.tensors[f"{module}.hook_pattern"][1]
    assert weights.shape == (outline.metadata["queries"], outline.metadata["keys"])
    starts = {name: tensor for name, tensor in parts(at).tensors.items() if name.endswith("hook_v[:, 1]")}
    assert starts
    for name, tensor in starts.items():
        np.testing.assert_allclose(recorded.tensors[name.removesuffix("[:, 1]")][:, 1], tensor, atol=1e-6)


def test_an_own_model_is_asked_by_its_token_which_is_in_no_address(tmp_path):
    own = library.OpenModel("own-1", "own-1", save_tiny(tmp_path, "own"), is_own=True)
    request = request_of(own, (1, 2), (), (), 0)
    assert request["model"] == "own" and "own-1" not in str(request)
