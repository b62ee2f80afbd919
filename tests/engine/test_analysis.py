"""Tests the measures of attention, with numbers that people can check by hand."""

import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers import tiny_model, unpadded
from transformer import load_corpus, score_arithmetic, token_statistics
from transformer.training.bigram_baseline import SMOOTHING, bigram_loss
from transformer.training.objectives import TextObjective


class TestTokenStatistics:
    def test_by_hand(self):
        logits = torch.tensor([math.log(2), math.log(1), math.log(5), -math.inf])
        probability, rank, entropy = token_statistics(logits, 0)
        assert probability == pytest.approx(2 / 8)
        assert rank == 2
        assert entropy == pytest.approx(-sum(p * math.log(p) for p in (2 / 8, 1 / 8, 5 / 8)))
        assert token_statistics(logits, 2)[1] == 1
        assert token_statistics(logits, 3)[:2] == (0, 4)
        assert [token_statistics(torch.tensor([1.0, 3.0, 1.0, 1.0]), token)[1] for token in range(4)] == [2, 1, 3, 4]
        assert token_statistics(torch.tensor([0.0, 500.0]), 1) == (1.0, 1, pytest.approx(0.0, abs=1e-12))

    @given(st.lists(st.floats(-30, 30, width=32), min_size=1, max_size=8))
    def test_probabilities_sum_to_one_and_ranks_are_a_permutation(self, values):
        found = [token_statistics(torch.tensor(values), token) for token in range(len(values))]
        assert sum(probability for probability, _, _ in found) == pytest.approx(1)
        assert sorted(rank for _, rank, _ in found) == list(range(1, len(values) + 1))
        by_rank = [probability for probability, _, _ in sorted(found, key=lambda each: each[1])]
        assert by_rank == sorted(by_rank, reverse=True)
        assert all(0 <= entropy <= math.log(len(values)) + 1e-9 for _, _, entropy in found)


class TestScoreArithmetic:
    @pytest.mark.parametrize("positions", ["sinusoidal", "rotary"])
    def test_every_cell_is_what_the_model_computed(self, positions):
        model = tiny_model(positions=positions, n_layers=1)
        _, cache = model.run_with_cache(unpadded(model.config, batch=1, pos=5))
        prefix = "rot_" if positions == "rotary" else ""
        for head in range(2):
            q, k = (cache[f"{prefix}{name}", 0][0, :, head] for name in "qk")
            for i in range(5):
                for j in range(5):
                    cell = score_arithmetic(q, k, cache["mask", 0], i, j)
                    assert cell.raw == pytest.approx(float(cache["raw_scores", 0][0, head, i, j]), abs=1e-5)
                    assert cell.scaled == pytest.approx(float(cache["scaled_scores", 0][0, head, i, j]), abs=1e-5)
                    assert cell.weight == pytest.approx(float(cache["pattern", 0][0, head, i, j]), abs=1e-5)
                    assert cell.visible == (j <= i)

    def test_the_steps_follow_from_one_another(self):
        q, k = torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 4.0], [0.0, 1.0], [9.0, 9.0]])
        cell = score_arithmetic(q, k, torch.tensor([[True, True, False]]), 0, 1)
        assert cell.products.tolist() == [0, 2]
        assert cell.raw == 2
        assert cell.scaled == pytest.approx(2 / math.sqrt(2))
        assert cell.row_maximum == pytest.approx(11 / math.sqrt(2))
        assert cell.exponential == pytest.approx(math.exp(-9 / math.sqrt(2)))
        assert cell.row_sum == pytest.approx(1 + cell.exponential)
        assert cell.weight == pytest.approx(cell.exponential / cell.row_sum)

    def test_hidden_cells_and_blind_rows_weigh_nothing(self):
        q, k = torch.ones(1, 2), torch.ones(2, 2)
        hidden = score_arithmetic(q, k, torch.tensor([[True, False]]), 0, 1)
        assert (hidden.visible, hidden.exponential, hidden.weight) == (False, 0, 0)
        blind = score_arithmetic(q, k, torch.tensor([[False, False]]), 0, 0)
        assert (blind.row_sum, blind.weight) == (0, 0)


class TestBigramLoss:
    def test_by_hand(self):
        """0 is followed by 1 three times and by 0 once; 1 by 0 three times. Held out: 0 1, 1 1."""
        train, validation = bigram_loss([0, 1, 0, 1, 0, 0, 1, 0], [0, 1, 1], vocab_size=2)
        assert train == pytest.approx(-(3 * math.log(3 / 4) + math.log(1 / 4)) / 7)
        after_0, after_1 = (3 + SMOOTHING) / (4 + 2 * SMOOTHING), SMOOTHING / (3 + 2 * SMOOTHING)
        assert validation == pytest.approx(-(math.log(after_0) + math.log(after_1)) / 2)

    @given(st.lists(st.integers(0, 4), min_size=2, max_size=60), st.lists(st.integers(0, 4), min_size=2, max_size=60))
    def test_no_table_of_pairs_does_better_on_the_training_part(self, train, validation):
        loss, held_out = bigram_loss(train, torch.tensor(validation), vocab_size=5)
        assert -1e-9 <= loss <= math.log(5) + 1e-9
        assert 0 < held_out < math.inf
        table = torch.rand(5, 5, generator=torch.Generator().manual_seed(0)).log_softmax(-1)
        others = -sum(float(table[a, b]) for a, b in itertools.pairwise(train)) / (len(train) - 1)
        assert loss <= others + 1e-6

    def test_a_token_never_met_is_as_likely_after_as_any(self):
        assert bigram_loss([0, 0, 0], [2, 1], vocab_size=3)[1] == pytest.approx(math.log(3))

    @pytest.mark.parametrize("parts", [([0], [0, 1]), ([0, 1], []), ([0, 3], [0, 1]), ([0, 1], [-1, 1])])
    def test_what_has_no_pairs_of_the_vocabulary_is_refused(self, parts):
        with pytest.raises(ValueError, match=r"at least two tokens|between 0 and 2"):
            bigram_loss(*parts, vocab_size=3)

    def test_on_a_text_it_is_what_a_table_reaches(self):
        objective = TextObjective(load_corpus("python-manual"), 8, 1, 0)
        train, validation = bigram_loss(objective.train, objective.validation, objective.tokenizer.vocab_size)
        assert 2.2 < validation < 2.6 and 2.2 < train < 2.6
