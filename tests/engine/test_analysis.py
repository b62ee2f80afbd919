"""Tests measures of attention, of heads and of a loss, with numbers that people can check by hand."""

import dataclasses
import itertools
import math
import random

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.helpers import tiny_model
from transformer import MEASURES, Tokenizer, causal_mask, head_measures, load_corpus, score_arithmetic, token_statistics
from transformer.data.corpora import SOURCES, Corpus
from transformer.inference.pattern_pooling import HIDDEN, pool, quantise
from transformer.training.objectives import TextObjective
from transformer.training.text_baselines import SMOOTHING, bigram_loss, bits_per_byte


@given(st.lists(st.floats(-30, 30, width=32) | st.sampled_from([1.0, -math.inf, 500.0]), min_size=1, max_size=8))
def test_a_token_s_probability_rank_and_the_entropy(values):
    """Of equal logits the first ranks first."""
    assume(max(values) > -math.inf)
    logits = torch.tensor(values, dtype=torch.float64)
    probabilities = logits.softmax(0).tolist()
    entropy = -sum(p * math.log(p) for p in probabilities if p)
    ranked = sorted(range(len(values)), key=lambda token: -values[token])
    for rank, token in enumerate(ranked, 1):
        expected = pytest.approx((probabilities[token], rank, entropy), abs=1e-6)
        assert token_statistics(logits.float(), token) == expected


@pytest.mark.parametrize("positions", ["sinusoidal", "rotary"])
def test_the_arithmetic_of_a_score_is_what_the_model_computed(positions):
    model, pos = tiny_model(positions=positions, n_layers=1, pad_token_id=0), 5
    _, cache = model.run_with_cache(torch.tensor([[0, 0, 3, 4, 5]]))  # the first two queries see nothing
    prefix = "rot_" if positions == "rotary" else ""
    for head, i, j in itertools.product(range(2), range(pos), range(pos)):
        q, k = (cache[f"{prefix}{name}", 0][0, :, head] for name in "qk")
        seen = cache["mask", 0][0, 0]
        cell = score_arithmetic(q, k, seen, i, j)
        raw, scaled, pattern = (cache[name, 0][0, head, i] for name in ("raw_scores", "scaled_scores", "pattern"))
        expected = [float(row[j]) for row in (raw, scaled, pattern)]
        assert [cell.raw, cell.scaled, cell.weight] == pytest.approx(expected, abs=1e-5)
        assert cell.products.tolist() == pytest.approx((q[i] * k[j]).tolist())
        assert cell.visible == seen[i, j]
        most = float(scaled[seen[i]].max()) if seen[i].any() else 0.0
        assert cell.row_maximum == pytest.approx(most, abs=1e-5)
        assert cell.exponential == pytest.approx(math.exp(scaled[j] - most) if cell.visible else 0, abs=1e-5)
        assert cell.row_sum == pytest.approx(float((scaled[seen[i]] - most).exp().sum()), abs=1e-4)


class TestBigramLoss:
    def test_by_hand(self):
        """0 is followed by 1 three times and by 0 once; 1 by 0 three times. Held out: 0 1, 1 1."""
        train, validation = bigram_loss([0, 1, 0, 1, 0, 0, 1, 0], [0, 1, 1], vocab_size=2)
        assert train == pytest.approx(-(3 * math.log(3 / 4) + math.log(1 / 4)) / 7)
        after_0 = (3 + 2 * 4 / 9) / (4 + 2)  # two kinds of tokens come after 0, and one after 1
        after_1 = (0 + 1 * 4 / 9) / (3 + 1)
        assert validation == pytest.approx(-(math.log(after_0) + math.log(after_1)) / 2)
        often = math.log((3 + SMOOTHING) / (4 + 2 * SMOOTHING))
        assert bigram_loss([0, 1, 0, 1, 0, 0, 1, 0], [0, 1], vocab_size=2)[1] == pytest.approx(-often)
        assert bigram_loss([0, 0, 0], [2, 1], vocab_size=3)[1] == pytest.approx(math.log(3))  # 2 was never met
        objective = TextObjective(load_corpus("python-manual"), 8, 1, 0)
        losses = bigram_loss(objective.train, objective.validation, objective.tokenizer.vocab_size)
        assert losses == pytest.approx((2.4, 2.4), abs=0.2)

    @pytest.mark.parametrize("parts", [([0], [0, 1]), ([0, 1], []), ([0, 3], [0, 1]), ([0, 1], [-1, 1])])
    def test_what_has_no_pairs_of_the_vocabulary_is_refused(self, parts):
        with pytest.raises(ValueError, match=r"at least two tokens|between 0 and 2"):
            bigram_loss(*parts, vocab_size=3)


