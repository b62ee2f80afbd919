"""From a place on one page to the same place on another: Attention and Inside, and from Generate's logits to Inside."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pages.ui.components.inside import Place
from pages.ui.models import library
from pages.ui.shell.choices import Visitor
from pages.ui.shell.crossings import TO_ATTENTION, TO_INSIDE, to_attention, to_logit, to_weight
from pages.ui.shell.link import from_query, to_query
from tests.app_driver import act, fed, go, link_of, looked_at, parts, start, tell, use, write, writing
from tests.helpers import any_configs
from tests.tiny_models import save_tiny, save_translator
from transformer import attention_modules

pytestmark = pytest.mark.usefixtures("folder")


@st.composite
def weights(draw):
    """A model, a kind of attention that it has, and one of its weights: layer, head, query, key."""
    config = draw(any_configs().filter(attention_modules))
    kind = draw(st.sampled_from(sorted(attention_modules(config))))
    layer = draw(st.integers(0, len(attention_modules(config)[kind]) - 1))
    cell = (layer, draw(st.integers(0, config.n_heads - 1)), draw(st.integers(0, 99)), draw(st.integers(0, 99)))
    return config, kind, cell


@given(weights(), st.integers(0, 40), st.integers(0, 120))
def test_who_goes_to_a_weight_and_comes_back_is_where_they_were(which, offset, prompt):
    config, kind, (layer, head, query, key) = which
    current = Visitor()
    to_weight(current, config, kind, (layer, head, query, key), offset)
    module = attention_modules(config)[kind][layer]
    assert current.inside == f"{module}.hook_pattern" and current.heads == "one" and current.head == head
    begin = {"query": 0 if kind == "encoder" else offset, "key": 0 if kind in ("encoder", "cross") else offset}
    if query < begin["query"] or key < begin["key"]:
        assert current.cell is None
        return
    assert current.cell == (head, query - begin["query"], key - begin["key"])
    assert from_query(to_query(current)).cell == current.cell  # its link is one
    there = Visitor()
    to_attention(there, config, Place(module, *current.cell, "raw"), offset, prompt)
    assert (there.layer, there.head, there.query, there.key, there.stage) == (layer, head, query, key, "raw")
    assert there.attention == (kind if kind != "self" else Visitor.attention)
    assert (there.scope == "all") == (kind == "self" and max(query, key) >= prompt)


@given(st.integers(1, 400), st.integers(0, 99), st.integers(0, 300))
def test_a_token_is_drawn_from_the_logits_one_place_before_it(place, token, offset):
    current = Visitor()
    to_logit(current, place, token, offset)
    assert current.inside == "logits"
    if place - 1 < offset:
        assert current.place is None and current.cell is None and f"place {place - 1}" in current.notices[0]
    else:
        assert current.place == place - 1 and current.cell == (place - 1 - offset, token) and not current.notices


def test_the_ways_set_the_fields_that_they_say(small_config):
    for go_there, fields in (
        (lambda one: to_logit(one, 3, 1, 0), TO_INSIDE),
        (lambda one: to_weight(one, small_config, "self", (0, 1, 3, 2), 0), (*TO_INSIDE, "head")),
        (lambda one: to_attention(one, small_config, Place("blocks.0.attn", 1, 3, 2, "raw"), 0, 1), TO_ATTENTION),
    ):
        one = Visitor()
        go_there(one)
        assert {name for name, value in vars(one).items() if value != getattr(Visitor(), name)} <= {*fields}


@pytest.fixture
def small_config(folder):
    return library.config("shakespeare")


def test_a_weight_of_attention_is_the_same_one_inside_and_inside_leads_back():
    at = start("Attention", prompt="To be", layer=1, head=1)
    tell(at, "headsup_attention_feed", "chosen", {**looked_at(at), "turn": {"query": 3, "key": 2}})
    at = go(at, "Inside")
    there = fed(at)
    place = {"open": "blocks.1.attn.hook_pattern", "cell": [1, 3, 2], "token": 3, "head": 1}
    assert there.metadata["chosen"].items() >= place.items()
    assert link_of(at)["cell"] == "1,3,2"
    place = {"module": "blocks.0.attn", "head": None, "query": 4, "key": 1, "stage": "scaled"}
    tell(at, "headsup_inside_feed", "chosen", {**there.metadata["chosen"], "turn": place})
    at = go(at, "Attention")
    found = looked_at(at)
    assert [found[name] for name in ("layer", "head", "query", "key", "stage")] == [0, 1, 4, 1, "scaled"]


def test_what_was_written_is_looked_at_on_attention_too():
    at = go(write(start(tokens=4, prompt="To be")), "Inside")
    place = {"module": "blocks.1.attn", "head": 0, "query": 7, "key": None, "stage": "weights"}
    tell(at, "headsup_inside_feed", "chosen", {**fed(at).metadata["chosen"], "turn": place})
    assert looked_at(go(at, "Attention"))["query"] == 7


@pytest.mark.parametrize(("kind", "cell"), [("encoder", [0, 2, 1]), ("decoder", [0, 1, 0]), ("cross", [0, 1, 2])])
def test_each_attention_of_an_encoder_decoder_has_its_place(kind, cell, tmp_path, monkeypatch):
    save_translator(tmp_path)
    use(monkeypatch, tmp_path)
    at = start("Attention", model="translator", prompt="two hundred and five", attention=kind, layer=0, head=0)
    tell(at, "headsup_attention_feed", "chosen", {**looked_at(at), "turn": {"query": cell[1], "key": cell[2]}})
    chosen = fed(go(at, "Inside")).metadata["chosen"]
    module = attention_modules(library.config("translator"))[kind][0]
    assert (chosen["open"], chosen["cell"]) == (f"{module}.hook_pattern", cell)
    assert chosen["source"] == {"encoder": 2, "decoder": None, "cross": 2}[kind]


@pytest.mark.parametrize("place", [True, "x", [], {"query": 3}, {"query": 99, "key": 0}, {"query": 0.5, "key": 0}])
def test_a_place_that_there_is_not_leads_nowhere(place):
    at = start("Attention", prompt="To be")
    tell(at, "headsup_attention_feed", "chosen", {**looked_at(at), "turn": place})
    assert "inside" not in link_of(at)
    assert parts(at).metadata["seen"] == 0


def test_generates_logits_are_insides(monkeypatch, tmp_path):
    save_tiny(tmp_path, "shakespeare", context_length=8)
    use(monkeypatch, tmp_path)
    at = write(start(tokens=6, prompt="To be"))
    place = writing(at).metadata["length"]
    act(at, "logits", place=place)
    own = writing(at).tensors["logits_at"]
    token = int(own.argmax())
    act(at, "inside", place=place, token=token)
    at = go(at, "Inside")
    chosen = fed(at).metadata["chosen"]
    assert (chosen["open"], chosen["cell"]) == ("logits", [6, token])  # of the seven tokens that the model reads
    np.testing.assert_allclose(fed(at).tensors["logits"][6], own, atol=1e-5)


def test_what_the_model_no_longer_reads_is_said_to_be_gone(monkeypatch, tmp_path):
    save_tiny(tmp_path, "shakespeare", context_length=8)
    use(monkeypatch, tmp_path)
    at = write(start(tokens=6, prompt="To be"))
    act(at, "inside", place=2, token=1)
    at = go(at, "Inside")
    assert fed(at).metadata["chosen"]["cell"] is None
    assert any("place 1" in box.value for box in at.warning)
