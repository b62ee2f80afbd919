"""Tests that a configuration is validated, that errors name the field, and that no field is ignored."""

import dataclasses
import functools
import itertools
import re
import zlib
from typing import get_args

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers import tiny_config
from transformer import ModelConfig, build_model, config
from transformer.inference.tracing import deviations, trace_pass

OLD = {"vocab_size": 11, "context_length": 8, "n_layers": 2, "n_heads": 2, "d_model": 8}


def test_an_old_configuration_means_what_it_meant():
    """Files that lack a field, for they are older than it."""
    config = ModelConfig.from_dict(OLD)
    filled = {"d_ff": 32, "architecture": "decoder-only", "attention": "softmax", "norm": "pre"}
    filled |= {"positions": "sinusoidal", "norm_kind": "layer", "qk_norm": "none", "activation": "relu"}
    filled |= {"rotary_base": 10000.0, "rotary_pairs": "neighbours", "rotary_scale": 1.0, "layer_norm_eps": 1e-5}
    filled |= {"relative_buckets": 32, "relative_distance": 128}
    on = {"residual", "attention_bias", "mlp_bias", "attention_scale", "norm_first_input"}
    for name, value in config.to_dict().items():
        if name in OLD | filled:
            assert value == (OLD | filled)[name], name
        else:
            assert value is True if name in on else not value, name
    assert (config.d_head, config.kv_heads, config.rotated_dims, config.window(1)) == (4, 2, 4, 0)
    assert config.has_out_bias
    assert {config: 1}[ModelConfig.from_dict(config.to_dict())] == 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.d_model = 16


def test_what_is_left_out_is_filled_in():
    config = tiny_config(d_model=12, n_layers=3)
    assert (config.d_ff, config.n_encoder_layers, config.d_head) == (48, None, 6)
    assert tiny_config(n_layers=3, **PAIR).n_encoder_layers == 3
    for name, value in (("d_ff", 0), ("n_encoder_layers", 1), ("n_layers", 0)):
        assert getattr(tiny_config(**{name: value}, **PAIR), name) == value
    assert tiny_config(d_model=9, n_heads=1, positions="learned").d_head == 9
    assert tiny_config(d_model=6, n_heads=2).d_head == 3


NONE = float("nan")
ROTARY, PAIR = {"positions": "rotary"}, {"architecture": "encoder-decoder"}
SWITCHES = " ".join(field.name for field in dataclasses.fields(ModelConfig) if field.type == "bool")
WRONG = [
    ("architecture", ["encoder"], "'decoder-only' or 'encoder-only' or 'encoder-decoder'"),
    ("positions", ["absolute"], "'sinusoidal' or 'learned' or 'rotary' or 'alibi'"),
    ("attention", ["linear"], "'softmax' or 'uniform'"),
    ("norm", [None], "'pre' or 'post'"),
    ("activation", [[]], "'relu' or 'gelu' or 'gelu_tanh'"),
    ("norm_kind", ["batch"], "'layer' or 'rms'"),
    ("rotary_pairs", ["thirds"], "'neighbours' or 'halves'"),
    ("qk_norm", ["both"], "'none' or 'head' or 'all'"),
    ("vocab_size context_length n_heads d_model relative_buckets relative_distance", [0], "a whole number, 1 or more"),
    ("n_kv_heads head_width rotary_dims", [0, 2.0], "None or a whole number, 1 or more"),
    ("d_model", [None], "1 or more"),
    ("n_layers n_encoder_layers d_ff n_segments", [-1, -4], "0 or more"),
    ("vocab_size context_length n_heads", [2.0, "8", True], "a whole number"),
    ("n_heads", [3], "divides d_model"),
    ("n_kv_heads", [3], "divides n_heads"),
    ("dropout", [1.0, -0.1, NONE, "0.1"], "at least 0 and below 1"),
    ("layer_norm_eps", [0, NONE], "between 0 and 1"),
    ("pad_token_id", [11, -1], "from 0 to 10"),
    ("pad_token_id", [1.0], "None or a token id"),
    (SWITCHES, [1], "True or False"),
    ("attention_out_bias", [1], "True, False or None"),
    ("rotary_base", [float("inf"), 1], "a number above 1"),
    ("attention_windows", [(1, -1)], "whole numbers, 0 or more"),
    ("attention_windows alibi_slopes rotary_factors unrotated_layers", [4, "ab", (None,)], "a tuple of numbers"),
    ("qkv_clip score_cap logit_cap", [0, -1.0, NONE, "2", 10**30], "None or a number above 0"),
    ("rotary_factors unrotated_layers", [(1,)], "is for rotary positions"),
    ("rotary_scale window_rotary_base", [2.0], "is for rotary positions"),
    ("alibi_slopes", [(0.5, 0.25)], "for positions 'alibi'"),
    ("share_embeddings", [True], "for an encoder–decoder"),
    ("masked_word_head", [True], "for an encoder-only model"),
    ("n_segments", [2], "for an encoder-only model"),
    ("separator_token_id", [3], "knows two segments or more"),
]
"""Fields, what they can't be, and what would do."""
TOGETHER = [
    ({"d_model": 9, "n_heads": 1}, "d_model is 9; sinusoidal.*even"),
    ({"d_model": 6, **ROTARY}, "d_head.* is 3; rotary.*even"),
    ({"head_width": 3, **ROTARY}, "head_width is 3"),
    ({"rotary_dims": 6, **ROTARY}, "at most d_head, which is 4"),
    ({"rotary_dims": 3, **ROTARY}, "even number"),
    ({"rotary_factors": (1.0, 2.0, 3.0), **ROTARY}, "rotary_factors must be 2 numbers above 0"),
    ({"rotary_scale": 0, **ROTARY}, "rotary_scale is 0"),
    ({"window_rotary_base": 1, **ROTARY}, "window_rotary_base is 1; it must be None or a number above 1"),
    ({"unrotated_layers": (-1,), **ROTARY}, "it must name layers, counted from 0"),
    ({"n_kv_heads": 1, "attention": "uniform"}, "none to group"),
    *(({**each, "attention": "uniform"}, "for softmax attention") for each in ({"qk_norm": "head"}, {"score_cap": 1})),
    ({"positions": "alibi", "attention": "uniform"}, "for softmax attention"),
    *(({**each, "norm": "none"}, "norm is 'none'") for each in ({"qk_norm": "head"}, {"embed_norm": True})),
    ({"positions": "relative", "relative_buckets": 6}, "a multiple of 4"),
    ({"positions": "relative", "relative_buckets": 8, "relative_distance": 8}, "larger than relative_buckets, 8"),
    ({"parallel_residual": True, "norm": "post"}, "norms, if any, before"),
    ({"parallel_residual": True, "d_ff": 0}, "a feed-forward layer"),
    ({"parallel_residual": True, **PAIR}, "decoder-only"),
    *(({"norm": "sandwich", **each}, "one after the other") for each in (PAIR, {"residual": False})),
    ({"norm_first_input": False, "norm": "post"}, "norms before its sublayers"),
    *(({**each, **PAIR}, "one stack") for each in ({"attention_windows": (4,)}, {"score_cap": 2.0})),
    ({"architecture": "encoder-only", "n_segments": 2, "separator_token_id": 11}, "a token id of this model"),
]


