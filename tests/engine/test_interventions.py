"""Tests that each intervention changes what it says, and nothing else."""

import contextlib
import math
import re
from dataclasses import fields

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers import any_configs, close, some_inputs, tiny_config, tiny_model, unpadded
from transformer import generate, hook_points
from transformer.inference.intervention_codes import from_code, to_code
from transformer.inference.intervention_kinds import FIELDS, KINDS, fields_of
from transformer.inference.interventions import (
    RULES,
    CodedIntervention,
    Intervention,
    MeanAblate,
    Patch,
    Scale,
    SetAttention,
    Steer,
    Without,
    hooks_of,
)


def logits(model, inputs, *interventions):
    with torch.no_grad():
        return model.run_with_hooks(*inputs, fwd_hooks=hooks_of(interventions, model))


def one_text(config):
    return tuple(tokens[:1] for tokens in some_inputs(config, unpadded))


def as_texts(inputs):
    """tokens and source, as interventions take another text."""
    *source, tokens = (tuple(each[0].tolist()) for each in inputs)
    return {"tokens": tokens, "source": source[0] if source else ()}


BECOMES = {
    Scale: lambda change, value, on: value * change.factor,
    MeanAblate: lambda change, value, on: value.mean(1, keepdim=True).expand_as(value),
    Patch: lambda change, value, on: on(change.tokens, change.source),
    Steer: lambda change, value, on: (
        value
        + change.factor
        * (
            on(change.tokens, change.source)[:, -1:]
            - on(change.against, change.against_source or change.source)[:, -1:]
        )
    ),
}
"""What every class makes of a point's value; on: what the point has on another text."""


def made(of_class, **values):
    """An intervention with those of the values that it has fields for."""
    return of_class(**{field.name: values[field.name] for field in fields(of_class) if field.name in values})


@st.composite
def changes(draw, config, point_of=lambda point: True):
    """Any intervention that a model of this configuration has the place for."""
    points = {
        name: info.shape
        for name, info in hook_points(config).items()
        if not name.endswith(("mask", "scale")) and "query" not in info.shape and point_of(name)
    }
    point = draw(st.sampled_from(sorted(points)))
    dims = points[point]
    head = draw(st.none() | st.integers(0, config.n_heads - 1)) if "head" in dims else None
    position = draw(st.none() | st.integers(0, 3)) if "pos" in dims else None
    other = as_texts([tokens.flip(1) for tokens in one_text(config)])
    against = {"against": other["tokens"][:2], "against_source": draw(st.sampled_from([(), other["source"][:2]]))}
    numbers = {
        name: draw(st.sampled_from([number for number in (0.0, 0.5, -2.0) if number >= field.get("bounds", [-2])[0]]))
        for name, field in FIELDS.items()
        if field["type"] == "number"
    }
    of_class = draw(st.sampled_from([*BECOMES]))
    return made(of_class, point=point, head=head, position=position, **other, **against, **numbers)


@given(any_configs(), st.data())
def test_only_the_place_is_changed_and_to_what_it_says(config, data):
    model, inputs = tiny_model(config), one_text(config)
    change = data.draw(changes(config))
    point, names = change.point, model.hook_names()
    _, plain = model.run_with_cache(*inputs, names_filter=names)
    _, found = model.run_with_cache(*inputs, names_filter=names, fwd_hooks=hooks_of([change], model))
    for before in names[: names.index(point)]:
        assert torch.equal(found[before], plain[before])

    def on(tokens, source):
        texts = [torch.tensor([each]) for each in (source, tokens) if each]
        return model.run_with_cache(*texts, names_filter=point)[1][point]

    expected = BECOMES[type(change)](change, plain[point], on)
    same = torch.ones_like(plain[point], dtype=torch.bool)
    of_head = same if change.head is None else same[:, :, change.head]
    of_head[:, slice(None) if change.position is None else change.position] = False
    assert torch.equal(found[point][same], plain[point][same])
    close(found[point][~same], expected[~same])


@given(any_configs(), st.data())
def test_nothing_that_is_taken_away_leaves_a_number_that_isn_t_one(config, data):
    model, inputs = tiny_model(config), one_text(config)
    taken = [Scale(point) for point in hook_points(config) if point.endswith(("hook_z", "_out", "hook_embed"))]
    for rule in map(Without, RULES):
        with contextlib.suppress(ValueError):
            rule.check(config)
            taken.append(rule)
    assert logits(model, inputs, *data.draw(st.lists(st.sampled_from(taken), max_size=6))).isfinite().all()


