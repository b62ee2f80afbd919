"""Tests what the API sends a page first, the overview of all heads and the outline of a pass: the engine's numbers."""

import math
import weakref

import numpy as np
import pytest
import torch

from tests.api.cases import BOTH, SHAPES, SOURCE, TOKENS, open_model, parts_of_attention
from tests.engine.test_recording import SilencedHead
from tests.helpers import MODERN
from transformer import MEASURES, ModelConfig, Recording, attention_modules, head_measures, hook_points
from transformer.api import outlines, tensors
from transformer.api.library import FOLDER, Library
from transformer.inference.attention_outline import has_scores, names_around
from transformer.inference.pattern_pooling import HIDDEN

CASES = [
    *((shape, fields, "self") for shape, fields in SHAPES.items()),
    *(
        (f"both, {shape}", fields | BOTH, kind)
        for shape, fields in SHAPES.items()
        for kind in ("encoder", "decoder", "cross")
    ),
    ("both ways", {"architecture": "encoder-only", "attention_windows": (2, 0)}, "self"),
]


SINCE_2017 = [(kind, {"n_heads": 4, **fields}, "self") for kind, fields in MODERN.items()]


def recorded_of(case):
    """A model, its source, the kind of attention, and all that the engine records of the pass. Only to be read."""
    _, fields, kind = case
    model = open_model(fields)
    source = SOURCE if kind != "self" else ()
    inputs = [torch.tensor([part]) for part in (source, TOKENS) if part]
    engine = model.checkpoint.model
    with torch.no_grad():
        _, recorded = engine.run_with_cache(*inputs, names_filter=list(hook_points(engine.config)))
    return model, source, kind, recorded


@pytest.fixture(scope="module", params=CASES, ids=lambda case: f"{case[0]}, {case[2]}")
def attended(request):
    return recorded_of(request.param)


@pytest.fixture(scope="module", params=[*CASES, *SINCE_2017], ids=lambda case: f"{case[0]}, {case[2]}")
def of_any_kind(request):
    return recorded_of(request.param)


def close(found, expected, atol: float = 1e-5) -> None:
    np.testing.assert_allclose(found, expected, atol=atol, rtol=1e-5)


def unpacked(found, shape):
    """All cells (layer, head, query, key) of an overview; a causal one has only those on and below the diagonal."""
    cells = found.tensors["overview"]
    if not found.metadata["causal"]:
        return cells
    whole = np.full(tuple(shape), HIDDEN, dtype=np.uint8)
    whole[..., *np.tril_indices(shape[-1])] = cells
    return whole


def test_the_overview_is_of_every_head(attended):
    model, source, kind, recorded = attended
    shape = model.checkpoint.model.config
    found = outlines.overview(model, TOKENS, source, kind)
    about, modules = found.metadata, attention_modules(shape)[kind]
    patterns = torch.stack([recorded[f"{module}.hook_pattern"][0] for module in modules])
    masks = torch.stack([recorded[f"{module}.hook_mask"].expand(patterns.shape[2:]) for module in modules])
    mask = masks[:, None]
    cells = unpacked(found, patterns.shape)
    assert cells.dtype == np.uint8 and found.tensors["measures"].dtype == np.float32
    assert ((cells == HIDDEN) == ~mask.numpy()).all()
    close(np.where(mask, cells, 0) / 254, patterns, atol=0.5 / 254 + 1e-6)
    ids = {"cross": None, "encoder": torch.tensor(SOURCE)}.get(kind, torch.tensor(TOKENS))
    close(
        found.tensors["measures"],
        torch.stack([head_measures(*each, ids) for each in zip(patterns, masks, strict=True)]),
    )
    assert found.tensors["measures"].shape == (len(modules), shape.n_heads, len(MEASURES))
    assert (about["queries"], about["keys"]) == tuple(patterns.shape[2:])
    assert about["causal"] == (not masks.triu(1).any()) == (kind in ("self", "decoder") and shape.is_causal)
    assert about["predicted_position"] == about["queries"] - 1
    assert about["uniform"] == (f"{modules[0]}.hook_raw_scores" not in recorded)
    assert list(about["modules"]) == modules and about["kind"] == kind
    assert ModelConfig.from_dict(dict(about["config"])) == shape
    assert [measure["name"] for measure in about["measures"]] == [measure.name for measure in MEASURES]
    assert [len(about["labels"][text]) for text in ("text", "source")] == [len(TOKENS), len(source)]
    assert Recording.from_bytes(found.to_bytes()).metadata["names"] == [dict(names) for names in about["names"]]


def test_weights_and_averages_follow_from_queries_keys_and_values(of_any_kind):
    model, source, kind, recorded = of_any_kind
    shape = model.checkpoint.model.config
    for layer, module in enumerate(attention_modules(shape)[kind]):
        for head in range(shape.n_heads):
            found = parts_of_attention(model, source, kind, ["head", layer, head])
            names, shared = names_around(shape, kind, layer), head * shape.kv_heads // shape.n_heads
            heads = (("q", head), ("k", shared), ("v", shared))
            expected = [f"{names[part]}[:, {at}]" for part, at in heads if names[part]]
            is_learned = shape.positions == "relative"
            assert set(found) - set(expected) == (
                {f"{module}.relative_bias.weight[:, {head}]"} if is_learned else set()
            )
            *q_and_k, v = (torch.tensor(found[name]) for name in expected)
            mask = recorded[f"{module}.hook_mask"].flatten(0, -2)
            scale = math.sqrt(shape.d_head) if shape.attention_scale else 1
            scores = q_and_k[0] @ q_and_k[1].T / scale if q_and_k else torch.zeros(mask.shape)
            scores = shape.score_cap * (scores / shape.score_cap).tanh() if shape.score_cap else scores
            if (biases := recorded.get(f"{module}.hook_position_bias")) is not None:
                scores = scores + biases[0, head]
            weights = scores.masked_fill(~mask, -math.inf).softmax(-1)
            close(weights, recorded[f"{module}.hook_pattern"][0, head])
            close(weights @ v, recorded[f"{module}.hook_z"][0, :, head])


