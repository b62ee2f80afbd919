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
    assert ModelConfig.from_dict(config.to_dict()) == config
    assert ModelConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config


def test_it_is_frozen_and_hashable():
    config = tiny_config()
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.d_model = 16
    assert {config: 1}[tiny_config()] == 1


def test_what_is_left_out_is_filled_in():
    config = tiny_config(d_model=12, n_layers=3)
    assert (config.d_ff, config.n_encoder_layers, config.d_head) == (48, 3, 6)
    assert tiny_config(d_ff=0).d_ff == 0
    assert tiny_config(n_encoder_layers=1).n_encoder_layers == 1
    assert tiny_config(n_layers=0).n_layers == 0


WRONG = [
    ("architecture", "encoder", "'decoder-only' or 'encoder-decoder'"),
    ("positions", "absolute", "'sinusoidal' or 'learned' or 'rotary' or 'none'"),
    ("attention", "linear", "'softmax' or 'uniform'"),
    ("norm", None, "'pre' or 'post' or 'none'"),
    ("activation", [], "'relu' or 'gelu' or 'gelu_tanh'"),
    ("vocab_size", 0, "1 or more"),
    ("vocab_size", 2.0, "a whole number"),
    ("context_length", 0, "1 or more"),
    ("context_length", "8", "a whole number"),
    ("n_layers", -1, "0 or more"),
    ("n_encoder_layers", -1, "0 or more"),
    ("n_heads", 0, "1 or more"),
    ("n_heads", True, "a whole number"),
    ("n_heads", 3, "divides d_model"),
    ("d_model", 0, "1 or more"),
    ("d_model", None, "1 or more"),
    ("d_ff", -4, "0 or more"),
    ("dropout", 1.0, "at least 0 and below 1"),
    ("dropout", -0.1, "at least 0 and below 1"),
    ("dropout", float("nan"), "at least 0 and below 1"),
    ("dropout", "0.1", "at least 0 and below 1"),
    ("layer_norm_eps", 0, "between 0 and 1"),
    ("layer_norm_eps", float("nan"), "between 0 and 1"),
    ("pad_token_id", 11, "from 0 to 10"),
    ("pad_token_id", -1, "from 0 to 10"),
    ("pad_token_id", 1.0, "None or a token id"),
    *[
        (switch, 1, "True or False")
        for switch in ("residual", "attention_bias", "mlp_bias", "unembed_bias", "tie_embeddings", "scale_embeddings")
    ],
]


@pytest.mark.parametrize(("field", "value", "remedy"), WRONG, ids=lambda value: str(value)[:20])
def test_a_wrong_field_is_named_with_what_would_do(field, value, remedy):
    with pytest.raises(ValueError, match=re.escape(remedy)) as caught:
        tiny_config(**{field: value})
    assert field in str(caught.value)
    assert str(caught.value).endswith(".")


def test_widths_that_positions_can_not_use_are_refused():
    with pytest.raises(ValueError, match=r"d_model is 9; sinusoidal.*even"):
        tiny_config(d_model=9, n_heads=1)
    with pytest.raises(ValueError, match=r"d_head.* is 3; rotary.*even"):
        tiny_config(d_model=6, n_heads=2, positions="rotary")
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
