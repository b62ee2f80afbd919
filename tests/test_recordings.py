"""What a page draws attention from is what the engine computes, and what is derived from it arrives at the same."""

import math
import weakref

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pages.ui.models import cache, recordings
from pages.ui.models.library import OpenModel
from tests.helpers import tiny_model
from tests.test_recording import SilencedHead
from transformer import (
    MEASURES,
    Card,
    Checkpoint,
    ModelConfig,
    Recording,
    Tokenizer,
    attention_modules,
    causal_mask,
    head_measures,
    hook_points,
)
from transformer.api import exports
from transformer.inference.overview import HIDDEN

SHAPES = {
    "rotary": {"positions": "rotary"},
    "sinusoidal": {"positions": "sinusoidal"},
    "learned": {"positions": "learned", "attention_bias": False},
    "uniform": {"attention": "uniform"},
    "unconnected": {"residual": False},
    "post-norm": {"norm": "post"},
    "attention alone": {"d_ff": 0, "norm": "none"},
}
BOTH = {"architecture": "encoder-decoder", "n_encoder_layers": 3}
TOKENS, SOURCE = (3, 1, 4, 1, 5, 3), (2, 7, 1, 2)
CASES = [
    *((shape, fields, "self") for shape, fields in SHAPES.items()),
    *((f"both, {shape}", fields | BOTH, kind)
      for shape, fields in SHAPES.items() for kind in ("encoder", "decoder", "cross")),
]  # fmt: skip


@pytest.fixture(autouse=True)
def _nothing_remembered():
    cache.clear()


def open_model(fields: dict) -> OpenModel:
    model = tiny_model(**fields)
    tokenizer = Tokenizer.of_characters("abcdefghijk")
    return OpenModel("tiny", f"tiny {sorted(fields.items())}", Checkpoint(model, tokenizer, Card(title="Tiny")))


@pytest.fixture(scope="module", params=CASES, ids=lambda case: f"{case[0]}, {case[2]}")
def case(request):
    """A model, its source, the kind of attention, and all that the engine records of the pass. Only to be read."""
    _, fields, kind = request.param
    model = open_model(fields)
    source = SOURCE if kind != "self" else ()
    inputs = [torch.tensor([part]) for part in (source, TOKENS) if part]
    engine = model.checkpoint.model
    with torch.no_grad():
        _, recorded = engine.run_with_cache(*inputs, names_filter=list(hook_points(engine.config)))
    return model, source, kind, recorded


def close(found, expected, atol: float = 1e-5) -> None:
    np.testing.assert_allclose(found, expected, atol=atol, rtol=1e-5)


def test_the_overview_is_of_every_head(case):
    model, source, kind, recorded = case
    shape = model.checkpoint.model.config
    found = recordings.overview(model, TOKENS, source, kind)
    about, modules = found.metadata, attention_modules(shape)[kind]
    patterns = torch.stack([recorded[f"{module}.hook_pattern"][0] for module in modules])
    mask = recorded[f"{modules[0]}.hook_mask"]
    assert found.tensors["overview"].shape == tuple(patterns.shape)
    assert found.tensors["overview"].dtype == np.uint8 and found.tensors["measures"].dtype == np.float32
    assert ((found.tensors["overview"] == HIDDEN) == ~mask.numpy()).all()
    close(np.where(mask, found.tensors["overview"], 0) / 254, patterns, atol=0.5 / 254 + 1e-6)
    ids = {"cross": None, "encoder": torch.tensor(SOURCE)}.get(kind, torch.tensor(TOKENS))
    close(found.tensors["measures"], torch.stack([head_measures(layer, mask, ids) for layer in patterns]))
    assert found.tensors["measures"].shape == (len(modules), shape.n_heads, len(MEASURES))
    assert (about["queries"], about["keys"]) == tuple(patterns.shape[2:])
    assert about["causal"] == (not mask.all()) == (kind in ("self", "decoder"))
    assert about["uniform"] == (f"{modules[0]}.hook_raw_scores" not in recorded)
    assert list(about["modules"]) == modules and about["kind"] == kind
    assert ModelConfig.from_dict(dict(about["config"])) == shape
    assert [measure["name"] for measure in about["measures"]] == [measure.name for measure in MEASURES]
    assert [len(about["labels"][text]) for text in ("text", "source")] == [len(TOKENS), len(source)]
    assert Recording.from_bytes(found.to_bytes()).metadata["names"] == [dict(names) for names in about["names"]]


