"""Tests the page Attention: what it asks of the API, and that its selection is kept."""

from urllib.parse import urlencode

import numpy as np
import pytest

from pages.ui.computations import activations
from tests import app_driver as app
from tests.app_driver import checked, given, link_of, look_at, looked_at, overview, parts, request_of, start
from tests.frontend_calls import Looked, frontend
from tests.tiny_models import save_encoder
from transformer import Recording
from transformer.api.open_models import OFF, VARIABLE
from transformer.model.masks import causal_mask, full_mask

pytestmark = pytest.mark.usefixtures("folder")

OPEN = dict(layer=0, head=0, query=None, key=None, stage="weights", zoom=None, without=[], order="")
OPEN |= dict(direction="from", derivation=False)
"""What is looked at until something else is."""
PROMPT = "To be, or not"
LINKED = dict(layer="1", head="1", query="7", key="2", stage="masked", zoom="2,9,1,5", without="mask,scale")
LINKED |= dict(order="previous", direction="to", derivation="open")
SAID = LINKED | dict(layer=1, head=1, query=7, key=2, zoom=dict(top=2, bottom=9, left=1, right=5))
SAID |= dict(without=["mask", "scale"], derivation=True)


def selection(at, link):
    """What the browser makes of an address."""
    looked = Looked(urlencode(link))
    return frontend("attention/view_params.js", "selectionFrom", looked, given(at), overview(at).metadata)


def params(at, chosen):
    """The address that the browser makes of what is looked at."""
    found = frontend("attention/view_params.js", "paramsFrom", chosen, overview(at).metadata["offsets"])
    return {name: str(value) for name, value in found.items() if value not in (None, "")}


def run_lines(at, folder):
    (code,) = [block.value for block in app.open_drawers(at).code if "load_checkpoint" in block.value]
    names = {}
    exec(code.replace("checkpoints/", f"{folder}/"), names)
    return code, names


def test_it_asks_about_the_prompt_and_what_is_looked_at_is_in_the_link_for_which_nothing_is_asked_anew():
    at = start("Attention", prompt=PROMPT)
    assert looked_at(at) == OPEN and not {"query", "key", "zoom", "stage", "order"} & link_of(at).keys()
    about = overview(at).metadata
    assert about["labels"] == {"text": list("To␣be,␣or␣not"), "source": []}
    assert about["offsets"] == {"queries": 0, "keys": 0} and about["next"] is None
    assert (about["queries"], about["keys"], about["title"]) == (13, 13, "shakespeare")
    assert (about["causal"], about["uniform"], about["kind"]) == (True, False, "self")
    before = given(at)
    assert before["request"] == request_of("shakespeare", app.ids(PROMPT))
    look_at(at, **LINKED)
    assert looked_at(at) == SAID and given(checked(at.run())) == before
    other = start("Attention", **link_of(at))
    assert looked_at(other) == SAID and link_of(other) == link_of(at) and not app.said(other)
    assert given(other)["request"] == before["request"]
    assert looked_at(start("Attention", prompt=PROMPT)) == OPEN, "another visitor looks at what they choose"


def test_a_small_model_is_left_to_the_browser_once_it_has_been_shown(monkeypatch):
    ahead = []
    monkeypatch.setattr(activations, "compute_ahead", lambda compute, model, *_: ahead.append(model.name))
    at = start("Attention", prompt=PROMPT)
    assert ahead == ["shakespeare"]
    checked(at.run())
    assert ahead == ["shakespeare"], "its browser computes it by now"
    monkeypatch.setenv(VARIABLE, OFF)
    checked(at.run())
    assert len(ahead) == 2


def test_of_an_encoder_the_mask_is_looked_at_first(tmp_path, monkeypatch):
    checkpoint = save_encoder(tmp_path, attention_windows=(3, 0))
    app.use(monkeypatch, tmp_path)
    at = start("Attention", model="encoder", prompt="To [mask]e [mask]")
    about = overview(at).metadata
    assert (about["causal"], about["predicted_position"], about["queries"]) == (False, 3, 7)
    code, names = run_lines(at, tmp_path)
    assert "query=3)" in code and names["text"] == checkpoint.tokenizer.encode("To [mask]e [mask]")


