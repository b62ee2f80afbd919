"""The page Attention: it sends its instrument the model's own numbers, and checks what comes back.

Dimensions: layer, head, query, key.
"""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pages.ui.models import library, recordings
from tests.app_driver import (
    cache_of,
    checked,
    component,
    dials,
    go,
    link_of,
    look_at,
    looked_at,
    named,
    open_drawers,
    overview,
    parts,
    said,
    start,
    tell,
    text_of,
    turn,
    type_prompt,
    use,
    write,
)
from tests.tiny_models import save_tiny
from transformer.inference.overview import HIDDEN

pytestmark = pytest.mark.usefixtures("folder")

FEED = "headsup_attention_feed"
OPEN = {"layer": 0, "head": 0, "query": None, "key": None, "stage": "weights", "zoom": None, "without": [],
        "order": "", "direction": "from", "share": "head"}  # fmt: skip
"""What is looked at until something else is."""


def weights_of(at):
    """The overview (layer, head, query, key) as weights from 0 to 1, NaN where hidden."""
    found = overview(at)
    cells, size = found.tensors["overview"], found.metadata["queries"]
    assert found.metadata["causal"] and cells.shape[-1] == size * (size + 1) // 2
    whole = np.full((*cells.shape[:2], size, size), HIDDEN)
    whole[..., *np.tril_indices(size)] = cells
    return np.where(whole == HIDDEN, np.nan, whole / 254)


def pattern_from(found, layer, head):
    """One head's weights (query, key), from the queries and keys that were sent."""
    tensors = {name.rpartition(".hook_")[2]: array for name, array in found.tensors.items()
               if name.startswith(f"blocks.{layer}.") and name.endswith(f"[:, {head}]")}  # fmt: skip
    q, k = (next(array for name, array in tensors.items() if name.startswith((part, f"rot_{part}"))) for part in "qk")
    scores = np.where(np.tri(len(q), dtype=bool), q @ k.T / np.sqrt(q.shape[1]), -np.inf)
    weights = np.exp(scores - scores.max(1, keepdims=True))
    return weights / weights.sum(1, keepdims=True)


# What it sends


@pytest.mark.parametrize("model", ["shakespeare", "martin-fierro"])
@pytest.mark.parametrize(("layer", "head"), [(0, 0), (1, 1), (0, 1)])
def test_it_shows_the_model_s_own_numbers(model, layer, head):
    typed = "To be, or not"
    at = start("Attention", model=model, prompt=typed, layer=layer, head=head)
    cache, shown = cache_of(model, typed), weights_of(at)
    assert len(shown) == len(overview(at).metadata["modules"])
    for other, patterns in enumerate(shown):
        own = cache["pattern", other][0].numpy()
        assert (np.isnan(patterns[0]) == ~np.tri(len(typed), dtype=bool)).all()
        assert np.allclose(np.nan_to_num(patterns), own, atol=0.5 / 254 + 1e-6)
    assert (looked_at(at)["layer"], looked_at(at)["head"]) == (layer, head)
    assert np.allclose(pattern_from(parts(at), layer, head), cache["pattern", layer][0, head], atol=1e-5)


def test_it_says_what_the_tokens_are_called_and_where_they_stand():
    about = overview(start("Attention", prompt="To be")).metadata
    assert about["labels"] == {"text": ["T", "o", "␣", "b", "e"], "source": []}
    assert about["offsets"] == {"queries": 0, "keys": 0} and about["next"] is None
    assert (about["queries"], about["keys"], about["title"]) == (5, 5, "shakespeare")
    assert (about["causal"], about["uniform"], about["kind"]) == (True, False, "self")


def test_nothing_is_chosen_until_something_is():
    at = start("Attention", prompt="To be, or not")
    assert looked_at(at) == OPEN
    assert not {"query", "key", "zoom", "stage", "order"} & link_of(at).keys()


def test_the_text_that_was_written_can_be_looked_at():
    at = go(write(start(tokens=5, prompt="To be")), "Attention")
    assert weights_of(at).shape[-1] == 5
    checked(named(at.get("button_group"), "Text").set_value("all").run())
    pattern = cache_of("shakespeare", "To be" + text_of(at))["pattern", 0][0]
    assert np.allclose(np.nan_to_num(weights_of(at)[0]), pattern, atol=0.5 / 254 + 1e-6)


