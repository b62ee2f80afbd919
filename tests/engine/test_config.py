"""Tests that a configuration is validated, and that errors name the field."""

import dataclasses
import re

import pytest

from tests.helpers import tiny_config
from transformer import ModelConfig

OLD = {"vocab_size": 11, "context_length": 8, "n_layers": 2, "n_heads": 2, "d_model": 8}


def test_an_old_configuration_means_what_it_meant():
    """Files that lack a field, for they are older than it."""
    config = ModelConfig.from_dict(OLD)
    filled = {"d_ff": 32, "n_encoder_layers": 2, "architecture": "decoder-only", "attention": "softmax", "norm": "pre"}
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
    assert (config.d_ff, config.n_encoder_layers, config.d_head) == (48, 3, 6)
    for name, value in (("d_ff", 0), ("n_encoder_layers", 1), ("n_layers", 0)):
        assert getattr(tiny_config(**{name: value}), name) == value
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
