"""Tests the links from a position on one page to the same position on another."""

import numpy as np
import pytest
from hypothesis import given as given_any
from hypothesis import strategies as st

from pages.ui.models import library
from tests import app_driver as app
from tests.app_driver import answered, given, go, ids_of, look_at, looked_at, overview, start, write
from tests.frontend_calls import frontend
from tests.helpers import any_configs
from tests.tiny_models import save_tiny, save_translator
from transformer import attention_modules


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    folder = tmp_path_factory.mktemp("checkpoints")
    save_tiny(folder, "shakespeare", context_length=8)
    save_translator(folder)
    return folder


pytestmark = pytest.mark.usefixtures("folder")


@st.composite
def weights(draw):
    """A model, a kind of attention that it has, and one of its weights: layer, head, query, key."""
    config = draw(any_configs().filter(attention_modules))
    kind = draw(st.sampled_from(sorted(attention_modules(config))))
    layer = draw(st.integers(0, len(attention_modules(config)[kind]) - 1))
    head, place = draw(st.integers(0, config.n_heads - 1)), st.integers(0, 99)
    cell = {"layer": layer, "head": head, "query": draw(place), "key": draw(place)}
    return config, kind, cell


@given_any(weights(), st.integers(0, 40), st.integers(0, 120), st.booleans())
def test_who_goes_to_a_weight_and_comes_back_is_where_they_were(which, offset, prompt, is_whole):
    """is_whole: Attention shows the text that Inside reads; else a prompt that is shorter than it, from its start."""
    config, kind, cell = which
    begin = {"query": 0 if kind == "encoder" else offset, "key": 0 if kind in ("encoder", "cross") else offset}
    offsets = {of: begin[name] if is_whole else 0 for name, of in (("query", "queries"), ("key", "keys"))}
    modules = attention_modules(config)[kind]
    about = {"offsets": offsets, "begin": offset}
    there = frontend("attention/view_params.js", "toWeight", {"kind": kind, "modules": modules}, cell, about)
    module = modules[cell["layer"]]
    assert (there["inside"], there["heads"], there["head"]) == (f"{module}.hook_pattern", "one", cell["head"])
    places = {name: cell[name] + offsets[of] for name, of in (("query", "queries"), ("key", "keys"))}
    inner = {name: place - begin[name] for name, place in places.items()}
    if min(inner.values()) < 0:
        assert there["cell"] is None
        return
    assert there["cell"] == f"{cell['head']},{inner['query']},{inner['key']}"
    place = {"module": module, "head": cell["head"], **inner, "stage": "raw"}
    found = frontend("inside/view_params.js", "toAttention", place, {"offset": offset, "prompt": prompt})
    expected = {"layer": str(cell["layer"]), "head": cell["head"], **places, "stage": "raw"}
    assert found["looked"].items() >= expected.items()
    assert found["page"].get("attention", "self") == kind
    assert (found["page"].get("scope") == "all") == (kind == "self" and max(places.values()) >= prompt)


def turned(at, page, looked, **shown):
    """The other page, after the view has led to it: the tab looks there by then, as view_params.js has it."""
    return go(look_at(at, **looked, **shown), page)


@pytest.mark.parametrize(
    ("model", "kind", "cell"),
    [
        ("shakespeare", None, [1, 3, 2]),
        *(("translator", kind, cell) for kind, cell in (("encoder", [0, 2, 1]), ("decoder", [0, 1, 0]))),
        ("translator", "cross", [0, 1, 2]),
    ],
)
def test_a_weight_of_attention_is_the_same_one_inside_and_inside_leads_back(model, kind, cell):
    head, query, key = cell
    about = {"attention": kind} if kind else {}
    prompt = "two hundred and five" if kind else "To be"
    at = start("Attention", model=model, prompt=prompt, layer=0, head=head, **about)
    weight = {"layer": 0, "head": head, "query": query, "key": key}
    there = frontend("attention/view_params.js", "toWeight", overview(at).metadata, weight, given(at))
    at = turned(at, "Inside", there)
    module = attention_modules(library.config(model))[kind or "self"][0]
    chosen = looked_at(at)
    assert (chosen["open"], chosen["cell"], chosen["head"]) == (f"{module}.hook_pattern", cell, head)
    assert chosen["source"] == {"encoder": 2, "cross": 2}.get(kind)
    place = {"module": module, "head": None, "query": query, "key": key, "stage": "scaled"}
    found = frontend("inside/view_params.js", "toAttention", place, given(at))
    at = turned(at, "Attention", found["looked"], **found["page"])
    chosen = looked_at(at)
    assert overview(at).metadata["kind"] == (kind or "self")
    assert [chosen[name] for name in ("layer", "head", "query", "key", "stage")] == [0, head, query, key, "scaled"]


def test_what_was_written_is_looked_at_on_attention_and_its_logits_inside():
    at = write(start(model="shakespeare", tokens=6, prompt="To be"))
    place = len("To be") + len(ids_of(at))
    own = app.writing(at).tensors["logits"][-1]
    token = int(own.argmax())
    at = turned(at, "Inside", frontend("generation/view_params.js", "toLogit", place, token, place, 8))
    chosen = looked_at(at)
    assert (chosen["open"], chosen["cell"]) == ("logits", [6, token])  # of the seven tokens that the model reads
    np.testing.assert_allclose(answered(at, "tensors", names=["logits"]).tensors["logits"][6], own, atol=1e-5)
    place = {"module": "blocks.1.attn", "head": 0, "query": 5, "key": None, "stage": "weights"}
    found = frontend("inside/view_params.js", "toAttention", place, given(go(at, "Inside")))
    assert found["page"] == {"scope": "all"}
    assert looked_at(turned(at, "Attention", found["looked"], **found["page"]))["query"] == 5