@pytest.mark.parametrize(("fields", "values", "remedy"), WRONG, ids=lambda value: str(value)[:20])
def test_a_wrong_field_is_named_with_what_would_do(fields, values, remedy):
    for field in fields.split():
        for value in values:
            with pytest.raises(ValueError, match=re.escape(remedy)) as caught:
                tiny_config(**{field: value})
            assert field in str(caught.value)
            assert str(caught.value).endswith(".")


@pytest.mark.parametrize(("fields", "words"), TOGETHER)
def test_what_no_model_can_have_is_refused_in_a_sentence(fields, words):
    with pytest.raises(ValueError, match=words):
        tiny_config(**fields)


def test_fields_unknown_or_missing_are_named():
    with pytest.raises(ValueError, match="no field 'd_hidden'"):
        ModelConfig.from_dict({**OLD, "d_hidden": 4})
    with pytest.raises(ValueError, match="lacks vocab_size, n_heads"):
        ModelConfig.from_dict({name: OLD[name] for name in ("context_length", "n_layers", "d_model")})
    with pytest.raises(ValueError, match="not a list"):
        ModelConfig.from_dict([1])


SOME_TOKENS = [3, 8, 1, 4, 7, 9, 2, 6, 10, 0]
"""Of a text as long as the context, the ids of padding and of a separator among them."""
ARCHITECTURES = get_args(config.Architecture)
RELATIVE, WINDOWS = {"positions": "relative"}, {"attention_windows": (3, 0)}
ENCODER, NORMED = {"architecture": "encoder-only"}, {"embed_norm": True}
FIELDS: dict[str, list[tuple[object, dict]]] = {
    **{"vocab_size": [(13, {})], "context_length": [(7, {})], "n_layers": [(1, {}), (0, {})], "n_heads": [(4, {})]},
    **{"d_model": [(12, {})], "architecture": [(each, {}) for each in ARCHITECTURES], "n_encoder_layers": [(1, PAIR)]},
    **{"d_ff": [(0, {}), (5, {})], "positions": [(each, {}) for each in get_args(config.Positions)]},
    **{"attention": [("uniform", {})], "norm": [(each, {}) for each in get_args(config.Norm)]},
    **{"residual": [(False, {})], "activation": [(each, {}) for each in get_args(config.Activation)]},
    **{
        "attention_bias": [(False, {})],
        "mlp_bias": [(False, {})],
        "unembed_bias": [(True, {})],
        "dropout": [(0.5, {})],
    },
    **{"tie_embeddings": [(True, {})], "share_embeddings": [(True, PAIR)], "scale_embeddings": [(True, {})]},
    **{"pad_token_id": [(1, {})], "layer_norm_eps": [(0.1, {})], "norm_kind": [("rms", {})], "mlp_gate": [(True, {})]},
    **{"n_kv_heads": [(1, {})], "head_width": [(6, {})], "rotary_base": [(50.0, ROTARY)], "rotary_dims": [(2, ROTARY)]},
    **{"rotary_pairs": [("halves", ROTARY)], "parallel_residual": [(True, {})], "attention_windows": [((3, 0), {})]},
    **{"attention_scale": [(False, {})], "attention_out_bias": [(False, {}), (True, {"attention_bias": False})]},
    **{"qk_norm": [("head", {}), ("all", ROTARY)], "qkv_clip": [(0.1, {})], "score_cap": [(0.1, {})]},
    **{"logit_cap": [(0.3, {})], "embed_norm": [(True, {})], "masked_word_head": [(True, ENCODER)]},
    **{"n_segments": [(2, ENCODER)], "separator_token_id": [(4, {**ENCODER, "n_segments": 2})]},
    **{
        "norm_first_input": [(False, NORMED)],
        "relative_buckets": [(8, RELATIVE)],
        "relative_distance": [(9, {**RELATIVE, "relative_buckets": 8})],
    },
    **{"alibi_slopes": [((0.5, 0.1), {"positions": "alibi"})], "rotary_factors": [((1.0, 3.5), ROTARY)]},
    **{"rotary_scale": [(1.3, ROTARY)], "window_rotary_base": [(50.0, {**ROTARY, **WINDOWS})]},
    **{"unrotated_layers": [((1,), ROTARY), ((0, 1), ROTARY)]},
}
"""Values of each field, with what they need beside them."""
VALUES = [(name, value, needed) for name, values in FIELDS.items() for value, needed in values]
AROUND = [{}, {"attention": "uniform"}, {"norm": "none", **ROTARY}, {"norm": "post", "positions": "learned", "d_ff": 0}]
"""Other fields, by which one may lose its effect."""