@pytest.fixture
def long(tmp_path, monkeypatch):
    """A text of 100 tokens for a model that reads the last 80."""
    save_tiny(tmp_path, "shakespeare", context_length=80)
    use(monkeypatch, tmp_path)
    return "".join(chr(97 + i % 26) for i in range(100))


def test_of_a_text_longer_than_the_context_the_end_is_read(long):
    at = start("Attention", prompt=long, query=97, key=30, zoom="90,100,20,40")
    about = overview(at).metadata
    assert about["offsets"] == {"queries": 20, "keys": 20} and (about["queries"], about["keys"]) == (80, 80)
    assert "".join(about["labels"]["text"]) == long[-80:]
    assert looked_at(at) == OPEN | {"query": 77, "key": 10, "zoom": dict(top=70, bottom=80, left=0, right=20)}
    assert np.allclose(pattern_from(parts(at), 0, 0), cache_of("shakespeare", long)["pattern", 0][0, 0], atol=1e-5)
    look_at(at, query=1, key=0, zoom=dict(top=1, bottom=3, left=0, right=5))
    assert {"query": "21", "key": "20", "zoom": "21,23,20,25"}.items() <= link_of(at).items()


@pytest.mark.parametrize(
    ("link", "missing"),
    [({"query": 19, "key": 5}, ("query", "key")), ({"query": 100}, ("query",)), ({"zoom": "10,30,20,40"}, ("zoom",)),
     ({"zoom": "90,100,20,101"}, ("zoom",)), ({"query": 10**6, "key": 50}, ("query",))],
)  # fmt: skip
def test_what_the_text_does_not_have_is_forgotten(long, link, missing):
    at = start("Attention", prompt=long, **link)
    assert [looked_at(at)[name] for name in missing] == [None] * len(missing)
    assert not set(missing) & link_of(at).keys() and not at.warning


def test_another_text_forgets_its_part_but_not_how_it_is_looked_at():
    at = start("Attention", prompt="To be, or not", zoom="2,5,0,4", stage="raw", order="first", without="mask")
    assert looked_at(at)["zoom"] == dict(top=2, bottom=5, left=0, right=4)
    type_prompt(at, "To be, or no")
    assert looked_at(at) == OPEN | {"stage": "raw", "order": "first", "without": ["mask"]}


# What it takes


SAID = {"layer": 1, "head": 1, "query": 7, "key": 2, "stage": "masked", "zoom": dict(top=2, bottom=9, left=1, right=5),
        "without": ["scale", "mask"], "order": "previous", "direction": "to", "share": "layer"}  # fmt: skip
LINKED = {"layer": "1", "head": "1", "query": "7", "key": "2", "stage": "masked", "zoom": "2,9,1,5",
          "without": "mask,scale", "order": "previous", "direction": "to", "share": "layer"}  # fmt: skip


def test_what_is_looked_at_is_in_the_link_and_only_that_is_sent():
    at = start("Attention", prompt="To be, or not")
    view, before = component(at, "headsup_attention").bytes, parts(at).metadata
    look_at(at, **SAID, count=3)
    assert LINKED.items() <= link_of(at).items()
    assert not parts(at).tensors  # a click is answered in the browser; nothing of the pass is sent again
    assert parts(at).metadata == before | {"seen": 3}
    checked(at.run())
    assert component(at, "headsup_attention").bytes == view  # which goes as a reference, then
    assert looked_at(at) == SAID | {"without": ["mask", "scale"]}
    other = start("Attention", **link_of(at))
    assert looked_at(other) == looked_at(at) and link_of(other) == link_of(at) and not said(other)
    assert component(other, "headsup_attention").bytes == view


NOTHING_TO_LOOK_AT = (
    None, "x", 7, [], {}, {"layer": 0}, OPEN | {"layer": 2}, OPEN | {"layer": -1}, OPEN | {"layer": True},
    OPEN | {"head": 1.0}, OPEN | {"head": "1"}, OPEN | {"query": 13}, OPEN | {"key": [1]}, OPEN | {"stage": "softmax"},
    OPEN | {"stage": {}}, OPEN | {"order": "hal"}, OPEN | {"direction": None}, OPEN | {"share": ["head"]},
    OPEN | {"without": "mask"}, OPEN | {"without": [["mask"]]}, OPEN | {"without": None}, OPEN | {"zoom": [0, 1, 0, 1]},
    OPEN | {"zoom": dict(top=0, bottom=14, left=0, right=1)}, OPEN | {"zoom": dict(top=3, bottom=3, left=0, right=1)},
)  # fmt: skip