def test_a_row_is_what_the_model_computed(of_any_kind):
    """And has what leads from it to what the head adds to the stream."""
    model, source, kind, recorded = of_any_kind
    shape, query = model.checkpoint.model.config, 2
    layer = len(attention_modules(shape)[kind]) - 1
    module, names = attention_modules(shape)[kind][layer], names_around(shape, kind, layer)
    steps = ("raw_scores", "scaled_scores", "capped_scores", "attn_scores") if has_scores(shape, kind) else ()
    scores = [f"{module}.hook_{step}" for step in steps if f"{module}.hook_{step}" in recorded]
    w_o = model.checkpoint.model.get_parameter(f"{module}.out.weight").detach().unflatten(-1, (shape.n_heads, -1))
    for head in range(shape.n_heads):
        found = parts_of_attention(model, source, kind, ["row", layer, head, query])
        close(found.pop(f"{module}.out.weight[:, {head}]"), w_o[:, head])
        assert set(found) == {
            *(f"{name}[{head}, {query}]" for name in (*scores, f"{module}.hook_pattern")),
            *(f"{module}.hook_{name}[{query}, {head}]" for name in ("z", "result")),
            *(f"{names[name]}[{query}]" for name in ("before", "given", "out", "after") if names[name]),
        }
        for name, array in found.items():
            point, _, part = name.removesuffix("]").partition("[")
            close(array, recorded[point][0][tuple(map(int, part.split(", ")))])


def test_a_long_text_is_pooled():
    model = open_model({"context_length": 100})
    found = outlines.overview(model, tuple(n % 11 for n in range(100)))
    assert found.tensors["overview"].shape == (2, 2, 64 * 65 // 2)  # without what the mask hides
    assert (found.metadata["queries"], found.metadata["keys"]) == (100, 100)


@pytest.mark.parametrize(("limit", "passes"), [(tensors.PROJECTIONS_BELOW, 1), (100, 2)])
def test_a_large_model_is_read_a_layer_at_a_time(monkeypatch, limit, passes):
    monkeypatch.setattr(tensors, "WHOLE_BELOW", 0)
    monkeypatch.setattr(tensors, "PROJECTIONS_BELOW", limit)
    model, counted, run = open_model({}), [], tensors._recorded
    monkeypatch.setattr(tensors, "_recorded", lambda *args: counted.append(1) or run(*args))
    for layer in range(2):
        for head in range(2):
            parts_of_attention(model, (), "self", ["head", layer, head])
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
    outlines.overview(open_model({"n_layers": 4}), TOKENS, interventions=(Watch(),))
    assert held == [0, 0, 0, 0]


def test_interventions_are_seen_and_remembered_apart():
    model, silenced = open_model({}), (SilencedHead(0, 1),)
    plain, changed = (outlines.overview(model, TOKENS, interventions=each) for each in ((), silenced))
    assert outlines.overview(model, TOKENS, interventions=()) is plain
    assert outlines.overview(model, TOKENS, interventions=(SilencedHead(0, 1),)) is changed
    assert any((plain.tensors[name] != changed.tensors[name]).any() for name in plain.tensors)
    for part in (["head", 1, 0], ["row", 1, 0, 3]):
        plain, changed = (parts_of_attention(model, (), "self", part, interventions=each) for each in ((), silenced))
        assert any((plain[name] != changed[name]).any() for name in plain)
    row = parts_of_attention(model, (), "self", ["row", 0, 1, 3], interventions=silenced)
    assert not row["blocks.0.attn.hook_z[3, 1]"].any()


# The picture of a whole pass


def test_the_outline_is_labelled(case):
    model, source, found = case
    about = outlines.outline(model, TOKENS, source).metadata
    labels = model.checkpoint.tokenizer.labels
    assert about["labels"] == {"text": tuple(labels(TOKENS)), "source": tuple(labels(source))}
    assert about["ids"] == {"text": TOKENS, "source": source}
    assert list(about["vocabulary"]) == labels(range(found.config.vocab_size))


def test_of_a_large_vocabulary_only_what_is_shown_is_labelled(case, monkeypatch):
    monkeypatch.setattr(outlines, "LABELLED_VOCABULARY", 3)
    model, source, _ = case
    there = outlines.outline(model, TOKENS, source)
    shown = {*TOKENS, *source, *there.tensors["next"].flat, *there.tensors["lens"].flat}
    label = model.checkpoint.tokenizer.label
    assert there.metadata["vocabulary"] == {str(each): label(each) for each in shown}


@pytest.mark.parametrize(("tokens", "most"), [(32, 300_000), (256, 900_000)])
def test_the_first_answer_is_small(tokens, most):
    model = Library(FOLDER).open("shakespeare")
    text = tuple(torch.arange(tokens).remainder(60).tolist())
    assert len(outlines.outline(model, text).to_bytes()) <= most
