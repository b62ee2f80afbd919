"""Tests that each intervention changes what it says, and nothing else."""

import math
import re

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers import (
    any_configs,
    close,
    configs,
    some_inputs,
    tiny_config,
    tiny_encoder_decoder,
    tiny_model,
    unpadded,
)
from transformer import Sampling, generate, hook_points
from transformer.inference.intervention_codes import KINDS, from_code, to_code
from transformer.inference.interventions import (
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
    factor = draw(st.sampled_from([0.0, 0.5, -2.0]))
    return draw(
        st.sampled_from(
            [
                Scale(point, head, position, factor),
                MeanAblate(point, head, position),
                Patch(point, head, position, **other),
                Steer(point, head, position, other["tokens"], other["tokens"][:2], other["source"], factor),
            ]
        )
    )


@given(any_configs(), st.data())
def test_only_the_place_is_changed(config, data):
    model, inputs = tiny_model(config), one_text(config)
    change = data.draw(changes(config))
    point, names = change.point, model.hook_names()
    _, plain = model.run_with_cache(*inputs, names_filter=names)
    _, found = model.run_with_cache(*inputs, names_filter=names, fwd_hooks=hooks_of([change], model))
    for before in names[: names.index(point)]:
        assert torch.equal(found[before], plain[before])
    same = torch.ones_like(plain[point], dtype=torch.bool)
    of_head = same if change.head is None else same[:, :, change.head]
    of_head[:, slice(None) if change.position is None else change.position] = False
    assert torch.equal(found[point][same], plain[point][same])
    if isinstance(change, Scale):
        close(found[point][~same], plain[point][~same] * change.factor)
    if isinstance(change, MeanAblate) and "pos" in hook_points(config)[point].shape:
        close(found[point][~same], plain[point].mean(1, keepdim=True).expand_as(plain[point])[~same])


@given(any_configs(), st.data())
def test_replaced_by_its_own_value_nothing_changes(config, data):
    model, inputs = tiny_model(config), one_text(config)
    point = data.draw(changes(config)).point
    close(logits(model, inputs, Patch(point, **as_texts(inputs))), logits(model, inputs))


@given(configs(residual=True, n_layers=2, pad_token_id=None))
def test_patching_the_whole_stream_gives_the_other_text_s_output(config):
    model, (tokens,) = tiny_model(config), one_text(config)
    other = tokens.flip(1)
    patched = logits(model, (tokens,), Patch("blocks.1.hook_resid_post", tokens=tuple(other[0].tolist())))
    close(patched, logits(model, (other,)))


@given(any_configs(), st.data())
def test_nothing_that_is_taken_away_leaves_a_number_that_isn_t_one(config, data):
    model, inputs = tiny_model(config), one_text(config)
    rules = [Without(rule) for rule in ("mask", "scale", "positions", "norm")]
    there = [rule for rule in rules if _fits(rule, config)]
    silenced = [Scale(point) for point in hook_points(config) if point.endswith(("hook_z", "_out", "hook_embed"))]
    taken = data.draw(st.lists(st.sampled_from(there + silenced), max_size=6)) if there + silenced else []
    assert logits(model, inputs, *taken).isfinite().all()


def _fits(intervention, config):
    try:
        intervention.check(config)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("attention", ["softmax", "uniform"])
def test_without_the_mask_every_token_but_padding_is_seen(attention):
    model = tiny_model(pad_token_id=0, attention=attention)
    for tokens in (torch.tensor([[0, 1, 2, 0, 3], [1, 2, 3, 4, 0]]), torch.tensor([[1, 2, 3, 4, 5]])):
        _, cache = model.run_with_cache(tokens, fwd_hooks=hooks_of([Without("mask")], model))
        seen = (tokens != 0)[:, None, None, :].expand(-1, 1, 5, -1)
        assert torch.equal(cache["mask", 1].expand(seen.shape), seen)
        assert ((cache["pattern", 1] > 0) == seen).all()


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary", "alibi", "relative"])
@pytest.mark.parametrize("fields", [{}, {"qk_norm": "head"}, {"qk_norm": "all", "unrotated_layers": (1,)}], ids=str)
def test_without_positions_order_means_nothing(positions, fields):
    """To the last token, all that comes before it is then a set."""
    if positions != "rotary":
        fields = {name: value for name, value in fields.items() if name != "unrotated_layers"}
    model, (tokens,) = tiny_model(positions=positions, **fields), one_text(tiny_config())
    shuffled = torch.cat([tokens[:, :-1].flip(1), tokens[:, -1:]], 1)
    taken = Without("positions"), Without("mask")
    close(logits(model, (tokens,), *taken)[0, -1], logits(model, (shuffled,), *taken)[0, -1])


def test_without_the_scale_scores_stay_as_they_are():
    model, (tokens,) = tiny_model(score_cap=0.5), one_text(tiny_config())
    name = "blocks.0.attn.hook_{}_scores"
    _, cache = model.run_with_cache(tokens, fwd_hooks=hooks_of([Without("scale", "blocks.0.")], model))
    torch.testing.assert_close(cache[name.format("scaled")], cache[name.format("raw")])
    torch.testing.assert_close(cache[name.format("capped")], 0.5 * (cache[name.format("raw")] / 0.5).tanh())
    assert not torch.equal(cache["blocks.1.attn.hook_scaled_scores"], cache["blocks.1.attn.hook_raw_scores"])


@given(st.floats(0, 1), st.integers(0, 7), st.integers(0, 7))
def test_a_weight_that_is_set_by_hand(weight, query, key):
    model, (tokens,) = tiny_model(), one_text(tiny_config())
    point = "blocks.0.attn.hook_pattern"
    _, plain = model.run_with_cache(tokens, names_filter=point)
    for renormalised in (True, False):
        change = SetAttention(point, 1, query, key, weight, renormalised)
        _, found = model.run_with_cache(tokens, names_filter=point, fwd_hooks=hooks_of([change], model))
        row = found[point][0, 1, query]
        torch.testing.assert_close(row[key], row.new_tensor(weight))
        others = torch.arange(8) != key
        if not renormalised:
            torch.testing.assert_close(row[others], plain[point][0, 1, query][others])
        elif plain[point][0, 1, query][others].any():
            torch.testing.assert_close(row.sum(), row.new_tensor(1.0))


@given(any_configs(), st.data())
def test_writing_with_a_cache_is_writing_without_one(config, data):
    """Positions count from the text's start, past the context too, where the window slides."""
    model = tiny_model(config)
    *source, tokens = (each[0, :3].tolist() for each in one_text(config))
    interventions = [data.draw(changes(config, lambda name: not name.startswith("encoder.")))]
    if hook_points(config).get("blocks.0.attn.hook_pattern"):
        interventions.append(SetAttention("blocks.0.attn.hook_pattern", 0, 4, 1, 0.9))
    options = {"max_new_tokens": 6, "sampling": Sampling(temperature=0), "source": source[0] if source else None}
    cached = list(generate(model, tokens, interventions=interventions, **options))
    text = list(tokens)
    for step in cached:
        start = max(0, len(text) - config.context_length)
        inputs = [torch.tensor([each]) for each in (*source, text[start:])]
        hooks = hooks_of(interventions, model, lambda start=start: start)
        with torch.no_grad():
            close(step.logits, model.run_with_hooks(*inputs, fwd_hooks=hooks)[0, -1])
        text.append(step.token_id)


@given(any_configs(), st.data())
def test_a_code_reads_back_as_the_same_intervention(config, data):
    drawn = data.draw(changes(config))
    for intervention in (
        drawn,
        Without("mask"),
        Without("norm", "encoder."),
        SetAttention("a.hook_pattern", 1, 2, 3, 0.25),
    ):
        code = to_code(intervention)
        assert re.fullmatch(r"[A-Za-z0-9._~-]*", code)
        assert from_code(code) == intervention
        assert isinstance(intervention, Intervention) and hash(intervention) == hash(from_code(code))
        assert str(intervention)


def test_a_code_may_have_a_point_s_former_name():
    assert from_code("scale~ln_final.hook_normalized~~~0.5") == Scale("ln_final.hook_out", factor=0.5)


PIECES = st.text(max_size=5) | st.sampled_from([*KINDS, "", "0", "nan", "-1", "1.2"])


@given(st.text() | st.lists(PIECES, max_size=8).map("~".join))
def test_any_other_code_is_refused_in_a_sentence(code):
    try:
        found = from_code(code)
    except ValueError as error:
        assert len(str(error)) < 200
    else:
        assert isinstance(found, Intervention)


@pytest.mark.parametrize(
    ("intervention", "words"),
    [
        (Scale("blocks.9.hook_mlp_out"), "computes no blocks.9.hook_mlp_out"),
        (Scale("blocks.0.attn.hook_z", head=2), "has no head 2"),
        (Scale("blocks.0.hook_mlp_out", head=0), "has no head 0"),
        (Scale("blocks.0.attn.hook_pattern", position=1), "has no position 1"),
        (Scale("hook_embed", factor=math.nan), "not nan"),
        (Without("gravity"), "no rule 'gravity'"),
        (Without("positions"), "no hook_pos_embed anywhere"),
        (Without("mask", "encoder."), "no hook_mask in encoder."),
        (SetAttention("blocks.0.attn.hook_z", 0, 0, 0, 1.0), "no attention pattern"),
        (SetAttention("blocks.0.attn.hook_pattern", 0, 0, 0, 2.0), "from 0 to 1"),
        (SetAttention("blocks.0.attn.hook_pattern", 7, 0, 0, 1.0), "no head 7"),
    ],
)
def test_what_a_model_doesn_t_have_is_said(intervention, words):
    with pytest.raises(ValueError, match=words):
        intervention.fwd_hooks(tiny_model(positions="none"))


def test_one_alone_is_no_list():
    with pytest.raises(TypeError, match=r"a list, also of one: \[Without\(rule='mask', where=''\)\]"):
        generate(tiny_model(), [1], max_new_tokens=1, interventions=Without("mask"))


def test_they_are_said_in_plain_words():
    assert [
        str(each)
        for each in (
            Scale("blocks.0.attn.hook_z", 0),
            Scale("decoder.blocks.1.hook_mlp_out", factor=0.5),
            MeanAblate("encoder.blocks.0.hook_attn_out", position=3),
            Patch("blocks.2.hook_resid_post"),
            Steer("blocks.1.hook_resid_pre", factor=2.0),
            Without("mask"),
            Without("positions", "encoder."),
            SetAttention("decoder.blocks.0.cross_attn.hook_pattern", 1, 2, 0, 0.9),
        )
    ] == [
        "layer 0, head 0 ablated",
        "feed-forward of decoder layer 1 × 0.5",
        "attention of encoder layer 0 at position 3 replaced by its mean",
        "the stream after layer 2 as on another prompt",
        "the stream before layer 1 + 2 × the difference of two prompts",
        "without the causal mask",
        "without positions in the encoder",
        "decoder layer 0, cross-attention, head 1: query 2 gives key 0 the weight 0.9",
    ]


def test_an_encoder_decoder_is_steered_by_two_sources_of_its_own():
    model = tiny_encoder_decoder()
    inputs = one_text(model.config)
    still = Steer("decoder.blocks.0.hook_resid_pre", tokens=(1, 2), against=(1, 2), source=(3, 4))
    moved = Steer("decoder.blocks.0.hook_resid_pre", tokens=(1, 2), against=(2, 1), source=(3, 4))
    close(logits(model, inputs, still), logits(model, inputs))
    assert not torch.allclose(logits(model, inputs, moved), logits(model, inputs))