def test_what_cannot_be_looked_at_changes_nothing():
    at = start("Attention", prompt="To be, or not")
    before = link_of(at)
    for count, value in enumerate(NOTHING_TO_LOOK_AT, 1):
        told = value
        if isinstance(value, dict):  # together with something that could be looked at
            told = value | {"query": 3 if value.get("query") is None else value["query"], "count": count}
        tell(at, FEED, "chosen", told)
        assert link_of(at) == before, value
        assert parts(at).metadata["seen"] == (count if isinstance(value, dict) else 0)  # it isn't told again
    checked(at.run())
    assert looked_at(at) == OPEN and not said(at)


def test_a_report_is_taken_whatever_its_count_says():
    at = start("Attention", prompt="To be")
    for query, count in enumerate((None, "x", 1.5, True, [])):
        look_at(at, query=query, count=count)
        assert link_of(at)["query"] == str(query) and parts(at).metadata["seen"] == 0


def test_parts_are_sent_when_they_are_asked_for():
    at = start("Attention", prompt="To be, or not")
    tell(at, FEED, "want", {"id": parts(at).metadata["id"], "parts": [["head", 1, 1], ["row", 1, 0, 5]]})
    found, cache = parts(at), cache_of("shakespeare", "To be, or not")
    assert np.allclose(pattern_from(found, 1, 1), cache["pattern", 1][0, 1], atol=1e-5)
    tokens = tuple(library.tokenizer("shakespeare").encode("To be, or not"))
    row = recordings.row("shakespeare", tokens, (), "self", 1, 0, 5).tensors
    assert len(found.tensors) == 3 + len(row)
    assert all((found.tensors[name] == array).all() for name, array in row.items())
    assert np.allclose(found.tensors["blocks.1.attn.hook_z[5, 0]"], cache["z", 1][0, 5, 0], atol=1e-5)


def test_parts_that_there_are_not_are_not_sent():
    at = start("Attention", prompt="To be, or not")
    name = parts(at).metadata["id"]
    for asked in (
        None, "head", {}, ["head"], [["head"]], [["head", 0]], [["head", 2, 0]], [["head", 0, -1]], [["head", True, 0]],
        [["head", 0, 0, 0]], [["row", 0, 0]], [["row", 0, 0, 13]], [["row", 0, 0, 0.0]], [["tail", 0, 0]], [[]], [None],
        [[["head"], 0, 0]],
    ):  # fmt: skip
        tell(at, FEED, "want", {"id": name, "parts": asked})
        assert not parts(at).tensors, asked
    tell(at, FEED, "want", {"id": name, "parts": [["head", 9, 9], ["head", 0, 1], "x"]})
    assert all(found.endswith("[:, 1]") for found in parts(at).tensors) and parts(at).tensors


def test_what_is_asked_of_another_pass_is_not_answered():
    at, some = start("Attention", prompt="To be, or not"), [["head", 0, 0]]
    for asked in (None, "x", [], {"parts": some}, {"id": ["x"], "parts": some}, {"id": "another", "parts": some}):
        tell(at, FEED, "want", asked)
        assert not parts(at).tensors


def test_a_request_that_comes_after_the_text_has_changed_is_not_answered():
    at = start("Attention", prompt="To be, or not")
    late = {"id": parts(at).metadata["id"], "parts": [["row", 0, 0, 12]]}
    type_prompt(at, "To")
    assert parts(at).metadata["id"] == overview(at).metadata["id"] != late["id"]
    tell(at, FEED, "want", late)
    assert not parts(at).tensors


def test_a_pass_has_a_name_of_its_own(tmp_path, monkeypatch):
    names = {overview(start("Attention", model=model, prompt=typed)).metadata["id"]
             for model in ("shakespeare", "martin-fierro") for typed in ("To be", "To bf")}  # fmt: skip
    assert len(names) == 4
    before = overview(start("Attention", prompt="To be")).metadata["id"]
    assert before in names
    save_tiny(tmp_path, "shakespeare", seed=9)  # another model of the same name
    use(monkeypatch, tmp_path)
    assert overview(start("Attention", prompt="To be")).metadata["id"] not in names