class TestWithout:
    @pytest.mark.parametrize("attention", ["softmax", "uniform"])
    def test_the_mask_every_token_but_padding_is_seen(self, attention):
        model = tiny_model(pad_token_id=0, attention=attention)
        for tokens in (torch.tensor([[0, 1, 2, 0, 3], [1, 2, 3, 4, 0]]), torch.tensor([[1, 2, 3, 4, 5]])):
            _, cache = model.run_with_cache(tokens, fwd_hooks=hooks_of([Without("mask")], model))
            seen = (tokens != 0)[:, None, None, :].expand(-1, 1, 5, -1)
            assert torch.equal(cache["mask", 1].expand(seen.shape), seen)
            assert ((cache["pattern", 1] > 0) == seen).all()

    def test_of_an_encoder_later_tokens_and_windows_are_taken_away_where_it_has_them(self):
        model = tiny_model(architecture="encoder-only", attention_windows=(2, 0), pad_token_id=0)
        tokens, near = torch.tensor([[1, 2, 3, 4, 0]]), (torch.arange(5)[:, None] - torch.arange(5)).abs() < 2
        real, earlier = tokens != 0, torch.ones(5, 5).tril().bool()
        for rules, expected in (
            (["later"], [near & earlier, earlier]),
            (["windows"], [torch.ones(5, 5).bool()] * 2),
            (["windows", "later"], [earlier, earlier]),
        ):
            _, cache = model.run_with_cache(tokens, fwd_hooks=hooks_of(list(map(Without, rules)), model))
            for layer, mask in enumerate(expected):
                assert torch.equal(cache["mask", layer].expand(1, 1, 5, 5)[0, 0], mask & real)

    @pytest.mark.parametrize(
        "fields",
        [
            *({"positions": positions} for positions in ("sinusoidal", "learned", "rotary", "alibi", "relative")),
            {"positions": "alibi", "qk_norm": "head"},
            {"positions": "rotary", "qk_norm": "head"},
            {"positions": "rotary", "qk_norm": "all", "unrotated_layers": (1,)},
        ],
        ids=str,
    )
    def test_positions_order_means_nothing(self, fields):
        """To the last token, all that comes before it is then a set."""
        model, (tokens,) = tiny_model(**fields), one_text(tiny_config())
        shuffled = torch.cat([tokens[:, :-1].flip(1), tokens[:, -1:]], 1)
        taken = Without("positions"), Without("mask")
        close(logits(model, (tokens,), *taken)[0, -1], logits(model, (shuffled,), *taken)[0, -1])

    def test_the_scale_scores_stay_as_they_are(self):
        model, (tokens,) = tiny_model(score_cap=0.5), one_text(tiny_config())
        name = "blocks.0.attn.hook_{}_scores"
        _, cache = model.run_with_cache(tokens, fwd_hooks=hooks_of([Without("scale", "blocks.0.")], model))
        torch.testing.assert_close(cache[name.format("scaled")], cache[name.format("raw")])
        torch.testing.assert_close(cache[name.format("capped")], 0.5 * (cache[name.format("raw")] / 0.5).tanh())
        assert not torch.equal(cache["blocks.1.attn.hook_scaled_scores"], cache["blocks.1.attn.hook_raw_scores"])


@given(st.floats(0, 1), st.integers(0, 7), st.integers(0, 7), st.booleans())
def test_a_weight_that_is_set_by_hand(weight, query, key, renormalised):
    model, (tokens,) = tiny_model(), one_text(tiny_config())
    point = "blocks.0.attn.hook_pattern"
    _, plain = model.run_with_cache(tokens, names_filter=point)
    change = SetAttention(point, 1, query, key, weight, renormalised)
    _, found = model.run_with_cache(tokens, names_filter=point, fwd_hooks=hooks_of([change], model))
    expected, others = plain[point].clone(), torch.arange(8) != key
    row = expected[0, 1, query]
    row[key] = weight
    if renormalised and row[others].any():
        row[others] *= (1 - weight) / row[others].sum()
    torch.testing.assert_close(found[point], expected, atol=1e-5, rtol=1e-5)