@pytest.mark.parametrize("window", [0, 1, 3])
@pytest.mark.parametrize("causal", [True, False])
def test_the_browser_hides_what_the_model_s_mask_hides(causal, window):
    seen = (causal_mask if causal else full_mask)(5, 5, window=window).flatten().tolist()
    found = frontend("arithmetic.js", "visibleMask", 5, 5, causal, *([window] if window else []))
    assert [bool(found[str(at)]) for at in range(25)] == seen


def test_of_a_text_longer_than_the_context_the_end_is_read(long):
    at = start("Attention", prompt=long, query=97, key=30, zoom="90,100,20,40")
    about = overview(at).metadata
    assert about["offsets"] == {"queries": 20, "keys": 20} and (about["queries"], about["keys"]) == (80, 80)
    assert "".join(about["labels"]["text"]) == long[-80:]
    zoom = dict(top=70, bottom=80, left=0, right=20)
    assert looked_at(at) == OPEN | {"query": 77, "key": 10, "zoom": zoom, "derivation": True}
    assert given(at)["request"] == request_of("shakespeare", app.ids(long[-80:]), begin=20)
    clicked = {**looked_at(at), "query": 1, "key": 0, "zoom": dict(top=1, bottom=3, left=0, right=5)}
    assert {"query": "21", "key": "20", "zoom": "21,23,20,25"}.items() <= params(at, clicked).items()
    for link, missing in (
        ({"query": 19, "key": 5}, ("query", "key")),
        ({"query": 100, "zoom": "10,30,20,40"}, ("query", "zoom")),
        ({"query": 10**6, "key": 50, "zoom": "90,100,20,101"}, ("query", "zoom")),
    ):
        assert [selection(at, link)[name] for name in missing] == [None] * len(missing)


def test_another_text_forgets_its_part_but_not_how_it_is_looked_at():
    at = start("Attention", prompt=PROMPT, zoom="2,5,0,4", stage="raw", order="first", without="mask")
    assert looked_at(at)["zoom"] == dict(top=2, bottom=5, left=0, right=4)
    app.type_prompt(at, "To be, or no")
    assert looked_at(at) == OPEN | {"stage": "raw", "order": "first", "without": ["mask"], "derivation": True}


def test_a_link_to_a_score_or_a_cell_opens_how_it_comes_about_until_it_is_closed():
    at = start("Attention", prompt=PROMPT)
    for link, is_open in (
        ({"query": 5}, False),
        ({"stage": "scaled"}, True),
        ({"without": "mask"}, True),
        ({"query": 5, "key": 2}, True),
        ({"derivation": "open"}, True),
        ({"query": 5, "key": 2, "stage": "raw", "derivation": "closed"}, False),
    ):
        chosen = selection(at, link)
        assert chosen["derivation"] is is_open and selection(at, params(at, chosen)) == chosen


@pytest.mark.parametrize(
    ("model", "changes"), [("shakespeare", "scale~blocks.0.attn.hook_z~0~5~0.0!without~scale~"), ("martin-fierro", "")]
)
def test_the_lines_of_python_compute_what_is_shown_and_the_files_have_it(folder, model, changes, monkeypatch):
    made = app.downloads(monkeypatch)
    at = look_at(start("Attention", model=model, changes=changes), layer=1, head=1)
    _, names = run_lines(at, folder)
    recorded, outline, shown = names["recording"].tensors, overview(at).metadata, parts(at).tensors
    weights = recorded[f"{outline['modules'][1]}.hook_pattern"][1]
    assert weights.shape == (outline["queries"], outline["keys"])
    values = [name for name in shown if name.endswith("hook_v[:, 1]")]
    assert values
    for name in values:
        np.testing.assert_allclose(recorded[name.removesuffix("[:, 1]")][:, 1], shown[name], atol=1e-6)
    title = outline["title"]
    layer = Recording.from_bytes(made[f"{title}-attention.safetensors"]()).tensors
    np.testing.assert_allclose(layer[f"{outline['modules'][1]}.hook_pattern"][1], weights, atol=1e-6)
    assert f"<title>{title}-attention</title>" in made[f"{title}-attention.html"]().decode()