def test_what_is_said_of_another_text_than_is_shown_is_checked_against_the_one_shown():
    at = start("Attention", prompt="To be, or not")
    said_late = looked_at(at) | {"query": 12}
    type_prompt(at, "To")
    tell(at, FEED, "chosen", said_late)
    assert "query" not in link_of(at)


# When the browser has to turn to something else


def serial(at):
    return parts(at).metadata["serial"]


def test_what_the_browser_said_itself_is_not_told_to_it_again():
    at = start("Attention", prompt="To be, or not")
    before = serial(at)
    look_at(at, head=1, query=3)
    assert serial(checked(at.run())) == before
    look_at(at, zoom=dict(top=2, bottom=9, left=1, right=5))
    assert serial(checked(at.run())) == before == serial(checked(at.run()))


def test_what_another_page_or_another_text_changed_is_told():
    at = start("Attention", prompt="To be, or not")
    before = serial(at)
    go(at, "Generate")
    turn(at, head=1)
    go(at, "Attention")
    assert serial(at) > before and looked_at(at)["head"] == 1
    before = serial(at)
    at.session_state["visitor"].layer = 1  # as a link of another page does
    assert serial(checked(at.run())) > before and looked_at(at)["layer"] == 1


def test_a_page_that_comes_back_says_what_is_looked_at():
    at = start("Attention", prompt="To be, or not")
    look_at(at, head=1, query=3)
    checked(at.run())
    before = serial(at)
    go(at, "Masks")
    go(at, "Attention")
    assert serial(at) > before and looked_at(at) == OPEN | {"head": 1, "query": 3}


def test_the_dials_of_the_page_generate_follow():
    at = start("Attention", prompt="To be")
    look_at(at, layer=1, head=1)
    checked(at.run())
    go(at, "Generate")
    assert (dials(at)["layer"], dials(at)["head"]) == (1, 1)


def test_visitors_look_at_what_they_choose_and_share_what_is_computed():
    one, other = (start("Attention", prompt="To be, or not") for _ in range(2))
    assert component(one, "headsup_attention").bytes == component(other, "headsup_attention").bytes
    before = link_of(other)
    look_at(one, layer=1, head=1, query=3)
    for at in (one, other):
        checked(at.run())
    assert looked_at(one) == OPEN | {"layer": 1, "head": 1, "query": 3}
    assert looked_at(other) == OPEN and link_of(other) == before


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(told=st.recursive(st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
                         lambda inner: st.lists(inner, max_size=4) | st.dictionaries(
                             st.sampled_from([*OPEN, "id", "parts", "count"]), inner, max_size=6)))  # fmt: skip
def test_no_report_is_too_strange(told, folder):
    at = start("Attention", prompt="To be")
    for event in ("chosen", "want"):
        tell(at, FEED, event, told)
    checked(at.run())
    assert not said(at)


@pytest.mark.parametrize("model", ["shakespeare", "martin-fierro"])
@pytest.mark.parametrize("changes", ["", "scale~blocks.0.attn.hook_z~0~5~0.0!without~scale~"])
def test_the_lines_of_python_compute_what_is_shown(folder, model, changes):
    at = look_at(start("Attention", model=model, changes=changes), layer=1, head=1)
    at.run()
    (code,) = [block.value for block in open_drawers(at).code if "load_checkpoint" in block.value]
    names = {}
    exec(code.replace("checkpoints/", f"{folder}/"), names)
    recorded, metadata = names["recording"], parts(at).metadata["chosen"]
    assert (metadata["layer"], metadata["head"]) == (1, 1)
    outline = overview(at)
    module = outline.metadata["modules"][1]
    weights = recorded.tensors[f"{module}.hook_pattern"][1]
    assert weights.shape == (outline.metadata["queries"], outline.metadata["keys"])
    starts = {name: tensor for name, tensor in parts(at).tensors.items() if name.endswith("hook_v[:, 1]")}
    assert starts
    for name, tensor in starts.items():
        np.testing.assert_allclose(recorded.tensors[name.removesuffix("[:, 1]")][:, 1], tensor, atol=1e-6)
