"""Tests the measures of heads on patterns made by hand."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from transformer import MEASURES, causal_mask, head_measures
from transformer.inference.pattern_pooling import HIDDEN, pool, quantise

TEXT = torch.tensor([1, 2, 3, 1, 2, 3, 4])
"""Three tokens come twice, one once."""
ALL = [measure.name for measure in MEASURES]


def pattern_of(keys: list[int], n_keys: int | None = None) -> torch.Tensor:
    """One head whose every query puts all its weight on one key."""
    return torch.nn.functional.one_hot(torch.tensor([keys]), n_keys or len(keys)).float()


def measured(pattern, tokens=TEXT, mask=None) -> dict[str, float]:
    mask = causal_mask(*pattern.shape[1:]) if mask is None else mask
    found = head_measures(pattern, mask, tokens)
    assert found.shape == (len(pattern), len(MEASURES)) and found.dtype == torch.float32
    return dict(zip(ALL, found[0].tolist(), strict=True))


@pytest.mark.parametrize(
    ("keys", "ones", "zeros"),
    [
        ([0, 0, 1, 2, 3, 4, 5], ["previous"], ["same", "spread"]),
        ([0] * 7, ["first"], ["induction", "spread"]),
        ([0, 1, 2, 3, 4, 5, 6], ["itself"], ["previous", "first", "same", "induction", "spread"]),
        ([0, 0, 0, 0, 1, 2, 0], ["same"], ["induction", "spread"]),
        ([0, 0, 0, 1, 2, 3, 0], ["induction"], ["same", "spread"]),
    ],
)
def test_a_head_that_does_one_thing_alone(keys, ones, zeros):
    found = measured(pattern_of(keys))
    assert [found[name] for name in ones] == [1] * len(ones)
    assert [found[name] for name in zeros] == [0] * len(zeros)


def test_the_plain_average_and_what_the_mask_hides():
    mask = causal_mask(7, 7)
    found = measured((mask / mask.sum(-1, keepdim=True))[None])
    assert found["spread"] == pytest.approx(1)
    assert found["itself"] == pytest.approx(sum(1 / n for n in range(1, 8)) / 7)
    assert found["previous"] == found["first"] == pytest.approx(sum(1 / n for n in range(2, 8)) / 6)
    assert found["same"] == found["induction"] == pytest.approx((1 / 4 + 1 / 5 + 1 / 6) / 3)
    mask = causal_mask(4, 4)
    found = measured((mask / mask.sum(-1, keepdim=True))[None], torch.tensor([5, 5, 5, 5]))  # several are added up
    assert found["same"] == found["induction"] == pytest.approx((1 / 2 + 2 / 3 + 3 / 4) / 3)
    mask[1, 0] = False
    assert measured(pattern_of([0, 1, 1, 2]), torch.tensor([1, 2, 3, 4]), mask)["previous"] == pytest.approx(2 / 3)
    assert len(set(ALL)) == len(ALL)
    assert all(measure.title and not measure.sentence.endswith(".") for measure in MEASURES)


@pytest.mark.parametrize(
    ("keys", "name"),
    [([1, 2, 3, 4, 5, 6, 6], "next"), ([3, 4, 5, 0, 1, 2, 6], "same"), ([4, 5, 6, 1, 2, 3, 0], "induction")],
)
def test_where_later_tokens_are_seen_they_count_too(keys, name):
    everything = torch.ones(7, 7, dtype=torch.bool)
    found = measured(pattern_of(keys), mask=everything)
    assert found.pop(name) == 1
    assert all(found[other] < 0.5 for other in ("previous", "next", "same", "induction") if other != name)
    assert math.isnan(measured(pattern_of([0] * 7))["next"])


def test_what_a_text_does_not_have_is_not_a_number():
    found = measured(pattern_of([0, 0, 1]), torch.tensor([1, 2, 3]))
    assert math.isnan(found["same"]) and math.isnan(found["induction"])
    assert found["previous"] == 1
    alone = measured(pattern_of([0]), torch.tensor([1]))
    assert alone.pop("itself") == 1
    assert all(map(math.isnan, alone.values()))


def test_two_texts_have_only_first_and_spread():
    everything = torch.ones(3, 5, dtype=torch.bool)
    found = measured(pattern_of([0, 0, 0], 5), None, everything)
    assert (found["first"], found["spread"]) == (1, 0)
    assert all(math.isnan(found[name]) for name in ("previous", "itself", "same", "induction"))
    assert measured(torch.full((1, 3, 5), 0.2), None, everything)["spread"] == pytest.approx(1)


@st.composite
def texts_and_patterns(draw):
    pos, keys, heads = draw(st.integers(1, 9)), draw(st.integers(1, 9)), draw(st.integers(1, 3))
    cross, causal = draw(st.booleans()), draw(st.booleans())
    keys = keys if cross else pos
    tokens = None if cross else torch.tensor(draw(st.lists(st.integers(0, 3), min_size=pos, max_size=pos)))
    mask = causal_mask(pos, keys) if causal and not cross else torch.ones(pos, keys, dtype=torch.bool)
    generator = torch.Generator().manual_seed(draw(st.integers(0, 99)))
    scores = torch.randn(heads, pos, keys, generator=generator) * draw(st.sampled_from([0, 1, 50]))
    return torch.where(mask, scores, -math.inf).softmax(-1), mask, tokens


@given(texts_and_patterns())
def test_every_measure_is_from_0_to_1_or_no_number(drawn):
    found = head_measures(*drawn)
    assert found.shape == (len(drawn[0]), len(MEASURES))
    assert (found.isnan() | ((found >= 0) & (found <= 1))).all()
    assert (found.isnan() == found[:1].isnan()).all()  # what is missing depends on the text alone


# The overview


@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 9), st.integers(0, 99))
def test_pooling_any_number_of_dimensions_is_the_same(query, key, limit, seed):
    weights = np.random.default_rng(seed).random((3, query, key)).astype(np.float32)
    pooled, hidden = pool(weights, None, limit)
    assert pooled.dtype == np.float32
    for head in range(3):
        np.testing.assert_array_equal(pool(weights[head], None, limit)[0], pooled[head])
    assert quantise(pooled, hidden).max() < HIDDEN
    assert (quantise(pooled, ~hidden) == HIDDEN).all()
