"""Tests the cache of recorded activations: a mapping with short names."""

import pytest
import torch

from tests.helpers import some_inputs, tiny_model
from transformer import ActivationCache


def recorded(**fields) -> ActivationCache:
    model = tiny_model(**fields)
    return model.run_with_cache(*some_inputs(model.config))[1]


ONE, BOTH = recorded(), recorded(architecture="encoder-decoder")
ON_REQUEST = r"is recorded only on request, because it is large: give its full name in names_filter"


def test_it_is_a_mapping_that_can_not_be_written_to():
    assert ONE["hook_embed"] is next(iter(ONE.values())) and len(ONE) == len(dict(ONE))
    with pytest.raises(TypeError):
        ONE["hook_embed"] = torch.zeros(1)
    assert "tensors: hook_embed, " in repr(ONE)


@pytest.mark.parametrize(
    ("cache", "key", "name"),
    [
        (ONE, "embed", "hook_embed"),
        (ONE, ("pattern", 0), "blocks.0.attn.hook_pattern"),
        (ONE, ("hook_resid_post", -1), "blocks.1.hook_resid_post"),
        (ONE, ("scale", 0, "ln2"), "blocks.0.ln2.hook_scale"),
        (ONE, ("mlp.hook_pre", 0), "blocks.0.mlp.hook_pre"),
        (BOTH, ("pattern", 0, "encoder"), "encoder.blocks.0.attn.hook_pattern"),
        (BOTH, ("pattern", 1, "cross_attn"), "decoder.blocks.1.cross_attn.hook_pattern"),
        (BOTH, ("pattern", 1, "decoder.blocks.1.attn"), "decoder.blocks.1.attn.hook_pattern"),
        (BOTH, ("cross_attn_out", 0), "decoder.blocks.0.hook_cross_attn_out"),
    ],
)
def test_short_names_find_the_one_point_they_mean(cache, key, name):
    assert cache[key] is cache[name] and key in cache


def test_layer_1_is_not_layer_11():
    cache = ActivationCache({f"blocks.{i}.hook_mlp_out": torch.tensor(i) for i in (11, 1, 21)})
    assert cache["mlp_out", 1] == 1


@pytest.mark.parametrize(
    ("cache", "key", "words"),
    [
        (ONE, "hook_embd", r"'hook_embd' was not recorded\. Did you mean hook_embed"),
        (ONE, 0, r"0 is no name; ask for cache\['blocks.0.attn.hook_pattern'\], or, for short,"),
        (ONE, ("pattern", 7), r"\('pattern', 7\) matches nothing that was recorded"),
        *((ONE, key, ON_REQUEST) for key in ("blocks.0.attn.hook_result", ("result", 0), ("hook_result", 1, "attn"))),
        (ONE, ("scale", 0), r"may mean blocks\.0\.ln1\.hook_scale, blocks\.0\.ln2\.hook_scale; say which"),
        (BOTH, ("pattern", 0, "decoder"), r"may mean decoder\.blocks\.0\.attn.*cross_attn.*; say which"),
        (BOTH, "hook_embed", r"'hook_embed' was not recorded\. Did you mean .*encoder\.hook_embed"),
        (BOTH, ("cross_attn_out", 0, "encoder"), "matches nothing"),
    ],
)
def test_what_it_lacks_is_said(cache, key, words):
    with pytest.raises(KeyError, match=words):
        cache[key]
    assert key not in cache and cache.get(key) is None