def test_a_whole_layer_can_be_taken_along(case):
    model, source, kind, recorded = case
    module = attention_modules(model.checkpoint.model.config)[kind][0]
    found = Recording.from_bytes(exports.whole_layer(model, TOKENS, source, kind, 0).to_bytes())
    assert set(found.tensors) == {name for name in recorded if name.startswith(f"{module}.")}
    close(found.tensors[f"{module}.hook_result"], recorded[f"{module}.hook_result"][0])


def test_what_is_added_to_the_stream_is_what_attention_gives(case):
    model, _, kind, recorded = case
    shape = model.checkpoint.model.config
    for layer in range(len(attention_modules(shape)[kind])):
        names = recordings.names_around(shape, kind, layer)
        assert all(name in hook_points(shape) for name in names.values() if name)
        assert (names["before"] is None) == (names["after"] is None) == (not shape.residual)
        if shape.residual:
            close(recorded[names["before"]] + recorded[names["out"]], recorded[names["after"]])


def test_weights_and_averages_follow_from_queries_keys_and_values(case):
    model, source, kind, recorded = case
    shape = model.checkpoint.model.config
    for layer, module in enumerate(attention_modules(shape)[kind]):
        for head in range(shape.n_heads):
            found = recordings.head(model, TOKENS, source, kind, layer, head).tensors
            names = recordings.names_around(shape, kind, layer)
            assert list(found) == [f"{names[part]}[:, {head}]" for part in "qkv" if names[part]]
            *q_and_k, v = (torch.tensor(found[name]) for name in found)
            mask = recorded[f"{module}.hook_mask"]
            scores = q_and_k[0] @ q_and_k[1].T / math.sqrt(shape.d_head) if q_and_k else torch.zeros(mask.shape)
            weights = scores.masked_fill(~mask, -math.inf).softmax(-1)
            close(weights, recorded[f"{module}.hook_pattern"][0, head])
            close(weights @ v, recorded[f"{module}.hook_z"][0, :, head])


def test_a_row_is_what_the_model_computed(case):
    model, source, kind, recorded = case
    engine, shape = model.checkpoint.model, model.checkpoint.model.config
    layer = len(attention_modules(shape)[kind]) - 1
    module, names = attention_modules(shape)[kind][layer], recordings.names_around(shape, kind, layer)
    query = 2
    rows = [recordings.row(model, TOKENS, source, kind, layer, head, query).tensors for head in range(shape.n_heads)]
    for head, found in enumerate(rows):
        assert all(array.dtype == np.float32 and array.base is None for array in found.values())
        for name, array in found.items():
            point, _, part = name.removesuffix("]").partition("[")
            if point.endswith("out.weight"):
                part_of_w_o = engine.get_parameter(point).detach().unflatten(-1, (shape.n_heads, -1))[:, head]
                close(array, part_of_w_o)
                close(part_of_w_o.numpy() @ found[f"{module}.hook_z[{query}, {head}]"],
                      found[f"{module}.hook_result[{query}, {head}]"])  # fmt: skip
            else:
                close(array, recorded[point][0][tuple(map(int, part.split(", ")))])
        scores = [] if recordings.has_scores(shape, kind) is False else [
            f"{module}.hook_{step}[{head}, {query}]" for step in ("raw_scores", "scaled_scores", "attn_scores")
        ]  # fmt: skip
        assert set(found) == {
            *scores, f"{module}.hook_pattern[{head}, {query}]", f"{module}.hook_z[{query}, {head}]",
            f"{module}.hook_result[{query}, {head}]", f"{module}.out.weight[:, {head}]",
            *(f"{names[name]}[{query}]" for name in ("before", "out", "after") if names[name]),
        }  # fmt: skip
    bias = engine.get_submodule(module).out.bias
    summed = sum(found[f"{module}.hook_result[{query}, {head}]"] for head, found in enumerate(rows))
    close(summed + (0 if bias is None else bias.detach().numpy()), rows[0][f"{names['out']}[{query}]"])


def test_a_long_text_is_pooled():
    model = open_model({"context_length": 100})
    found = recordings.overview(model, tuple(n % 11 for n in range(100)))
    assert found.tensors["overview"].shape == (2, 2, 64, 64)
    assert (found.metadata["queries"], found.metadata["keys"]) == (100, 100)