@pytest.mark.parametrize("vocab_size", [None, 320])
def test_bits_per_byte_are_the_same_however_a_text_is_cut_and_repetition_is_seen_by_who_remembers_it(vocab_size):
    """Noise of 16 letters, and held out the same again, at a distance that xz remembers and gzip doesn't."""
    noise = "".join(random.Random(0).choices("abcdefghijklmnop", k=40_000))
    corpus = Corpus(dataclasses.replace(SOURCES["python-manual"], train_fraction=0.5), noise * 2)
    tokenizer = Tokenizer.of_bytes(noise, vocab_size) if vocab_size else Tokenizer.of_characters(noise)
    per_token = len(noise) / len(tokenizer.encode(noise))
    bits = bits_per_byte(corpus, tokenizer, loss=3 * math.log(2) * per_token)
    assert bits["model"] == pytest.approx(3, abs=1e-3)
    assert bits["bigram"] == pytest.approx(4, abs=0.2)
    assert bits["xz"] < 0.05 and bits["gzip"] > 4


TEXT = torch.tensor([1, 2, 3, 1, 2, 3, 4])
"""Three tokens come twice, one once."""


def one_head(keys: list[int], n_keys: int | None = None) -> torch.Tensor:
    """One head whose every query puts all its weight on one key."""
    return torch.nn.functional.one_hot(torch.tensor([keys]), n_keys or len(keys)).float()


def measured(pattern, tokens=TEXT, mask=None, labels=()) -> dict[str, float]:
    found = head_measures(pattern, causal_mask(*pattern.shape[1:]) if mask is None else mask, tokens, labels)
    assert found.shape == (len(pattern), len(MEASURES)) and found.dtype == torch.float32
    return dict(zip([measure.name for measure in MEASURES], found[0].tolist(), strict=True))


class TestHeadMeasures:
    @pytest.mark.parametrize(
        ("keys", "looks_ahead", "one", "zeros"),
        [
            ([0, 0, 1, 2, 3, 4, 5], False, "previous", ["same", "spread"]),
            ([0] * 7, False, "first", ["induction", "spread"]),
            ([0, 1, 2, 3, 4, 5, 6], False, "itself", ["previous", "first", "same", "induction", "spread"]),
            ([0, 0, 0, 0, 1, 2, 0], False, "same", ["induction", "spread"]),
            ([0, 0, 0, 1, 2, 3, 0], False, "induction", ["same", "spread"]),
            ([1, 2, 3, 4, 5, 6, 6], True, "next", ["previous", "same"]),
            ([3, 4, 5, 0, 1, 2, 6], True, "same", ["previous", "induction"]),
            ([4, 5, 6, 1, 2, 3, 0], True, "induction", ["previous", "same"]),
        ],
    )
    def test_a_head_that_does_one_thing_alone(self, keys, looks_ahead, one, zeros):
        found = measured(one_head(keys), mask=torch.ones(7, 7, dtype=torch.bool) if looks_ahead else None)
        assert found[one] == 1 and [found[name] for name in zeros] == [0] * len(zeros)
        assert math.isnan(found["next"]) != looks_ahead

    @pytest.mark.parametrize(
        ("labels", "marks"),
        [
            (['"', "Oh", ',"', "␣he", "␣", '"', "No"], {1: 0, 2: 0, 6: 5}),  # the last one isn't closed
            (["He", "␣“", "a", "”", '"', "b", "?"], {2: 1, 3: 1}),  # no quotation begins within a word
        ],
    )
    def test_from_inside_a_quotation_the_mark_that_opens_it(self, labels, marks):
        keys = [marks.get(query, 0) for query in range(7)]
        assert measured(one_head(keys), labels=labels)["quotation"] == 1
        keys[max(marks)] = max(marks)  # one of them looks at itself
        assert measured(one_head(keys), labels=labels)["quotation"] == pytest.approx(1 - 1 / len(marks))
        assert math.isnan(measured(one_head(keys))["quotation"])

    def test_the_plain_average_and_what_the_mask_hides(self):
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
        assert measured(one_head([0, 1, 1, 2]), torch.tensor([1, 2, 3, 4]), mask)["previous"] == pytest.approx(2 / 3)

    def test_what_there_is_nothing_of_is_not_a_number(self):
        across = measured(one_head([0, 0, 0], 5), None, torch.ones(3, 5, dtype=torch.bool))
        for found, there in (
            (measured(one_head([0, 0, 1]), torch.tensor([1, 2, 3])), {"previous", "first", "itself", "spread"}),
            (measured(one_head([0]), torch.tensor([1])), {"itself"}),
            (across, {"first", "spread"}),
        ):
            assert {name for name, value in found.items() if not math.isnan(value)} == there
        assert (across["first"], across["spread"]) == (1, 0)

    @given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 9), st.integers(0, 99))
    def test_pooling_any_number_of_dimensions_is_the_same(self, query, key, limit, seed):
        weights = np.random.default_rng(seed).random((3, query, key)).astype(np.float32)
        pooled, hidden = pool(weights, None, limit)
        assert pooled.dtype == np.float32
        for head in range(3):
            np.testing.assert_array_equal(pool(weights[head], None, limit)[0], pooled[head])
        assert quantise(pooled, hidden).max() < HIDDEN
        assert (quantise(pooled, ~hidden) == HIDDEN).all()