def built(fields: dict) -> ModelConfig | None:
    """A configuration; None if it is refused, which a sentence says."""
    try:
        return tiny_config(**{"context_length": 10, **fields})
    except ValueError as error:
        assert re.match(r"\w.*\.$", str(error)) and any(name in str(error) for name in (*FIELDS, "ALiBi"))
        return None


def some_model(shape: ModelConfig) -> torch.nn.Module:
    """A model in which a parameter's numbers depend on its name alone."""
    model = build_model(shape, seed=0).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.5)
    return model


def some_text_for(shape: ModelConfig) -> list[list[int]]:
    tokens = SOME_TOKENS[: shape.context_length]
    return [tokens, tokens[::-1]] if shape.architecture == "encoder-decoder" else [tokens]


@functools.cache
@torch.no_grad()
def whatever_there_is(shape: ModelConfig) -> tuple[object, ...]:
    """All by which two models can be told apart: parameters, tensors of a pass, logits, and these in training."""
    model, inputs = some_model(shape), [torch.tensor([ids]) for ids in some_text_for(shape)]
    sizes = [(name, *weight.shape) for name, weight in model.named_parameters()]
    logits, cache = model.run_with_cache(*inputs)
    points = [(name, *tensor.shape) for name, tensor in cache.items()]
    torch.manual_seed(0)
    return sizes, points, logits.tolist(), shape.dropout and model.train()(*inputs).tolist()


def test_a_field_has_its_effect_or_is_refused():
    """Each of them, by itself and beside others, in each architecture; and none is refused everywhere."""
    assert {*FIELDS} == {field.name for field in dataclasses.fields(ModelConfig)}, "a new field needs values above"
    seen = set()
    for architecture, around, (name, value, needed) in itertools.product(ARCHITECTURES, AROUND, VALUES):
        others = {**needed, "architecture": architecture, **around}
        base, changed = built(others), built({**others, name: value})
        if base and changed and changed != base:
            assert whatever_there_is(changed) != whatever_there_is(base), (name, value, others)
            seen.add((name, str(value)))
    defaults = {field.name: str(field.default) for field in dataclasses.fields(ModelConfig)}
    assert seen >= {(name, str(value)) for name, value, _ in VALUES if str(value) != defaults[name]}


@st.composite
def several_fields(draw) -> dict:
    """Some fields, in a random order, with what they need unless one before it says otherwise."""
    fields: dict = {"architecture": draw(st.sampled_from(ARCHITECTURES))}
    for name, value, needed in draw(st.lists(st.sampled_from(VALUES), max_size=5)):
        fields = {**needed, **fields, name: value} if name != "architecture" else fields
    return fields


def check_equations(fields: dict) -> None:
    if (shape := built(fields)) is None:
        return
    model, (*source, tokens) = some_model(shape), some_text_for(shape)
    trace = trace_pass(model, tokens, *source)
    recorded = [name for name in trace.tensors if "hook_" in name]
    assert recorded == model.hook_names(), fields
    for found in deviations(trace):
        assert found.largest <= 1e-5 * max(found.magnitude, 1.0), (found, fields)
    assert ModelConfig.from_dict(shape.to_dict()) == shape


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_each_field_is_in_the_equations(architecture):
    for name, value, needed in VALUES:
        check_equations({**needed, "architecture": architecture, name: value})


@given(several_fields())
def test_several_fields_are_in_the_equations(fields):
    check_equations(fields)