@pytest.mark.parametrize(("limit", "passes"), [(recordings.ALL_LAYERS_BELOW, 1), (100, 2)])
def test_a_large_model_is_read_a_layer_at_a_time(monkeypatch, limit, passes):
    monkeypatch.setattr(recordings, "ALL_LAYERS_BELOW", limit)
    model, counted, run = open_model({}), [], recordings._recorded
    monkeypatch.setattr(recordings, "_recorded", lambda *args: counted.append(1) or run(*args))
    for layer in range(2):
        for head in range(2):
            recordings.head(model, TOKENS, (), "self", layer, head)
    assert len(counted) == passes


def test_only_one_layers_patterns_are_held():
    class Watch:
        """Sees which patterns of earlier layers are still there when the next is made."""

        def fwd_hooks(self, model, start=None):
            return [(lambda name: name.endswith("hook_pattern"), self.see)]

        def see(self, pattern, hook):
            held.append(sum(other() is not None for other in made))
            made.append(weakref.ref(pattern))

    made, held = [], []
    recordings.overview(open_model({"n_layers": 4}), TOKENS, interventions=(Watch(),))
    assert held == [0, 0, 0, 0]


def test_interventions_are_seen_and_remembered_apart():
    model, silenced = open_model({}), (SilencedHead(0, 1),)
    for ask in (recordings.overview, recordings.row):
        where = (TOKENS, (), "self") if ask is recordings.overview else (TOKENS, (), "self", 1, 0, 3)
        plain, changed = ask(model, *where), ask(model, *where, interventions=silenced)
        assert ask(model, *where) is plain and ask(model, *where, interventions=(SilencedHead(0, 1),)) is changed
        assert any((plain.tensors[name] != changed.tensors[name]).any() for name in plain.tensors)
    plain, changed = (recordings.head(model, TOKENS, (), "self", 1, 0, hooks) for hooks in ((), silenced))
    assert all((plain.tensors[name] != changed.tensors[name]).any() for name in plain.tensors)
    row = recordings.row(model, TOKENS, (), "self", 0, 1, 3, silenced)
    assert not row.tensors["blocks.0.attn.hook_z[3, 1]"].any()


def test_an_intervention_on_the_pattern_is_in_the_overview():
    class Uniform:
        def fwd_hooks(self, model, start=None):
            mask = causal_mask(len(TOKENS), len(TOKENS))
            even = (mask / mask.sum(-1, keepdim=True)).expand(1, 2, -1, -1)
            return [("blocks.1.attn.hook_pattern", lambda pattern, hook: even)]

    found = recordings.overview(open_model({}), TOKENS, interventions=(Uniform(),)).tensors["measures"]
    spread = [measure.name for measure in MEASURES].index("spread")
    close(found[1, :, spread], [1, 1])
    assert (found[0, :, spread] < 0.999).all()


@pytest.mark.parametrize(
    ("kind", "layer", "head", "query", "words"),
    [
        ("self", 2, 0, 0, "no layer 2"), ("self", -1, 0, 0, "no layer -1"), ("cross", 0, 0, 0, "no layer 0"),
        ("self", 0, 2, 0, "no head 2"), ("self", 0, -1, 0, "no head -1"), ("self", 0, 0, 6, "no query 6"),
        ("self", 0, 0, -1, "no query -1"),
    ],
)  # fmt: skip
def test_what_is_not_there_is_refused(kind, layer, head, query, words):
    model = open_model({})
    with pytest.raises(ValueError, match=words):
        recordings.row(model, TOKENS, (), kind, layer, head, query)
    if "query" not in words:
        with pytest.raises(ValueError, match=words):
            recordings.head(model, TOKENS, (), kind, layer, head)


PASSES = st.tuples(
    st.lists(st.integers(0, 3), max_size=4).map(tuple), st.lists(st.integers(0, 3), max_size=4).map(tuple),
    st.sampled_from(["self", "encoder", "decoder", "cross"]),
    st.lists(st.builds(SilencedHead, st.integers(0, 1), st.integers(0, 1)), max_size=2).map(tuple),
)  # fmt: skip


@given(PASSES, PASSES)
def test_two_passes_have_one_identity_only_if_they_are_the_same(one, other):
    model = OpenModel("tiny", "tiny 1", None)
    names = [recordings.identity(model, *each) for each in (one, other)]
    assert (names[0] == names[1]) == (one == other)
    assert names[0] != recordings.identity(OpenModel("tiny", "tiny 2", None), *one)
    assert len(names[0]) == 16 and names[0].isalnum()
