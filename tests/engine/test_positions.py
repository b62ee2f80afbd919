"""Tests sinusoidal and rotary positions against the papers' formulas."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers import tiny_model, unpadded
from transformer import sinusoidal_encoding
from transformer.model import positions


def by_hand(length: int, d_model: int, base: float = 10000.0) -> np.ndarray:
    """PE(pos, 2i) = sin(pos / base^(2i/d_model)), PE(pos, 2i+1) = cos of it, in float64."""
    table = np.zeros((length, d_model))
    for pos in range(length):
        for column in range(d_model):
            angle = pos / base ** ((column - column % 2) / d_model)
            table[pos, column] = math.cos(angle) if column % 2 else math.sin(angle)
    return table


class TestSinusoidal:
    @given(st.integers(0, 20), st.integers(1, 8).map(lambda half: 2 * half), st.sampled_from([10000.0, 100.0]))
    def test_it_is_the_table_of_the_paper(self, length, d_model, base):
        table = sinusoidal_encoding(length, d_model, base)
        assert table.dtype == torch.float32
        np.testing.assert_allclose(table.numpy(), by_hand(length, d_model, base), atol=1e-6)

    def test_it_is_exact_far_out(self):
        row = sinusoidal_encoding(10_001, 64)[10_000].numpy()
        angles = 10_000 / 10_000.0 ** (np.arange(0, 64, 2, dtype=np.float64) / 64)
        np.testing.assert_allclose(row[0::2], np.sin(angles), atol=1e-7)
        np.testing.assert_allclose(row[1::2], np.cos(angles), atol=1e-7)

    def test_a_step_is_the_same_rotation_wherever_it_starts(self):
        table = sinusoidal_encoding(30, 8).double()
        products = table @ table.T
        for distance in range(10):
            diagonal = products.diagonal(distance)
            torch.testing.assert_close(diagonal, diagonal[:1].expand_as(diagonal), atol=1e-5, rtol=0)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [((4, 7), "d_model is 7"), ((4, 0), "d_model is 0"), ((-1, 4), "length is -1"), ((4, 4, 0.0), "base is 0")],
    )
    def test_what_makes_no_table_is_refused(self, arguments, message):
        with pytest.raises(ValueError, match=message):
            sinusoidal_encoding(*arguments)

    def test_rows_are_those_of_the_table(self):
        rows = positions.sinusoidal_rows(5, 3, 8, torch.device("cpu"))
        assert torch.equal(rows, sinusoidal_encoding(8, 8)[5:8])


class TestRotary:
    @given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 50), st.integers(0, 2**32 - 1))
    def test_a_product_depends_on_the_distance_alone(self, m, n, shift, seed):
        q, k = torch.randn(2, 1, 1, 1, 8, generator=torch.Generator().manual_seed(seed))

        def product(at_q: int, at_k: int) -> float:
            return float((positions.rotate(q, at_q) * positions.rotate(k, at_k)).sum())

        assert product(m, n) == pytest.approx(product(m + shift, n + shift), abs=1e-4)

    def test_it_turns_each_pair_by_its_own_angle(self):
        vectors = torch.randn(2, 5, 3, 6, generator=torch.Generator().manual_seed(0))
        turned = positions.rotate(vectors, start=7)
        for pos in range(5):
            for pair in range(3):
                angle = (7 + pos) / 10000 ** (2 * pair / 6)
                x, y = vectors[:, pos, :, 2 * pair], vectors[:, pos, :, 2 * pair + 1]
                expected = (x * math.cos(angle) - y * math.sin(angle), x * math.sin(angle) + y * math.cos(angle))
                torch.testing.assert_close(turned[:, pos, :, 2 * pair], expected[0])
                torch.testing.assert_close(turned[:, pos, :, 2 * pair + 1], expected[1])

    def test_position_0_is_left_alone_and_lengths_stay(self):
        vectors = torch.randn(1, 9, 2, 8, generator=torch.Generator().manual_seed(0))
        turned = positions.rotate(vectors)
        assert torch.equal(turned[:, 0], vectors[:, 0])
        torch.testing.assert_close(turned.norm(dim=-1), vectors.norm(dim=-1))

    def test_it_is_exact_far_out_and_keeps_the_type(self):
        vectors = torch.ones(1, 1, 1, 32)
        turned = positions.rotate(vectors, start=10_000)[0, 0, 0].numpy()
        angles = 10_000 / 10_000.0 ** (np.arange(0, 32, 2, dtype=np.float64) / 32)
        np.testing.assert_allclose(turned[0::2], np.cos(angles) - np.sin(angles), atol=1e-6)
        assert positions.rotate(vectors.bfloat16()).dtype == torch.bfloat16


@pytest.mark.parametrize("kind", ["sinusoidal", "rotary"])
def test_tables_first_needed_in_inference_mode_serve_training_too(kind):
    positions._sinusoidal_table.cache_clear()
    positions._rotation_table.cache_clear()
    model = tiny_model(positions=kind)
    tokens = unpadded(model.config)
    with torch.inference_mode():
        model(tokens)
    scale = torch.ones(8, requires_grad=True)
    hooks = [("hook_pos_embed", lambda rows, hook: rows * scale)] if kind == "sinusoidal" else []
    model.run_with_hooks(tokens, fwd_hooks=hooks).sum().backward()
    assert model.embed.weight.grad is not None
