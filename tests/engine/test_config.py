"""Tests that a configuration is validated, and that errors name the field."""

import dataclasses
import json
import re

import pytest
from hypothesis import given

from tests.helpers import configs, tiny_config
from transformer import ModelConfig


@given(configs())
def test_a_dictionary_of_it_builds_an_equal_configuration(config):
    assert ModelConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config
    assert {config: 1}[ModelConfig.from_dict(config.to_dict())] == 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.d_model = 16


def test_what_is_left_out_is_filled_in():
    config = tiny_config(d_model=12, n_layers=3)
    assert (config.d_ff, config.n_encoder_layers, config.d_head) == (48, 3, 6)
    for name, value in (("d_ff", 0), ("n_encoder_layers", 1), ("n_layers", 0)):
        assert getattr(tiny_config(**{name: value}), name) == value


NONE = float("nan")
WRONG = [
    ("architecture", ["encoder"], "'decoder-only' or 'encoder-only' or 'encoder-decoder'"),
    ("positions", ["absolute"], "'sinusoidal' or 'learned' or 'rotary' or 'alibi'"),
    ("attention", ["linear"], "'softmax' or 'uniform'"),
    ("norm", [None], "'pre' or 'post'"),
    ("activation", [[]], "'relu' or 'gelu' or 'gelu_tanh'"),
    ("vocab_size context_length n_heads d_model n_kv_heads", [0], "1 or more"),
    ("d_model", [None], "1 or more"),
    ("n_layers n_encoder_layers d_ff", [-1, -4], "0 or more"),
    ("vocab_size context_length n_heads", [2.0, "8", True], "a whole number"),
    ("n_heads", [3], "divides d_model"),
    ("dropout", [1.0, -0.1, NONE, "0.1"], "at least 0 and below 1"),
    ("layer_norm_eps", [0, NONE], "between 0 and 1"),
    ("pad_token_id", [11, -1], "from 0 to 10"),
    ("pad_token_id", [1.0], "None or a token id"),
    ("residual attention_bias mlp_bias unembed_bias tie_embeddings scale_embeddings mlp_gate", [1], "True or False"),
    ("n_kv_heads", [3], "divides n_heads"),
    ("rotary_base", [float("inf")], "a number above 1"),
    ("rotary_pairs", ["thirds"], "'neighbours' or 'halves'"),
    ("norm_kind", ["batch"], "'layer' or 'rms'"),
    ("attention_windows", [(1, -1)], "whole numbers, 0 or more"),
    ("attention_windows alibi_slopes rotary_factors unrotated_layers", [4, "ab", (None,)], "a tuple of numbers"),
    ("qk_norm", ["both"], "'none' or 'head' or 'all'"),
    ("qkv_clip score_cap logit_cap", [0, -1.0, NONE, "2", 10**30], "None or a number above 0"),
    ("rotary_factors unrotated_layers", [(1,)], "is for rotary positions"),
    ("alibi_slopes", [(0.5, 0.25)], "for positions 'alibi'"),
    ("attention_out_bias", [1], "True, False or None"),
    ("share_embeddings", [True], "for an encoder–decoder"),
]
"""Fields, what they can't be, and what would do."""


@pytest.mark.parametrize(("fields", "values", "remedy"), WRONG, ids=lambda value: str(value)[:20])
def test_a_wrong_field_is_named_with_what_would_do(fields, values, remedy):
    for field in fields.split():
        for value in values:
            with pytest.raises(ValueError, match=re.escape(remedy)) as caught:
                tiny_config(**{field: value})
            assert field in str(caught.value)
            assert str(caught.value).endswith(".")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"d_model": 9, "n_heads": 1}, r"d_model is 9; sinusoidal.*even"),
        ({"d_model": 6, "positions": "rotary"}, r"d_head.* is 3; rotary.*even"),
        ({"n_kv_heads": 1, "attention": "uniform"}, "none to group"),
        ({"positions": "rotary", "rotary_dims": 6}, "at most d_head, which is 4"),
        ({"positions": "rotary", "rotary_dims": 3}, "even number"),
        ({"positions": "rotary", "head_width": 3}, "head_width is 3"),
        ({"parallel_residual": True, "norm": "post"}, "norms, if any, before"),
        ({"parallel_residual": True, "d_ff": 0}, "a feed-forward layer"),
        ({"attention_windows": (4,), "architecture": "encoder-decoder"}, "one stack"),
    ],
)
def test_what_no_model_can_have_is_refused_in_a_sentence(fields, words):
    with pytest.raises(ValueError, match=words):
        tiny_config(**fields)
    assert tiny_config(d_model=9, n_heads=1, positions="learned").d_head == 9
    assert tiny_config(d_model=6, n_heads=2).d_head == 3


def test_fields_unknown_or_missing_are_named():
    fields = tiny_config().to_dict()
    with pytest.raises(ValueError, match="no field 'd_hidden'"):
        ModelConfig.from_dict({**fields, "d_hidden": 4})
    del fields["n_heads"], fields["vocab_size"]
    with pytest.raises(ValueError, match="lacks vocab_size, n_heads"):
        ModelConfig.from_dict(fields)
    with pytest.raises(ValueError, match="not a list"):
        ModelConfig.from_dict([1])
