"""Tests measures of attention, of heads and of a loss, with numbers that people can check by hand."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers import tiny_model, unpadded
from transformer import MEASURES, causal_mask, head_measures, load_corpus, score_arithmetic, token_statistics
from transformer.inference.pattern_pooling import HIDDEN, pool, quantise
from transformer.training.bigram_baseline import SMOOTHING, bigram_loss
from transformer.training.objectives import TextObjective


class TestTokenStatistics:
    def test_by_hand(self):
        logits = torch.tensor([math.log(2), math.log(1), math.log(5), -math.inf])
        entropy = pytest.approx(-sum(p * math.log(p) for p in (2 / 8, 1 / 8, 5 / 8)))
        expected = [(2 / 8, 2), (1 / 8, 3), (5 / 8, 1), (0, 4)]
        for token, (probability, rank) in enumerate(expected):
            assert token_statistics(logits, token) == (pytest.approx(probability), rank, entropy)
        assert [token_statistics(torch.tensor([1.0, 3.0, 1.0, 1.0]), token)[1] for token in range(4)] == [2, 1, 3, 4]
        assert token_statistics(torch.tensor([0.0, 500.0]), 1) == (1.0, 1, pytest.approx(0.0, abs=1e-12))

    @given(st.lists(st.floats(-30, 30, width=32), min_size=1, max_size=8))
    def test_probabilities_sum_to_one_and_ranks_are_a_permutation(self, values):
        found = [token_statistics(torch.tensor(values), token) for token in range(len(values))]
        assert sum(probability for probability, _, _ in found) == pytest.approx(1)
        by_rank = sorted(found, key=lambda each: each[1])
        assert [rank for _, rank, _ in by_rank] == list(range(1, len(values) + 1))
        assert by_rank == sorted(by_rank, key=lambda each: -each[0])
        assert all(0 <= entropy <= math.log(len(values)) + 1e-9 for _, _, entropy in found)


class TestScoreArithmetic:
    @pytest.mark.parametrize("positions", ["sinusoidal", "rotary"])
    def test_every_cell_is_what_the_model_computed(self, positions):
        model = tiny_model(positions=positions, n_layers=1)
        _, cache = model.run_with_cache(unpadded(model.config, batch=1, pos=5))
        prefix = "rot_" if positions == "rotary" else ""
        for head, i, j in itertools.product(range(2), range(5), range(5)):
            q, k = (cache[f"{prefix}{name}", 0][0, :, head] for name in "qk")
            cell = score_arithmetic(q, k, cache["mask", 0], i, j)
            expected = [float(cache[name, 0][0, head, i, j]) for name in ("raw_scores", "scaled_scores", "pattern")]
            assert [cell.raw, cell.scaled, cell.weight] == pytest.approx(expected, abs=1e-5)
            assert cell.visible == (j <= i)

    def test_the_steps_follow_from_one_another(self):
        q, k = torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 4.0], [0.0, 1.0], [9.0, 9.0]])
        cell = score_arithmetic(q, k, torch.tensor([[True, True, False]]), 0, 1)
        assert cell.products.tolist() == [0, 2] and cell.raw == 2
        assert cell.scaled == pytest.approx(2 / math.sqrt(2))
        assert cell.row_maximum == pytest.approx(11 / math.sqrt(2))
        assert cell.exponential == pytest.approx(math.exp(-9 / math.sqrt(2)))
        assert cell.row_sum == pytest.approx(1 + cell.exponential)
        assert cell.weight == pytest.approx(cell.exponential / cell.row_sum)
        hidden = score_arithmetic(q, k, torch.tensor([[True, True, False]]), 0, 2)
        assert (hidden.visible, hidden.exponential, hidden.weight) == (False, 0, 0)
        blind = score_arithmetic(q, k, torch.tensor([[False, False, False]]), 0, 0)
        assert (blind.row_sum, blind.weight) == (0, 0)


class TestBigramLoss:
    def test_by_hand(self):
        """0 is followed by 1 three times and by 0 once; 1 by 0 three times. Held out: 0 1, 1 1."""
        train, validation = bigram_loss([0, 1, 0, 1, 0, 0, 1, 0], [0, 1, 1], vocab_size=2)
        assert train == pytest.approx(-(3 * math.log(3 / 4) + math.log(1 / 4)) / 7)
        after_0, after_1 = (3 + SMOOTHING) / (4 + 2 * SMOOTHING), SMOOTHING / (3 + 2 * SMOOTHING)
        assert validation == pytest.approx(-(math.log(after_0) + math.log(after_1)) / 2)
        assert bigram_loss([0, 0, 0], [2, 1], vocab_size=3)[1] == pytest.approx(math.log(3))  # 2 was never met
        objective = TextObjective(load_corpus("python-manual"), 8, 1, 0)
        losses = bigram_loss(objective.train, objective.validation, objective.tokenizer.vocab_size)
        assert losses == pytest.approx((2.4, 2.4), abs=0.2)

    @pytest.mark.parametrize("parts", [([0], [0, 1]), ([0, 1], []), ([0, 3], [0, 1]), ([0, 1], [-1, 1])])
    def test_what_has_no_pairs_of_the_vocabulary_is_refused(self, parts):
        with pytest.raises(ValueError, match=r"at least two tokens|between 0 and 2"):
            bigram_loss(*parts, vocab_size=3)


TEXT = torch.tensor([1, 2, 3, 1, 2, 3, 4])
"""Three tokens come twice, one once."""


def one_head(keys: list[int], n_keys: int | None = None) -> torch.Tensor:
    """One head whose every query puts all its weight on one key."""
    return torch.nn.functional.one_hot(torch.tensor([keys]), n_keys or len(keys)).float()


def measured(pattern, tokens=TEXT, mask=None) -> dict[str, float]:
    found = head_measures(pattern, causal_mask(*pattern.shape[1:]) if mask is None else mask, tokens)
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