class TestCodes:
    @given(any_configs(), st.data())
    def test_one_reads_back_as_the_same_intervention(self, config, data):
        others = (Without("mask"), Without("norm", "encoder."), SetAttention("a.hook_pattern", 1, 2, 3, 0.25))
        for intervention in (data.draw(changes(config)), *others):
            code = to_code(intervention)
            assert re.fullmatch(r"[A-Za-z0-9._~-]*", code)
            assert from_code(code) == intervention and hash(intervention) == hash(from_code(code))
            assert isinstance(intervention, Intervention)

    def test_the_data_describe_every_class(self):
        assert CodedIntervention.classes.keys() == KINDS.keys()
        for word, of_kind in CodedIntervention.classes.items():
            assert [field.name for field in fields(of_kind)] == fields_of(word)
            assert (of_kind in BECOMES) == ("becomes" in KINDS[word])

    PIECES = st.text(max_size=5) | st.sampled_from([*KINDS, "", "0", "nan", "-1", "1.2"])

    @given(st.text() | st.lists(PIECES, max_size=8).map("~".join))
    def test_any_other_is_refused_in_a_sentence(self, code):
        try:
            assert isinstance(from_code(code), Intervention)
        except ValueError as error:
            assert len(str(error)) < 200


REFUSED = [
    (Scale("blocks.9.hook_mlp_out"), "computes no blocks.9.hook_mlp_out"),
    (Scale("blocks.0.attn.hook_z", head=2), "has no head 2"),
    (Scale("blocks.0.hook_mlp_out", head=0), "has no head 0"),
    (Scale("hook_embed", position=-1), "has no position -1"),
    (Scale("blocks.0.attn.hook_pattern"), "can't be changed in this way"),
    (Scale("ln_final.hook_scale"), "can't be changed in this way"),
    *(
        (Scale("hook_embed", factor=factor), f"the factor must be a number, not {factor}")
        for factor in (math.nan, math.inf)
    ),
    (Patch("hook_embed"), "one that this model can't read"),
    (Patch("hook_embed", tokens=(1,), source=(1,)), "one that this model can't read"),
    (Patch("hook_embed", tokens=(1,) * 9), "has 9 tokens, and this model reads 8"),
    (Steer("hook_embed", tokens=(1,), against=(11,)), "has a token 11"),
    (Without("gravity"), "no rule “gravity”"),
    (Without("positions"), "doesn't have positions anywhere"),
    (Without("later"), "doesn't have attention to later tokens anywhere"),
    (Without("windows"), "doesn't have sliding windows anywhere"),
    (Without("mask", "encoder."), "doesn't have the causal mask in the encoder"),
    (SetAttention("blocks.0.attn.hook_z", 0, 0, 0, 1.0), "no attention pattern"),
    (SetAttention("blocks.0.attn.hook_pattern", 0, 0, 0, 2.0), "from 0 to 1"),
    (SetAttention("blocks.0.attn.hook_pattern", 7, 0, 0, 1.0), "no head 7"),
    (SetAttention("blocks.0.attn.hook_pattern", 0, -1, 0, 1.0), "no query -1"),
    (SetAttention("blocks.0.attn.hook_pattern", 0, 1, -1, 0.0), "no key -1"),
]


@pytest.mark.parametrize(("intervention", "words"), REFUSED)
def test_what_a_model_doesn_t_have_is_said(intervention, words):
    with pytest.raises(ValueError, match=words):
        intervention.fwd_hooks(tiny_model(positions="none"))
    with pytest.raises(TypeError, match=r"a list, also of one: \["):
        generate(tiny_model(), [1], max_new_tokens=1, interventions=intervention)


CROSS = "decoder.blocks.0.cross_attn.hook_pattern"
IN_WORDS = {
    Scale("blocks.0.attn.hook_z", 0): "layer 0, head 0 ablated",
    Scale("decoder.blocks.1.hook_mlp_out", factor=0.5): "feed-forward of decoder layer 1 × 0.5",
    MeanAblate("encoder.blocks.0.ln1.hook_out", position=3): (
        "encoder layer 0, first norm, output at position 3 replaced by its mean"
    ),
    Patch("blocks.2.hook_resid_post"): "the stream after layer 2 as on another prompt",
    Steer("blocks.1.attn.hook_q", 1): "layer 1, head 1, queries + 1 × the difference of two prompts",
    Without("mask"): "without the causal mask",
    Without("positions", "encoder."): "without positions in the encoder",
    Without("later"): "without attention to later tokens",
    SetAttention(CROSS, 1, 2, 0, 0.9): "decoder layer 0, cross-attention, head 1: query 2 gives key 0 the weight 0.9",
}


def test_they_are_said_in_plain_words():
    assert [str(each) for each in IN_WORDS] == [*IN_WORDS.values()]
