"""Tests what the API sends a page first, the overview of all heads and the outline of a pass: the engine's numbers."""

import math
import weakref

import numpy as np
import pytest
import torch

from tests.api.cases import BOTH, SHAPES, SOURCE, TOKENS, open_model, parts_of_attention
from tests.helpers import MODERN
from transformer import MEASURES, ModelConfig, Recording, attention_modules, head_measures, hook_points
from transformer.api import outlines
from transformer.api.model_library import FOLDER, Library
from transformer.inference.attention_outline import has_scores, names_around
from transformer.inference.pattern_pooling import HIDDEN

KINDS = {shape: (fields, "self") for shape, fields in SHAPES.items()}
KINDS |= {
    f"both, {shape}, {kind}": (fields | BOTH, kind)
    for shape, fields in SHAPES.items()
    for kind in ("encoder", "decoder", "cross")
}
KINDS["both ways"] = {"architecture": "encoder-only", "attention_windows": (2, 0)}, "self"
KINDS |= {name: ({"n_heads": 4, **fields}, "self") for name, fields in MODERN.items()}


@pytest.fixture(scope="module", params=KINDS)
def attended(request):
    """A model, its source, the kind of attention, and all that the engine records of the pass. Only to be read."""
    fields, kind = KINDS[request.param]
    model, source = open_model(fields), SOURCE if kind != "self" else ()
    inputs = [torch.tensor([part]) for part in (source, TOKENS) if part]
    engine = model.checkpoint.model
    with torch.no_grad():
        _, recorded = engine.run_with_cache(*inputs, names_filter=list(hook_points(engine.config)))
    return model, source, kind, recorded


def close(found, expected, atol: float = 1e-5) -> None:
    np.testing.assert_allclose(found, expected, atol=atol, rtol=1e-5)


# All heads of an attention


def test_the_overview_is_of_every_head(attended):
    model, source, kind, recorded = attended
    shape = model.checkpoint.model.config
    found = outlines.overview(model, TOKENS, source, kind)
    about, modules = found.metadata, attention_modules(shape)[kind]
    patterns = torch.stack([recorded[f"{module}.hook_pattern"][0] for module in modules])
    masks = torch.stack([recorded[f"{module}.hook_mask"].expand(patterns.shape[2:]) for module in modules])
    cells = found.tensors["overview"]
    if about["causal"]:  # only the cells on and below the diagonal are sent
        packed, cells = cells, np.full(tuple(patterns.shape), HIDDEN, dtype=np.uint8)
        cells[..., *np.tril_indices(patterns.shape[-1])] = packed
    assert ((cells == HIDDEN) == ~masks[:, None].numpy()).all()
    close(np.where(masks[:, None], cells, 0) / 254, patterns, atol=0.5 / 254 + 1e-6)
    ids = {"cross": None, "encoder": torch.tensor(SOURCE)}.get(kind, torch.tensor(TOKENS))
    labels = about["labels"]["source" if kind == "encoder" else "text"]
    measures = torch.stack([head_measures(*each, ids, labels) for each in zip(patterns, masks, strict=True)])
    close(found.tensors["measures"], measures)
    assert (about["queries"], about["keys"]) == tuple(patterns.shape[2:])
    assert about["causal"] == (not masks.triu(1).any()) == (kind in ("self", "decoder") and shape.is_causal)
    assert about["predicted_position"] == about["queries"] - 1
    assert about["uniform"] == (f"{modules[0]}.hook_raw_scores" not in recorded)
    assert list(about["modules"]) == modules and about["kind"] == kind
    assert ModelConfig.from_dict(dict(about["config"])) == shape
    assert [measure["name"] for measure in about["measures"]] == [measure.name for measure in MEASURES]
    assert [len(about["labels"][text]) for text in ("text", "source")] == [len(TOKENS), len(source)]
    assert Recording.from_bytes(found.to_bytes()).metadata["names"] == [dict(names) for names in about["names"]]


def test_weights_and_averages_follow_from_queries_keys_and_values(attended):
    model, source, kind, recorded = attended
    shape = model.checkpoint.model.config
    for layer, module in enumerate(attention_modules(shape)[kind]):
        for head in range(shape.n_heads):
            found = parts_of_attention(model, source, kind, ["head", layer, head])
            names, shared = names_around(shape, kind, layer), head * shape.kv_heads // shape.n_heads
            heads = (("q", head), ("k", shared), ("v", shared))
            expected = [f"{names[part]}[:, {at}]" for part, at in heads if names[part]]
            learned = {f"{module}.relative_bias.weight[:, {head}]"} if shape.positions == "relative" else set()
            assert set(found) == {*expected, *learned}
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


def test_a_row_has_what_leads_from_the_scores_to_what_the_head_adds_to_the_stream(attended):
    model, source, kind, recorded = attended
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


def test_a_long_text_is_pooled_and_only_one_layer_s_patterns_are_held():
    class Watch:
        """Sees which patterns of earlier layers are still there when the next is made."""

        def fwd_hooks(self, model, start=None):
            return [(lambda name: name.endswith("hook_pattern"), self.see)]

        def see(self, pattern, hook):
            held.append(sum(other() is not None for other in made))
            made.append(weakref.ref(pattern))

    made, held = [], []
    model, tokens = open_model({"context_length": 100, "n_layers": 4}), tuple(n % 11 for n in range(100))
    found = outlines.overview(model, tokens, interventions=(Watch(),))
    assert held == [0, 0, 0, 0]
    assert found.tensors["overview"].shape == (4, 2, 64 * 65 // 2)  # without what the mask hides
    assert (found.metadata["queries"], found.metadata["keys"]) == (100, 100)


# The picture of a whole pass


@pytest.mark.parametrize("labelled", [3, outlines.LABELLED_VOCABULARY])
def test_the_outline_is_labelled_of_a_large_vocabulary_only_what_is_shown(case, monkeypatch, labelled):
    monkeypatch.setattr(outlines, "LABELLED_VOCABULARY", labelled)
    model, source, found = case
    there, tokenizer = outlines.outline(model, TOKENS, source), model.checkpoint.tokenizer
    about = there.metadata
    assert about["labels"] == {"text": tuple(tokenizer.labels(TOKENS)), "source": tuple(tokenizer.labels(source))}
    assert about["ids"] == {"text": TOKENS, "source": source}
    if labelled == 3:
        shown = {*TOKENS, *source, *there.tensors["next"].flat, *there.tensors["lens"].flat}
        assert about["vocabulary"] == {str(each): tokenizer.label(each) for each in shown}
    else:
        assert list(about["vocabulary"]) == tokenizer.labels(range(found.config.vocab_size))


@pytest.mark.parametrize(("tokens", "most"), [(32, 300_000), (256, 900_000)])
def test_the_first_answer_is_small(tokens, most):
    model = Library(FOLDER).open("shakespeare")
    text = tuple(torch.arange(tokens).remainder(60).tolist())
    assert len(outlines.outline(model, text).to_bytes()) <= most
